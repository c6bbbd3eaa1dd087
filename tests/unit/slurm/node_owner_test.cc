// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whose a job is, by Slurm's record: with programs in the place of Slurm's.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exporter/slurm/node_agent.h"
#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter::slurm {
namespace {

class Nobody final : public Sink {
 public:
  void Accept(const Observation&) override {}
};

class NodeOwner : public testing::Test {
 protected:
  using Told = std::vector<std::pair<std::string, std::optional<uint32_t>>>;

  void Install(const std::string& name, const std::string& body) {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << "#!/bin/sh\n"
                        << "for a; do case $a in --delimiter=*) s=${a#*=} ;; esac; done\n"
                        << "rows() { sed \"s/|/$s/g; s/\\$/$s/\"; }\n"
                        << body << "\n";
    chmod(path.c_str(), 0755);
  }

  // What is told of the job, and whether others may be asked for afterwards.
  std::optional<uint32_t> Ask(const std::string& job_id) {
    Told told;
    EventLoop loop;
    NodeAgent agent(Commands({folder_.path()}, {}), "", questions_, {},
                    [&](const std::string& job, std::optional<uint32_t> uid) {
                      told.emplace_back(job, uid);
                      loop.Stop();
                    });
    EXPECT_TRUE(agent.Start(loop, nobody_));
    EXPECT_TRUE(questions_->tells_owners());
    questions_->Ask({job_id, false, {}, true});
    loop.After(Seconds(20), [&] { loop.Stop(); });
    loop.Run();
    tells_afterwards_ = questions_->tells_owners();
    agent.Stop();
    EXPECT_FALSE(questions_->tells_owners());
    EXPECT_EQ(told.size(), 1u);
    if (told.size() != 1) return std::nullopt;
    EXPECT_EQ(told[0].first, job_id);
    return told[0].second;
  }

  TemporaryDirectory folder_;
  Nobody nobody_;
  std::shared_ptr<Questions> questions_ = std::make_shared<Questions>();
  bool tells_afterwards_ = false;
};

constexpr char kForgotten[] = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1";

TEST_F(NodeOwner, IsTheControllersToTell) {
  Install("scontrol",
          "echo 'JobId=7 JobName=a UserId=ada(61001) JobState=PENDING Reason=None Restarts=0 "
          "ExitCode=0:0 WorkDir=/home/ada'");
  EXPECT_EQ(Ask("7"), std::optional<uint32_t>(61001));
  EXPECT_TRUE(tells_afterwards_);
}

TEST_F(NodeOwner, IsNotWhatAJobsNameSays) {
  Install("scontrol",
          "echo 'JobId=7 JobName=a UserId=eve(61002) UserId=ada(61001) JobState=PENDING "
          "Reason=None Restarts=0 ExitCode=0:0 WorkDir=/home/ada'");
  Install("sacct", "exit 1");
  EXPECT_EQ(Ask("7"), std::nullopt);
}

TEST_F(NodeOwner, IsAccountingsToTellOfAJobThatIsOver) {
  Install("scontrol", kForgotten);
  Install("sacct",
          "(echo 'JobIDRaw|JobID|State|User|SubmitLine'; echo '7|7|COMPLETED|daemon|sbatch a.sh') "
          "| rows");
  EXPECT_EQ(Ask("7"), std::optional<uint32_t>(1)) << "daemon has the number 1 everywhere";
}

TEST_F(NodeOwner, OfAJobThatSlurmDoesNotKnowIsNobody) {
  Install("scontrol", kForgotten);
  Install("sacct", "echo 'JobIDRaw|JobID|State|User|SubmitLine' | rows");
  EXPECT_EQ(Ask("7"), std::nullopt);
  EXPECT_TRUE(tells_afterwards_);
}

TEST_F(NodeOwner, IsNotAskedForAgainWhereNobodyAnswers) {
  Install("scontrol", "echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1");
  EXPECT_EQ(Ask("7"), std::nullopt);
  EXPECT_FALSE(tells_afterwards_);
}

}  // namespace
}  // namespace rankscope::exporter::slurm
