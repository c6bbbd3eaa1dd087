// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/published_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope::exporter {
namespace {

class PublishedJobsTest : public testing::Test {
 protected:
  void Accept(double second, decltype(Observation::kind) kind) {
    Observation observation;
    observation.t = At(second);
    observation.kind = std::move(kind);
    engine_.Accept(observation);
  }
  void Mark(double second, RunMark::What what, const std::string& job_id, int32_t status = 0) {
    RunMark mark;
    mark.what = what;
    mark.job_id = job_id;
    mark.wait_status = status;
    Accept(second, std::move(mark));
  }
  // As the agent does it.
  metrics::JobList Tick(double second, const std::string& trouble = {}) {
    const engine::Output output = engine_.Tick(At(second));
    statuses_.Update(engine_, output);
    for (const std::string& job_id : output.changed) {
      const std::shared_ptr<const JobStatus> job = statuses_.Find(job_id);
      if (job == nullptr || job->verdict.state() != proto::FINAL) continue;
      kept_ = {std::make_shared<const JobStatus>(*job)};
      statuses_.Replace(kept_.front());
    }
    PublishedJobs::Notes notes;
    notes.on_running = [&](const JobStatus& job) -> std::shared_ptr<const JobStatus> {
      if (trouble.empty()) return nullptr;
      auto noted = std::make_shared<JobStatus>(job);
      noted->verdict.mutable_data_quality()->add_notes(trouble);
      return noted;
    };
    notes.is_unkept = [](const std::string& job_id) { return job_id == "unkept"; };
    notes.why_unkept = why_unkept_;
    return jobs_.All(statuses_, kept_, notes);
  }
  static Timestamp At(double second) { return {static_cast<int64_t>((1000 + second) * 1e9)}; }

  engine::Engine engine_;
  status::JobStatuses statuses_;
  metrics::JobList kept_;
  std::string why_unkept_;
  PublishedJobs jobs_;
};

TEST_F(PublishedJobsTest, UsersHaveTheNamesOfTheNode) {
  std::map<int64_t, std::string> names;
  status::JobStatuses statuses([&](int64_t uid) { return names[uid]; });
  RunMark mark;
  mark.what = RunMark::What::kBegin;
  mark.job_id = "a";
  mark.uid = 1000;
  Accept(1, std::move(mark));
  statuses.Update(engine_, engine_.Tick(At(2)));
  ASSERT_NE(statuses.Find("a"), nullptr);
  EXPECT_EQ(statuses.Find("a")->user, "1000") << "as long as nobody answers";
  names[1000] = "lena";
  statuses.Named(7);
  EXPECT_EQ(statuses.Find("a")->user, "1000");
  statuses.Named(1000);
  EXPECT_EQ(statuses.Find("a")->user, "lena");
  statuses.Update(engine_, engine_.Tick(At(3)));
  EXPECT_EQ(statuses.Find("a")->user, "lena");
}

TEST_F(PublishedJobsTest, OnlyWhatTheEngineWritesAnewIsCopied) {
  Accept(0, Epoch{1'750'000'000'000'000'000, 1000, "boot-1"});
  Mark(1, RunMark::What::kBegin, "a");
  Mark(1, RunMark::What::kBegin, "b");
  Mark(2, RunMark::What::kEnd, "a", 256);
  Mark(2, RunMark::What::kStreamsClosed, "a");
  const metrics::JobList first = Tick(2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0]->job_id, "a");
  metrics::JobList final;
  for (int second = 3; second < 30; ++second) final = Tick(second);
  ASSERT_EQ(final[0]->verdict.state(), proto::FINAL);
  EXPECT_EQ(final[0], kept_.front()) << "in memory once";
  const metrics::JobList later = Tick(31);
  EXPECT_EQ(later[0], final[0]);
  EXPECT_NE(later[1], final[1]) << "it runs";
  EXPECT_EQ(final[1]->verdict.state(), proto::LIVE) << "what was handed out stays";
  // The engine forgets it; the store's is the same still.
  const metrics::JobList forgotten = Tick(700);
  EXPECT_FALSE(engine_.Find("a"));
  EXPECT_EQ(statuses_.Find("a"), nullptr);
  EXPECT_EQ(forgotten[0], final[0]);
}

TEST_F(PublishedJobsTest, AJobThatIsBegunAnewIsNotWhatIsKeptOfTheLast) {
  Accept(0, Epoch{1'750'000'000'000'000'000, 1000, "boot-1"});
  JobStatus kept;
  kept.job_id = "a";
  kept.running = false;
  kept.verdict.set_state(proto::FINAL);
  kept_ = {std::make_shared<const JobStatus>(kept)};
  Mark(1, RunMark::What::kBegin, "a");
  const metrics::JobList jobs = Tick(2);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0]->verdict.state(), proto::LIVE);
}

TEST_F(PublishedJobsTest, TroubleIsNotedOnWhatRuns) {
  Accept(0, Epoch{1'750'000'000'000'000'000, 1000, "boot-1"});
  Mark(1, RunMark::What::kBegin, "a");
  const metrics::JobList jobs = Tick(2, "disk full");
  ASSERT_EQ(jobs[0]->verdict.data_quality().notes_size(), 1);
  EXPECT_EQ(jobs[0]->verdict.data_quality().notes(0), "disk full");
  EXPECT_EQ(Tick(3)[0]->verdict.data_quality().notes_size(), 0);
}

TEST_F(PublishedJobsTest, WhatTheDiskHasNotTakenIsNotedAndCopiedOnce) {
  JobStatus kept;
  kept.running = false;
  kept.verdict.set_state(proto::FINAL);
  for (const char* job_id : {"kept", "unkept"}) {
    kept.job_id = job_id;
    kept_.push_back(std::make_shared<const JobStatus>(kept));
  }
  const metrics::JobList before = Tick(1);
  EXPECT_EQ(before[1], kept_[1]);
  why_unkept_ = "no room";
  const metrics::JobList first = Tick(2);
  EXPECT_EQ(first[0], kept_[0]);
  ASSERT_EQ(first[1]->verdict.data_quality().notes_size(), 1);
  EXPECT_EQ(first[1]->verdict.data_quality().notes(0), "not on the disk yet: no room");
  EXPECT_EQ(Tick(3)[1], first[1]) << "in memory once";
  why_unkept_ = "";
  EXPECT_EQ(Tick(4)[1], kept_[1]);
}

}  // namespace
}  // namespace rankscope::exporter
