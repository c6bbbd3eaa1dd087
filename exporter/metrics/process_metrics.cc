// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/metrics/process_metrics.h"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

namespace rankscope::metrics {
namespace {

std::string ReadSmallFile(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::optional<double> Number(std::string_view text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

// The first number of the line that starts with `key`.
std::optional<double> NumberAfter(std::string_view text, std::string_view key) {
  size_t at = text.starts_with(key) ? 0 : text.find(std::string("\n").append(key));
  if (at == std::string_view::npos) return std::nullopt;
  at = text.find(key, at) + key.size();
  at = text.find_first_not_of(' ', at);
  if (at == std::string_view::npos) return std::nullopt;
  if (text.substr(at).starts_with("unlimited")) return std::numeric_limits<double>::infinity();
  return Number(text.substr(at));
}

void Append(std::vector<prometheus::MetricFamily>& families, std::string_view name,
            prometheus::MetricType type, std::optional<double> value) {
  if (!value) return;
  prometheus::ClientMetric metric;
  (type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = *value;
  families.push_back({std::string(name), "", type, {std::move(metric)}});
}

// Fields of /proc/PID/stat from the third on: the second, the name, may hold spaces and
// parentheses.
std::vector<std::string> StatFields(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(stat.substr(name_end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

}  // namespace

ProcessMetrics::ProcessMetrics(std::string proc_self, std::string proc_stat)
    : proc_self_(std::move(proc_self)), proc_stat_(std::move(proc_stat)) {}

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  using prometheus::MetricType;
  std::vector<prometheus::MetricFamily> families;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));

  // proc(5) counts fields from 1; StatFields begins with field 3.
  const std::vector<std::string> stat = StatFields(ReadSmallFile(proc_self_ + "/stat"));
  const auto field = [&](size_t number) -> std::optional<double> {
    return number - 3 < stat.size() ? Number(stat[number - 3]) : std::nullopt;
  };
  if (const auto user = field(14), system = field(15); user && system) {
    Append(families, "process_cpu_seconds_total", MetricType::Counter, (*user + *system) / ticks);
  }
  Append(families, "process_threads", MetricType::Gauge, field(20));
  const auto boot = NumberAfter(ReadSmallFile(proc_stat_), "btime");
  if (const auto start = field(22); start && boot) {
    Append(families, "process_start_time_seconds", MetricType::Gauge, *boot + *start / ticks);
  }
  if (const auto resident = field(24)) {
    Append(families, "process_resident_memory_bytes", MetricType::Gauge, *resident * page);
  }

  std::error_code error;
  double open_fds = 0;
  for (std::filesystem::directory_iterator fd(proc_self_ + "/fd", error), end; !error && fd != end;
       fd.increment(error)) {
    ++open_fds;
  }
  if (!error) Append(families, "process_open_fds", MetricType::Gauge, open_fds);
  Append(families, "process_max_fds", MetricType::Gauge,
         NumberAfter(ReadSmallFile(proc_self_ + "/limits"), "Max open files"));
  return families;
}

}  // namespace rankscope::metrics
