// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/job_claims.h"

#include <gtest/gtest.h>

#include <set>

#include "exporter/run/process_facts.h"

namespace rankscope::run {
namespace {

constexpr uint32_t kAlice = 1001;
constexpr uint32_t kMallory = 1002;

class JobClaimsTest : public testing::Test {
 protected:
  static Peer Of(uint32_t uid, const std::string& cgroup_job = {}) {
    Peer peer;
    peer.uid = uid;
    peer.cgroup_job = cgroup_job;
    return peer;
  }
  // As the listener does it: what a stranger said is gone with him.
  Proof Open(const std::string& job_id, const Peer& peer, std::optional<JobOwner> owner = {}) {
    const Proof proof = claims_.Judge(job_id, peer, owner);
    if (proof == Proof::kRefused) return proof;
    evicted_ = claims_.Take(job_id, peer.uid, proof);
    kept_.insert(job_id);
    return proof;
  }

  std::set<std::string> kept_;
  JobClaims claims_{[this](const std::string& job_id) { return kept_.contains(job_id); }};
  bool evicted_ = false;
};

TEST_F(JobClaimsTest, AFreeNameIsHisWhoOpensIt) {
  EXPECT_EQ(Open("mine", Of(kAlice)), Proof::kFree);
  EXPECT_EQ(Open("mine", Of(kAlice)), Proof::kFree);
  EXPECT_EQ(Open("mine", Of(kMallory)), Proof::kRefused);
  EXPECT_EQ(Open("mine", Of(0)), Proof::kProven);
  EXPECT_EQ(Open("mine", Of(kAlice)), Proof::kFree) << "root takes nothing away";
  kept_.clear();  // nothing is left of the job
  EXPECT_EQ(Open("mine", Of(kMallory)), Proof::kFree);
  EXPECT_FALSE(evicted_);
}

TEST_F(JobClaimsTest, AMadeNameIsItsMakers) {
  EXPECT_EQ(Open("run-1001-deadbeef", Of(kMallory)), Proof::kRefused);
  EXPECT_EQ(Open("run-1001-deadbeef", Of(kAlice)), Proof::kFree);
  EXPECT_EQ(Open("run-deadbeef", Of(kMallory)), Proof::kFree);
  EXPECT_EQ(MakerOf("run-1001-DEADBEEF"), std::nullopt);
  EXPECT_EQ(MakerOf("run-1001-deadbeef0"), std::nullopt);
  EXPECT_EQ(MakerOf("run-99999999999-deadbeef"), std::nullopt);
  EXPECT_EQ(MakerOf("run-0-00000000"), std::optional<uint32_t>(0));
}

TEST_F(JobClaimsTest, TheCgroupProvesAndEvictsASquatter) {
  EXPECT_EQ(Open("8841", Of(kMallory)), Proof::kFree);
  EXPECT_EQ(Open("8841", Of(kAlice, "8841")), Proof::kProven);
  EXPECT_TRUE(evicted_);
  EXPECT_EQ(Open("8841", Of(kMallory)), Proof::kRefused);
  EXPECT_EQ(Open("8841", Of(kMallory, "8842")), Proof::kRefused) << "of another job";
  EXPECT_EQ(Open("8841", Of(kAlice)), Proof::kProven);
  EXPECT_FALSE(evicted_);
}

TEST_F(JobClaimsTest, TheOwnerOfTheJobsProcessesProves) {
  const JobOwner alice{kAlice, true};
  EXPECT_EQ(Open("8841", Of(kMallory), alice), Proof::kRefused);
  EXPECT_EQ(Open("8841", Of(kAlice), alice), Proof::kProven);
  const JobOwner said{kMallory, false};  // by the environment of a process of his own
  EXPECT_EQ(Open("8842", Of(kAlice)), Proof::kFree);
  EXPECT_EQ(Open("8842", Of(kMallory), said), Proof::kRefused) << "that proves nothing";
}

TEST_F(JobClaimsTest, TheOwnerWhoShowsHimselfEvictsASquatter) {
  EXPECT_EQ(Open("8841", Of(kMallory)), Proof::kFree);
  EXPECT_TRUE(claims_.Own("8841", kAlice));
  EXPECT_FALSE(claims_.Own("8841", kAlice));
  EXPECT_EQ(Open("8841", Of(kMallory)), Proof::kRefused);
  EXPECT_EQ(Open("8841", Of(kAlice)), Proof::kProven);
  EXPECT_FALSE(claims_.Own("8843", kAlice));
  kept_.insert("8843");
  EXPECT_EQ(Open("8843", Of(kMallory)), Proof::kRefused) << "also when its processes are gone";
}

TEST_F(JobClaimsTest, AContainersUserBesideTheJobsOwn) {
  EXPECT_EQ(Open("8841", Of(kAlice, "8841")), Proof::kProven);
  EXPECT_EQ(Open("8841", Of(100'000, "8841")), Proof::kProven);
  EXPECT_FALSE(evicted_);
}

TEST_F(JobClaimsTest, ASlurmJobOfWhichOnlyTheVerdictIsLeftIsNobodys) {
  kept_ = {"8841", "nightly"};
  EXPECT_EQ(Open("8841", Of(kMallory)), Proof::kRefused);
  EXPECT_EQ(Open("8841", Of(kAlice, "8841")), Proof::kProven);
  EXPECT_EQ(Open("nightly", Of(kAlice)), Proof::kFree);
}

TEST_F(JobClaimsTest, SlurmsRecordIsWantedOfItsOwnNumbersOnly) {
  EXPECT_TRUE(claims_.IsOpen("8841", {}));
  EXPECT_FALSE(claims_.IsOpen("nightly", {}));
  EXPECT_FALSE(claims_.IsOpen("8841", JobOwner{kAlice, true})) << "its processes are known";
  EXPECT_TRUE(claims_.IsOpen("8841", JobOwner{kMallory, false})) << "that proves nothing";
  EXPECT_FALSE(claims_.Own("8841", kAlice));
  EXPECT_FALSE(claims_.IsOpen("8841", {}));
  EXPECT_EQ(Open("8841", Of(kMallory)), Proof::kRefused);
  EXPECT_EQ(Open("8841", Of(kAlice)), Proof::kProven);
}

TEST_F(JobClaimsTest, HoldersAreBounded) {
  for (size_t i = 0; i < 3 * JobClaims::kMaxHeld; ++i)
    EXPECT_EQ(Open("job" + std::to_string(i), Of(kMallory)), Proof::kFree);
  EXPECT_LE(claims_.held(), JobClaims::kMaxHeld);
}

TEST(OuterUser, IsReadFromTheMap) {
  EXPECT_EQ(OuterUser("         0          0 4294967295\n", 1001), 1001u);
  EXPECT_EQ(OuterUser("         0       1001          1\n         1     100000      65536\n", 0),
            1001u);
  EXPECT_EQ(OuterUser("         0       1001          1\n         1     100000      65536\n", 5),
            100'004u);
  EXPECT_EQ(OuterUser("", 7), 7u);
  EXPECT_EQ(OuterUser("x y z\n0 1", 7), 7u);
}

}  // namespace
}  // namespace rankscope::run
