// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include "exporter/metrics/encoder.h"
#include "exporter/metrics/labels.h"

namespace rankscope::metrics {
namespace {

std::string Value(double value) {
  std::string out;
  AppendValue(value, out);
  return out;
}

TEST(Value, IsSpelledAsPrometheusReadsIt) {
  EXPECT_EQ(Value(0), "0");
  EXPECT_EQ(Value(1), "1");
  EXPECT_EQ(Value(-17), "-17");
  EXPECT_EQ(Value(0.1), "0.1");
  EXPECT_EQ(Value(1780000000), "1780000000");
  EXPECT_EQ(Value(1780000000.5), "1780000000.5");
  EXPECT_EQ(Value(1e21), "1e+21");
  EXPECT_EQ(Value(std::nan("")), "NaN");
  EXPECT_EQ(Value(std::numeric_limits<double>::infinity()), "+Inf");
  EXPECT_EQ(Value(-std::numeric_limits<double>::infinity()), "-Inf");
}

TEST(Value, ReadsBackAsItself) {
  for (const double value : {6 * 1.234567, 1.0 / 3, 1e15, -1e15, 999999999999999.0, 5e-324,
                             -2.2250738585072014e-308, 1.7976931348623157e308, 3e-4}) {
    EXPECT_EQ(std::strtod(Value(value).c_str(), nullptr), value) << Value(value);
  }
}

TEST(Labels, AreEscapedCleanedAndCut) {
  const std::array<std::string_view, 2> values = {"a\"b\\c\nd", "x"};
  const LabelPointer labels = MakeLabels("job_id,family", values);
  EXPECT_EQ(labels->text, R"({job_id="a\"b\\c\nd",family="x"})");
  EXPECT_EQ(labels->values[0], "a\"b\\c\nd");

  const std::array<std::string_view, 1> broken = {"ok\xC3(\xED\xA0\x80"};
  EXPECT_EQ(MakeLabels("job_id", broken)->values[0],
            "ok\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");

  const std::string long_text = std::string(kMaxLabelValueBytes - 1, 'a') + "\xC3\xA4";
  const std::array<std::string_view, 1> too_long = {long_text};
  EXPECT_EQ(MakeLabels("job_id", too_long)->values[0], std::string(kMaxLabelValueBytes - 1, 'a'));
}

TEST(Text, HasOneHeadPerFamilyAndEscapesItsHelp) {
  const MetricRow counter{"x_total", MetricType::kCounter, "", "Number of a\\b\nc \"d\".",
                          "job_id"};
  const MetricRow info{"x_info", MetricType::kInfo, "", "Version of the build.", ""};
  const std::array<std::string_view, 1> one = {"1"};
  const std::array<std::string_view, 1> two = {"2"};
  Snapshot snapshot;
  snapshot.families.push_back({&info, {{nullptr, 1}}});
  snapshot.families.push_back(
      {&counter, {{MakeLabels("job_id", one), 0.5}, {MakeLabels("job_id", two), std::nan("")}}});
  std::string out;
  AppendText(snapshot, out);
  EXPECT_EQ(out,
            "# HELP x_info Version of the build.\n# TYPE x_info gauge\nx_info 1\n"
            "# HELP x_total Number of a\\\\b\\nc \"d\".\n# TYPE x_total counter\n"
            "x_total{job_id=\"1\"} 0.5\nx_total{job_id=\"2\"} NaN\n");
}

}  // namespace
}  // namespace rankscope::metrics
