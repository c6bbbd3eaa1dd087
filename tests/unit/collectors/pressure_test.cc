// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/pressure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/unit/collectors/recording_sink.h"

namespace rankscope::collectors {
namespace {

namespace fs = std::filesystem;

constexpr char kMemory[] =
    "some avg10=1.50 avg60=0.30 avg300=0.00 total=2500000\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=1250000\n";

TEST(ParsePressure, TotalsAreMicroseconds) {
  EXPECT_EQ(ParsePressure(kMemory).some, 2.5);
  EXPECT_EQ(ParsePressure(kMemory).full, 1.25);
  EXPECT_EQ(ParsePressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=7").some, 7e-6);
  EXPECT_FALSE(ParsePressure("some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n").full)
      << "of the CPU before Linux 5.13";
  for (const char* text : {"", "some", "some total=", "some total=-1", "some total=1x",
                           "some total=99999999999999999999999", "other avg10=0 total=5"}) {
    EXPECT_FALSE(ParsePressure(text).some) << text;
  }
}

class PressureTest : public ::testing::Test {
 protected:
  PressureTest() {
    std::string name = (fs::temp_directory_path() / "rankscope_psi_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~PressureTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // Until `enough` of what the source said.
  void RunUntil(const std::function<bool()>& enough) {
    Pressure source(table_, Duration{5'000'000}, (root_ / "proc").string(),
                    (root_ / "cgroup").string());
    sink_.on_accept = [&](const Observation&) {
      if (enough()) loop_.Stop();
    };
    ASSERT_TRUE(source.Start(loop_, sink_).ok());
    loop_.Run();
    source.Stop();
  }
  void AddProcess(int32_t pid, const std::string& job, const std::string& cgroup, bool v1,
                  bool by_cgroup) {
    TrackedProcess process;
    process.key = {pid, 100};
    process.job_id = job;
    process.memory_cgroup = cgroup;
    process.memory_is_v1 = v1;
    process.by_cgroup = by_cgroup;
    table_->Add(process);
  }
  std::vector<SampleBatch> Batches() { return sink_.Of<SampleBatch>(); }

  fs::path root_;
  exporter::EventLoop loop_;
  RecordingSink sink_;
  std::shared_ptr<ProcessTable> table_ = std::make_shared<ProcessTable>();
};

TEST_F(PressureTest, OfTheHostAndOfEachJobsCgroup) {
  Write("proc/pressure/memory", kMemory);
  const std::string job = "/system.slice/slurmstepd.scope/job_7";
  Write("cgroup" + job + "/memory.pressure", "some avg10=0.00 avg60=0 avg300=0 total=500000\n");
  Write("cgroup/elsewhere/job_8/memory.pressure", kMemory);
  AddProcess(41, "7", job + "/step_0/user/task_0", false, true);
  AddProcess(42, "7", job + "/step_0/user/task_1", false, true);
  AddProcess(43, "8", "/elsewhere/job_8", false, false);  // its environment names the job
  AddProcess(44, "9", "/slurm/uid_0/job_9", true, true);  // version 1
  RunUntil([this] { return Batches().size() >= 4; });
  const std::vector<SampleBatch> batches = Batches();
  EXPECT_EQ(batches[0].subject.kind, Subject::Kind::kHost);
  ASSERT_EQ(batches[0].samples.size(), 2u);
  EXPECT_EQ(batches[0].samples[0].signal, SignalId::kHostMemoryWaitingSeconds);
  EXPECT_EQ(batches[0].samples[0].value, 2.5);
  EXPECT_EQ(batches[1].subject.kind, Subject::Kind::kJob);
  EXPECT_EQ(batches[1].subject.name, "7");
  ASSERT_EQ(batches[1].samples.size(), 1u);
  EXPECT_EQ(batches[1].samples[0].signal, SignalId::kJobMemoryWaitingSeconds);
  EXPECT_EQ(batches[1].samples[0].value, 0.5);
  EXPECT_TRUE(std::none_of(batches.begin(), batches.end(), [](const SampleBatch& batch) {
    return batch.subject.name == "8" || batch.subject.name == "9";
  }));
}

TEST_F(PressureTest, AKernelWithoutItIsNamed) {
  RunUntil([this] { return !sink_.Of<SourceState>().empty(); });
  EXPECT_EQ(sink_.Of<SourceState>().front().state, Availability::kUnsupported);
  EXPECT_TRUE(Batches().empty());
}

}  // namespace
}  // namespace rankscope::collectors
