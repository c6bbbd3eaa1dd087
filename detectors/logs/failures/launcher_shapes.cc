// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"

namespace rankscope::logs {
namespace {

int32_t SmallInt(std::optional<int64_t> value) {
  return value && *value > -(int64_t{1} << 31) && *value < (int64_t{1} << 31)
             ? static_cast<int32_t>(*value)
             : 0;
}

// A negative code is the signal; 128 + n is what shells make of it, which launchers pass on.
void SetExit(Incident& incident, int32_t code) {
  incident.exit_code = code;
  if (code >= 0 || code < -64) return;
  incident.kind = IncidentKind::kSignalDeath;
  SetSignal(incident, -code);
}

// Exit 15/-15/143 is what the launcher itself did to the survivors.
void MarkStopped(Incident& incident) {
  if (incident.signal == 15 || incident.exit_code == 143) incident.role = Role::kCascade;
}

constexpr std::string_view kFailedAnchors[] = {"(exitcode: "};
constexpr std::string_view kClosingAnchors[] = {"closing signal SIG"};
constexpr std::string_view kDeathAnchors[] = {"death signal, shutting down workers"};
constexpr std::string_view kUnableAnchors[] = {"Unable to shutdown process "};
constexpr std::string_view kReturnAnchors[] = {"exits with return code = "};
constexpr std::string_view kCommandAnchors[] = {"returned non-zero exit status",
                                                "died with <Signals."};
constexpr std::string_view kPlainAnchors[] = {"killed by signal ", "exited with code ",
                                              "exited with exit code ", "crashed with exit code ",
                                              " exit with status code "};
constexpr std::string_view kMpiAnchors[] = {"exited on signal ",
                                            "exit code: ", "Exit code: ", "terminated with signal"};
constexpr std::string_view kRayAnchors[] = {"killed due to memory pressure (OOM)",
                                            "Worker exit type: "};
constexpr std::string_view kLightningAnchors[] = {"Child process with PID "};

// torchelastic, four generations of logger prefix: "... failed (exitcode: -9) local_rank: 3 (pid:
// 812917) of binary: ..."
void ParseFailed(const CleanLine& line, RecordList& out) {
  if (!Contains(line.text, "failed (exitcode: ")) return;
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, "elastic_failed");
  incident.role = Role::kWrapper;
  incident.rank = -1;
  incident.pid = SmallInt(IntAfter(line.text, "(pid: "));
  if (const auto rank = IntAfter(line.text, "local_rank: "); rank && *rank >= 0) {
    incident.local_rank = SmallInt(rank);
  }
  SetExit(incident, SmallInt(IntAfter(line.text, "(exitcode: ")));
  out.push_back(std::move(incident));
}

void ParseClosing(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "elastic_closing");
  incident.role = Role::kCascade;
  incident.rank = -1;
  incident.local_rank = -1;
  incident.pid = SmallInt(IntAfter(line.text, "ending process "));
  SetSignal(incident, SignalNumber(LeadingWord(After(line.text, "closing signal "))));
  if (incident.signal != 0) out.push_back(std::move(incident));
}

void ParseDeathSignal(const CleanLine& line, RecordList& out) {
  const std::string_view word = LeadingWord(After(line.text, "Received "));
  int32_t signal = SmallInt(LeadingInt(word));
  if (signal == 0) signal = SignalNumber(LastComponent(word));
  if (signal <= 0 || signal > 64) return;
  Incident incident = MakeIncident(IncidentKind::kTerminated, line, "elastic_death_signal");
  SetSignal(incident, signal);
  out.push_back(std::move(incident));
}

void ParseUnable(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "elastic_forced_kill");
  incident.role = Role::kCascade;
  incident.pid = SmallInt(IntAfter(line.text, "Unable to shutdown process "));
  SetSignal(incident, 9);
  out.push_back(std::move(incident));
}

// DeepSpeed: "[launch.py:321:sigkill_handler] ['python', ...] exits with return code = -9"
void ParseReturn(const CleanLine& line, RecordList& out) {
  const int32_t code = SmallInt(IntAfter(line.text, "exits with return code = "));
  if (code == 0) return;
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, "deepspeed_return");
  incident.role = Role::kWrapper;
  incident.pid = SmallInt(IntAfter(line.text, "Process "));
  SetExit(incident, code);
  MarkStopped(incident);
  out.push_back(std::move(incident));
}

// Python's CalledProcessError and what launchers print of it.
void ParseCommand(const CleanLine& line, RecordList& out) {
  if (HasOwnRow(line.text)) return;
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, "command_status");
  incident.role = Role::kWrapper;
  const int32_t signal =
      SignalNumber(LeadingWord(Before(After(line.text, "died with <Signals."), ":")));
  if (signal != 0) {
    incident.kind = IncidentKind::kSignalDeath;
    SetSignal(incident, signal);
  } else {
    incident.exit_code = SmallInt(IntAfter(line.text, "non-zero exit status "));
    if (incident.exit_code == 0) return;
  }
  out.push_back(std::move(incident));
}

// Open MPI: "mpirun noticed that process rank 3 with PID 0 on node n7 exited on signal 9
// (Killed)."; Hydra: "EXIT CODE".
void ParseMpi(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, "mpi_exit");
  incident.role = Role::kWrapper;
  const std::string_view text = line.text;
  if (const auto signal = IntAfter(text, "exited on signal ");
      signal && *signal > 0 && *signal < 65) {
    incident.kind = IncidentKind::kSignalDeath;
    SetSignal(incident, SmallInt(signal));
  } else if (Contains(text, "Exit code: ") && text.starts_with("  Exit code: ")) {
    incident.exit_code = SmallInt(IntAfter(text, "Exit code: "));
  }
  if (incident.signal == 0 && incident.exit_code == 0) return;
  if (const auto rank = IntAfter(text, "process rank "); rank && *rank >= 0)
    incident.rank = SmallInt(rank);
  incident.pid = SmallInt(IntAfter(text, "with PID "));
  AddField(incident, "node", LeadingWord(After(text, "on node ")));
  out.push_back(std::move(incident));
}

// Launchers of one's own and Composer's: "rank 1 (pid 29092) killed by signal 9 (SIGKILL)", "Global
// rank 3 (PID 71) exited with code -9"; horovodrun's "Process 3 exit with status code 1."; pdsh's
// "n2: ssh exited with exit code 1". Somebody must be named in front, or it is prose.
void ParsePlain(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const auto* anchor = std::find_if(std::begin(kPlainAnchors), std::end(kPlainAnchors),
                                    [text](std::string_view one) { return Contains(text, one); });
  if (anchor == std::end(kPlainAnchors)) return;
  const std::string_view before = Before(text, *anchor);
  auto rank = IntAfter(before, "ank ");
  if (!rank && anchor->starts_with(" exit with")) rank = IntAfter(before, "Process ");
  auto pid = IntAfter(before, "pid ");
  if (!pid) pid = IntAfter(before, "PID ");
  const bool remote = before.starts_with("pdsh@") && before.ends_with(": ssh ");
  constexpr size_t kMaxBefore = 80;  // a logger's head and the name
  if ((!rank && !pid && !remote) || before.size() > kMaxBefore) return;
  const auto number = IntAfter(text, *anchor);
  if (!number || *number == 0 || *number > 255 || *number < -64) return;
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, "plain_exit");
  incident.role = Role::kWrapper;
  if (rank && *rank >= 0) incident.rank = SmallInt(rank);
  if (pid) incident.pid = SmallInt(pid);
  if (remote) AddField(incident, "node", Capped(Before(After(before, ": "), ":"), 255));
  if (anchor->starts_with("killed")) {
    if (*number < 0 || *number > 64) return;
    incident.kind = IncidentKind::kSignalDeath;
    SetSignal(incident, SmallInt(number));
  } else {
    SetExit(incident, SmallInt(number));
  }
  MarkStopped(incident);
  out.push_back(std::move(incident));
}

// Lightning's launcher: "Child process with PID 4 terminated with code 1. Forcefully terminating
// all other processes"
void ParseLightning(const CleanLine& line, RecordList& out) {
  const int32_t code = SmallInt(IntAfter(line.text, "terminated with code "));
  if (code == 0) return;
  Incident incident = MakeIncident(IncidentKind::kNonZeroExit, line, "lightning_child");
  incident.role = Role::kWrapper;
  incident.pid = SmallInt(IntAfter(line.text, "Child process with PID "));
  SetExit(incident, code);
  out.push_back(std::move(incident));
}

// Ray: "2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to
// other reasons at node .."; "A worker died or was killed while executing a task ... Worker exit
// type: SYSTEM_ERROR Worker exit detail: ..". The detail lists what *may* have happened.
void ParseRay(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (Contains(text, "killed due to memory pressure (OOM)")) {
    const size_t words = text.find(" Workers (tasks / actors) killed");
    if (words == std::string_view::npos) return;
    const size_t number = text.substr(0, words).find_last_not_of("0123456789");
    const auto killed = LeadingInt(text.substr(number == std::string_view::npos ? 0 : number + 1));
    if (!killed || *killed == 0) return;
    Incident incident = MakeIncident(IncidentKind::kHostOom, line, "ray_worker");
    incident.sub = "ray";
    AddField(incident, "events", *killed);
    out.push_back(std::move(incident));
    return;
  }
  if (!Contains(text, "SYSTEM_ERROR") && !Contains(text, "NODE_OUT_OF_MEMORY")) return;
  const bool memory = Contains(text, "NODE_OUT_OF_MEMORY");
  Incident incident = MakeIncident(memory ? IncidentKind::kHostOom : IncidentKind::kNonZeroExit,
                                   line, "ray_worker");
  incident.role = Role::kWrapper;
  incident.pid = SmallInt(IntAfter(text, "Worker PID: "));
  // A type and no status: Ray lost the connection to it.
  if (!memory) AddField(incident, "how", "SYSTEM_ERROR");
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"elastic_failed", "torchrun reports the first failed worker", kFailedAnchors, ParseFailed,
     "E0911 14:20:31.700000 41022 torch/distributed/elastic/multiprocessing/api.py:874] failed "
     "(exitcode: -11) "
     "local_rank: 2 (pid: 41077) of binary: /opt/py/bin/python3"},
    {"elastic_closing", "torchrun stops the survivors", kClosingAnchors, ParseClosing,
     "W0911 14:20:31.500000 41022 torch/distributed/elastic/multiprocessing/api.py:897] Sending "
     "process 41075 "
     "closing signal SIGTERM"},
    {"elastic_death_signal", "torchrun was told to stop", kDeathAnchors, ParseDeathSignal,
     "[2024-01-09 03:30:00,010] torch.distributed.elastic.agent.server.api: [WARNING] Received 15 "
     "death signal, "
     "shutting down workers"},
    {"elastic_forced_kill", "torchrun kills a worker that ignores SIGTERM", kUnableAnchors,
     ParseUnable,
     "Unable to shutdown process 5150 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL"},
    {"deepspeed_return", "DeepSpeed's launcher reports a worker's exit", kReturnAnchors,
     ParseReturn,
     "[2024-02-02 10:00:01,333] [ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python3', '-u', "
     "'sft.py', "
     "'--local_rank=3'] exits with return code = -7"},
    {"command_status", "a launcher reports its command's status", kCommandAnchors, ParseCommand,
     "Command '['/usr/bin/python3', 'tune.py']' died with <Signals.SIGABRT: 6>."},
    {"plain_exit", "a launcher of one's own names a rank or pid and how it ended", kPlainAnchors,
     ParsePlain, "rank 3 (pid 40117) killed by signal 11 (SIGSEGV)"},
    {"mpi_exit", "mpirun reports a process's end", kMpiAnchors, ParseMpi,
     "mpirun noticed that process rank 5 with PID 20331 on node c4 exited on signal 11 "
     "(Segmentation fault)."},
    {"ray_worker", "Ray reports workers that died", kRayAnchors, ParseRay,
     "(raylet) 3 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed "
     "due to other reasons "
     "at node (ID: 5c, IP: 10.0.0.9)"},
    {"lightning_child", "Lightning's launcher reports a child's end", kLightningAnchors,
     ParseLightning,
     "[rank: 1] Child process with PID 7001 terminated with code 1. Forcefully terminating all "
     "other processes to "
     "avoid zombies"},
};

}  // namespace

std::span<const ShapeRow> LauncherShapes() {
  return kRows;
}

}  // namespace rankscope::logs
