// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

struct WorkerRow {
  std::string_view text;
  int32_t signal;
};
constexpr std::string_view kFaultAnchors[] = {"Fatal Python error: "};
constexpr std::string_view kTerminateAnchors[] = {"terminate called "};
constexpr std::string_view kWhatAnchors[] = {"what():"};
constexpr std::string_view kHandlerAnchors[] = {"*** SIG", "Caught signal ", "*** Aborted at ",
                                                "Signal: ", "*** Process received signal"};
constexpr std::string_view kWorkerAnchors[] = {"DataLoader worker (pid", " encountered in worker"};
constexpr std::string_view kTermAnchors[] = {
    "SIGTERM", "eceived signal ", "got signal: ", "KeyboardInterrupt", "SIGINT", "SIGUSR1"};

// faulthandler, and CPython's own last words.
void ParseFault(const CleanLine& line, RecordList& out) {
  const std::string_view words = After(line.text, "Fatal Python error: ");
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "faulthandler");
  const int32_t signal = SignalOfDescription(words);
  SetSignal(incident, signal != 0 ? signal : 6);  // every other fatal error aborts
  incident.message = Capped(words, kMessageCap);
  out.push_back(std::move(incident));
}

// std::terminate: SIGABRT follows. The what() line comes next and tells the reason by itself.
void ParseTerminate(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kException, line, "cpp_terminate");
  incident.exception_type = Capped(Between(line.text, "instance of '", "'"), 200);
  SetSignal(incident, 6);
  // torch's own types say nothing without their what(), which is the next line.
  const bool told_next =
      incident.exception_type.starts_with("c10") || incident.exception_type.empty();
  if (told_next) incident.role = Role::kCascade;
  if (incident.exception_type == "c10::CUDAError") incident.role = Role::kInitiating;
  ClassifyText({}, incident);
  out.push_back(std::move(incident));
}

void ParseWhat(const CleanLine& line, RecordList& out) {
  const std::string_view text = TrimLeft(line.text);
  if (!text.starts_with("what():")) return;
  Incident incident = MakeIncident(IncidentKind::kException, line, "cpp_what");
  incident.message = Capped(Trim(text.substr(7)), kMessageCap);
  SetSignal(incident, 6);
  if (ClassifyText(text.substr(7), incident)) out.push_back(std::move(incident));
}

void ParseHandler(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  int32_t signal = 0;
  if (Contains(text, "*** SIG")) signal = SignalNumber(LeadingWord(After(text, "*** ")));
  if (const auto n = IntAfter(text, "Caught signal "); n && *n > 0 && *n < 65)
    signal = static_cast<int32_t>(*n);
  // Open MPI's handler: "[host:pid] Signal: Segmentation fault (11)".
  const std::string_view named = After(text, "] Signal: ");
  if (!named.empty()) {
    const auto n = LeadingInt(Between(named, "(", ")"));
    if (n && *n > 0 && *n < 65) signal = static_cast<int32_t>(*n);
  }
  if (signal == 0) return;
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "signal_handler");
  if (signal == 15 || signal == 2) incident.kind = IncidentKind::kTerminated;
  SetSignal(incident, signal);
  if (const auto pid = IntAfter(text, "PID "); pid && *pid > 0 && *pid < (int64_t{1} << 31)) {
    incident.pid = static_cast<int32_t>(*pid);
  }
  out.push_back(std::move(incident));
}

void ParseWorker(const CleanLine& line, RecordList& out) {
  if (HasOwnRow(line.text)) return;
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "dataloader_worker");
  if (ReadWorkerDeath(line.text, incident)) out.push_back(std::move(incident));
}

// A program says that it was told to stop. The verb decides: handlers are also *installed* for
// signals.
void ParseTold(const CleanLine& line, RecordList& out) {
  if (HasOwnRow(line.text)) return;
  // A terminal's copy keeps what a shorter line left standing of a bar.
  if (line.text.starts_with("KeyboardInterrupt") && ContainsAny(line.text, {"it/s]", "s/it]"})) {
    Incident incident = MakeIncident(IncidentKind::kTerminated, line, "told_to_stop");
    SetSignal(incident, 2);
    out.push_back(std::move(incident));
    return;
  }
  Incident incident = MakeIncident(IncidentKind::kTerminated, line, "told_to_stop");
  if (ReadTermination(line.text, incident)) out.push_back(std::move(incident));
}

// glibc's last words before it aborts: the whole line, or its beginning.
constexpr std::string_view kHeapTexts[] = {"double free or corruption",
                                           "free(): ",
                                           "malloc(): ",
                                           "realloc(): ",
                                           "munmap_chunk(): ",
                                           "malloc_consolidate(): ",
                                           "corrupted size vs. prev",
                                           "corrupted double-",
                                           "*** stack smashing detected ***",
                                           "*** buffer overflow detected ***"};
constexpr std::string_view kHeapAnchors[] = {"double free or corruption",
                                             "(): double free",
                                             "(): invalid",
                                             "(): corrupted",
                                             "(): unaligned",
                                             "(): unsorted",
                                             "(): memory",
                                             "(): mismatching",
                                             "corrupted size vs. prev",
                                             "corrupted double-",
                                             "stack smashing detected",
                                             "buffer overflow detected"};

void ParseHeap(const CleanLine& line, RecordList& out) {
  std::string_view text = TrimLeft(line.text);
  // Older versions put "*** Error in `python3': " before it and the address behind it.
  if (text.starts_with("*** Error in ")) text = After(text, "': ");
  const bool own = std::any_of(std::begin(kHeapTexts), std::end(kHeapTexts),
                               [text](std::string_view one) { return text.starts_with(one); });
  constexpr size_t kLongest = 120;
  if (!own || text.size() > kLongest) return;
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "glibc_abort");
  SetSignal(incident, 6);
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"glibc_abort", "the C library finds its heap or stack damaged and aborts", kHeapAnchors,
     ParseHeap, "free(): invalid next size (fast)"},
    {"faulthandler", "Python's fault handler names a fatal signal", kFaultAnchors, ParseFault,
     "Fatal Python error: Segmentation fault"},
    {"cpp_terminate", "an uncaught C++ exception", kTerminateAnchors, ParseTerminate,
     "terminate called after throwing an instance of 'std::out_of_range'"},
    {"cpp_what", "what an uncaught C++ exception says", kWhatAnchors, ParseWhat,
     "  what():  CUDA error: misaligned address"},
    {"signal_handler", "a library's signal handler names the signal", kHandlerAnchors, ParseHandler,
     "[n4:01877:0:1877] Caught signal 11 (Segmentation fault: address not mapped to object at "
     "address 0x18)"},
    {"dataloader_worker", "a data loader's worker process died", kWorkerAnchors, ParseWorker,
     "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient "
     "shared memory (shm)."},
    {"told_to_stop", "a program says that it was told to stop", kTermAnchors, ParseTold,
     "exiting program after receiving SIGTERM."},
};

}  // namespace

bool ReadWorkerDeath(std::string_view text, Incident& incident) {
  static constexpr WorkerRow kHandled[] = {
      {"Unexpected bus error encountered in worker", 7},
      {"Unexpected segmentation fault encountered in worker", 11},
      {"Unexpected floating-point exception encountered in worker", 8}};
  for (const WorkerRow& row : kHandled) {
    if (!Contains(text, row.text)) continue;
    incident.kind = IncidentKind::kSignalDeath;
    incident.sub = subs::kDataloaderWorker;
    incident.frame = FrameKind::kDataLoader;
    SetSignal(incident, row.signal);
    return true;
  }
  // torch.multiprocessing: "process 0 terminated with signal SIGKILL", "process 1 terminated with
  // exit code 1"
  const bool spawned = LastComponent(incident.exception_type) == "ProcessExitedException";
  if (spawned) {
    incident.role = Role::kWrapper;
    if (const auto rank = IntAfter(text, "process "); rank && *rank >= 0 && *rank < (1 << 24)) {
      incident.local_rank = static_cast<int32_t>(*rank);
    }
    const int32_t signal = SignalNumber(LeadingWord(After(text, "with signal ")));
    incident.kind = signal != 0 ? IncidentKind::kSignalDeath : IncidentKind::kNonZeroExit;
    if (signal != 0) SetSignal(incident, signal);
    incident.exit_code = static_cast<int32_t>(IntAfter(text, "exit code ").value_or(0));
    return true;
  }
  const std::string_view worker = After(text, "DataLoader worker (pid");
  if (worker.empty()) return false;
  const bool killed = Contains(worker, "is killed by signal");
  if (!killed && !Contains(worker, "exited unexpectedly")) return false;
  const auto pid = LeadingInt(TrimLeft(worker.starts_with("(s)") ? worker.substr(3) : worker));
  if (pid && *pid > 0 && *pid < (int64_t{1} << 31)) incident.pid = static_cast<int32_t>(*pid);
  incident.sub = subs::kDataloaderWorker;
  incident.frame = FrameKind::kDataLoader;
  // The loader knows that its worker is gone and not why: all that is told is an exception of the
  // process itself.
  if (!killed && !incident.exception_type.empty()) return false;
  incident.kind = killed ? IncidentKind::kSignalDeath : IncidentKind::kNonZeroExit;
  if (killed) SetSignal(incident, SignalOfDescription(TrimLeft(After(worker, "by signal:"))));
  return true;
}

bool ReadTermination(std::string_view text, Incident& incident) {
  const std::string_view type = LastComponent(incident.exception_type);
  int32_t signal = 0;
  if (type == "KeyboardInterrupt") signal = 2;
  if (const auto n = IntAfter(text, "got signal: "); n && *n > 0 && *n < 65)
    signal = static_cast<int32_t>(*n);
  if (const auto n = IntAfter(text, "eceived signal "); n && *n > 0 && *n < 65) {
    signal = static_cast<int32_t>(*n);
  }
  if (Contains(text, "Detected KeyboardInterrupt")) signal = 2;
  if (signal == 0 && (type == "SignalException" || type.empty())) {
    static constexpr std::string_view kVerbs[] = {"received",  "Received", "caught ",
                                                  "Caught ",   "got ",     "Got ",
                                                  "receiving", "handling", "Handling"};
    static constexpr std::string_view kNames[] = {"SIGTERM", "SIGINT", "SIGUSR1", "SIGUSR2",
                                                  "SIGHUP"};
    if (!ContainsAny(text, kVerbs) || IsAdvice(text)) return false;
    for (std::string_view name : kNames) {
      if (Contains(text, name)) signal = SignalNumber(name);
      if (signal != 0) break;
    }
  }
  if (signal == 0) return false;
  // Fatal signals by the same words are deaths, and USR1 is a warning that other rules may read.
  if (signal == 10 || signal == 12) incident.role = Role::kAdvice;
  incident.kind = IncidentKind::kTerminated;
  if (const auto pid = IntAfter(text, "Process "); pid && *pid > 0 && *pid < (int64_t{1} << 31)) {
    incident.pid = static_cast<int32_t>(*pid);
  }
  SetSignal(incident, signal);
  return true;
}

std::span<const ShapeRow> SignalShapes() {
  return kRows;
}

}  // namespace rankscope::logs
