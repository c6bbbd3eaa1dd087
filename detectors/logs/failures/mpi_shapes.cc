// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What launchers of MPI and their kin print that launcher_shapes.cc does not read, and what
// launchers print of the survivors that they stop.
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kStopAnchors[] = {"Killing global rank ", "Killing subprocess ",
                                             " via signal SIG",
                                             "Terminating remaining workers after failure of "};
constexpr std::string_view kHydraAnchors[] = {
    "TERMINATED WITH THE EXIT STRING: ", "KILLED BY SIGNAL: ", "=   EXIT CODE: "};
constexpr std::string_view kPrteAnchors[] = {"signal 9 (Killed)",  "signal 11 (Segmentation fault)",
                                             "signal 6 (Aborted)", "signal 7 (Bus error)",
                                             "signal 4 (Illegal",  "signal 8 (Floating"};

constexpr std::string_view kNamedAnchors[] = {"=   RANK ", "noticed that process rank "};

constexpr std::string_view kAbortAnchors[] = {"MPI_ABORT was invoked on rank ",
                                              "application called MPI_Abort("};
constexpr std::string_view kErrorAnchors[] = {"*** MPI_ERR_", "Fatal error in PMPI_",
                                              "Fatal error in MPI_", "Fatal error in internal_"};
constexpr std::string_view kSlotAnchors[] = {"not enough slots available in the system to satisfy",
                                             "requested more processes than allowed"};

constexpr std::string_view kDaemonAnchors[] = {"has lost communication with a remote daemon"};

constexpr std::string_view kStartAnchors[] = {"was unable to reliably start one or more daemons",
                                              "daemon has unexpectedly failed after launch"};

int32_t SignalIn(std::optional<int64_t> number) {
  return number && *number > 0 && *number < 65 ? static_cast<int32_t>(*number) : 0;
}

// Composer: "Killing global rank 3 (PID 71) with SIGTERM"; DeepSpeed: "Killing subprocess 71";
// torch.multiprocessing: "Terminating process 71 via signal SIGTERM"; horovodrun.
void ParseStop(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  // torchelastic's own wording has a row.
  if (Contains(text, "Unable to shutdown process")) return;
  if (Contains(text, " via signal SIG") && !Contains(text, "Terminating process ")) return;
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "launcher_stops");
  incident.role = Role::kCascade;
  incident.rank = -1;
  incident.local_rank = -1;
  auto pid = IntAfter(text, "PID ");
  if (!pid) pid = IntAfter(text, "subprocess ");
  if (!pid) pid = IntAfter(text, "Terminating process ");
  if (pid && *pid > 0 && *pid < (int64_t{1} << 31)) incident.pid = static_cast<int32_t>(*pid);
  SetSignal(incident, Contains(text, "SIGKILL") ? 9 : 15);
  out.push_back(std::move(incident));
}

// MPICH's Hydra, Intel MPI: a banner of "BAD TERMINATION", then one of these. Its EXIT CODE is the
// raw status, so small numbers may be signals and are left to the line that names them.
void ParseHydra(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "hydra_exit");
  incident.role = Role::kWrapper;
  int32_t signal = SignalIn(IntAfter(text, "KILLED BY SIGNAL: "));
  const std::string_view words = After(text, "EXIT STRING: ");
  if (signal == 0) signal = SignalIn(IntAfter(words, "(signal "));
  if (signal != 0) {
    SetSignal(incident, signal);
    if (signal == 15) incident.role = Role::kCascade;
  } else {
    const auto code = IntAfter(text, "EXIT CODE: ");
    if (!code || *code <= 0 || *code > 255 || SignalName(static_cast<int32_t>(*code)) == "SIGKILL")
      return;
    const bool may_be_signal = *code > 3 && *code < 16;
    if (may_be_signal) return;
    incident.kind = IncidentKind::kNonZeroExit;
    incident.exit_code = static_cast<int32_t>(*code);
  }
  out.push_back(std::move(incident));
}

// Whom the next line is about: "=   RANK 6 PID 33190 RUNNING AT r25u09n02" above Hydra's, and the
// first half of PRRTE's sentence. They say nothing by themselves; the reader gives them to the next
// line and drops them.
void ParseNamed(const CleanLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  const bool hydra = text.starts_with("=   RANK ");
  if (!hydra && !text.ends_with(" exited on")) return;
  const auto rank = IntAfter(text, hydra ? "=   RANK " : "process rank ");
  if (!rank || *rank < 0 || *rank >= (1 << 24)) return;
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, kNamedProcess);
  incident.role = Role::kAdvice;
  incident.rank = static_cast<int32_t>(*rank);
  const auto pid = IntAfter(text, "PID ");
  if (pid && *pid > 0 && *pid < (int64_t{1} << 31)) incident.pid = static_cast<int32_t>(*pid);
  AddField(incident, "node", LeadingWord(After(text, hydra ? " RUNNING AT " : " on node ")));
  out.push_back(std::move(incident));
}

// PRRTE (Open MPI 5) breaks its sentence: "... noticed that process rank 1 with PID 7 on node n1
// exited on" and, on a line of its own, "signal 9 (Killed).".
void ParsePrte(const CleanLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  if (!text.starts_with("signal ") || !(text.ends_with(").") || text.ends_with(")"))) return;
  const int32_t signal = SignalIn(IntAfter(text, "signal "));
  if (signal == 0) return;
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "prte_exit");
  incident.role = Role::kWrapper;
  SetSignal(incident, signal);
  out.push_back(std::move(incident));
}

// A process ends all others by MPI_Abort(): mpi4py does after an exception that nobody caught. Open
// MPI names the rank, and the code on its next line; MPICH has both in one.
void ParseAbort(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, "mpi_abort");
  incident.role = Role::kWrapper;
  auto rank = IntAfter(text, "invoked on rank ");
  if (!rank) rank = IntAfter(text, ") - process ");
  if (rank && *rank >= 0 && *rank < (1 << 24)) incident.rank = static_cast<int32_t>(*rank);
  const auto code = IntAfter(After(text, "MPI_Abort("), ", ");
  incident.exit_code = static_cast<int32_t>(code && *code > 0 && *code < 256 ? *code : 1);
  out.push_back(std::move(incident));
}

// The default handler of MPI's errors ends the process, and the launcher the others. Open MPI,
// errhandler_predefined.c: "*** MPI_ERR_TRUNCATE: message truncated" among lines that name the call
// and the process. MPICH and Intel MPI: "Abort(403264271) on node 3 (rank 3 in comm 0): Fatal error
// in PMPI_Bcast: Message truncated, error stack:".
void ParseError(const CleanLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  Incident incident = MakeIncident(IncidentKind::kException, line, "mpi_error");
  if (const std::string_view told = After(text, "*** MPI_ERR_"); !told.empty()) {
    const size_t colon = told.find(": ");
    // MPI_ERRORS_ARE_FATAL is the handler's name.
    if (colon == std::string_view::npos || told.substr(0, colon).find(' ') != told.npos) return;
    incident.exception_type = Capped(After(text, "*** ").substr(0, colon + 8), 60);
    incident.message = Capped(told.substr(colon + 2), kMessageCap);
  } else {
    const size_t start = text.find("Fatal error in ");
    // A program's own sentence has no call and no colon.
    if (start != 0 && !text.starts_with("Abort(")) return;
    if (text.find(": ", start) == std::string_view::npos) return;
    std::string_view message = text.substr(start);
    if (message.ends_with(", error stack:")) message.remove_suffix(14);
    incident.exception_type = "MPI error";
    incident.message = Capped(message, kMessageCap);
    const auto rank = IntAfter(text, "(rank ");
    if (rank && *rank >= 0 && *rank < (1 << 24)) incident.rank = static_cast<int32_t>(*rank);
  }
  // Classes that MPI gives to what its layers below reported: no reason, and those may have told
  // it.
  constexpr std::string_view kNoReason[] = {"MPI_ERR_OTHER",      "MPI_ERR_INTERN",
                                            "MPI_ERR_UNKNOWN",    "Other MPI error",
                                            "Internal MPI error", "Unknown error class"};
  if (ContainsAny(text, kNoReason)) incident.role = Role::kWrapper;
  // ULFM: another process is gone, and this one tells of it.
  if (incident.exception_type.starts_with("MPI_ERR_PROC_")) incident.kind = IncidentKind::kPeerLost;
  out.push_back(std::move(incident));
}

// Open MPI starts nothing where the allocation has fewer slots than ranks.
void ParseSlots(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kUsageError, line, "mpi_slots");
  incident.frame = FrameKind::kConfig;
  incident.message = Capped(Trim(line.text), kMessageCap);
  out.push_back(std::move(incident));
}

// Open MPI's daemon on another node, or the way to it, is gone, and all ranks with it: ORTE up to
// version 4, PRTE since.
void ParseLostDaemon(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kPeerLost, line, "mpi_daemon_lost");
  incident.rank = -1;
  out.push_back(std::move(incident));
}

// Its daemons never came up on some node, or did not find the way back: no rank was started.
void ParseNoDaemon(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kRendezvous, line, "mpi_no_daemon");
  incident.rank = -1;
  incident.sub = "unreachable";
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"launcher_stops", "a launcher stops what a failure left over", kStopAnchors, ParseStop,
     "[2024-03-04 05:06:07,010] [INFO] [launch.py:316:sigkill_handler] Killing subprocess 51733"},
    {kNamedProcess, "a launcher of MPI names the process of its next line", kNamedAnchors,
     ParseNamed, "=   RANK 2 PID 7113 RUNNING AT c12"},
    {"hydra_exit", "MPICH or Intel MPI reports a process's end", kHydraAnchors, ParseHydra,
     "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)"},
    {"prte_exit", "Open MPI 5 names the signal on a line of its own", kPrteAnchors, ParsePrte,
     "signal 9 (Killed)."},
    {"mpi_abort", "a process ends all others by MPI_Abort", kAbortAnchors, ParseAbort,
     "MPI_ABORT was invoked on rank 5 in communicator MPI_COMM_WORLD"},
    {"mpi_error", "a call of MPI failed and its handler ends the process", kErrorAnchors,
     ParseError, "*** MPI_ERR_TRUNCATE: message truncated"},
    {"mpi_slots", "Open MPI has fewer slots than ranks", kSlotAnchors, ParseSlots,
     "There are not enough slots available in the system to satisfy the 16"},
    {"mpi_no_daemon", "Open MPI cannot start its daemon on another node", kStartAnchors,
     ParseNoDaemon, "ORTE was unable to reliably start one or more daemons."},
    {"mpi_daemon_lost", "Open MPI lost its daemon on another node", kDaemonAnchors, ParseLostDaemon,
     "ORTE has lost communication with a remote daemon."},
};

}  // namespace

std::span<const ShapeRow> MpiShapes() {
  return kRows;
}

}  // namespace rankscope::logs
