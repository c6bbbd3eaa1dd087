// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/earlier_text.h"

#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>

#include "detectors/features/cause_relations.h"
#include "detectors/model/ascii.h"

namespace rankscope::features {
namespace {

using logs::FrameKind;
using logs::Incident;
using logs::IncidentKind;
using logs::MarkerKind;
using Role = Cause::Role;

// The number of the job that a line of Slurm's about an end names: "8841" of "8841.0"; empty: none.
std::string_view JobOfEnd(const Incident& incident) {
  if (incident.kind != IncidentKind::kSchedulerEnd) return {};
  for (const KeyValue& field : incident.fields) {
    if (field.key != "job" && field.key != "step") continue;
    const std::string_view id = field.value;
    return id.substr(0, id.find_first_of(".+"));
  }
  return {};
}

bool IsInterrupt(const Incident& incident) {
  return incident.signal == SIGINT && incident.shape != "told_to_stop";
}

// Behind such a line nothing of the program that it is about is printed any more: a shell has seen
// it end, it has refused its arguments, or it was interrupted.
bool EndsARun(const Incident& incident) {
  switch (incident.kind) {
    case IncidentKind::kSchedulerEnd:
    case IncidentKind::kUsageError:
      return true;
    case IncidentKind::kSignalDeath:
      return incident.shape == "shell_signal" || incident.shape == "zsh_signal" ||
             incident.shape == "terminated_by";
    case IncidentKind::kTerminated:
      return IsInterrupt(incident);
    default:
      return false;
  }
}

// Training records that show that a program trains.
constexpr int64_t kTrains = 3;

// An error that a program ends with itself, and no word of a peer's end.
bool IsOwnError(const Incident& incident) {
  if (incident.role != logs::Role::kInitiating || incident.frame == FrameKind::kTeardown)
    return false;
  switch (incident.kind) {
    case IncidentKind::kException:
      return !incident.shape.starts_with("cpp_") && !OfProcessGroup(incident);
    case IncidentKind::kCudaOom:
    case IncidentKind::kCudaError:
    case IncidentKind::kStorage:
    case IncidentKind::kUsageError:
      return true;
    default:
      return false;
  }
}

bool SaysThatItGoesOn(std::string_view text) {
  const std::string lower = LowerAscii(text);
  const auto has = [&lower](std::string_view word) {
    return lower.find(word) != std::string::npos;
  };
  if (has("giving up") || has("give up") || has("abort") || has("exit")) return false;
  return has("skip") || has("ignoring") || has("ignored") || has("retrying") || has("will retry") ||
         has("continuing");
}

bool IsOfATraceback(std::string_view text) {
  return text.starts_with(' ') || text.find("Traceback (most recent") != std::string_view::npos;
}

bool IsOfATool(const Incident& incident) {
  return std::any_of(incident.fields.begin(), incident.fields.end(),
                     [](const KeyValue& field) { return field.key == "tool"; });
}

}  // namespace

bool FailsAtTheTop(const Incident& incident) {
  return std::any_of(incident.fields.begin(), incident.fields.end(),
                     [](const KeyValue& field) { return field.key == "at_top"; });
}

bool TextBehind::OneSpeaks(const windows::Candidate& said) const {
  return !job_.ranked_streams() && f_.world_size <= 1 && said.incident.rank < 0 &&
         said.incident.local_rank < 0;
}

bool TextBehind::Behind(const windows::MarkerSeen& seen, const windows::Candidate& said) const {
  const windows::CitedPoint& record = window_.last_progress;
  return seen.count > 0 && seen.stream == said.stream && seen.offset > said.incident.offset &&
         record.present() && record.stream == said.stream && record.offset > seen.offset;
}

double TextBehind::SecondsOf(int64_t records) const {
  const windows::StepClock& clock = window_.clock;
  const double steps = clock.last_step() - clock.first_step();
  const auto each = static_cast<double>(std::max<int64_t>(1, clock.records() - 1));
  return static_cast<double>(records) * steps / each * clock.MedianStepSeconds();
}

bool TextBehind::IsOfTheNextRun(const windows::Candidate& end, int64_t after) const {
  // Slurm kills who does not end after KillWait, 30 s by default.
  constexpr double kGraceSeconds = 90;
  constexpr int64_t kMany = 10, kVeryMany = 30;
  if (end.incident.kind == IncidentKind::kUsageError) return after >= kTrains;
  if (end.incident.kind != IncidentKind::kSchedulerEnd || f_.timed || after < kTrains) return false;
  for (const MarkerKind kind :
       {MarkerKind::kLauncherBegin, MarkerKind::kLoaded, MarkerKind::kLoadBegin}) {
    if (Behind(window_.marker(kind), end)) return true;
  }
  if (SecondsOf(after) < kGraceSeconds) return false;
  const std::vector<windows::Candidate>& all = job_.incidents().all();
  const bool ends_again = std::any_of(all.begin(), all.end(), [&](const windows::Candidate& next) {
    const bool ends =
        next.incident.kind == IncidentKind::kSchedulerEnd || IsOwnError(next.incident);
    return ends && next.order > end.order && next.stream == end.stream &&
           next.progress_before - end.progress_before >= kMany;
  });
  return after >= (ends_again ? kMany : kVeryMany);
}

bool TextBehind::StartsAgain(const windows::Candidate& said, int64_t after) const {
  if (f_.timed || job_.ranked_streams() || said.store != proto::STORE_LOG) return false;
  if (after >= kTrains && Behind(window_.marker(MarkerKind::kLauncherBegin), said)) return true;
  const std::vector<windows::Candidate>& all = job_.incidents().all();
  return OneSpeaks(said) && std::any_of(all.begin(), all.end(), [&](const auto& next) {
           return next.order > said.order && next.stream == said.stream && OneSpeaks(next) &&
                  next.progress_before > 0 && FailsAtTheTop(next.incident);
         });
}

bool TextBehind::IsOfAnother(const windows::Candidate& said) const {
  if (f_.timed || !OneSpeaks(said)) return false;
  if (said.progress_before == 0 && FailsAtTheTop(said.incident)) return true;
  const std::vector<windows::Candidate>& all = job_.incidents().all();
  return std::any_of(all.begin(), all.end(), [&](const windows::Candidate& next) {
    return next.order > said.order && next.attempt == said.attempt && next.stream == said.stream &&
           OneSpeaks(next) && IsOwnError(next.incident) &&
           next.progress_before - said.progress_before >= kTrains;
  });
}

bool TextBehind::IsPassedOver(const windows::Candidate& said) const {
  if (!OneSpeaks(said)) return false;
  const windows::LastWords& words = job_.last_words();
  size_t at = 0;
  while (words.At(at).offset > said.incident.offset) ++at;
  if (words.At(at).offset != said.incident.offset || words.At(at).stream != said.stream)
    return false;
  if (at > 0 && !words.At(at - 1).record && SaysThatItGoesOn(words.At(at - 1).text)) return true;
  do {
    ++at;
  } while (words.At(at).offset >= 0 && IsOfATraceback(words.At(at).text));
  return words.At(at).offset >= 0 && !words.At(at).record && SaysThatItGoesOn(words.At(at).text);
}

void SetEarlierRunsAside(std::vector<Cause>& causes, const JobFeatures& f,
                         const TrainedOn& trained_on, const TrainedOn& started_again) {
  const bool told = std::any_of(causes.begin(), causes.end(), [](const Cause& cause) {
    return cause.incident().kind == IncidentKind::kTerminated && !IsInterrupt(cause.incident());
  });
  const Cause* border = nullptr;
  const Cause* last = nullptr;  // end of a job that has a number
  for (const Cause& cause : causes) {
    if (cause.candidate->store != proto::STORE_LOG) continue;
    const std::string_view job = JobOfEnd(cause.incident());
    if (!job.empty() && !f.timed) {
      if (last != nullptr && JobOfEnd(last->incident()) != job) border = last;
      last = &cause;
    }
    // A program that was told to stop may finish what it does.
    const bool may_end =
        cause.incident().kind != IncidentKind::kSchedulerEnd || (!told && !f.timed);
    if (may_end && EndsARun(cause.incident()) && trained_on(*cause.candidate)) border = &cause;
    if (started_again(*cause.candidate)) border = &cause;
  }
  if (border == nullptr) return;
  const windows::Candidate& end = *border->candidate;
  for (Cause& cause : causes) {
    const windows::Candidate& said = *cause.candidate;
    if (said.stream == end.stream && said.order <= end.order) cause.role = Role::kRecovered;
  }
}

void SetToolsAside(std::vector<Cause>& causes, const JobFeatures& f) {
  for (Cause& tool : causes) {
    if (tool.role != Role::kInitiating || !IsOfATool(tool.incident())) continue;
    // What cannot be imported then is the tool's doing.
    const bool later = AnyInitiating(causes, [&tool](const Cause& cause) {
      return cause.candidate->order > tool.candidate->order &&
             cause.incident().frame != FrameKind::kImport;
    });
    if (later || f.progress > tool.candidate->progress_before) tool.role = Role::kRecovered;
  }
}

void SetOldXidsAside(std::vector<Cause>& causes) {
  for (Cause& xid : causes) {
    const windows::Candidate& said = *xid.candidate;
    if (xid.role != Role::kInitiating || xid.incident().kind != IncidentKind::kXid) continue;
    if (said.store != proto::STORE_LOG || said.progress_before > 0) continue;
    const bool other = AnyInitiating(causes, [&](const Cause& cause) {
      const Incident& incident = cause.incident();
      const bool words =
          (incident.kind == IncidentKind::kException && !incident.shape.starts_with("cpp_")) ||
          incident.kind == IncidentKind::kUsageError || incident.kind == IncidentKind::kCudaOom ||
          incident.kind == IncidentKind::kStorage || incident.kind == IncidentKind::kRendezvous;
      return words && cause.candidate->order > said.order;
    });
    if (other) xid.role = Role::kRecovered;
  }
}

}  // namespace rankscope::features
