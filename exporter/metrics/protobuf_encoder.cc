// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// exporter/proto/metrics.proto, written field by field: a node's 12,000 series as message objects
// cost ten times what their bytes do. Field numbers are the generated code's.
//
//   varint length | MetricFamily: name help type { metric: labels (rendered with the label set),
//                                        gauge or counter { value }, or histogram { ... } }* unit
#include <google/protobuf/wire_format_lite.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "exporter/metrics/encoder.h"
#include "exporter/proto/metrics.pb.h"

namespace rankscope::metrics {
namespace {

namespace wire = io::prometheus::client;
using google::protobuf::internal::WireFormatLite;

// Every field number of metrics.proto is below 16: one byte of tag.
constexpr char Tag(int field, WireFormatLite::WireType type) {
  return static_cast<char>(WireFormatLite::MakeTag(field, type));
}
constexpr char BytesTag(int field) {
  return Tag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}
constexpr char NumberTag(int field) {
  return Tag(field, WireFormatLite::WIRETYPE_VARINT);
}

constexpr size_t VarintSize(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

constexpr size_t BytesSize(size_t length) {
  return 1 + VarintSize(length) + length;
}

void AppendBytes(char tag, std::string_view bytes, std::string& out) {
  out.push_back(tag);
  AppendVarint(bytes.size(), out);
  out.append(bytes);
}

// Field 1 of Gauge and of Counter.
constexpr size_t kDoubleSize = 1 + sizeof(double);
constexpr int kValueField = wire::Gauge::kValueFieldNumber;
static_assert(kValueField == int{wire::Counter::kValueFieldNumber});

constexpr char DoubleTag(int field) {
  return Tag(field, WireFormatLite::WIRETYPE_FIXED64);
}

void AppendDouble(char tag, double value, std::string& out) {
  char bytes[kDoubleSize] = {tag};
  const auto bits = std::bit_cast<uint64_t>(value);
  for (size_t i = 0; i < sizeof(bits); ++i) bytes[i + 1] = static_cast<char>(bits >> (8 * i));
  out.append(bytes, sizeof(bytes));
}

// Counter.created_timestamp, with its tag.
std::string CreatedField(double wall_seconds) {
  const double whole = std::floor(wall_seconds);
  google::protobuf::Timestamp time;
  time.set_seconds(static_cast<int64_t>(whole));
  time.set_nanos(static_cast<int32_t>((wall_seconds - whole) * 1e9));
  std::string out;
  AppendBytes(BytesTag(wire::Counter::kCreatedTimestampFieldNumber), time.SerializeAsString(), out);
  return out;
}

void AppendCount(char tag, double count, std::string& out) {
  out.push_back(tag);
  AppendVarint(static_cast<uint64_t>(count), out);
}

// A Metric. Histograms are few, so that writing them twice to know their length costs nothing.
std::string HistogramMetric(const MetricRow& row, const Histogram& histogram) {
  std::string numbers, bucket;
  AppendCount(NumberTag(wire::Histogram::kSampleCountFieldNumber), histogram.counts.back(),
              numbers);
  AppendDouble(DoubleTag(wire::Histogram::kSampleSumFieldNumber), histogram.sum, numbers);
  for (size_t i = 0; i < row.bounds.size(); ++i) {
    bucket.clear();
    AppendCount(NumberTag(wire::Bucket::kCumulativeCountFieldNumber), histogram.counts[i], bucket);
    AppendDouble(DoubleTag(wire::Bucket::kUpperBoundFieldNumber), row.bounds[i], bucket);
    AppendBytes(BytesTag(wire::Histogram::kBucketFieldNumber), bucket, numbers);
  }
  std::string metric = histogram.labels ? histogram.labels->wire : std::string();
  AppendBytes(BytesTag(wire::Metric::kHistogramFieldNumber), numbers, metric);
  return metric;
}

class FamilyWriter {
 public:
  FamilyWriter(const Family& family, std::string_view created)
      : family_(family),
        row_(*family.row),
        counter_(row_.type == MetricType::kCounter),
        created_(counter_ && row_.since == Since::kStart ? created : std::string_view()),
        number_size_(kDoubleSize + created_.size()) {
    for (const Histogram& histogram : family.histograms) {
      AppendBytes(BytesTag(wire::MetricFamily::kMetricFieldNumber),
                  HistogramMetric(row_, histogram), histograms_);
    }
  }

  void AppendTo(std::string& out) const {
    AppendVarint(Size(), out);
    AppendBytes(BytesTag(wire::MetricFamily::kNameFieldNumber), row_.name, out);
    AppendBytes(BytesTag(wire::MetricFamily::kHelpFieldNumber), row_.help.text(), out);
    out.push_back(NumberTag(wire::MetricFamily::kTypeFieldNumber));
    out.push_back(static_cast<char>(Type()));
    for (const Series& series : family_.series) AppendSeries(series, out);
    out.append(histograms_);
    if (!row_.unit.empty()) {
      AppendBytes(BytesTag(wire::MetricFamily::kUnitFieldNumber), row_.unit, out);
    }
  }

 private:
  wire::MetricType Type() const {
    if (row_.type == MetricType::kHistogram) return wire::HISTOGRAM;
    return counter_ ? wire::COUNTER : wire::GAUGE;
  }

  size_t MetricSize(const Series& series) const {
    return (series.labels ? series.labels->wire.size() : 0) + BytesSize(number_size_);
  }

  size_t Size() const {
    size_t size =
        BytesSize(row_.name.size()) + BytesSize(row_.help.text().size()) + 2 + histograms_.size();
    for (const Series& series : family_.series) size += BytesSize(MetricSize(series));
    return row_.unit.empty() ? size : size + BytesSize(row_.unit.size());
  }

  void AppendSeries(const Series& series, std::string& out) const {
    out.push_back(BytesTag(wire::MetricFamily::kMetricFieldNumber));
    AppendVarint(MetricSize(series), out);
    if (series.labels) out.append(series.labels->wire);
    out.push_back(
        BytesTag(counter_ ? wire::Metric::kCounterFieldNumber : wire::Metric::kGaugeFieldNumber));
    AppendVarint(number_size_, out);
    AppendDouble(DoubleTag(kValueField), series.value, out);
    out.append(created_);
  }

  const Family& family_;
  const MetricRow& row_;
  bool counter_;
  std::string_view created_;
  size_t number_size_;
  std::string histograms_;  // whole fields of the family
};

}  // namespace

void AppendLabelPair(std::string_view name, std::string_view value, std::string& out) {
  out.push_back(BytesTag(wire::Metric::kLabelFieldNumber));
  AppendVarint(BytesSize(name.size()) + BytesSize(value.size()), out);
  AppendBytes(BytesTag(wire::LabelPair::kNameFieldNumber), name, out);
  AppendBytes(BytesTag(wire::LabelPair::kValueFieldNumber), value, out);
}

void AppendProtobuf(const Snapshot& snapshot, std::string& out, GroupSet groups) {
  const std::string created =
      snapshot.start_wall_seconds > 0 ? CreatedField(snapshot.start_wall_seconds) : std::string();
  for (const Family& family : snapshot.families) {
    if (groups.Has(*family.row)) FamilyWriter(family, created).AppendTo(out);
  }
}

}  // namespace rankscope::metrics
