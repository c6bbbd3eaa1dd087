// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A recording of a whole cluster as one job: each of 1,024 ranks is itself, and the one that is
// awaited is named by its own number.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "detectors/engine/engine.h"
#include "detectors/model/event_types.h"
#include "tests/unit/engine/driver.h"

namespace rankscope::testing {
namespace {

constexpr int kRanks = 1024;
constexpr int kLate = 700;
constexpr int kNodes = 128;

ProcessKey ProcessOf(int rank) {
  return {10'000 + rank, 100 + rank};
}

int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

class Cluster {
 public:
  Cluster() {
    RunMark mark;
    mark.job_id = "j1";
    mark.what = RunMark::What::kBegin;
    mark.argv = {"torchrun", "train.py"};
    mark.world_size = kRanks;
    Give(0, std::move(mark));
    for (const auto& [id, name] : {std::pair<uint32_t, const char*>{6, "cuda"}, {7, "nccl"}}) {
      SourceState state;
      state.source = id;
      state.name = name;
      state.state = Availability::kUp;
      Give(0, std::move(state));
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      ProcessStart start;
      start.key = ProcessOf(rank);
      start.comm = "python3";
      start.job_id = "j1";
      start.env = {{"RANK", std::to_string(rank)},
                   {"LOCAL_RANK", std::to_string(rank % (kRanks / kNodes))},
                   {"WORLD_SIZE", std::to_string(kRanks)}};
      start.complete = true;
      Give(0.1, std::move(start), "n" + std::to_string(rank / (kRanks / kNodes)));
    }
  }

  template <class Kind>
  void Give(double second, Kind kind, const std::string& node = "n0") {
    Observation observation;
    observation.t = AtSecond(second);
    observation.seq = ++seq_;
    observation.node = node;
    observation.kind = std::move(kind);
    engine_.Accept(observation);
  }

  void Say(int step, double second) {
    const std::string text =
        "step " + std::to_string(step) + " loss " +
        std::to_string(0.5 + 3.0 / (1 + 0.05 * step) + 0.01 * ((step * 7919) % 13 - 6)) +
        " lr 0.01";
    LogLine line;
    line.stream = 1;
    line.stream_name = "stdout";
    line.job_id = "j1";
    line.text = text;
    line.offset = offset_;
    line.end = LineEnd::kLf;
    offset_ += static_cast<int64_t>(text.size()) + 1;
    Give(second, line);
  }

  // `stands`: seconds since the rank last did anything; 0 = it trains.
  void Count(int rank, double second, double done, double stands, bool waits) {
    SampleBatch batch;
    batch.subject.kind = Subject::Kind::kProcess;
    batch.subject.process = ProcessOf(rank);
    batch.samples = {{SignalId::kKernelLaunches, done * 20},
                     {SignalId::kLastLaunchAge, std::max(0.01, stands)},
                     {SignalId::kCudaSyncSeconds, done * 0.01 + (waits ? stands : 0)},
                     {SignalId::kOldestSyncSeconds, waits ? stands : 0},
                     {SignalId::kSyncCalls, done},
                     {SignalId::kCollectivesEnqueued, done}};
    Give(second, std::move(batch), "n" + std::to_string(rank / (kRanks / kNodes)));
  }

  void Tick(double second) { engine_.Tick(AtSecond(second)); }
  const proto::Verdict& verdict() { return *engine_.Find("j1")->verdict; }

 private:
  engine::Engine engine_{{}, "n0"};
  int64_t seq_ = 0;
  int64_t offset_ = 0;
};

TEST(Scale, OneRankOfAThousandIsAwaited) {
  const int64_t before = HeapBytes();
  const auto begin = std::chrono::steady_clock::now();
  Cluster cluster;
  constexpr int kTrains = 120, kStands = 90;
  for (int second = 1; second <= kTrains + kStands; ++second) {
    const bool stands = second > kTrains;
    for (int rank = 0; rank < kRanks; ++rank) {
      const double done = 20.0 * std::min(second, kTrains);
      cluster.Count(rank, second, rank == kLate || !stands ? done : done + 2,
                    stands ? second - kTrains : 0, rank != kLate);
    }
    if (!stands) cluster.Say(second, second + 0.1);
    cluster.Tick(second + 0.2);
  }
  const proto::Verdict& verdict = cluster.verdict();
  EXPECT_EQ(verdict.code(), "C2");
  EXPECT_THAT(verdict.ranks(), ::testing::ElementsAre(kLate));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const double megabytes = static_cast<double>(HeapBytes() - before) / 1e6;
  RecordProperty("seconds", std::to_string(seconds));
  RecordProperty("megabytes", std::to_string(megabytes));
  std::printf("1,024 ranks, 210 s: %.1f s, %.0f MB\n", seconds, megabytes);
  EXPECT_LT(megabytes, 200);  // a daemon's jobs of eight ranks take less than 1 MB each
}

// Dumps of all nodes, as a folder of them is read.
TEST(Scale, TheDumpsOfAThousandRanks) {
  Cluster cluster;
  constexpr int64_t kWritten = 1'770'000'900'000'000'000;
  for (int rank = 0; rank < kRanks; ++rank) {
    const bool late = rank == kLate;
    Event event;
    event.type = WireType(EventType::kFlightRecord);
    event.process = ProcessOf(rank);
    event.str = {{"group", "0"}, {"description", "default_pg"}, {"members", "0-1023"}};
    event.num = {{"rank", rank},
                 {"index", 0},
                 {"groups", 1},
                 {"cut", 0},
                 {"written_ns", kWritten},
                 {"enqueued", late ? 4520 : 4522},
                 {"completed", 4520},
                 {"entries", 100}};
    if (!late) {
      event.str.push_back({"operation", "all_reduce"});
      event.num.push_back({"pending", 4521});
      event.num.push_back({"created_ns", kWritten - 600'000'000'000});
    }
    cluster.Give(5, std::move(event), "n" + std::to_string(rank / (kRanks / kNodes)));
  }
  for (int second = 5; second < 9; ++second) cluster.Tick(second + 0.5);
  EXPECT_EQ(cluster.verdict().code(), "C2");
  EXPECT_THAT(cluster.verdict().ranks(), ::testing::ElementsAre(kLate));
}

// A recording that holds nothing but dumps: no process, no wrapper, no live rank.
TEST(Scale, DumpsAloneAreAJob) {
  engine::Engine engine({}, "n0");
  for (int32_t rank = 0; rank < 4; ++rank) {
    Event event;
    event.type = WireType(EventType::kFlightRecord);
    event.rank = {"8841", rank};
    event.str = {{"group", "0"}, {"description", "default_pg"}, {"members", "0-3"}};
    event.num = {{"rank", rank}, {"index", 0}, {"enqueued", rank == 2 ? 7 : 8}, {"completed", 7}};
    if (rank != 2) {
      event.str.push_back({"operation", "all_reduce"});
      event.num.push_back({"pending", 8});
    }
    Observation observation;
    observation.t = AtSecond(1);
    observation.seq = rank + 1;
    observation.kind = std::move(event);
    engine.Accept(observation);
  }
  for (int second = 1; second < 5; ++second) engine.Tick(AtSecond(second + 0.5));
  const proto::Verdict verdict = VerdictOf(engine, "8841");
  EXPECT_EQ(verdict.code(), "C2");
  EXPECT_THAT(verdict.ranks(), ::testing::ElementsAre(2));
}

}  // namespace
}  // namespace rankscope::testing
