// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/exception_text.h"

#include <algorithm>

#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kUncaught = "uncaught";

bool IsUpper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool IsLower(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsNameByte(char c) {
  return IsUpper(c) || IsLower(c) || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// Endings by which exception classes are told from the other words that stand before a colon.
constexpr std::string_view kSuffixes[] = {
    "Error",  "Exception", "Interrupt",      "Exit",          "Failure",
    "Failed", "Timeout",   "ExceptionGroup", "StopIteration", "StopAsyncIteration"};

// Warnings are printed by the warnings module with the same grammar and end nothing.
bool HasTypeSuffix(std::string_view type) {
  const std::string_view last = LastComponent(type);
  if (last.size() < 5 || last.ends_with("Warning")) return false;
  if (!IsUpper(last.front()) && last.front() != '_') return false;
  // A counter may be called "Failure" or "Timeout"; of the plain words only these are classes.
  if (last == type && (last == "Failure" || last == "Failed" || last == "Timeout")) return false;
  return std::any_of(std::begin(kSuffixes), std::end(kSuffixes),
                     [last](std::string_view suffix) { return last.ends_with(suffix); });
}

// CamelCase: begins with a capital, holds a small letter (log levels do not).
bool IsCamelCase(std::string_view type) {
  std::string_view last = LastComponent(type);
  if (!last.empty() && last.front() == '_') last.remove_prefix(1);
  return last.size() >= 3 && IsUpper(last.front()) &&
         std::any_of(last.begin(), last.end(), IsLower);
}

struct WrapperRow {
  std::string_view type;  // last component
};

// Exceptions that only report that some other process failed, or that the program ends.
constexpr WrapperRow kWrappers[] = {
    {"ChildFailedError"},       {"ActorDiedError"},      {"RayActorError"},
    {"WorkerCrashedError"},     {"SystemExit"},          {"ActorUnavailableError"},
    {"ProcessRaisedException"}, {"TrainingFailedError"}, {"JobFailedError"},
    {"NodeDiedError"},          {"OwnerDiedError"},      {"ObjectLostError"},
    {"LocalRayletDiedError"},
};

bool IsWrapper(std::string_view type) {
  const std::string_view last = LastComponent(type);
  return std::any_of(std::begin(kWrappers), std::end(kWrappers),
                     [last](const WrapperRow& row) { return row.type == last; });
}

// A launcher that reports its child: the command is a Python program. A build or a tool that the
// program called is a failure of its own.
bool ReadCalledProcess(std::string_view text, Incident& incident) {
  if (LastComponent(incident.exception_type) != "CalledProcessError") return false;
  if (!ContainsAny(text, {"python", ".py", "torchrun", "accelerate", "deepspeed"})) return false;
  incident.role = Role::kWrapper;
  const int32_t signal = SignalNumber(LeadingWord(Before(After(text, "died with <Signals."), ":")));
  incident.kind = signal != 0 ? IncidentKind::kSignalDeath : IncidentKind::kNonZeroExit;
  if (signal != 0) SetSignal(incident, signal);
  const auto code = IntAfter(text, "exit status ");
  if (code && *code > -256 && *code < 256) incident.exit_code = static_cast<int32_t>(*code);
  return true;
}

// Horovod's driver raises when a rank ended; the rank's own words came before.
bool ReadDriverReport(std::string_view text, Incident& incident) {
  if (!Contains(text, "detected that one or more processes exited with non-zero status"))
    return false;
  incident.role = Role::kWrapper;
  incident.kind = IncidentKind::kNonZeroExit;
  if (const auto rank = IntAfter(text, "Process name: "); rank && *rank >= 0 && *rank < (1 << 24))
    incident.rank = static_cast<int32_t>(*rank);
  const auto code = IntAfter(text, "Exit code: ");
  if (code && *code > -256 && *code < 256) incident.exit_code = static_cast<int32_t>(*code);
  return true;
}

using TextReader = bool (*)(std::string_view, Incident&);

// In order of what excludes the next: memory words stand inside CUDA errors, CUDA errors inside
// NCCL errors, a time-out inside the report of a lost peer.
constexpr TextReader kReaders[] = {ReadCalledProcess, ReadDriverReport,      ReadDeviceMemory,
                                   ReadWorkerDeath,   ReadCudaError,         ReadHostMemory,
                                   ReadStorage,       ReadCollectiveTimeout, ReadRendezvous,
                                   ReadPeerLost,      ReadNonFinite};

}  // namespace

ExceptionLine ParseExceptionLine(std::string_view text, bool after_frame) {
  size_t size = 0;
  while (size < text.size() && IsNameByte(text[size])) ++size;
  if (size < 3 || size > 200) return {};
  std::string_view type = text.substr(0, size);
  std::string_view rest = text.substr(size);
  // ray.exceptions.RayTaskError(OutOfMemoryError): the class inside is the program's.
  if (type.ends_with("RayTaskError") && rest.starts_with("(")) {
    const std::string_view inner = Between(rest, "(", ")");
    if (inner.empty()) return {};
    rest = After(rest, ")");
    type = inner;
  }
  const bool bare = Trim(rest).empty();
  if (!bare && !rest.starts_with(": ") && rest != ":") return {};
  if (type.front() == '.' || type.back() == '.' || (type.front() >= '0' && type.front() <= '9'))
    return {};
  const bool suffix = HasTypeSuffix(type);
  const bool dotted = type.find('.') != std::string_view::npos;
  const std::string_view last = LastComponent(type);
  // "Error:" and "Exception:" alone are how programs begin a message; only a traceback makes the
  // latter a type.
  if (!after_frame && (last == type) && (type == "Error" || type == "Exception")) return {};
  // C modules name theirs in small letters: socket.gaierror, cv2.error, zlib.error, socket.timeout.
  const bool small = after_frame && dotted && (last.ends_with("error") || last == "timeout");
  // "Epoch: 3" of another writer between the frames is no class.
  const std::string_view first = Trim(rest.substr(bare ? 0 : 1));
  const bool number = !first.empty() && first.front() >= '0' && first.front() <= '9';
  if (!suffix && !small && !(after_frame && IsCamelCase(type) && (dotted || !number))) return {};
  // Outside a traceback a lone word on a line is prose unless it is a type that programs end with.
  if (bare && !after_frame && type != "KeyboardInterrupt" && type != "MemoryError") return {};
  if (type.starts_with("nccl") && !dotted) return {};
  return {type, bare ? std::string_view() : Trim(rest.substr(1))};
}

bool HasOwnRow(std::string_view text) {
  return !ParseExceptionLine(text, false).type.empty() || TrimLeft(text).starts_with("what():");
}

bool OutlivesChain(const Incident& incident) {
  switch (incident.kind) {
    case IncidentKind::kCudaOom:
    case IncidentKind::kCudaError:
    case IncidentKind::kHostOom:
    case IncidentKind::kStorage:
    case IncidentKind::kSignalDeath:
    case IncidentKind::kCollectiveTimeout:
      return true;
    default:
      return false;
  }
}

void NoteUncaught(std::string_view outermost, Incident& incident) {
  if (outermost == "<module>" || outermost == "_run_module_as_main")
    AddField(incident, kUncaught, "yes");
}

void KeepUncaught(const Incident& other, Incident& incident) {
  const auto has = [](const Incident& of) {
    return std::any_of(of.fields.begin(), of.fields.end(),
                       [](const KeyValue& field) { return field.key == kUncaught; });
  };
  if (has(other) && !has(incident)) AddField(incident, kUncaught, "yes");
}

bool ClassifyText(std::string_view text, Incident& incident) {
  incident.kind = IncidentKind::kException;
  if (IsWrapper(incident.exception_type)) {
    incident.role = Role::kWrapper;
    return true;
  }
  for (TextReader read : kReaders) {
    if (read(text, incident)) return true;
  }
  if (Contains(text, "Detected mismatch between collectives on ranks"))
    incident.sub = subs::kDesync;
  const std::string_view type = LastComponent(incident.exception_type);
  if (type == "SignalException" || type == "KeyboardInterrupt")
    return ReadTermination(text, incident);
  return false;
}

}  // namespace rankscope::logs
