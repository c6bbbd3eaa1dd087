// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The attempts of one job: when the next one begins, what the one before leaves, and the trackers
// of the current one. Fed by JobWindow in order; single writer.
//
// Attempts. A launcher's restart line or the scheduler's requeue begins a new attempt at once. A
// banner after a terminal event is only suspected to: Python's stdout is block-buffered into files
// while stderr is not, so a dead program's banner and progress may well follow its traceback.
// Suspected attempts keep trackers of their own, and become real when
//   - the death between was said by somebody else (launcher summary, scheduler, shell), or
//   - training had been seen before it and begins again, or
//   - the suspected attempt says that it finished, or dies by an error of its own.
// Without any banner, steps that begin again right after a death are another program's.
// A requeue is the end of the attempt that it ends: what was requeued begins with its own text,
// processes or wrapper, if they come here at all. These carry how often Slurm has put the job back:
// the first that carries more than the attempt that was here begins the next one.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "detectors/logs/record.h"
#include "detectors/windows/incident_log.h"
#include "detectors/windows/kernel_view.h"
#include "detectors/windows/phase_machine.h"
#include "detectors/windows/series/step_clock.h"
#include "detectors/windows/trackers/loss_scale_tracker.h"
#include "detectors/windows/trackers/loss_tracker.h"
#include "detectors/windows/trackers/printed_numbers.h"
#include "detectors/windows/trackers/reward_tracker.h"
#include "detectors/windows/trackers/training_tracker.h"

namespace rankscope::windows {

// The newest marker of a kind, quotable.
struct MarkerSeen {
  int64_t count = 0;
  Timestamp first, last;
  std::string name;
  std::string text;
  double number = logs::kAbsent;
  uint32_t stream = 0;
  int64_t offset = 0;
  std::string line;

  template <class A>
  void Fields(A& a) {
    a(count, first, last, name, text, number, stream, offset, line);
  }
};

// The newest checkpoint that an attempt is known to have completed.
struct CompletedSave {
  bool present = false;
  double step = logs::kAbsent;  // as printed, or as its name says
  std::string name;             // of a file, or the path that was printed; may be empty

  template <class A>
  void Fields(A& a) {
    a(present, step, name);
  }
};

// What is remembered of an attempt once it is over and judged: what the next one should continue.
struct EarlierAttempt {
  Timestamp end;
  int64_t progress = 0;
  double first_step = logs::kAbsent;
  double highest_step = logs::kAbsent;
  double last_epoch = logs::kAbsent;
  double loss_noise = 0;  // sigma around the trend
  CitedPoint first_loss, last_loss;
  MarkerSeen saved;  // its last save; count 0 = none
  CompletedSave completed;
  bool finished = false;  // it said that training was over
  bool past = false;      // read from a file: when it ended is not known

  template <class A>
  void Fields(A& a) {
    a(end, progress, first_step, highest_step, loss_noise, first_loss, last_loss, saved, completed,
      finished, past, last_epoch);
  }
};

// Trackers that an attempt begins anew.
struct AttemptWindow {
  LossTracker loss;
  StepClock clock;
  PhaseMachine phase;
  TrainingTracker training;
  LossScaleTracker loss_scale;
  RewardTracker reward;
  PrintedNumbers printed;
  KernelView kernel;
  std::array<MarkerSeen, logs::kMarkerKinds> markers;
  std::string format;     // of the newest progress record
  std::string framework;  // by banner, else by format
  bool generic = true;    // every progress record came from the generic fallback
  bool reward_seen = false;
  int64_t progress = 0;
  CitedPoint first_progress;  // oldest and newest record, with or without a loss
  CitedPoint last_progress;
  Timestamp last_written;  // no later than then was the newest record written; 0 = as it arrived
  int64_t progress_at_compile = -1;  // records before the newest word of a compiler; -1 = none
  Timestamp begin;

  const MarkerSeen& marker(logs::MarkerKind kind) const {
    return markers[static_cast<size_t>(kind)];
  }

  // A record of the training, which `line` says.
  void OnProgress(const logs::Progress& record, const LogLine& line,
                  const StepClock::Interval& interval, Timestamp t);

  template <class A>
  void Fields(A& a) {
    a(loss, clock, phase, training, loss_scale, reward, printed, kernel, markers, format, framework,
      generic, reward_seen, progress, first_progress, last_progress, last_written,
      progress_at_compile, begin);
  }
};

// An attempt that is over and not yet judged.
struct EndedAttempt {
  Attempt attempt;
  Timestamp end;
  AttemptWindow window;

  template <class A>
  void Fields(A& a) {
    a(attempt, end, window);
  }
};

// When an attempt began and ended, for people to look at.
struct AttemptSpan {
  Attempt attempt;
  Timestamp begin, end;

  template <class A>
  void Fields(A& a) {
    a(attempt, begin, end);
  }
};

// Kinds after which a program is usually gone.
bool IsTerminal(const logs::Incident& incident);
// Somebody other than the program itself says that it is dead.
bool IsDeathReport(const logs::Incident& incident);

class Attempts {
 public:
  static constexpr size_t kMaxEnded = 16;  // attempts between two ticks; of more, the newest
  static constexpr size_t kMaxEarlier = 16;
  static constexpr size_t kMaxSpans = 16;

  // Whether an attempt is run by the processes of the one before: one program that trains twice.
  enum class Processes : uint8_t { kNew, kSame };

  // What the job knows when its attempt is over.
  struct Close {
    Timestamp last_process_exit;
    std::optional<Timestamp> job_end;
    bool past = false;  // what tells of the next one was read from a file later
  };

  const Attempt& attempt() const { return attempt_; }
  // How often the scheduler or the launcher has started it again; they only rise.
  void RaiseRestarts(int32_t slurm, int32_t elastic);
  AttemptWindow& current() { return current_; }
  const AttemptWindow& current() const { return current_; }
  // The current attempt, and the one that is only suspected.
  template <typename Function>
  void Each(Function each) {
    each(current_);
    if (suspected_) each(*suspected_);
  }

  void Begin(Timestamp t, Processes processes, const Close& close, IncidentLog& incidents);
  // Slurm runs the job again: nothing of the run before lives on, and its text, if a wrapper tells
  // of it again, begins anew.
  void BeginRequeued(int32_t slurm_restart, Timestamp t, const Close& close,
                     IncidentLog& incidents);

  bool suspected() const { return suspected_.has_value(); }
  void Suspect(Timestamp t);
  void Confirm(Timestamp t, const Close& close, IncidentLog& incidents);
  // By its next record: training was seen before the death, so text is not held back by a buffer.
  bool IsSecondTraining() const {
    return suspected_ && (terminal_reported_ || current_.progress > suspected_->progress);
  }
  // A counter that starts again right after a death is another program's.
  bool BeginsAgain(const logs::Progress& progress) const;

  // The attempt has said something that usually ends a run; which stream said it.
  bool terminal() const { return terminal_; }
  uint32_t terminal_stream() const { return terminal_stream_; }
  // A record was seen.
  void NoteRecord() { progress_since_terminal_ += terminal_ ? 1 : 0; }
  // An incident of the current attempt was added.
  void NoteIncident(const logs::Incident& incident, uint32_t stream, Timestamp t);
  // Text that may begin an attempt stands here.
  void NoteBegin(uint32_t stream, int64_t offset);

  // The attempt of what is said now.
  int32_t ordinal_now() const { return suspected_ ? suspected_ordinal_ : attempt_.ordinal; }
  // What a launcher says that was read after the workers of a restart is of what went before.
  int32_t OrdinalOfLateLauncher() const;
  // Said before the current attempt began, and met after that.
  bool IsOfPrevious(uint32_t stream, int64_t offset, Timestamp said) const;

  // Text and the workers' environment tell of the same restart, in either order. Each answers
  // whether it is the first to tell.
  bool TellRestartInText() { return restart_balance_++ >= 0; }
  bool RestartIsUntold() const { return restart_balance_ <= 0; }
  bool RestartIsSeenOnly() const { return restart_balance_ < 0; }
  void SeeRestart() { --restart_balance_; }

  const std::deque<EarlierAttempt>& earlier() const { return earlier_; }
  const std::deque<AttemptSpan>& spans() const { return spans_; }
  std::deque<EndedAttempt>& ended() { return ended_; }
  const std::deque<EndedAttempt>& ended() const { return ended_; }

  template <class A>
  void Fields(A& a) {
    a(attempt_, current_, suspected_, suspected_ordinal_, ended_, earlier_, spans_, terminal_,
      terminal_reported_, terminal_stream_, progress_since_terminal_, restart_balance_,
      begin_stream_, begin_offset_, progress_at_begin_);
    while (earlier_.size() > kMaxEarlier) earlier_.pop_front();  // restored from damaged bytes
    while (spans_.size() > kMaxSpans) spans_.pop_front();
  }

 private:
  bool IsBeforeBegin(uint32_t stream, int64_t offset) const {
    return stream == begin_stream_ && offset < begin_offset_;
  }
  void Remember(Timestamp t, bool past);

  Attempt attempt_;
  AttemptWindow current_;
  std::optional<AttemptWindow> suspected_;
  int32_t suspected_ordinal_ = 0;  // incidents carry it while suspected
  std::deque<EndedAttempt> ended_;
  std::deque<EarlierAttempt> earlier_;
  std::deque<AttemptSpan> spans_;
  bool terminal_ = false;
  bool terminal_reported_ = false;  // somebody else (launcher, scheduler, shell) has said so
  uint32_t terminal_stream_ = 0;
  int64_t progress_since_terminal_ = 0;
  // Above zero: restarts told by text and not yet seen; below: seen and not yet told.
  int32_t restart_balance_ = 0;
  // Where the newest text that may begin an attempt stands, and the records before it.
  uint32_t begin_stream_ = 0;
  int64_t begin_offset_ = 0;
  int64_t progress_at_begin_ = 0;
};

}  // namespace rankscope::windows
