// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/network/network_facts.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "detectors/model/event_types.h"

namespace rankscope::probes {
namespace {

// Below this a connection that was closed without an answer says nothing: one address of several
// was tried.
constexpr uint64_t kPatienceNs = 1'000'000'000;

struct ErrorRow {
  uint32_t error;
  std::string_view outcome;
};
constexpr std::array kErrors = {
    ErrorRow{ECONNREFUSED, "refused"},
    ErrorRow{ETIMEDOUT, "no_answer"},
    ErrorRow{EHOSTUNREACH, "unreachable"},
    ErrorRow{ENETUNREACH, "unreachable"},
    ErrorRow{EHOSTDOWN, "unreachable"},
    ErrorRow{ENETDOWN, "unreachable"},
    ErrorRow{EACCES, "unreachable"},  // `ip route add prohibit`
    ErrorRow{EPERM, "unreachable"},   // a rule on this machine
    ErrorRow{EINVAL, "unreachable"},  // `ip route add blackhole`
    ErrorRow{EADDRNOTAVAIL, "no_local_address"},
};
constexpr std::array kBindErrors = {
    ErrorRow{EADDRINUSE, "in_use"},
    ErrorRow{EADDRNOTAVAIL, "no_local_address"},
    ErrorRow{EACCES, "denied"},
};

std::string_view Find(const auto& rows, uint32_t error) {
  for (const ErrorRow& row : rows) {
    if (row.error == error) return row.outcome;
  }
  return "failed";
}

std::string HostText(const rs_net_key& key) {
  char text[INET6_ADDRSTRLEN] = "?";
  in6_addr address;
  std::memcpy(&address, key.address, sizeof address);
  if (key.family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET6, &address, text, sizeof text);
  } else {
    inet_ntop(AF_INET, key.address + (key.family == AF_INET6 ? 12 : 0), text, sizeof text);
  }
  return text;
}

double Seconds(uint64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

Event Make(EventType type, const rs_net_key& key, const ProcessKey& process,
           std::string_view outcome, int64_t times, uint64_t took_ns) {
  Event event;
  event.type = WireType(type);
  event.process = process;
  event.str = {{type == EventType::kListen ? "address" : "peer", PeerText(key)},
               {"host", HostText(key)},
               {"outcome", std::string(outcome)}};
  event.num = {{"port", ntohs(key.port)},
               {"errno", static_cast<int64_t>(key.error)},
               {"attempts", times},
               {"milliseconds", static_cast<int64_t>(Seconds(took_ns) * 1000)}};
  return event;
}

std::string_view LookupOutcome(int32_t code) {
  switch (code) {
    case 0:
      return "found";
    case EAI_NONAME:
    case -5:  // EAI_NODATA
      return "no_such_name";
    case EAI_AGAIN:
      return "no_answer";
    default:
      return "failed";
  }
}

}  // namespace

std::string PeerText(const rs_net_key& key) {
  const std::string host = HostText(key);
  const std::string port = std::to_string(ntohs(key.port));
  return host.find(':') == std::string::npos ? host + ':' + port : '[' + host + "]:" + port;
}

std::string_view OutcomeOf(const rs_net_key& key, const rs_net_fact& fact) {
  switch (key.outcome) {
    case RS_NET_CONNECTED:
      return "connected";
    case RS_NET_LISTENING:
      return "listening";
    case RS_NET_NOT_BOUND:
      return Find(kBindErrors, key.error);
    case RS_NET_ABANDONED:
      return fact.longest_ns >= kPatienceNs ? "no_answer" : "abandoned";
    case RS_NET_RESET:
      return "reset";
    case RS_NET_FAILED:
      if (key.error == ECONNREFUSED && key.by_reset == 0) return "rejected";
      return Find(kErrors, key.error);
    default:
      return {};
  }
}

std::optional<Event> EventOf(const rs_net_key& key, const rs_net_fact& fact,
                             const ProcessKey& process) {
  const std::string_view outcome = OutcomeOf(key, fact);
  if (outcome.empty()) return std::nullopt;
  EventType type = EventType::kConnect;
  if (key.outcome == RS_NET_LISTENING || key.outcome == RS_NET_NOT_BOUND) type = EventType::kListen;
  if (key.outcome == RS_NET_RESET) type = EventType::kConnectionReset;
  Event event =
      Make(type, key, process, outcome, static_cast<int64_t>(fact.times), fact.longest_ns);
  event.begin = {static_cast<int64_t>(fact.first_ns)};
  return event;
}

Event EventOf(const rs_net_pending& pending, const ProcessKey& process, uint64_t now_ns) {
  const uint64_t waited = now_ns > pending.begin_ns ? now_ns - pending.begin_ns : 0;
  Event event = Make(EventType::kConnect, pending.key, process, "no_answer",
                     1 + static_cast<int64_t>(pending.sent_again), waited);
  event.num.push_back({"waiting", 1});
  event.begin = {static_cast<int64_t>(pending.begin_ns)};
  return event;
}

Event EventOf(const rs_net_lookup& lookup, const ProcessKey& process, int64_t times,
              uint64_t now_ns) {
  const bool waiting = lookup.end_ns == 0;
  const uint64_t end = waiting ? now_ns : lookup.end_ns;
  const uint64_t took = end > lookup.header.time_ns ? end - lookup.header.time_ns : 0;
  Event event;
  event.type = WireType(EventType::kResolve);
  event.process = process;
  event.str = {{"name", {lookup.name, strnlen(lookup.name, RS_NAME)}},
               {"outcome", std::string(waiting ? "no_answer" : LookupOutcome(lookup.code))}};
  event.num = {{"code", lookup.code},
               {"attempts", times},
               {"milliseconds", static_cast<int64_t>(Seconds(took) * 1000)}};
  if (waiting) event.num.push_back({"waiting", 1});
  event.begin = {static_cast<int64_t>(lookup.header.time_ns)};
  return event;
}

}  // namespace rankscope::probes
