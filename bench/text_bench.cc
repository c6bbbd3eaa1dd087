// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The way of text on one core, in megabytes (1e6) per second of CPU time: all that `classify` does
// with a line (assemble, look for secrets, read, keep in the engine), all that `progress` does
// (assemble, read), and beside them what the same lines cost when they are only split, when RE2
// only says which anchors they hold, and when it only looks for a few words, as grep would.
#include <benchmark/benchmark.h>
#include <re2/re2.h>
#include <re2/set.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "detectors/engine/engine.h"
#include "detectors/logs/progress/formats.h"
#include "detectors/logs/reader.h"
#include "detectors/logs/text/assembler.h"
#include "detectors/logs/text/masked_line.h"
#include "detectors/logs/text/redactor.h"

namespace rankscope::logs {
namespace {

constexpr size_t kLogBytes = size_t{12} << 20;

std::string HuggingFaceLog() {
  std::string log;
  char line[256];
  for (int step = 0; log.size() < kLogBytes; ++step) {
    std::snprintf(line, sizeof line,
                  "{'loss': %.4f, 'grad_norm': %.16f, 'learning_rate': %.16e, 'epoch': %.2f}\n",
                  2.5 + 1.0 / (1 + step), 1.0 + step % 97 * 0.0103, 5e-5 * (1 - step * 1e-6),
                  step * 1e-4);
    log += line;
  }
  return log;
}

std::string MegatronLog() {
  std::string log;
  char line[640];
  for (int step = 1; log.size() < kLogBytes; ++step) {
    std::snprintf(line, sizeof line,
                  " iteration %8d/  500000 | consumed samples: %12d | consumed tokens: %14lld | "
                  "elapsed time per "
                  "iteration (ms): %.1f | learning rate: %.3E | global batch size:  1024 | lm "
                  "loss: %.6E | loss "
                  "scale: 1.0 | grad norm: %.3f | num zeros: 0.0 | number of skipped iterations:   "
                  "0 | number of nan "
                  "iterations:   0 | samples per second: %.3f | TFLOPs: %.2f |\n",
                  step, step * 1024, step * 1024LL * 2048, 5361.6 + step % 13, 1.5e-4,
                  2.5 + 1.0 / step, 1.3, 191.0, 140.25);
    log += line;
  }
  return log;
}

std::string LoopLog() {
  std::string log;
  char line[160];
  for (int step = 0; log.size() < kLogBytes; ++step) {
    std::snprintf(line, sizeof line, "step %d loss %.4f lr %.5f step_time %.3fs\n", step,
                  2.5 + 1.0 / (1 + step), 0.05, 0.053);
    log += line;
  }
  return log;
}

// Lines that no dialect knows: what a stream mostly holds.
std::string ProseLog() {
  std::string log;
  char line[200];
  for (int i = 0; log.size() < kLogBytes; ++i) {
    std::snprintf(line, sizeof line,
                  "2026-02-03 04:05:%02d,%03d - data.shards - DEBUG - prefetched shard %05d of "
                  "20480 from the cache in "
                  "%d ms, queue depth %d\n",
                  i % 60, i % 1000, i % 20480, 3 + i % 40, i % 8);
    log += line;
  }
  return log;
}

std::string TracebackLog() {
  std::string log;
  for (int i = 0; log.size() < kLogBytes; ++i) {
    log += "Traceback (most recent call last):\n";
    for (int frame = 0; frame < 6; ++frame) {
      log += "  File \"/opt/train/module_" + std::to_string(frame) + ".py\", line " +
             std::to_string(10 + frame) +
             ", in forward\n    return self.layer(inputs, mask=mask)\n";
    }
    log += "ValueError: expected 4 columns, got " + std::to_string(i) + "\n";
    log += "restarting the loader\n\nall good\n\nwaiting for data\nstill waiting\n";
  }
  return log;
}

constexpr size_t kBlock = size_t{64} * 1024;

template <typename OnLine>
void EachLine(const std::string& log, OnLine&& on_line) {
  LineAssembler assembler;
  for (size_t i = 0; i < log.size(); i += kBlock)
    assembler.Feed(std::string_view(log).substr(i, kBlock), on_line);
  assembler.Flush(LineEnd::kClosed, on_line);
}

void Report(benchmark::State& state, const std::string& log) {
  const double megabytes =
      static_cast<double>(log.size()) * static_cast<double>(state.iterations()) * 1e-6;
  state.counters["MB/s"] = benchmark::Counter(megabytes, benchmark::Counter::kIsRate);
}

template <std::string (*make)()>
void Classify(benchmark::State& state) {
  const std::string log = make();
  for (auto _ : state) {
    engine::Engine engine;
    Observation observation;
    observation.t = Timestamp{1'000'000'000};
    RunMark begin;
    begin.job_id = "bench";
    begin.what = RunMark::What::kBegin;
    observation.kind = std::move(begin);
    engine.Accept(observation);
    LogLine first;
    first.job_id = "bench";
    observation.kind = std::move(first);
    std::string masked;
    EachLine(log, [&](const AssembledLine& assembled) {
      LogLine& line = std::get<LogLine>(observation.kind);
      FillLine(assembled, line, masked);
      engine.Accept(observation);
    });
  }
  Report(state, log);
}

template <std::string (*make)()>
void Progress(benchmark::State& state) {
  const std::string log = make();
  size_t records = 0;
  for (auto _ : state) {
    Reader reader;
    LogLine log_line;
    records = 0;
    EachLine(log, [&](const AssembledLine& line) {
      log_line.text = line.text;
      log_line.offset = line.offset;
      log_line.end = line.end;
      records += reader.Feed(log_line, Timestamp{}).size();
    });
    records += reader.Flush().size();
  }
  Report(state, log);
  state.counters["records"] = static_cast<double>(records);
}

template <std::string (*make)()>
void Secrets(benchmark::State& state) {
  const std::string log = make();
  for (auto _ : state) {
    int64_t secrets = 0;
    EachLine(log, [&](const AssembledLine& line) { secrets += MayHoldSecret(line.text); });
    benchmark::DoNotOptimize(secrets);
  }
  Report(state, log);
}

template <std::string (*make)()>
void Split(benchmark::State& state) {
  const std::string log = make();
  for (auto _ : state) {
    size_t lines = 0;
    const char* p = log.data();
    const char* const end = p + log.size();
    while (const void* found = std::memchr(p, '\n', static_cast<size_t>(end - p))) {
      ++lines;
      p = static_cast<const char*>(found) + 1;
    }
    benchmark::DoNotOptimize(lines);
  }
  Report(state, log);
}

template <std::string (*make)()>
void AnchorsByRe2(benchmark::State& state) {
  const std::string log = make();
  RE2::Set anchors(RE2::Quiet, RE2::UNANCHORED);
  for (const FormatRow& row : Formats()) {
    for (const std::string_view anchor : row.anchors)
      anchors.Add(RE2::QuoteMeta({anchor.data(), anchor.size()}), nullptr);
  }
  for (const ShapeRow& row : Shapes()) {
    for (const std::string_view anchor : row.anchors)
      anchors.Add(RE2::QuoteMeta({anchor.data(), anchor.size()}), nullptr);
  }
  if (!anchors.Compile()) return state.SkipWithError("RE2::Set does not compile");
  std::vector<int> hits;
  for (auto _ : state) {
    size_t sum = 0;
    EachLine(log, [&](const AssembledLine& line) {
      anchors.Match({line.text.data(), line.text.size()}, &hits);
      sum += hits.size();
    });
    benchmark::DoNotOptimize(sum);
  }
  Report(state, log);
}

// What `grep -E 'loss|iteration|step'` does: lines that hold one of a few words.
template <std::string (*make)()>
void Grep(benchmark::State& state) {
  const std::string log = make();
  const RE2 pattern("loss|iteration|step|Error|checkpoint");
  for (auto _ : state) {
    size_t hits = 0;
    EachLine(log, [&](const AssembledLine& line) {
      hits += RE2::PartialMatch({line.text.data(), line.text.size()}, pattern);
    });
    benchmark::DoNotOptimize(hits);
  }
  Report(state, log);
}

template <std::string (*make)()>
void Register(const std::string& name) {
  const std::pair<const char*, void (*)(benchmark::State&)> paths[] = {
      {"classify/", Classify<make>},    {"progress/", Progress<make>}, {"secrets/", Secrets<make>},
      {"re2_set/", AnchorsByRe2<make>}, {"grep/", Grep<make>},         {"split/", Split<make>}};
  for (const auto& [path, run] : paths)
    benchmark::RegisterBenchmark((path + name).c_str(), run)->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace rankscope::logs

int main(int argc, char** argv) {
  using namespace rankscope::logs;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  Register<HuggingFaceLog>("hugging_face");
  Register<MegatronLog>("megatron");
  Register<LoopLog>("loop");
  Register<ProseLog>("prose");
  Register<TracebackLog>("dense_tracebacks");
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
