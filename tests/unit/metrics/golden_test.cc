// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The whole scrape of one fixed state in each format, byte for byte, and every row of the catalogue
// in it. To accept a change: RANKSCOPE_ACCEPT=1 metrics_test --gtest_filter='Golden.*'
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "detectors/windows/trackers/printed_numbers.h"
#include "exporter/metrics/encoder.h"
#include "exporter/metrics/labels.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::metrics {
namespace {

const std::filesystem::path kFolder =
    std::filesystem::path(RANKSCOPE_SOURCE_DIR) / "tests/fixtures/metrics";

// By Format.
constexpr std::array<std::string_view, kFormatNames.size()> kFiles = {
    "scrape.txt", "scrape.openmetrics.txt", "scrape.pb"};

std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// As its probes have counted them; values that no two signals share.
void AddCalls(RankStatus& rank) {
  constexpr std::array kSignals = {
      SignalId::kKernelLaunches,
      SignalId::kGraphLaunches,
      SignalId::kLaunchSeconds,
      SignalId::kLargestLaunchGapSeconds,
      SignalId::kCudaSyncSeconds,
      SignalId::kOldestSyncSeconds,
      SignalId::kSyncCalls,
      SignalId::kCopyCalls,
      SignalId::kCopySeconds,
      SignalId::kCopiedToDeviceBytes,
      SignalId::kCopiedToHostBytes,
      SignalId::kAllocationSeconds,
      SignalId::kAllocatedBytes,
      SignalId::kAllocationFailures,
      SignalId::kCudaErrors,
      SignalId::kLastFailedAllocationBytes,
      SignalId::kCountedShare,
      SignalId::kTimedShare,
      SignalId::kCollectivesEnqueued,
      SignalId::kCollectiveBytes,
      SignalId::kCollectiveSeconds,
      SignalId::kCommunicators,
      SignalId::kCommunicatorInitSeconds,
      SignalId::kCommunicatorAborts,
      SignalId::kRunnableSeconds,
      SignalId::kWaitFutexSeconds,
      SignalId::kWaitSocketSeconds,
      SignalId::kWaitNetworkFileSeconds,
      SignalId::kWaitBlockSeconds,
      SignalId::kWaitGpuSeconds,
      SignalId::kWaitSleepSeconds,
      SignalId::kStoppedSeconds,
      SignalId::kWaitOtherSeconds,
      SignalId::kUninterruptibleThreads,
  };
  double value = 0.5;
  for (const SignalId signal : kSignals) rank.signals.Set(signal, value += 1);
  rank.signals.Set(SignalId::kLastLaunchTimestamp, 1.7e9 + 0.25);
  rank.signals.Set(SignalId::kLastAdvanceTimestamp, 1.7e9 + 0.5);
  rank.signals.Set(SignalId::kLastEnqueueTimestamp, 1.7e9 + 0.75);
  rank.cuda_attached = 1;
  test::AddLaunchGaps(rank);
}

void AddFilesAndSockets(RankStatus& rank) {
  rank.signals.Set(SignalId::kConnectFailures, 2);
  rank.signals.Set(SignalId::kTcpRetransmits, 31);
  rank.signals.Set(SignalId::kTcpSentBytes, 4096);
  rank.signals.Set(SignalId::kTcpReceivedBytes, 8192);
  rank.signals.Set(SignalId::kFileErrors, 1);
  rank.signals.Set(SignalId::kSyncFileSeconds, 0.75);
  rank.signals.Set(SignalId::kCheckpointWrittenBytes, 65536);
  rank.signals.Set(SignalId::kCheckpointReadBytes, 32768);
  rank.signals.Set(SignalId::kMajorFaults, 12);
  rank.signals.Set(SignalId::kSwappedBytes, 4194304);
}

// Two jobs that have everything, one that has ended, and a /proc that never changes.
Snapshot Everything() {
  JobStatus gpu = test::HangingJob("8842");
  double printed = 1000;
  for (const SignalRow& row : SignalTable()) {
    const bool sampled = row.scope == SignalScope::Job && row.origin != SignalOrigin::Derived;
    if (sampled || windows::IsPrinted(row.id)) gpu.signals.Set(row.id, printed += 0.5);
  }
  for (RankStatus& rank : gpu.ranks) {
    rank.signals.Set(SignalId::kRankEngineActivity, 1);
    rank.signals.Set(SignalId::kRankSmActivity, 0.9375);
    AddCalls(rank);
    AddFilesAndSockets(rank);
  }
  SnapshotOptions options = {.profile = Profile::kFull,
                             .proc_self = (kFolder / "proc/self").string(),
                             .proc_stat = (kFolder / "proc/stat").string()};
  Published published =
      test::OnNode({test::HealthyJob(), std::move(gpu), test::FinishedJob("8843", 5)});
  published.agent.http = {{420, 3, 2, 0}, {14, 380, 9}, 5};
  published.agent.notify =
      metrics::NotifyStatus{{7, 2, 1, 0, 0}, {1, 0, 0, 0, 0}, {0, 3, 0, 0, 0}, {1, 0, 2, 0, 4}};
  published.agent.sources.push_back(test::GpuSource({test::UpGpu(0), test::LostGpu(1)}));
  published.agent.sources.back().library_calls = {
      {"nvmlDeviceGetPowerUsage", {1000, 20, 3, 0, 0, 0, 1}, 31.5, {{"gpu_is_lost", 2}}}};
  // Of the job that has ended something is left out.
  const size_t all = SnapshotBuilder(options).Build(published)->SeriesCount();
  options.max_series = static_cast<int32_t>(all) - 4;
  Snapshot snapshot = *SnapshotBuilder(options).Build(published);
  for (Family& family : snapshot.families) {
    // The compiler's own word is another with each compiler.
    constexpr std::array<std::string_view, 2> kBuild = {"0.1.0", "12.2.0"};
    if (family.row->type == MetricType::kInfo && family.row->labels == "version,compiler") {
      family.series.front().labels = MakeLabels(family.row->labels, kBuild);
    }
  }
  return snapshot;
}

class Golden : public testing::TestWithParam<Format> {};

TEST_P(Golden, ScrapeIsAsAccepted) {
  const std::filesystem::path file = kFolder / kFiles[static_cast<size_t>(GetParam())];
  std::string bytes;
  Append(GetParam(), Everything(), GroupSet::All(), bytes);
  if (std::getenv("RANKSCOPE_ACCEPT") != nullptr) {
    std::ofstream(file, std::ios::binary) << bytes;
  }
  // Not EXPECT_EQ: what differs in protobuf differs in text too, and reads better there.
  EXPECT_TRUE(bytes == Read(file)) << file << "; accept with RANKSCOPE_ACCEPT=1:\n"
                                   << (GetParam() == Format::kProtobuf ? "" : bytes);
}

INSTANTIATE_TEST_SUITE_P(Formats, Golden,
                         testing::Values(Format::kText, Format::kOpenMetrics, Format::kProtobuf),
                         [](const auto& format) {
                           return std::string(kFormatNames[static_cast<size_t>(format.param)]);
                         });

TEST(GoldenText, HasEveryRowOfTheCatalogue) {
  const std::string golden = Read(kFolder / kFiles[0]);
  for (const MetricRow& row : Catalog()) {
    // dcgm-exporter's names break Prometheus' rules; snapshot_gpus_test.cc has them all.
    if (IsDcgmName(row.profile)) continue;
    EXPECT_NE(golden.find("# TYPE " + std::string(row.name) + " "), std::string::npos) << row.name;
  }
}

TEST(GoldenText, PromtoolFindsNothing) {
  if (std::system("command -v promtool >/dev/null") != 0) {
    GTEST_SKIP() << "promtool is not installed (package prometheus)";
  }
  EXPECT_EQ(std::system(("promtool check metrics < " + (kFolder / kFiles[0]).string()).c_str()), 0);
}

}  // namespace
}  // namespace rankscope::metrics
