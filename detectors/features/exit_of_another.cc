// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/exit_of_another.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "detectors/features/cause_relations.h"
#include "detectors/windows/training_launcher.h"

namespace rankscope::features {
namespace {

using logs::FrameKind;
using logs::Incident;
using logs::IncidentKind;
using windows::Candidate;
using windows::LastWords;
using windows::SaidLine;

// What a program flushes at its end comes at once.
constexpr Duration kFlushedWithin = Seconds(2);

bool Has(const Incident& incident, std::string_view key) {
  return std::any_of(incident.fields.begin(), incident.fields.end(),
                     [key](const KeyValue& field) { return field.key == key; });
}

// Raised in the loop itself, and not in what reports about it.
bool IsOfTheLoop(const Incident& incident) {
  switch (incident.frame) {
    case FrameKind::kTrainStep:
    case FrameKind::kDataLoader:
    case FrameKind::kCollective:
    case FrameKind::kCheckpointSave:
      return true;
    default:
      return incident.kind == IncidentKind::kCudaOom || incident.kind == IncidentKind::kCudaError;
  }
}

// The records behind it may have waited in the program's buffers, which it empties at its end.
bool HeldBack(const Candidate& said, const Around& around, const JobFeatures& f) {
  const windows::CitedPoint& last = *around.last;
  if (!last.present()) return false;
  if (f.timed) return last.t - said.incident.t <= kFlushedWithin;
  return last.stream == said.stream && !OutgrowsBuffers(said, last, std::max(1, f.world_size));
}

// A launcher says that one of its children failed, and no training came after that.
bool IsReported(const windows::JobWindow& job, const Candidate& said, const JobFeatures& f) {
  const std::vector<Candidate>& all = job.incidents().all();
  return std::any_of(all.begin(), all.end(), [&](const Candidate& later) {
    const bool failed = later.incident.kind == IncidentKind::kNonZeroExit ||
                        later.incident.kind == IncidentKind::kSignalDeath;
    // A rank's traceback may be told after the report below it.
    const bool below = later.stream != said.stream || later.incident.offset > said.incident.offset;
    return failed && later.attempt == said.attempt && below &&
           later.incident.role == logs::Role::kWrapper && later.progress_before >= f.progress;
  });
}

// The kernel saw this rank end, soon after it, with the status that Python gives to what nobody
// caught.
bool EndsSo(const Candidate& end, const Candidate& said) {
  constexpr Duration kLongestEnd = Seconds(60);
  const Duration after = end.incident.t - said.incident.t;
  return end.incident.kind == IncidentKind::kNonZeroExit && end.store == proto::STORE_PROCESS &&
         end.incident.exit_code == 1 && end.attempt == said.attempt &&
         after > Duration{-kFlushedWithin.ns} && after <= kLongestEnd;
}

bool RankEndedSo(const windows::JobWindow& job, const Candidate& said, const JobFeatures& f) {
  const std::vector<Candidate>& all = job.incidents().all();
  return f.timed && std::any_of(all.begin(), all.end(),
                                [&](const Candidate& end) { return EndsSo(end, said); });
}

// Little but what trackers and launchers print around a program's end stands behind it.
bool TextEndsThere(const windows::JobWindow& job, const Candidate& said, const JobFeatures& f) {
  constexpr int kFew = 12;
  int lines = 0;
  for (size_t age = 0; age < LastWords::kLines; ++age) {
    const SaidLine& line = job.last_words().At(age);
    if (line.offset < 0) break;
    const bool later = line.stream == said.stream
                           ? line.offset > said.incident.offset
                           : f.timed && line.t - said.incident.t > kFlushedWithin;
    if (later && !line.record && !line.bar && !line.text.starts_with("wandb:")) ++lines;
  }
  return lines <= kFew;
}

}  // namespace

bool ItsRankIsGone(const Candidate& said, const windows::JobWindow& job, const JobFeatures& f) {
  if (!f.timed || f.world_size < 2 || !WasUncaught(said.incident)) return false;
  const std::vector<Candidate>& all = job.incidents().all();
  return std::any_of(all.begin(), all.end(), [&](const Candidate& end) {
    const auto rank = job.ranks().find(end.incident.rank);
    return EndsSo(end, said) && rank != job.ranks().end() && rank->second.process == end.process;
  });
}

bool MayBeOfAnother(const windows::JobWindow& job, const JobFeatures& f) {
  const Evidence* const exit = f.At(f.exit_evidence);
  if (!f.exit_known || f.exit_code != 0 || exit == nullptr) return false;
  // A step's or the ranks' own is that of the program.
  if (exit->kind != EvidenceKind::kExitStatus || exit->values.Has(FieldId::kRankCount))
    return false;
  if (!job.wrapped() || job.argv().empty()) return windows::MayCallAShell(job.command());
  std::string command;
  for (const std::string& word : job.argv()) command.append(word).append(" ");
  return windows::MayCallAShell(command);
}

bool EndedTheProgram(const Candidate& said, const Around& around, const windows::JobWindow& job,
                     const JobFeatures& f) {
  const Incident& incident = said.incident;
  if (incident.shape != "traceback" || Has(incident, "tool")) return false;
  if (incident.role != logs::Role::kInitiating || f.train_end) return false;
  if (ItsRankIsGone(said, job, f)) return true;
  const bool uncaught = WasUncaught(incident);
  // A traceback is told when its stream goes on, or ends: records that came meanwhile do not count
  // as later ones.
  if (f.timed && around.last->present() && around.last->t - said.incident.t > kFlushedWithin)
    return false;
  const bool held_back = around.after > 0 && HeldBack(said, around, f);
  if (around.after > 0 && !(uncaught && held_back)) return false;
  if (uncaught && RankEndedSo(job, said, f)) return true;
  const bool planned = f.steps_known && std::isfinite(f.total_steps) && f.total_steps > 0;
  if (planned) {
    const bool finished = f.steps >= f.total_steps;
    return !finished && (uncaught || IsOfTheLoop(incident));
  }
  if (!uncaught) return false;
  // A tool that failed before a short training looks the same as a training that was held back.
  if (held_back && !around.before && !IsOfTheLoop(incident)) return false;
  return IsReported(job, said, f) || TextEndsThere(job, said, f);
}

void NoteDoubtfulExit(const windows::JobWindow& job, JobFeatures& f) {
  const bool failed = std::any_of(f.causes.begin(), f.causes.end(), [](const Cause& cause) {
    return cause.role == Cause::Role::kInitiating || cause.role == Cause::Role::kWrapper;
  });
  if (failed && MayBeOfAnother(job, f))
    f.evidence[static_cast<size_t>(f.exit_evidence)].values.Set(FieldId::kAnother, "yes");
}

bool ExitIsDoubtful(const JobFeatures& f) {
  const Evidence* const exit = f.At(f.exit_evidence);
  return exit != nullptr && exit->kind == EvidenceKind::kExitStatus &&
         exit->values.Has(FieldId::kAnother);
}

}  // namespace rankscope::features
