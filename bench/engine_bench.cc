// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the engine costs: 60 numbers of 1,024 and of 16,384 ranks once a second, ticks of many jobs,
// one verdict.
// core_share is the share of one core that a second of the world takes; the budget is 0.05.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "detectors/engine/engine.h"
#include "detectors/status/job_statuses.h"

namespace rankscope::engine {
namespace {

constexpr size_t kSignals = 60;
constexpr int64_t kSecond = 1'000'000'000;

int64_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

void Begin(Engine& engine, const std::string& job_id, int world_size, int64_t t) {
  RunMark mark;
  mark.job_id = job_id;
  mark.what = RunMark::What::kBegin;
  mark.argv = {"torchrun", "train.py"};
  mark.world_size = world_size;
  engine.Accept({{t}, 1, 0, "n1", mark});
}

void Say(Engine& engine, const std::string& job_id, const std::string& text, int64_t t) {
  LogLine line;
  line.stream = 1;
  line.stream_name = "stdout";
  line.job_id = job_id;
  line.text = text;
  line.offset = t / 1000;
  line.end = LineEnd::kLf;
  engine.Accept({{t}, 1, 0, "n1", line});
}

void Train(Engine& engine, const std::string& job_id, int steps, int64_t t) {
  for (int step = 1; step <= steps; ++step) {
    char text[96];
    std::snprintf(text, sizeof text, "step %d loss %.4f lr 0.01 step_time 0.080s", step,
                  0.5 + 3.0 / (1 + 0.1 * step) + 0.001 * (step * 7919 % 13));
    Say(engine, job_id, text, t + step * kSecond / 10);
  }
}

// As the daemon does it: what is shown of the jobs is written with each tick.
void Judge(Engine& engine, status::JobStatuses& statuses, int64_t t) {
  statuses.Update(engine, engine.Tick({t}));
}

// One batch for each rank.
std::vector<Observation> OneSecondOfNumbers(const std::string& job_id, int ranks) {
  std::vector<Observation> batches(static_cast<size_t>(ranks));
  const auto signals = SignalTable().first(kSignals);
  for (int rank = 0; rank < ranks; ++rank) {
    SampleBatch batch;
    batch.subject.kind = Subject::Kind::kRank;
    batch.subject.rank = {job_id, rank};
    for (const SignalRow& signal : signals)
      batch.samples.push_back({signal.id, static_cast<float>(rank) * 0.5f});
    batches[static_cast<size_t>(rank)].kind = std::move(batch);
  }
  return batches;
}

void SamplesOfRanks(benchmark::State& state) {
  const auto ranks = static_cast<int>(state.range(0));
  const int64_t before = HeapBytes();
  Engine engine({}, "n1");
  status::JobStatuses statuses;
  int64_t t = 1000 * kSecond;
  Begin(engine, "job", ranks, t);
  Train(engine, "job", 200, t);
  std::vector<Observation> batches = OneSecondOfNumbers("job", ranks);
  const int64_t numbers = HeapBytes();
  const auto second = [&] {
    t += kSecond;
    for (Observation& batch : batches) {
      batch.t = {t};
      engine.Accept(batch);
    }
    Judge(engine, statuses, t);
  };
  second();  // columns are allocated once
  for (auto _ : state) second();
  state.counters["core_share"] =
      benchmark::Counter(static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["kB_per_rank"] = static_cast<double>(HeapBytes() - numbers) / ranks / 1000;
  state.counters["MB_in_all"] = static_cast<double>(HeapBytes() - before) / 1e6;
}
BENCHMARK(SamplesOfRanks)->Arg(1024)->Arg(16384)->Unit(benchmark::kMillisecond);

void TickOfSixtyFourJobs(benchmark::State& state) {
  Engine engine({}, "n1");
  status::JobStatuses statuses;
  int64_t t = 1000 * kSecond;
  for (int job = 0; job < 64; ++job) {
    Begin(engine, "job" + std::to_string(job), 8, t);
    Train(engine, "job" + std::to_string(job), 2000, t);
  }
  t += 201 * kSecond;
  for (auto _ : state) {
    t += kSecond / 100;  // not yet silent for long
    Judge(engine, statuses, t);
  }
}
BENCHMARK(TickOfSixtyFourJobs)->Unit(benchmark::kMillisecond);

constexpr const char* kTraceback[] = {
    "Traceback (most recent call last):", "  File \"/u/train.py\", line 7, in <module>",
    "    loss.backward()", "RuntimeError: The size of tensor a (4) must match b (5)"};

// A run that has failed, judged anew: features, families, sentences, document.
void OneVerdict(benchmark::State& state) {
  Engine engine({}, "n1");
  status::JobStatuses statuses;
  int64_t t = 1000 * kSecond;
  Begin(engine, "job", 8, t);
  Train(engine, "job", 2000, t);
  t += 201 * kSecond;
  for (const char* line : kTraceback) Say(engine, "job", line, t);
  t += 5 * kSecond;
  for (auto _ : state) {
    t += kSecond / 1000;
    Judge(engine, statuses, t);
  }
}
BENCHMARK(OneVerdict)->Unit(benchmark::kMicrosecond);

void SaveAndRestore(benchmark::State& state) {
  Engine engine({}, "n1");
  const int64_t t = 1000 * kSecond;
  for (int job = 0; job < 8; ++job) {
    Begin(engine, "job" + std::to_string(job), 8, t);
    Train(engine, "job" + std::to_string(job), 2000, t);
  }
  engine.Tick({t + 201 * kSecond});
  size_t bytes = 0;
  for (auto _ : state) {
    const std::string blob = engine.Save();
    bytes = blob.size();
    Engine other({}, "n1");
    benchmark::DoNotOptimize(other.Restore(blob));
  }
  state.counters["kB"] = static_cast<double>(bytes) / 1000;
}
BENCHMARK(SaveAndRestore)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rankscope::engine
