// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The three formats say the same: same series, same values; and each in its own grammar.
#include <gmock/gmock.h>
#include <google/protobuf/io/coded_stream.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "exporter/metrics/encoder.h"
#include "exporter/metrics/labels.h"
#include "exporter/proto/metrics.pb.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::metrics {
namespace {

namespace wire = io::prometheus::client;

std::vector<wire::MetricFamily> ReadDelimited(const std::string& bytes) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  std::vector<wire::MetricFamily> families;
  uint32_t size = 0;
  while (in.ReadVarint32(&size)) {
    const auto limit = in.PushLimit(static_cast<int>(size));
    wire::MetricFamily family;
    EXPECT_TRUE(family.ParseFromCodedStream(&in) && in.ConsumedEntireMessage());
    in.PopLimit(limit);
    families.push_back(std::move(family));
  }
  EXPECT_EQ(in.CurrentPosition(), static_cast<int>(bytes.size()));
  return families;
}

// name{labels} -> value as the text formats print both.
using Samples = std::map<std::string, std::string>;

Samples OfText(const std::string& text) {
  Samples samples;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with('#')) continue;
    const size_t space = line.rfind(' ');
    EXPECT_TRUE(samples.emplace(line.substr(0, space), line.substr(space + 1)).second) << line;
  }
  return samples;
}

std::string KeyOf(std::string_view name, const wire::Metric& metric, std::string_view le = {}) {
  std::string key(name);
  const auto label = [&key](std::string_view label_name, std::string_view value) {
    key.append(key.back() == '"' ? "," : "{").append(label_name).append("=\"");
    AppendLabelValue(value, key);
    key.push_back('"');
  };
  for (const wire::LabelPair& pair : metric.label()) label(pair.name(), pair.value());
  if (!le.empty()) label("le", le);
  if (key.back() == '"') key.push_back('}');
  return key;
}

std::string PrintedValue(double value) {
  std::string out;
  AppendValue(value, out);
  return out;
}

// As Prometheus makes series of it.
void AddHistogram(const std::string& name, const wire::Metric& metric, Samples& samples) {
  const wire::Histogram& histogram = metric.histogram();
  const auto add = [&samples](const std::string& key, double value) {
    EXPECT_TRUE(samples.emplace(key, PrintedValue(value)).second) << key;
  };
  for (const wire::Bucket& bucket : histogram.bucket()) {
    std::string bound;
    AppendBound(bucket.upper_bound(), bound);
    add(KeyOf(name + "_bucket", metric, bound), static_cast<double>(bucket.cumulative_count()));
  }
  const auto count = static_cast<double>(histogram.sample_count());
  add(KeyOf(name + "_bucket", metric, "+Inf"), count);
  add(KeyOf(name + "_count", metric), count);
  add(KeyOf(name + "_sum", metric), histogram.sample_sum());
}

Samples OfProtobuf(const std::string& bytes) {
  Samples samples;
  for (const wire::MetricFamily& family : ReadDelimited(bytes)) {
    for (const wire::Metric& metric : family.metric()) {
      EXPECT_EQ(metric.has_histogram(), family.type() == wire::HISTOGRAM) << family.name();
      if (metric.has_histogram()) {
        AddHistogram(family.name(), metric, samples);
        continue;
      }
      const std::string key = KeyOf(family.name(), metric);
      EXPECT_EQ(metric.has_counter(), family.type() == wire::COUNTER) << key;
      EXPECT_NE(metric.has_counter(), metric.has_gauge()) << key;
      const std::string value =
          PrintedValue(metric.has_counter() ? metric.counter().value() : metric.gauge().value());
      EXPECT_TRUE(samples.emplace(key, value).second) << key;
    }
  }
  return samples;
}

TEST(Encoders, SayTheSame) {
  JobStatus odd = test::HangingJob("a\"b\\c\nd \xC3\xA4");
  odd.command = std::string(5000, 'x');  // cut; longer than one byte of varint
  odd.signals.Set(SignalId::kLoss, std::nan(""));
  odd.training.nonfinite_loss = 1;
  odd.signals.Set(SignalId::kGradNorm, std::numeric_limits<double>::infinity());
  odd.signals.Set(SignalId::kLossSlope, -1e-300);
  test::AddLaunchGaps(odd.ranks.front());
  const auto snapshot =
      SnapshotBuilder({.profile = Profile::kFull}).Build(test::OnNode({test::HealthyJob(), odd}));
  std::string text, open, binary;
  AppendText(*snapshot, text);
  AppendOpenMetrics(*snapshot, open);
  AppendProtobuf(*snapshot, binary);
  const Samples samples = OfText(text);
  EXPECT_EQ(samples.size(), snapshot->SeriesCount());
  EXPECT_EQ(OfText(open), samples);
  EXPECT_EQ(OfProtobuf(binary), samples);
}

TEST(Encoders, LeaveOutTheSameGroups) {
  const auto snapshot = SnapshotBuilder().Build(test::OnNode({test::HealthyJob()}));
  GroupSet rank = GroupSet::None();
  rank.Add(Group::kRank);
  std::string text, open, binary;
  Append(Format::kText, *snapshot, rank, text);
  Append(Format::kOpenMetrics, *snapshot, rank, open);
  Append(Format::kProtobuf, *snapshot, rank, binary);
  const Samples samples = OfText(text);
  EXPECT_FALSE(samples.empty());
  for (const auto& [series, value] : samples) EXPECT_TRUE(series.starts_with("rankscope_rank_"));
  EXPECT_EQ(OfText(open), samples);
  EXPECT_EQ(OfProtobuf(binary), samples);
}

TEST(Encoders, AnEmptySnapshotIsAValidPage) {
  std::string text, open, binary;
  AppendText(Snapshot(), text);
  AppendOpenMetrics(Snapshot(), open);
  AppendProtobuf(Snapshot(), binary);
  EXPECT_EQ(text, "");
  EXPECT_EQ(open, "# EOF\n");
  EXPECT_EQ(binary, "");
}

TEST(OpenMetrics, HeadsAreTheFormatsOwn) {
  const MetricRow counter{"x_bytes_total", MetricType::kCounter, "bytes", "Bytes of a\\b\nc \"d\".",
                          "job_id"};
  const MetricRow info{"x_build_info", MetricType::kInfo, "", "Version of the build.", ""};
  const MetricRow states{"x_state", MetricType::kStateSet, "", "State of the thing.", ""};
  const MetricRow late{"x_first_seconds_seen", MetricType::kGauge, "seconds", "Time of the thing.",
                       ""};
  const std::array<std::string_view, 1> one = {"1"};
  Snapshot snapshot;
  snapshot.families.push_back({&counter, {{MakeLabels("job_id", one), 0.5}}});
  snapshot.families.push_back({&info, {{nullptr, 1}}});
  snapshot.families.push_back({&states, {{nullptr, 0}}});
  snapshot.families.push_back({&late, {{nullptr, -1}}});
  std::string out;
  AppendOpenMetrics(snapshot, out);
  EXPECT_EQ(out,
            "# TYPE x_bytes counter\n# UNIT x_bytes bytes\n"
            "# HELP x_bytes Bytes of a\\\\b\\nc \\\"d\\\".\nx_bytes_total{job_id=\"1\"} 0.5\n"
            "# TYPE x_build info\n# HELP x_build Version of the build.\nx_build_info 1\n"
            "# TYPE x_state gauge\n# HELP x_state State of the thing.\nx_state 0\n"
            "# TYPE x_first_seconds_seen gauge\n# HELP x_first_seconds_seen Time of the thing.\n"
            "x_first_seconds_seen -1\n"
            "# EOF\n");
}

// A family's name is taken with every suffix that its type may add: a second family there would
// make two owners of one sample.
TEST(OpenMetrics, NoFamilyOfTheCatalogueClashesWithAnother) {
  std::set<std::string> taken;
  for (const MetricRow& row : Catalog()) {
    const auto [name, type] = OpenMetricsHeadOf(row);
    EXPECT_TRUE(taken.insert(std::string(name)).second) << row.name;
    if (type == "counter") {
      EXPECT_TRUE(taken.insert(std::string(name) + "_total").second) << row.name;
      EXPECT_TRUE(taken.insert(std::string(name) + "_created").second) << row.name;
    }
    if (type == "histogram") {
      for (const char* suffix : {"_bucket", "_sum", "_count", "_created"}) {
        EXPECT_TRUE(taken.insert(std::string(name) + suffix).second) << row.name;
      }
    }
    if (type == "info") {
      EXPECT_TRUE(taken.insert(std::string(name) + "_info").second) << row.name;
    }
  }
}

TEST(Encoders, AHistogramWithoutLabelsHasItsBoundAlone) {
  constexpr std::array<double, 2> kBounds = {0.5, 2};
  const MetricRow row{"x_seconds", MetricType::kHistogram, "seconds",      "Duration of the call.",
                      "",          Keep::kAlways,          Profile::kFull, Since::kUnknown,
                      kBounds};
  Snapshot snapshot;
  snapshot.families.push_back({&row, {}, {{nullptr, {1, 1, 4}, 7.25}}});
  const std::string samples =
      "x_seconds_bucket{le=\"0.5\"} 1\nx_seconds_bucket{le=\"2.0\"} 1\n"
      "x_seconds_bucket{le=\"+Inf\"} 4\nx_seconds_sum 7.25\nx_seconds_count 4\n";
  std::string text, open, binary;
  AppendText(snapshot, text);
  EXPECT_EQ(text, "# HELP x_seconds Duration of the call.\n# TYPE x_seconds histogram\n" + samples);
  AppendOpenMetrics(snapshot, open);
  EXPECT_EQ(open,
            "# TYPE x_seconds histogram\n# UNIT x_seconds seconds\n# HELP x_seconds Duration of "
            "the call.\n" +
                samples + "# EOF\n");
  AppendProtobuf(snapshot, binary);
  EXPECT_EQ(OfProtobuf(binary), OfText(text));
  EXPECT_EQ(snapshot.SeriesCount(), 5u);
}

TEST(Protobuf, CountersOfTheExporterSayWhenTheyWereZero) {
  metrics::Published published = test::OnNode({test::HealthyJob()});
  published.agent.start_wall_seconds = 1779999000.25;
  std::string binary;
  AppendProtobuf(*SnapshotBuilder().Build(published), binary);
  size_t with = 0;
  for (const wire::MetricFamily& family : ReadDelimited(binary)) {
    EXPECT_FALSE(family.help().empty()) << family.name();
    const MetricRow* row = FindMetric(family.name());
    ASSERT_NE(row, nullptr) << family.name();
    EXPECT_EQ(family.unit(), row->unit);
    for (const wire::Metric& metric : family.metric()) {
      const bool known = metric.counter().has_created_timestamp();
      EXPECT_EQ(known, row->since == Since::kStart) << family.name();
      if (!known) continue;
      ++with;
      EXPECT_EQ(metric.counter().created_timestamp().seconds(), 1779999000);
      EXPECT_EQ(metric.counter().created_timestamp().nanos(), 250000000);
    }
  }
  EXPECT_GT(with, 10u);
}

TEST(Protobuf, WithoutAStartNothingIsSaidOfIt) {
  metrics::Published published = test::OnNode({});
  published.agent.start_wall_seconds = 0;
  std::string binary;
  AppendProtobuf(*SnapshotBuilder().Build(published), binary);
  for (const wire::MetricFamily& family : ReadDelimited(binary)) {
    for (const wire::Metric& metric : family.metric()) {
      EXPECT_FALSE(metric.counter().has_created_timestamp()) << family.name();
    }
  }
}

}  // namespace
}  // namespace rankscope::metrics
