// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/attempts.h"

#include <algorithm>
#include <cmath>

#include "detectors/model/subs.h"
#include "detectors/windows/completed_save.h"
#include "detectors/windows/series/statistics.h"

namespace rankscope::windows {

using logs::Incident;
using logs::IncidentKind;
using logs::MarkerKind;
using logs::Role;

bool IsTerminal(const Incident& incident) {
  if (incident.role != Role::kInitiating && incident.role != Role::kWrapper) return false;
  switch (incident.kind) {
    case IncidentKind::kException:
    case IncidentKind::kSignalDeath:
    case IncidentKind::kNonZeroExit:
    case IncidentKind::kCudaOom:
    case IncidentKind::kHostOom:
    case IncidentKind::kCudaError:
    case IncidentKind::kRendezvous:
    case IncidentKind::kSchedulerEnd:
    case IncidentKind::kUsageError:
    case IncidentKind::kTerminated:
      return true;
    case IncidentKind::kXid:
    case IncidentKind::kCollectiveTimeout:
    case IncidentKind::kPeerLost:
    case IncidentKind::kNonFiniteLoss:
    case IncidentKind::kStorage:
      return false;
  }
  return false;
}

bool IsDeathReport(const Incident& incident) {
  return incident.kind == IncidentKind::kNonZeroExit ||
         incident.kind == IncidentKind::kSchedulerEnd ||
         (incident.kind == IncidentKind::kSignalDeath && incident.sub != subs::kDataloaderWorker) ||
         incident.kind == IncidentKind::kUsageError;
}

void AttemptWindow::OnProgress(const logs::Progress& record, const LogLine& line,
                               const StepClock::Interval& interval, Timestamp t) {
  loss.Add(record, line.stream, line.offset, line.text, t);
  clock.Add(record, t, interval);
  phase.OnProgress(t);
  training.Add({record, line.stream, line.offset, line.text, t, progress});
  reward.Add(record, line.stream, line.offset, line.text, t);
  printed.Add(record);
  last_progress.value = record.loss;
  last_progress.step = record.step;
  last_progress.index = progress;
  last_progress.stream = line.stream;
  last_progress.offset = line.offset;
  last_progress.t = t;
  last_progress.line.assign(line.text.substr(0, logs::kCitationCap));
  if (progress == 0) first_progress = last_progress;
  ++progress;
  if (format != record.format) format = record.format;
  generic = generic && record.generic;
  reward_seen = reward_seen || std::isfinite(record.reward);
}

void Attempts::RaiseRestarts(int32_t slurm, int32_t elastic) {
  attempt_.slurm_restart = std::max(attempt_.slurm_restart, slurm);
  attempt_.elastic_restart = std::max(attempt_.elastic_restart, elastic);
}

namespace {

// A run that goes on from its checkpoint counts some steps once more. Peers that share a log lag
// behind each other by a record or two, and a new epoch counts from its beginning.
bool GoesBack(const StepClock& clock, const logs::Progress& progress) {
  constexpr int64_t kRecords = 8;  // before they are known to be evenly spaced
  constexpr double kLag = 2.5;     // records
  if (clock.records() < kRecords) return false;
  const double each =
      (clock.last_step() - clock.first_step()) / static_cast<double>(clock.records() - 1);
  if (!(each > 0) || !(clock.last_step() - progress.step > kLag * each)) return false;
  if (std::isfinite(clock.epoch()) != std::isfinite(progress.epoch)) return false;
  return !std::isfinite(progress.epoch) || progress.epoch <= clock.epoch();
}

}  // namespace

// A counter that starts again right after a death is another program's, and so is one that goes
// back to a checkpoint where somebody else has said that the program is dead. Counts within epochs
// start again all the time, so the epoch has to start again with them.
bool Attempts::BeginsAgain(const logs::Progress& progress) const {
  if (!terminal_ || suspected_ || progress_since_terminal_ > 0 || current_.progress < 2)
    return false;
  const StepClock& clock = current_.clock;
  if (progress.step_text.empty() || clock.restarts() > 0) return false;
  if (terminal_reported_ && GoesBack(clock, progress)) return true;
  if (!(progress.step <= clock.first_step()) || !(progress.step < clock.last_step())) return false;
  if (std::isfinite(clock.epoch()) && std::isfinite(progress.epoch))
    return progress.epoch <= clock.first_epoch() && progress.epoch < clock.epoch() + 1e-9;
  return true;
}

void Attempts::Remember(Timestamp t, bool past) {
  EarlierAttempt earlier;
  earlier.progress = current_.progress;
  earlier.first_step = current_.clock.first_step();
  earlier.highest_step = current_.clock.reached();
  earlier.last_epoch = current_.clock.epoch();
  earlier.loss_noise = NoiseSigma(current_.loss.curve());
  earlier.first_loss = current_.loss.first();
  earlier.last_loss = current_.loss.last();
  const MarkerSeen& ended = current_.marker(MarkerKind::kSaveEnd);
  earlier.saved = ended.count > 0 ? ended : current_.marker(MarkerKind::kSaveBegin);
  earlier.completed = NewestCompletedSave(current_, t);
  earlier.finished = current_.marker(MarkerKind::kTrainEnd).count > 0;
  earlier.end = t;
  earlier.past = past;
  if (earlier_.size() == kMaxEarlier) earlier_.pop_front();
  earlier_.push_back(std::move(earlier));
}

void Attempts::Begin(Timestamp t, Processes processes, const Close& close, IncidentLog& incidents) {
  Remember(t, close.past);
  // What is seen below the text is seen of processes, and trackers forget a rank's with its
  // process.
  KernelView kernel;
  if (processes == Processes::kSame) kernel = current_.kernel;
  if (ended_.size() == kMaxEnded) ended_.pop_front();
  // An attempt ends with its last process, and the next one may begin much later.
  const bool gone = processes == Processes::kNew && close.last_process_exit > current_.begin;
  spans_.push_back({attempt_, current_.begin,
                    gone ? close.last_process_exit : std::min(close.job_end.value_or(t), t)});
  if (spans_.size() > kMaxSpans) spans_.pop_front();
  ended_.push_back({attempt_, t, std::move(current_)});
  current_ = {};
  current_.begin = t;
  current_.kernel = std::move(kernel);
  current_.kernel.network.KeepCoordinators(ended_.back().window.kernel.network);
  current_.kernel.gpus.KeepCards(ended_.back().window.kernel.gpus);
  current_.framework = ended_.back().window.framework;
  // What was only suspected to be another attempt was the end of this one.
  if (suspected_) incidents.MoveToAttempt(suspected_ordinal_, attempt_.ordinal);
  ++attempt_.ordinal;
  suspected_.reset();
  terminal_ = terminal_reported_ = false;
  progress_since_terminal_ = 0;
}

void Attempts::BeginRequeued(int32_t slurm_restart, Timestamp t, const Close& close,
                             IncidentLog& incidents) {
  Begin(t, Processes::kNew, close, incidents);
  attempt_.slurm_restart = slurm_restart;
  attempt_.elastic_restart = 0;
  restart_balance_ = 0;
  begin_stream_ = 0;
  begin_offset_ = progress_at_begin_ = 0;
}

void Attempts::Suspect(Timestamp t) {
  suspected_.emplace();
  suspected_->begin = t;
  suspected_ordinal_ = attempt_.ordinal + 1;
}

void Attempts::Confirm(Timestamp t, const Close& close, IncidentLog& incidents) {
  AttemptWindow next = std::move(*suspected_);
  suspected_.reset();
  Begin(t, Processes::kNew, close, incidents);
  if (next.framework.empty()) next.framework = current_.framework;
  current_ = std::move(next);
  current_.kernel.gpus.KeepCards(ended_.back().window.kernel.gpus);
}

int32_t Attempts::OrdinalOfLateLauncher() const {
  return std::max(1, attempt_.ordinal + restart_balance_);
}

bool Attempts::IsOfPrevious(uint32_t stream, int64_t offset, Timestamp said) const {
  return attempt_.ordinal > 1 && !suspected_ &&
         (IsBeforeBegin(stream, offset) || said < current_.begin);
}

void Attempts::NoteIncident(const Incident& incident, uint32_t stream, Timestamp t) {
  if (!IsTerminal(incident)) return;
  // The banner that followed it was met first.
  if (IsBeforeBegin(stream, incident.offset) && progress_at_begin_ > 0 && !suspected_) Suspect(t);
  terminal_ = true;
  terminal_stream_ = stream;
  progress_since_terminal_ = 0;
  terminal_reported_ = terminal_reported_ || IsDeathReport(incident);
}

void Attempts::NoteBegin(uint32_t stream, int64_t offset) {
  begin_stream_ = stream;
  begin_offset_ = offset;
  progress_at_begin_ = current_.progress;
}

}  // namespace rankscope::windows
