// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/infiniband/infiniband_ports.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

namespace rankscope::collectors {
namespace {

constexpr size_t kMaxPorts = 64;
constexpr int64_t kWord = 4;

struct CounterRow {
  std::string_view file;  // below the port
  std::string_view kind;  // of kPortCounterKinds
};

// Of several files of one kind the sum counts.
constexpr CounterRow kCounters[] = {
    {"counters/symbol_error", "symbol_errors"},
    {"counters/link_error_recovery", "link_error_recoveries"},
    {"counters/link_downed", "link_downs"},
    {"counters/port_rcv_errors", "receive_errors"},
    {"counters/port_xmit_discards", "discards"},
    {"counters/local_link_integrity_errors", "integrity_errors"},
    {"hw_counters/out_of_sequence", "out_of_sequence"},
    {"hw_counters/packet_seq_err", "packet_sequence_errors"},
    {"hw_counters/local_ack_timeout_err", "timeouts"},
    {"hw_counters/roce_adp_retrans", "retransmissions"},
    {"hw_counters/retrans_pkts", "retransmissions"},  // EFA
    {"hw_counters/np_cnp_sent", "congestion_notifications"},
    {"hw_counters/rp_cnp_handled", "congestion_notifications"},
    {"hw_counters/rx_drops", "discards"},  // EFA
    {"hw_counters/rdma_read_wr_err", "rdma_request_errors"},
    {"hw_counters/rdma_write_wr_err", "rdma_request_errors"},
};

// By name and not by FindPortCounterKind: under -fsanitize=undefined g++ 12 takes no comparison of
// an address with null for constant.
constexpr bool EveryKindIsKnown() {
  return std::all_of(std::begin(kCounters), std::end(kCounters), [](const CounterRow& row) {
    return std::any_of(kPortCounterKinds.begin(), kPortCounterKinds.end(),
                       [&row](const PortCounterKind& kind) { return kind.name == row.kind; });
  });
}
static_assert(EveryKindIsKnown());

std::string ReadSmall(const std::string& path) {
  char text[256];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = read(fd, text, sizeof text);
  close(fd);
  std::string_view view(text, n > 0 ? static_cast<size_t>(n) : 0);
  while (!view.empty() && (view.back() == '\n' || view.back() == ' ')) view.remove_suffix(1);
  return std::string(view);
}

std::vector<std::string> Entries(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) return names;
  while (const dirent* entry = readdir(directory.get())) {
    if (entry->d_name[0] != '.' && names.size() < kMaxPorts) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

int64_t Counter(const std::string& path) {
  return ParsePortCounter(ReadSmall(path)).value_or(kNotCounted);
}

std::string LinkOf(const std::string& device, const std::string& layer) {
  // The driver of EFA names its devices so, and its link layer is "Unspecified".
  if (device.starts_with("efa") || device.starts_with("rdmap") || layer == "Unspecified")
    return "efa";
  return layer == "Ethernet" ? "roce" : "infiniband";
}

PortReading ReadPort(const std::string& path, const std::string& device, const std::string& name) {
  PortReading port;
  port.device = device;
  port.port = name;
  port.link = LinkOf(device, ReadSmall(path + "/link_layer"));
  port.state = ReadSmall(path + "/state");
  port.up = port.state.find("ACTIVE") != std::string::npos;
  port.bits_per_second = ParsePortRate(ReadSmall(path + "/rate")).value_or(kNotCounted);
  const auto words = [&path](const char* file) {
    const int64_t count = Counter(path + "/counters/" + file);
    return count < 0 || count > INT64_MAX / kWord ? kNotCounted : count * kWord;
  };
  port.received_bytes = words("port_rcv_data");
  port.sent_bytes = words("port_xmit_data");
  if (port.received_bytes < 0) port.received_bytes = Counter(path + "/hw_counters/rx_bytes");
  if (port.sent_bytes < 0) port.sent_bytes = Counter(path + "/hw_counters/tx_bytes");
  port.counts.fill(kNotCounted);
  for (const CounterRow& row : kCounters) {
    const int64_t count = Counter(path + '/' + std::string(row.file));
    if (count < 0) continue;
    int64_t& sum =
        port.counts[static_cast<size_t>(FindPortCounterKind(row.kind) - kPortCounterKinds.data())];
    sum = std::max<int64_t>(sum, 0) + std::min(count, INT64_MAX / 4);
  }
  return port;
}

}  // namespace

std::optional<int64_t> ParsePortCounter(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<int64_t> ParsePortRate(std::string_view text) {
  const size_t unit = text.find(" Gb/sec");
  if (unit == std::string_view::npos) return std::nullopt;
  double gigabits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + unit, gigabits);
  if (error != std::errc() || end != text.data() + unit || gigabits < 0 || gigabits > 1e6)
    return std::nullopt;
  return static_cast<int64_t>(gigabits * 1e9);
}

std::vector<PortReading> ReadPorts(const std::string& sys_root) {
  std::vector<PortReading> ports;
  const std::string base = sys_root + "/class/infiniband";
  for (const std::string& device : Entries(base)) {
    const std::string folder = base + '/' + device + "/ports";
    for (const std::string& port : Entries(folder)) {
      if (ports.size() >= kMaxPorts) return ports;
      ports.push_back(ReadPort(folder + '/' + port, device, port));
    }
  }
  return ports;
}

}  // namespace rankscope::collectors
