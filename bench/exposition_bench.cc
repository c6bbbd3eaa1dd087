// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Snapshot -> text, OpenMetrics and protobuf for a node with 12,000 series, beside prometheus-cpp's
// own Collect + TextSerializer for the same series. The last lines print the medians of all,
// measured in turns, and what gzip at the level that is served costs and saves.
#include <benchmark/benchmark.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/http/compression.h"
#include "exporter/metrics/encoder.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::metrics {
namespace {

constexpr size_t kSeries = 12000;

// Jobs of 64 ranks until the node has more than kSeries; the cap cuts at exactly that many.
Published Node() {
  std::vector<JobStatus> jobs;
  for (int job = 0; job < 20; ++job) {
    JobStatus status = test::HealthyJob(std::to_string(880000 + job));
    status.signals.Set(SignalId::kLoss, 2.3 + 0.01 / (job + 1));
    status.ranks.resize(1);
    const RankStatus rank = status.ranks.front();
    status.ranks.clear();
    for (int r = 0; r < 64; ++r) {
      status.ranks.push_back(rank);
      status.ranks.back().rank = r;
      status.ranks.back().signals.Set(SignalId::kCpuSeconds, 1234.5678 + r * 0.3711);
      status.ranks.back().signals.Set(SignalId::kOldestCollectiveSeconds, 0.0123456 * (r + 1));
      status.ranks.back().signals.Set(SignalId::kRankEngineActivity, 0.97);
      status.ranks.back().signals.Set(SignalId::kRankSmActivity, 0.9131 - r * 0.001);
    }
    jobs.push_back(std::move(status));
  }
  return test::OnNode(std::move(jobs));
}

const SnapshotOptions kOptions = {.profile = Profile::kFull, .max_series = kSeries};

std::shared_ptr<const Snapshot> TheSnapshot() {
  static const std::shared_ptr<const Snapshot> snapshot = SnapshotBuilder(kOptions).Build(Node());
  return snapshot;
}

// The same series as prometheus-cpp keeps them.
const prometheus::Registry& TheRegistry() {
  static const std::unique_ptr<prometheus::Registry> registry = [] {
    auto out = std::make_unique<prometheus::Registry>();
    for (const Family& family : TheSnapshot()->families) {
      auto& target = prometheus::BuildGauge()
                         .Name(std::string(family.row->name))
                         .Help(std::string(family.row->help.text()))
                         .Register(*out);
      for (const Series& series : family.series) {
        prometheus::Labels labels;
        std::string_view names = family.row->labels;
        for (size_t i = 0; series.labels && i < series.labels->values.size(); ++i) {
          const std::string_view name = names.substr(0, names.find(','));
          names.remove_prefix(std::min(names.size(), name.size() + 1));
          labels.emplace(name, series.labels->values[i]);
        }
        target.Add(labels).Set(series.value);
      }
    }
    return out;
  }();
  return *registry;
}

std::string Encoded(Format format) {
  std::string out;
  Append(format, *TheSnapshot(), GroupSet::All(), out);
  return out;
}

template <Format format>
size_t EncodeOurs() {
  return Encoded(format).size();
}

template <Format format>
size_t GzipOurs() {
  static const std::string plain = Encoded(format);
  return http::Gzip(plain).value_or("").size();
}

size_t EncodeTheirs() {
  return prometheus::TextSerializer().Serialize(TheRegistry().Collect()).size();
}

template <size_t (*encode)()>
void BM_Encode(benchmark::State& state) {
  size_t bytes = 0;
  for (auto _ : state) benchmark::DoNotOptimize(bytes = encode());
  state.counters["series"] = static_cast<double>(TheSnapshot()->SeriesCount());
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(BM_Encode<EncodeOurs<Format::kText>>)->Name("Text")->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Encode<EncodeOurs<Format::kOpenMetrics>>)
    ->Name("OpenMetrics")
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Encode<EncodeOurs<Format::kProtobuf>>)
    ->Name("Protobuf")
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Encode<EncodeTheirs>)
    ->Name("PrometheusCppCollectAndText")
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Encode<GzipOurs<Format::kText>>)->Name("GzipOfText")->Unit(benchmark::kMillisecond);

// What a tick pays on the loop thread, its label sets known.
void BM_BuildSnapshot(benchmark::State& state) {
  const Published node = Node();
  SnapshotBuilder builder(kOptions);
  builder.Build(node);
  for (auto _ : state) benchmark::DoNotOptimize(builder.Build(node));
}
BENCHMARK(BM_BuildSnapshot)->Unit(benchmark::kMillisecond);

// CPU time of this thread: what others run on the machine does not count.
double CpuMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double Milliseconds(size_t (*encode)()) {
  const double begin = CpuMilliseconds();
  benchmark::DoNotOptimize(encode());
  return CpuMilliseconds() - begin;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

struct Contender {
  const char* name;
  size_t (*encode)();
  std::vector<double> milliseconds = {};
};

void PrintMedians() {
  constexpr int kRounds = 51;
  Contender contenders[] = {{"text", EncodeOurs<Format::kText>},
                            {"openmetrics", EncodeOurs<Format::kOpenMetrics>},
                            {"protobuf", EncodeOurs<Format::kProtobuf>},
                            {"prometheus-cpp text", EncodeTheirs},
                            {"gzip of text", GzipOurs<Format::kText>},
                            {"gzip of openmetrics", GzipOurs<Format::kOpenMetrics>},
                            {"gzip of protobuf", GzipOurs<Format::kProtobuf>}};
  for (int i = 0; i < kRounds; ++i) {
    for (Contender& one : contenders) one.milliseconds.push_back(Milliseconds(one.encode));
  }
  std::printf("%zu series, CPU time, medians of %d:\n", TheSnapshot()->SeriesCount(), kRounds);
  for (const Contender& one : contenders) {
    std::printf("%-20s %8.3f ms %9zu bytes\n", one.name, Median(one.milliseconds), one.encode());
  }
}

}  // namespace
}  // namespace rankscope::metrics

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  rankscope::metrics::PrintMedians();
  return 0;
}
