// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/sentences/wording.h"

#include <cmath>
#include <csignal>

#include "detectors/sentences/wording_rooms.h"

namespace rankscope::engine {
namespace {

using families::Number;
using features::Evidence;
using features::EvidenceKind;

std::string Said(const Evidence& evidence) {
  std::string who = RankList(evidence.ranks);
  if (who.empty() && evidence.process.pid != 0) who = "pid " + std::to_string(evidence.process.pid);
  return who;
}

std::string WithSubject(const Evidence& evidence, std::string_view verb) {
  const std::string who = Said(evidence);
  return (who.empty() ? std::string("a process") : who) + " " + std::string(verb);
}

std::string At(const Evidence& evidence) {
  if (const std::string_view step = evidence.Capture("step"); !step.empty())
    return " at step " + std::string(step);
  if (const std::string_view record = evidence.Capture("record"); !record.empty())
    return " at record " + std::string(record);
  return {};
}

std::string Gib(std::string_view bytes) {
  double value = 0;
  if (std::sscanf(std::string(bytes).c_str(), "%lf", &value) != 1) return {};
  if (value >= 1024.0 * 1024 * 1024) return Number(value / (1024.0 * 1024 * 1024)) + " GiB";
  if (value >= 1024.0 * 1024) return Number(value / (1024.0 * 1024)) + " MiB";
  return Number(value) + " B";
}

std::string Optional(std::string_view before, std::string_view value, std::string_view after = {}) {
  return value.empty() ? std::string()
                       : std::string(before) + std::string(value) + std::string(after);
}

std::string ExceptionText(const Evidence& evidence) {
  std::string text = WithSubject(evidence, "raised ") + std::string(evidence.Capture("type"));
  text += Optional(": ", evidence.Capture("message"));
  if (const std::string_view cause = evidence.Capture("cause_type");
      !cause.empty() && cause != evidence.Capture("type")) {
    text +=
        " (after " + std::string(cause) + Optional(": ", evidence.Capture("cause_message")) + ")";
  }
  return text + Optional(", in ", evidence.Capture("file"));
}

// Who sent a signal, as the kernel saw it.
std::string SentBy(const Evidence& evidence) {
  const std::string_view by = evidence.Capture("sent_by");
  if (by.empty()) return ", says the kernel";
  if (by == "itself") return ", sent by itself";
  if (by == "kernel") {
    const std::string_view code = evidence.Capture("si_code");
    return code == "128"
               ? ", sent by the kernel"
               : ", raised by the kernel for what it did" + Optional(" (code ", code, ")");
  }
  return ", sent by pid " + std::string(evidence.Capture("sender_pid")) +
         Optional(" (", evidence.Capture("sender"), ")") +
         Optional(" of uid ", evidence.Capture("sender_uid")) +
         Optional(" in ", evidence.Capture("sender_cgroup"));
}

// What ran out when the kernel killed for memory.
std::string KernelOomText(const Evidence& evidence) {
  const std::string_view scope = evidence.Capture("scope");
  std::string text = WithSubject(evidence, "was killed for lack of memory");
  if (scope == "cgroup") {
    text += ": the limit" + Optional(" of ", evidence.Capture("oom_memcg")) +
            Optional(", ", Gib(evidence.Capture("limit_bytes"))) + " was reached";
  } else if (scope == "host") {
    text += ": the host had none left";
  } else if (scope == "cpuset" || scope == "mempolicy") {
    text += ": the memory nodes that it may use had none left (" + std::string(scope) + ")";
  }
  return text + ", says the kernel";
}

std::string SignalText(const Evidence& evidence) {
  const int32_t signal = evidence.observed ? -static_cast<int32_t>(*evidence.observed) : 0;
  std::string text = WithSubject(evidence, "ended by ") + SignalName(signal);
  if (evidence.store == proto::STORE_PROCESS) {
    return text + (evidence.Capture("shape") == "exit_code" ? ", says the shell's exit code"
                                                            : ", says its wait status");
  }
  if (evidence.store == proto::STORE_KERNEL) return text + SentBy(evidence);
  return text + ", no traceback";
}

std::string OomText(const Evidence& evidence) {
  std::string text = WithSubject(evidence, "ran out of GPU memory");
  text += Optional(": asked for ", Gib(evidence.Capture("requested")));
  text += Optional(", card has ", Gib(evidence.Capture("total")));
  text += Optional(", ", Gib(evidence.Capture("free")), " free");
  text += Optional(", ", Gib(evidence.Capture("allocated")), " allocated by PyTorch");
  return text;
}

std::string RendezvousText(const Evidence& evidence) {
  std::string text = "the process group did not form: ";
  const std::string_view sub = evidence.Capture("sub");
  const std::string peer =
      Optional(" ", evidence.Capture("host"), Optional(":", evidence.Capture("port")));
  if (sub == "refused") return text + "connection to" + peer + " refused";
  if (sub == "dns") return text + "the coordinator's name" + peer + " does not resolve";
  if (sub == "port_in_use" || sub == "bind")
    return text + "port" + Optional(" ", evidence.Capture("port")) + " is in use";
  if (sub == "timeout") return text + "timed out" + (peer.empty() ? "" : " connecting to" + peer);
  if (sub == "join") return text + "not all ranks came";
  if (sub == "store_lost") return text + "the store" + peer + " went away";
  return text + (sub.empty() ? std::string("see the line") : std::string(sub)) + peer;
}

std::string NonFiniteText(const Evidence& evidence, const std::string& value) {
  if (evidence.times == 0) return "the loss was " + value + At(evidence) + " and came back";
  const std::string records = std::to_string(evidence.times) + " records";
  if (!evidence.Capture("never_finite").empty())
    return "the loss is " + value + " from its first record" + Optional(",", At(evidence), ",") +
           " on, " + records;
  return "the loss became " + value + At(evidence) + " and stayed so for " + records;
}

std::string QuotedText(const Evidence& evidence) {
  const std::string_view role = evidence.Capture("role");
  const size_t begin = evidence.line.find_first_not_of(" \t");
  const std::string line = begin == std::string::npos ? std::string() : evidence.line.substr(begin);
  if (role == "frame") return "it was raised by: " + line;
  if (role == "cause") return "earlier in its chain: " + line;
  if (role == "launcher") return "the launcher adds: " + line;
  if (role == "below") return "the line below: " + line;
  return "its message goes on: " + line;
}

std::string ExitText(const Evidence& evidence) {
  const std::string_view signal = evidence.Capture("signal");
  if (!signal.empty() && signal != "0")
    return "the command was ended by " + SignalName(std::atoi(std::string(signal).c_str()));
  if (const std::string_view ranks = evidence.Capture("ranks"); !ranks.empty())
    return "each of its ranks exited with 0, " + std::string(ranks) + " in all";
  return "the command exited with " + Number(*evidence.observed);
}

std::string Quoted(const Evidence& evidence) {
  return Optional(": \"", evidence.Capture("said"), "\"");
}

// What a run says of itself besides its records and its failures.
std::string LandmarkText(const Evidence& e, const std::string& value, const std::string& expected) {
  switch (e.kind) {
    case EvidenceKind::kLastSave:
      return "the last checkpoint it speaks of" + Optional(", of step ", value) +
             Optional(": ", e.Capture("text"));
    case EvidenceKind::kLastEvaluation:
      return "the last evaluation" + Optional(", loss ", value);
    case EvidenceKind::kResult:
      return "a result among its last lines" + Quoted(e);
    case EvidenceKind::kSaidDone:
      return "it says that it is done" + Quoted(e);
    case EvidenceKind::kLastLine:
      return "the last line of its output" + Quoted(e);
    case EvidenceKind::kResumeFlag:
      return std::string(e.store == proto::STORE_SCHEDULER ? "the submit line" : "the command") +
             " asks to go on from a checkpoint" + Optional(": ", e.Capture("flag"));
    case EvidenceKind::kCheckpointRead:
      return "a checkpoint is read" + Optional(": ", e.Capture("text")) +
             Optional(", of step ", value);
    case EvidenceKind::kPartialLoad:
      return "of the checkpoint, this was not restored: " + std::string(e.Capture("text"));
    case EvidenceKind::kWarmUpAgain:
      return "the learning rate warms up from nothing" + At(e);
    case EvidenceKind::kEarlierSave:
      return "an earlier attempt left a checkpoint" + Optional(", of step ", value) +
             Optional(": ", e.Capture("text"));
    case EvidenceKind::kEarlierLoss:
      return "the earlier attempt had come to loss " + value + At(e);
    case EvidenceKind::kLossScale:
      return "the loss scale was lowered to " + value +
             Optional(", fall ", e.Capture("falls"), " in a row");
    case EvidenceKind::kReward:
      return "the reward is " + value + At(e);
    case EvidenceKind::kRewardFlat:
      return "the rewards of a group do not differ" + At(e) + " and for " +
             std::to_string(e.times) + " records in a row (" + value + ")";
    case EvidenceKind::kKl:
      return "the distance from the reference model reached " + value + At(e) +
             Optional(", against ", expected);
    case EvidenceKind::kCompiling:
      return "a compiler runs or is waited for" + Optional(": ", e.Capture("text"));
    case EvidenceKind::kRestarts:
      return "the run was restarted " + value +
             " times; attempts at the end that came no further: " +
             std::string(e.Capture("without_advance")) +
             Optional(", by the checkpoints that they completed (newest: ", e.Capture("saved"),
                      ")");
    case EvidenceKind::kConnection:
    case EvidenceKind::kListener:
    case EvidenceKind::kNameLookup:
    case EvidenceKind::kTraffic:
    case EvidenceKind::kTransport:
      return NetworkText(e);
    case EvidenceKind::kFileError:
    case EvidenceKind::kFileSpace:
    case EvidenceKind::kCheckpointFile:
    case EvidenceKind::kDataRead:
    case EvidenceKind::kSaveCadence:
      return StorageText(e);
    case EvidenceKind::kThreads:
    case EvidenceKind::kThreadStack:
    case EvidenceKind::kStopped:
    case EvidenceKind::kStarved:
    case EvidenceKind::kStorageWait:
    case EvidenceKind::kSuspended:
      return WaitText(e);
    case EvidenceKind::kLaunches:
    case EvidenceKind::kCudaCalls:
    case EvidenceKind::kAllocationFailed:
      return LaunchText(e);
    case EvidenceKind::kCollectives:
    case EvidenceKind::kCommunicator:
      return CollectiveText(e);
    case EvidenceKind::kRas:
    case EvidenceKind::kFlightRecorder:
    case EvidenceKind::kInspector:
    case EvidenceKind::kPortCounters:
      return ReportText(e);
    case EvidenceKind::kGpuActivity:
    case EvidenceKind::kGpuThrottle:
    case EvidenceKind::kGpuErrors:
    case EvidenceKind::kGpuForeign:
    case EvidenceKind::kGpuLatent:
    case EvidenceKind::kGpuWaits:
    case EvidenceKind::kGpuPeers:
    case EvidenceKind::kGpuMemory:
    case EvidenceKind::kGpuClean:
    case EvidenceKind::kGpuWork:
    case EvidenceKind::kKernelFault:
    case EvidenceKind::kGpuLost:
    case EvidenceKind::kGpuCards:
    case EvidenceKind::kGpuUnused:
    case EvidenceKind::kGpuOutside:
      return GpuText(e);
    case EvidenceKind::kRerun:
    case EvidenceKind::kParentJob:
      return ResumeText(e);
    default:
      return SchedulerText(e);
  }
}

}  // namespace

std::string RankList(const std::vector<int32_t>& ranks) {
  if (ranks.empty()) return {};
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size();) {
    size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (j > i) text += (j == i + 1 ? ", " : "-") + std::to_string(ranks[j]);
    i = j + 1;
  }
  return text;
}

std::string SignalName(int32_t signal) {
  struct Row {
    int32_t number;
    std::string_view name;
  };
  constexpr Row kNames[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
                            {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
                            {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
                            {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
                            {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
                            {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
  for (const Row& row : kNames) {
    if (row.number == signal) return std::string(row.name);
  }
  return signal == 0 ? "a signal" : "signal " + std::to_string(signal);
}

std::string EvidenceText(const Evidence& e) {
  const std::string value = e.observed ? Number(*e.observed) : std::string();
  const std::string expected =
      e.expected && std::isfinite(*e.expected) ? Number(*e.expected) : std::string();
  switch (e.kind) {
    case EvidenceKind::kException:
      return ExceptionText(e);
    case EvidenceKind::kSignalDeath:
      return SignalText(e);
    case EvidenceKind::kNonZeroExit:
      return WithSubject(e, "exited with ") + value +
             (e.store == proto::STORE_PROCESS ? ", says its wait status" : ", says the launcher");
    case EvidenceKind::kCudaOom:
      return OomText(e);
    case EvidenceKind::kHostOom:
      if (const std::string_view type = e.Capture("type");
          !type.empty() && !type.starts_with("ray.")) {
        return WithSubject(e, "could not allocate host memory") +
               Optional(": asked for ", Gib(e.Capture("requested"))) +
               Optional(", in ", e.Capture("file"));
      }
      if (e.store == proto::STORE_KERNEL) return KernelOomText(e);
      return WithSubject(e, "was killed for lack of host memory") +
             ", says the scheduler's or kernel's text";
    case EvidenceKind::kCudaError:
      return WithSubject(e, "got a CUDA error: ") +
             std::string(!e.Capture("error").empty() ? e.Capture("error") : e.Capture("message"));
    case EvidenceKind::kXid:
      return XidText(e);
    case EvidenceKind::kCollectiveTimeout:
      if (e.Capture("sub") == "mismatch")
        return WithSubject(e, "found that ranks run different collectives");
      return WithSubject(e, "gave up waiting in a collective") +
             Optional(" (", e.Capture("op"), ")") +
             Optional(" after ", e.Capture("timeout_ms"), " ms") +
             Optional(", sequence ", e.Capture("seq"));
    case EvidenceKind::kPeerLost:
      return WithSubject(e, "lost its connection to a peer") + Optional(": ", e.Capture("message"));
    case EvidenceKind::kRendezvous:
      return RendezvousText(e);
    case EvidenceKind::kSchedulerEnd:
      return SchedulerText(e);
    case EvidenceKind::kTerminated:
      if (const std::string_view sub = e.Capture("sub"); sub == "preemption")
        return "the program says that it is preempted";
      else if (sub == "requeue")
        return "the program says that it is requeued";
      else if (sub == "time_limit")
        return "the program says that its time is over";
      return WithSubject(e, "was told to stop") + Optional(" by ", e.Capture("signal")) +
             (e.Capture("sent_by").empty() ? "" : SentBy(e));
    case EvidenceKind::kUsageError: {
      const std::string_view sub = e.Capture("sub");
      return std::string(sub.starts_with("no_") ? "the program could not be started: "
                         : sub == "refused"     ? "the scheduler refused the job: "
                                                : "the program refused its arguments: ") +
             std::string(e.Capture("message"));
    }
    case EvidenceKind::kStorage:
      return WithSubject(e, "could not write") + Optional(": ", e.Capture("message")) +
             Optional(" (", e.Capture("errno"), ")");
    case EvidenceKind::kNonFiniteText:
      if (e.Capture("sub") == "scale_minimum")
        return "the program itself reports that its loss scale cannot get smaller";
      return "the program itself reports a loss that is not finite";
    case EvidenceKind::kExitStatus:
      return ExitText(e);
    case EvidenceKind::kExecFailure:
      return "the command could not be executed: " + std::string(e.Capture("error"));
    case EvidenceKind::kWrapperLost:
      return "the wrapper died before the command ended; how the command ended is not recorded";
    case EvidenceKind::kLossStart:
      return "the loss began at " + value + At(e) +
             Optional(" (median of the first points ", expected, ")");
    case EvidenceKind::kLossEnd:
      return "the loss was last " + value + At(e) +
             (expected.empty() ? Optional(", in ", e.Capture("points"), " records")
                               : Optional(" (median of the last points ", expected) +
                                     Optional(" of ", e.Capture("points")) + ")");
    case EvidenceKind::kLossLowest:
      return "the loss was lowest, " + value + "," + At(e);
    case EvidenceKind::kLossNonFinite:
      return NonFiniteText(e, value);
    case EvidenceKind::kLossSilentNan:
      return "the loss is printed as 0 or left out while the gradient norm or the iterations are "
             "NaN" +
             At(e) + ", for " + std::to_string(e.times) + " records";
    case EvidenceKind::kLossSpike:
      return "the loss spiked to " + value + At(e) + Optional(" against ", expected) + ", " +
             std::to_string(e.times) + " spikes in all";
    case EvidenceKind::kGradNorm:
      return "the gradient norm is " + value + Optional(", ", expected, " at first");
    case EvidenceKind::kLearningRate:
      return "the learning rate is " + value;
    case EvidenceKind::kSteps:
      return value + (e.Capture("known") == "step" ? " step" : " training record") +
             (value == "1" ? "" : "s") + Optional(" of ", expected) +
             (value == "1" ? " was seen" : " were seen");
    case EvidenceKind::kTrainBegin:
      return "training began" + Optional(", ", value, " steps planned");
    case EvidenceKind::kTrainEnd:
      return "the program says that training finished";
    case EvidenceKind::kLastProgress:
      return "the last training record" + At(e) + Optional(", loss ", value);
    case EvidenceKind::kSilence:
      return "no training record for " + value + " s" +
             Optional(", against ", expected, " s between records before") +
             Optional(", not counting ", std::string(e.Capture("suspended")),
                      " s in which the job was suspended");
    case EvidenceKind::kNoProgress:
      return "no training record in a known form in " + value + (value == "1" ? " line" : " lines");
    case EvidenceKind::kLinesRead:
      return value + (value == "1" ? " line read" : " lines read");
    case EvidenceKind::kRendezvousBegin:
      return "the process group was being formed";
    case EvidenceKind::kProcessesAlive:
      return value + " of " + expected + " processes seen are alive";
    case EvidenceKind::kNoCheckpoint:
      return "no checkpoint was found, the run started from scratch";
    case EvidenceKind::kStepTime:
      return "a step takes " + value + " s" + Optional(", against ", expected, " s at first");
    case EvidenceKind::kQuoted:
      return QuotedText(e);
    case EvidenceKind::kLossHighest:
      return "the loss was highest, " + value + "," + At(e);
    case EvidenceKind::kGradNormHighest:
      return "the gradient norm reached " + value + At(e) +
             Optional(", against ", expected, " at first");
    case EvidenceKind::kFirstProgress:
      return "the first training record is" + At(e) + Optional(", loss ", value);
    default:
      return LandmarkText(e, value, expected);
  }
  return {};
}

std::string ObservedText(const Evidence& evidence) {
  switch (evidence.kind) {
    case EvidenceKind::kException:
    case EvidenceKind::kCudaOom:
      return std::string(evidence.Capture("type"));
    case EvidenceKind::kRendezvous:
    case EvidenceKind::kSchedulerEnd:
      return std::string(evidence.Capture("sub"));
    case EvidenceKind::kCudaError:
      return std::string(evidence.Capture("error"));
    default:
      return {};
  }
}

std::string Fill(std::string_view pattern, const features::Captures& values) {
  std::string text;
  while (!pattern.empty()) {
    const size_t open = pattern.find('{');
    text += pattern.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = pattern.find('}', open);
    if (close == std::string_view::npos) break;
    const std::string_view name = pattern.substr(open + 1, close - open - 1);
    bool found = false;
    for (const KeyValue& value : values) {
      if (value.key != name || value.value.empty()) continue;
      text += value.value;
      found = true;
      break;
    }
    if (!found) return {};
    pattern.remove_prefix(close + 1);
  }
  return text;
}

}  // namespace rankscope::engine
