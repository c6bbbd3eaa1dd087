// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/ascii.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

// "(node7, 29500)", "[node7]:29500", "node7:29500", "10.0.0.7<29500>"
std::pair<std::string_view, std::string_view> HostAndPort(std::string_view text) {
  if (text.starts_with("(")) {
    const std::string_view inside = Between(text, "(", ")");
    const size_t comma = inside.rfind(',');
    if (comma != std::string_view::npos)
      return {Trim(inside.substr(0, comma)), Trim(inside.substr(comma + 1))};
  }
  if (text.starts_with("[")) {
    const std::string_view rest = After(text, "]:");
    return {Between(text, "[", "]"), NumberText(rest)};
  }
  const std::string_view word = text.substr(0, text.find_first_of(" \t,;'\"()"));
  if (Contains(word, "<")) return {Before(word, "<"), Between(word, "<", ">")};
  const size_t colon = word.rfind(':');
  if (colon != std::string_view::npos) {
    const std::string_view port = NumberText(word.substr(colon + 1));
    if (IsDigits(port)) return {word.substr(0, colon), port};
  }
  return {};
}

void AddAddress(std::string_view text, Incident& incident) {
  static constexpr std::string_view kLeads[] = {
      "trying to connect to ",
      "failed to connect to any network address of ",
      "failed to connect to ",
      "connect to ",
      "Connect to ",
      "failed to bind to ",
      "failed to listen on ",
      "(addrinfo) of ",
      "network addresses of ",
      "connection to ",
      "remote=",
  };
  for (std::string_view lead : kLeads) {
    const auto [host, port] = HostAndPort(After(text, lead));
    if (host.empty() || !IsDigits(port)) continue;
    AddField(incident, "host", Capped(host, 255));
    AddField(incident, "port", port);
    return;
  }
  if (const auto port = IntAfter(text, "port: "); port) AddField(incident, "port", *port);
}

struct CauseRow {
  std::string_view text;
  std::string_view sub;
};

// In order: the operating system's reason is more telling than the operation that it broke.
constexpr CauseRow kCauses[] = {
    {"Address already in use", subs::kPortInUse},
    {"EADDRINUSE", subs::kPortInUse},
    {"gai error", subs::kDns},
    {"Name or service not known", subs::kDns},
    {"Temporary failure in name resolution", subs::kDns},
    {"No address associated with hostname", subs::kDns},
    {"hostname of the client socket cannot be retrieved", subs::kDns},
    {"error encountered when getting address info", subs::kDns},
    {"Connection refused", subs::kRefused},
    {"No route to host", subs::kRefused},
    {"Network is unreachable", subs::kRefused},
    {"failed to connect to all addresses", subs::kRefused},
    {"clients joined", subs::kJoin},
    {"Wait_for_all_tasks_to_register", subs::kJoin},
    {"CoordinationService/RegisterTask", subs::kJoin},
    {"PjRT_Client_Connect", subs::kJoin},
    {"store based barrier", subs::kJoin},
    {"connectFullMesh failed", subs::kJoin},
    {"waiting for clients", subs::kJoin},
    {"Cannot assign requested address", subs::kBind},
    // The store listens on all addresses of its node: what it can be refused is its port.
    {"server socket has failed to listen on any", subs::kPortInUse},
    {"server socket has failed to", subs::kBind},
    {"no socket interface found", subs::kNoInterface},
    {"Stop_waiting response is expected", subs::kStoreLost},
    {"failed to recv, got 0 bytes", subs::kStoreLost},
    {"keep-alive heartbeat", subs::kStoreLost},
    {"connection to the C10d store has failed", subs::kStoreLost},
    {"Connection reset by peer", subs::kStoreLost},
    {"Broken pipe", subs::kStoreLost},
    {"Connection was likely closed", subs::kStoreLost},
    {"Connection timed out", subs::kTimeout},
    {"has timed out", subs::kTimeout},
    {"Socket Timeout", subs::kTimeout},
    {"wait timeout after", subs::kTimeout},
    {"Timed out", subs::kTimeout},
    {"timed out", subs::kTimeout},
    {"Timeout", subs::kTimeout},
    {"failed to connect", subs::kRefused},
};

std::string_view CauseOf(std::string_view text) {
  for (const CauseRow& row : kCauses) {
    if (Contains(text, row.text)) return row.sub;
  }
  return {};
}

constexpr std::string_view kStoreWords[] = {
    "[c10d]",    "TCPStore",        "client socket has",   "server socket",
    "gai error", "key-value store", "store based barrier", "connectFullMesh failed"};
// NCCL before it has a communicator.
constexpr std::string_view kBootstrapWords[] = {"socketStartConnect", "socketPollConnect",
                                                "NCCL WARN Bootstrap",
                                                "Bootstrap : no socket interface found"};
constexpr std::string_view kAnchors[] = {"[c10d]",
                                         "TCPStore",
                                         "client socket has timed out",
                                         "client socket has failed",
                                         "server socket has failed",
                                         "gai error",
                                         "Stop_waiting response is expected",
                                         "keep-alive heartbeat",
                                         "RendezvousConnectionError",
                                         "RendezvousTimeoutError",
                                         "via c10d key-value store",
                                         "in store based barrier",
                                         "connectFullMesh failed"};
constexpr std::string_view kNcclAnchors[] = {
    "NCCL WARN Bootstrap",  "socketStartConnect",   "socketPollConnect",     "Call to connect",
    "getting address info", "NCCL WARN Connect to", "NCCL WARN Call to bind"};

void ParseStore(const CleanLine& line, RecordList& out) {
  if (HasOwnRow(line.text)) return;
  Incident incident = MakeIncident(IncidentKind::kRendezvous, line, "c10d_store");
  if (!ReadRendezvous(line.text, incident)) return;
  // A warning is followed by another try; only an error is the end of trying.
  if (IsWarningLevel(line.text) || IsRetry(line.text)) incident.role = Role::kCascade;
  out.push_back(std::move(incident));
}

void ParseBootstrap(const CleanLine& line, RecordList& out) {
  const std::string_view sub = CauseOf(line.text);
  if (sub.empty()) return;
  Incident incident = MakeIncident(IncidentKind::kRendezvous, line, "nccl_bootstrap");
  incident.sub = sub;
  AddAddress(line.text, incident);
  AddField(incident, "backend", "nccl");
  if (IsRetry(line.text)) incident.role = Role::kCascade;
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"c10d_store", "the process group's store cannot be reached or held", kAnchors, ParseStore,
     "[E302 08:15:00.120 socket.cpp:1023] [c10d] The client socket has timed out after 120000ms "
     "while trying to "
     "connect to (trainer-head, 23456)."},
    {"nccl_bootstrap", "NCCL's own sockets cannot connect or bind", kNcclAnchors, ParseBootstrap,
     "gx12:4410:4488 [6] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to "
     "10.44.0.9<40551> failed : "
     "Connection refused"},
};

}  // namespace

bool IsWarningLevel(std::string_view text) {
  if (text.size() > 5 && text[0] == 'W' && IsDigits(text.substr(1, 4))) return true;  // glog: W0325
  // [W socket.cpp:426], [W1223 05:17:58 socket.cpp:752]
  if (text.starts_with("[W ") || text.starts_with("[I ")) return true;
  if (text.size() > 5 && text[0] == '[' && (text[1] == 'W' || text[1] == 'I') &&
      IsDigits(text.substr(2, 3))) {
    return true;
  }
  return ContainsAny(text.substr(0, 200), {"WARNING", "[WARN", " WARN ", "Warning:"}) &&
         !Contains(text, "NCCL WARN");
}

bool IsRegistration(std::string_view text) {
  return ContainsAny(text, {"Wait_for_all_tasks_to_register", "CoordinationService/RegisterTask",
                            "PjRT_Client_Connect"});
}

bool ReadRendezvous(std::string_view text, Incident& incident) {
  const std::string_view type = LastComponent(incident.exception_type);
  const bool by_type = type == "DistNetworkError" || type == "DistStoreError" ||
                       type == "RendezvousTimeoutError" || type == "RendezvousConnectionError" ||
                       type == "RendezvousClosedError";
  const bool in_rendezvous = incident.frame == FrameKind::kRendezvous && !type.empty();
  const bool by_words = ContainsAny(text, kStoreWords) || ContainsAny(text, kBootstrapWords) ||
                        ContainsAny(text, {"Stop_waiting response", "keep-alive heartbeat"}) ||
                        IsRegistration(text);
  if (!by_type && !in_rendezvous && !by_words) return false;
  const std::string_view sub = CauseOf(text);
  if (!by_type && sub.empty()) return false;
  incident.kind = IncidentKind::kRendezvous;
  incident.sub = sub;
  if (sub.empty()) {
    if (type == "RendezvousTimeoutError") incident.sub = subs::kJoin;
    if (type == "RendezvousConnectionError" || type == "DistNetworkError")
      incident.sub = subs::kStoreLost;
    if (type == "RendezvousClosedError") incident.role = Role::kCascade;
  }
  // Outside the forming of the group a store that went away is the death of the process that held
  // it.
  const bool forming =
      incident.frame == FrameKind::kRendezvous || incident.frame == FrameKind::kUnknown;
  const bool lost_later = incident.sub == subs::kStoreLost && !forming;
  if (lost_later) incident.role = Role::kCascade;
  AddAddress(text, incident);
  // ProcessGroupNCCL::broadcastUniqueNCCLID: whose word did not come.
  if (Contains(text, "is setting up NCCL communicator")) {
    AddField(incident, "how", "communicator");
    const auto peer = IntAfter(text, "retrieving ncclUniqueId from [");
    if (peer && *peer >= 0 && *peer < (1 << 24)) AddField(incident, "peer", *peer);
  }
  if (const auto number = IntAfter(text, "errno: "); number) AddField(incident, "errno", *number);
  if (const auto size = IntAfter(text, "world_size="); size) AddField(incident, "expected", *size);
  if (const auto here = IntAfter(text, "worker_count="); here) AddField(incident, "joined", *here);
  if (const auto wait = IntAfter(text, "timed out after "); wait) {
    const bool ms =
        After(text, "timed out after ").substr(0, 12).find("ms") != std::string_view::npos;
    if (*wait < (int64_t{1} << 40)) AddField(incident, "timeout_ms", ms ? *wait : *wait * 1000);
  }
  return true;
}

std::span<const ShapeRow> RendezvousShapes() {
  return kRows;
}

}  // namespace rankscope::logs
