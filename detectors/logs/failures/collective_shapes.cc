// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/ascii.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

// "[Rank 3]" and "[PG ID 0 PG GUID 0(default_pg) Rank 3]" are global ranks; in another group the
// number counts inside it.
void AddSpeaker(std::string_view text, Incident& incident) {
  if (const auto rank = IntAfter(text, "[Rank "); rank && *rank >= 0 && *rank < (1 << 24)) {
    if (incident.rank < 0) incident.rank = static_cast<int32_t>(*rank);
    return;
  }
  const std::string_view group = Between(text, "[PG ", "]");
  if (group.empty()) return;
  const auto id = group.starts_with("ID ") ? LeadingInt(group.substr(3)) : LeadingInt(group);
  const auto rank = IntAfter(group, "Rank ");
  if (id) AddField(incident, "pg", *id);
  if (!rank || *rank < 0 || *rank >= (1 << 24)) return;
  const bool whole_world = (id && *id == 0) || Contains(group, "default_pg");
  if (whole_world && incident.rank < 0) incident.rank = static_cast<int32_t>(*rank);
  if (!whole_world) AddField(incident, "pg_rank", *rank);
}

// WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=.., Timeout(ms)=600000) ran for 600060
// milliseconds
void AddWork(std::string_view text, Incident& incident) {
  const std::string_view work = After(text, "Work");
  if (const auto seq = IntAfter(work, "SeqNum="); seq) AddField(incident, "seq", *seq);
  AddField(incident, "op", LeadingWord(After(work, "OpType=")));
  if (const auto numel = IntAfter(work, "NumelIn="); numel) AddField(incident, "numel", *numel);
  if (const auto ms = IntAfter(work, "Timeout(ms)="); ms) AddField(incident, "timeout_ms", *ms);
  if (const auto ms = IntAfter(work, "ran for "); ms) AddField(incident, "elapsed_ms", *ms);
}

void AddCounters(std::string_view text, Incident& incident) {
  static constexpr std::string_view kEnqueued[] = {
      "last enqueued NCCL work: ", "Last enqueued NCCL work: ", "last enqueued work: "};
  static constexpr std::string_view kCompleted[] = {
      "last completed NCCL work: ", "Last completed NCCL work: ", "last completed work: "};
  for (std::string_view needle : kEnqueued) {
    if (const auto n = IntAfter(text, needle); n) AddField(incident, "last_enqueued", *n);
  }
  for (std::string_view needle : kCompleted) {
    if (const auto n = IntAfter(text, needle); n) AddField(incident, "last_completed", *n);
  }
}

// Up to torch 1.8 without the watchdog's name.
constexpr std::string_view kWatchdogAnchors[] = {
    "aught collective operation timeout", "timed out in blocking wait", "Timeout at NCCL work: "};
constexpr std::string_view kFollowAnchors[] = {"detected by watchdog at work",
                                               "Received a dump signal",
                                               "flight recorder dump signal",
                                               "Received a global",
                                               "Some NCCL operations have failed or timed out",
                                               "taking the entire process down"};
constexpr std::string_view kDesyncAnchors[] = {"lagging/dead/mismatched ranks",
                                               "are the lagging ranks that caused this timeout",
                                               "joined but didn't finish collective #"};
// Horovod's stall inspector, once a minute for as long as tensors wait; below it "Missing ranks:"
// and a line for each rank that has not submitted them, of which TensorFlow's have longer names:
// "5: [allreduce.grad_3, allreduce.grad_4 ...]", "5: [Adam_Allreduce/HorovodAllreduce_grads_0
// ...]".
constexpr std::string_view kStallAnchors[] = {"reduced, gathered or broadcasted by subset of ranks",
                                              "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
                                              "[missing ranks:",
                                              "[allreduce.",
                                              "[allgather.",
                                              "[broadcast.",
                                              "[alltoall.",
                                              "HorovodAllreduce_",
                                              "HorovodAllgather_",
                                              "HorovodBroadcast_",
                                              "HorovodAlltoall_"};
constexpr std::string_view kStuckAnchors[] = {"watchdog got stuck for",
                                              "Heartbeat monitor timed out"};
constexpr std::string_view kBarrierAnchors[] = {"monitoredBarrier"};
constexpr std::string_view kGlooAnchors[] = {"Timed out waiting ",
                                             "Application timeout caused pair closure"};
constexpr std::string_view kPeerAnchors[] = {"Connection closed by peer",
                                             "Connection reset by peer",
                                             "Connection closed by remote peer",
                                             "remote process exited or there was a network error",
                                             "unhandled system error",
                                             "ncclSystemError",
                                             "ncclRemoteError",
                                             "Call to recv from",
                                             "Call to send to",
                                             "Broken pipe"};
constexpr std::string_view kIbAnchors[] = {"Got completion from peer", "Got completion with error",
                                           "Got async event",          "Got async error event",
                                           "async fatal event",        "Call to ibv_"};
constexpr std::string_view kUcxAnchors[] = {
    "Transport retry count exceeded on ", "Receiver-not-ready retry count exceeded on ",
    "RNR retry count exceeded on ", "Error: ucx send failed: ", "Error: ucx recv failed: "};
constexpr std::string_view kOfiAnchors[] = {"completed with error. RC", "NET/OFI Couldn't open AV"};

// ibv_wc_status; NCCL prints the number alone.
struct StatusRow {
  int64_t status;
  std::string_view name;
};
constexpr StatusRow kStatuses[] = {
    {1, "LOC_LEN_ERR"},         {2, "LOC_QP_OP_ERR"},   {4, "LOC_PROT_ERR"},
    {5, "WR_FLUSH_ERR"},        {6, "MW_BIND_ERR"},     {7, "BAD_RESP_ERR"},
    {8, "LOC_ACCESS_ERR"},      {9, "REM_INV_REQ_ERR"}, {10, "REM_ACCESS_ERR"},
    {11, "REM_OP_ERR"},         {12, "RETRY_EXC_ERR"},  {13, "RNR_RETRY_EXC_ERR"},
    {15, "REM_INV_RD_REQ_ERR"}, {16, "REM_ABORT_ERR"},  {19, "FATAL_ERR"},
    {20, "RESP_TIMEOUT_ERR"},   {21, "GENERAL_ERR"}};

void ParseWatchdog(const CleanLine& line, RecordList& out) {
  if (HasOwnRow(line.text)) return;
  Incident incident = MakeIncident(IncidentKind::kCollectiveTimeout, line, "nccl_watchdog");
  ReadCollectiveTimeout(line.text, incident);
  out.push_back(std::move(incident));
}

// What a process prints after a timeout was found, its own or another rank's.
void ParseFollow(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kCollectiveTimeout, line, "nccl_watchdog_follow");
  incident.role = Role::kCascade;
  if (Contains(line.text, "WorkNCCL(")) return;  // the watchdog row has it
  // By this line alone nobody waited too long.
  if (Contains(line.text, "(either an error or timeout)")) AddField(incident, "how", "either");
  AddSpeaker(line.text, incident);
  AddCounters(line.text, incident);
  static constexpr std::string_view kSeq[] = {"watchdog at work: ",
                                              "watchdog at work sequence id: "};
  for (std::string_view needle : kSeq) {
    if (const auto seq = IntAfter(line.text, needle); seq) AddField(incident, "seq", *seq);
  }
  if (Contains(line.text, "collective timeout from")) {
    incident.sub = "another";  // it passes on what another rank has found
    if (const auto rank = IntAfter(After(line.text, "collective timeout from"), "rank"); rank) {
      AddField(incident, "from_rank", *rank);
    }
  }
  AddField(incident, "backend", "nccl");
  out.push_back(std::move(incident));
}

// TORCH_NCCL_DESYNC_DEBUG: the report below a timeout names the ranks that lag.
void ParseDesync(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  Incident incident = MakeIncident(IncidentKind::kCollectiveTimeout, line, "desync_report");
  incident.role = Role::kCascade;
  incident.sub = subs::kDesync;
  if (const auto seq = IntAfter(text, "collective #"); seq) AddField(incident, "seq", *seq);
  AddField(incident, "missing_ranks", Capped(Between(text, "[", "]"), 200));
  AddField(incident, "backend", "nccl");
  out.push_back(std::move(incident));
}

void ParseStall(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const bool begins = Contains(text, "by subset of ranks") || Contains(text, "is stalled for");
  std::string_view missing = Between(text, "[missing ranks:", "]");
  std::string prefixed;
  if (!begins && missing.empty()) {
    missing = Contains(text, ": [") ? Before(text, ": [") : std::string_view();
    // Its number looks like the task that srun puts before a line.
    if (missing.empty() && line.rank >= 0 && !line.local_rank && text.starts_with("[") &&
        text.ends_with("]")) {
      prefixed = std::to_string(line.rank);
      missing = prefixed;
    }
    if (!IsDigits(missing) || missing.size() > 6) return;
  }
  Incident incident = MakeIncident(IncidentKind::kCollectiveTimeout, line, "horovod_stall");
  // Of a wait that may end. Horovod repeats it for as long as it lasts, and says no more after it.
  if (!Contains(text, "Will shutdown")) incident.sub = subs::kHang;
  if (!begins) {
    incident.role = Role::kCascade;
    AddField(incident, "missing_ranks", Capped(Trim(missing), 200));
  }
  if (const auto s = IntAfter(text, "for more than "); s && *s > 0 && *s < (1 << 24))
    AddField(incident, "timeout_ms", *s * 1000);
  AddField(incident, "backend", "horovod");
  out.push_back(std::move(incident));
}

void ParseStuck(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kCollectiveTimeout, line, "nccl_heartbeat");
  incident.sub = "heartbeat";
  AddSpeaker(line.text, incident);
  if (const auto s = IntAfter(line.text, "got stuck for"); s && *s < (int64_t{1} << 40)) {
    AddField(incident, "timeout_ms", *s * 1000);
  }
  AddField(incident, "backend", "nccl");
  out.push_back(std::move(incident));
}

void ParseTimeoutText(const CleanLine& line, RecordList& out) {
  if (HasOwnRow(line.text)) return;
  Incident incident = MakeIncident(IncidentKind::kCollectiveTimeout, line, "collective_timeout");
  if (ReadCollectiveTimeout(line.text, incident)) out.push_back(std::move(incident));
}

void ParsePeer(const CleanLine& line, RecordList& out) {
  if (HasOwnRow(line.text)) return;
  Incident incident = MakeIncident(IncidentKind::kPeerLost, line, "peer_lost");
  if (ReadPeerLost(line.text, incident)) out.push_back(std::move(incident));
}

// Whose line it is, "worker-3:41203:41888 [3] ... NCCL WARN ...", and the port that it names.
void AddPort(std::string_view text, Incident& incident) {
  const std::string_view host = Before(text, ":");
  const std::string_view pid = Before(After(text, ":"), ":");
  if (!host.empty() && host.size() < text.size() && host.find(' ') == std::string_view::npos &&
      IsDigits(pid))
    AddField(incident, "node", Capped(host, 255));
  std::string_view port = After(text, "hca ");
  if (port.empty() && Contains(text, "mlx")) port = text.substr(text.find("mlx"));
  port = Before(LeadingWord(port), "/");
  while (port.ends_with(':')) port.remove_suffix(1);
  AddField(incident, "device", Capped(port, 64));
}

// Verbs completion status 5 is the flush of a queue pair that broke before: the first error is
// another line.
void ParseIb(const CleanLine& line, RecordList& out) {
  if (!ContainsAny(line.text, {"NET/IB", "ibv_", "mlx", "ib_plugin"})) return;
  Incident incident = MakeIncident(IncidentKind::kPeerLost, line, "nccl_ib");
  incident.sub = subs::kIb;
  AddField(incident, "backend", "nccl");
  auto status = IntAfter(line.text, "status=");
  if (!status) status = IntAfter(line.text, " with error ");  // NCCL up to 2.19
  if (status) AddField(incident, "status", *status);
  for (const StatusRow& row : kStatuses) {
    if (status && row.status == *status) AddField(incident, "status_name", row.name);
  }
  AddField(incident, "peer", Before(LeadingWord(After(line.text, "from peer ")), "<"));
  if (const auto vendor = IntAfter(line.text, "vendor err "); vendor) {
    AddField(incident, "vendor_error", *vendor);
  }
  AddPort(line.text, incident);
  if (status && *status == 5) incident.role = Role::kCascade;
  // Ports that come back, tables that change, and what NCCL probes for without needing it.
  static constexpr std::string_view kHarmless[] = {"GID table change", "client reregistration",
                                                   "port active",      "LID change",
                                                   "SM change",        "P_Key table change"};
  if (ContainsAny(line.text, kHarmless) || !Contains(line.text, "NCCL WARN"))
    incident.role = Role::kCascade;
  if (Contains(line.text, "Call to ibv_") && !Contains(line.text, "failed")) return;
  out.push_back(std::move(incident));
}

// UCX, src/uct/ib/mlx5/ib_mlx5_log.c: "ib_mlx5_log.c:171  Transport retry count exceeded on
// mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)". The process aborts behind it. Open MPI tells of a
// request that UCX could not carry, whatever the transport: "pml_ucx.c:775  Error: ucx send failed:
// Endpoint timeout".
void ParseUcx(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kPeerLost, line, "ucx_ib");
  AddField(incident, "backend", "ucx");
  if (const std::string_view device = After(line.text, "exceeded on "); !device.empty()) {
    incident.sub = subs::kIb;
    AddField(incident, "device", LeadingWord(device));
  }
  out.push_back(std::move(incident));
}

void ParseOfi(const CleanLine& line, RecordList& out) {
  if (!Contains(line.text, "NET/OFI")) return;
  Incident incident = MakeIncident(IncidentKind::kPeerLost, line, "nccl_ofi");
  incident.sub = subs::kEfa;
  AddField(incident, "backend", "nccl");
  if (const auto rc = IntAfter(line.text, "RC: "); rc) AddField(incident, "status", *rc);
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"nccl_watchdog", "the NCCL watchdog gives up on a collective", kWatchdogAnchors, ParseWatchdog,
     "[E714 21:40:07.551 ProcessGroupNCCL.cpp:632] [Rank 6] Watchdog caught collective operation "
     "timeout: "
     "WorkNCCL(SeqNum=8812, OpType=REDUCE_SCATTER, NumelIn=4096, NumelOut=512, Timeout(ms)=480000) "
     "ran for "
     "480031 milliseconds before timing out."},
    {"nccl_watchdog_follow", "what NCCL process groups print after a timeout", kFollowAnchors,
     ParseFollow,
     "[PG ID 0 PG GUID 0(default_pg) Rank 2] failure detected by watchdog at work sequence id: 77 "
     "PG status: "
     "last enqueued work: 79, last completed work: 76"},
    {"desync_report", "torch's report names the ranks that lag", kDesyncAnchors, ParseDesync,
     "   - [3] joined but didn't finish collective #512 (count from 1)"},
    {"horovod_stall", "Horovod waits for ranks that submit no tensor", kStallAnchors, ParseStall,
     "[1,0]<stderr>:W stall_inspector.cc:105] One or more tensors were submitted to be reduced, "
     "gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for more "
     "than 60 seconds."},
    {"nccl_heartbeat", "the NCCL watchdog itself stands still", kStuckAnchors, ParseStuck,
     "[Rank 1] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in "
     "monitoring"},
    {"monitored_barrier", "a monitored barrier names the ranks that did not come", kBarrierAnchors,
     ParseTimeoutText,
     "[E ProcessGroupGloo.cpp:138] Rank 5 failed to pass monitoredBarrier in 600000 ms"},
    {"gloo_timeout", "a gloo operation timed out", kGlooAnchors, ParseTimeoutText,
     "[gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 30000ms for send operation to "
     "complete"},
    {"peer_lost", "a connection inside a process group broke", kPeerAnchors, ParsePeer,
     "[gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.20.0.7]:40112"},
    {"nccl_ib", "InfiniBand or RoCE reports a failed request", kIbAnchors, ParseIb,
     "g3:901:944 [2] transport/net_ib.cc:1410 NCCL WARN NET/IB : Got completion from peer "
     "10.9.8.7<50112> with "
     "status=12 opcode=0 len=0 vendor err 129 (Send)"},
    {"ucx_ib", "InfiniBand or RoCE reports to UCX that a peer does not answer", kUcxAnchors,
     ParseUcx,
     "[g3:901  :0:944] ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_2:1/IB (synd 0x15 "
     "vend 0x81 hw_synd 0/0)"},
    {"nccl_ofi", "libfabric (EFA) reports a failed request", kOfiAnchors, ParseOfi,
     "p4d-2:88:131 [5] nccl_net_ofi_cq.c:204 NCCL WARN NET/OFI Request completed with error. RC: "
     "5. Error: "
     "unresponsive receiver"},
};

}  // namespace

bool ReadCollectiveTimeout(std::string_view text, Incident& incident) {
  if (IsRegistration(text)) return false;
  if (ContainsAny(text, kWatchdogAnchors) ||
      (Contains(text, "NCCL communicator was aborted") && Contains(text, "imeout"))) {
    incident.kind = IncidentKind::kCollectiveTimeout;
    AddSpeaker(text, incident);
    AddWork(text, incident);
    AddCounters(text, incident);
    AddField(incident, "backend", "nccl");
    return true;
  }
  if (Contains(text, "failed to pass monitoredBarrier")) {
    incident.kind = IncidentKind::kCollectiveTimeout;
    AddField(incident, "op", "BARRIER");
    AddField(incident, "backend", "gloo");
    // The ranks that did not come: "Rank 5 failed", "Ranks 1, 3 failed".
    const std::string_view head = Before(text, " failed to pass monitoredBarrier");
    const size_t word = head.rfind("Rank");
    if (word != std::string_view::npos) {
      std::string_view ranks = head.substr(word + 4);
      if (ranks.starts_with("s")) ranks.remove_prefix(1);
      AddField(incident, "missing_ranks", Capped(Trim(ranks), 200));
    }
    if (const auto ms = IntAfter(text, "monitoredBarrier in "); ms)
      AddField(incident, "timeout_ms", *ms);
    return true;
  }
  const auto waited = IntAfter(text, "Timed out waiting ");
  if (waited && Contains(text, "operation")) {
    incident.kind = IncidentKind::kCollectiveTimeout;
    AddField(incident, "timeout_ms", *waited);
    AddField(incident, "op", LeadingWord(After(text, "ms for ")));
    AddField(incident, "backend", "gloo");
    return true;
  }
  // Gloo gives the pairs up that did not answer in time.
  if (Contains(text, "Application timeout caused pair closure")) {
    incident.kind = IncidentKind::kCollectiveTimeout;
    AddField(incident, "backend", "gloo");
    return true;
  }
  if (Contains(text, "DEADLINE_EXCEEDED") && Contains(text, "arrier")) {
    incident.kind = IncidentKind::kCollectiveTimeout;
    AddField(incident, "op", "BARRIER");
    AddField(incident, "backend", "jax");
    return true;
  }
  return false;
}

bool ReadPeerLost(std::string_view text, Incident& incident) {
  // A connection reset is a lost peer only where the connection belongs to the process group, or
  // where Python's own type says that the other end went away. A download that broke is neither.
  static constexpr std::string_view kGroup[] = {"gloo", "pair.cc",      "nccl",       "NCCL",
                                                "c10d", "ProcessGroup", "misc/socket"};
  static constexpr std::string_view kBroken[] = {
      "Connection closed by peer", "Connection reset by peer", "Connection closed by remote peer",
      "Read error", "Broken pipe"};
  static constexpr std::string_view kNccl[] = {"remote process exited or there was a network error",
                                               "unhandled system error",
                                               "ncclSystemError",
                                               "ncclRemoteError",
                                               "Horovod has been shut down",
                                               "HorovodInternalError",
                                               "NCCL communicator was aborted"};
  const std::string_view type = LastComponent(incident.exception_type);
  const bool by_type = type == "BrokenPipeError" || type == "ConnectionResetError" ||
                       type == "ConnectionAbortedError";
  // A pipe whose other process is gone reads an end of file; a pickle that is too short says more
  // than its type.
  const bool by_pipe =
      type == "EOFError" && text.empty() && incident.frame == FrameKind::kDataLoader;
  const bool in_call = ContainsAny(text, {"Call to recv from", "Call to send to"}) &&
                       ContainsAny(text, {"Connection timed out", "No route to host"});
  const bool by_group = (in_call || ContainsAny(text, kBroken)) && ContainsAny(text, kGroup);
  if (!by_type && !by_pipe && !by_group && !ContainsAny(text, kNccl)) return false;
  incident.kind = IncidentKind::kPeerLost;
  incident.role = Role::kCascade;
  // NCCL raises to Python while a communicator is made; what breaks later is the watchdog's to
  // tell.
  const bool at_creation = type == "RuntimeError" || type == "DistBackendError";
  if (at_creation && text.starts_with("NCCL error in: ") &&
      ContainsAny(text, {"unhandled system error", "ncclSystemError"}) &&
      !Contains(text, "closed by remote peer")) {
    incident.sub = subs::kInit;
  }
  if (ContainsAny(text, {"gloo", "pair.cc"})) AddField(incident, "backend", "gloo");
  if (ContainsAny(text, {"NCCL", "nccl"})) AddField(incident, "backend", "nccl");
  std::string_view peer = LeadingWord(TrimLeft(After(text, "remote peer ")));
  if (peer.empty()) peer = Between(After(text, "by peer "), "[", "]");
  AddField(incident, "peer", Before(peer, "<"));
  return true;
}

std::span<const ShapeRow> CollectiveShapes() {
  return kRows;
}

}  // namespace rankscope::logs
