// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where in its life the run is, from markers and progress. Gates the families and the hang budgets.
//
//   INIT -> RENDEZVOUS -> LOAD -> FIRST_STEP -> TRAIN <-> {EVAL, SAVE} -> TEARDOWN -> ENDED
//
// Any training record means TRAIN, whatever was missed before. Single writer.
#pragma once

#include "detectors/logs/record.h"
#include "detectors/model/time.h"
#include "detectors/proto/verdict.pb.h"

namespace rankscope::windows {

class PhaseMachine {
 public:
  void OnMarker(logs::MarkerKind kind, Timestamp t) {
    switch (kind) {
      case logs::MarkerKind::kRendezvousBegin:
        if (phase_ < proto::PHASE_LOAD) Enter(proto::PHASE_RENDEZVOUS, t);
        break;
      case logs::MarkerKind::kRendezvousEnd:
      case logs::MarkerKind::kLoadBegin:
      case logs::MarkerKind::kLoaded:
      case logs::MarkerKind::kNoCheckpoint:
        if (phase_ < proto::PHASE_LOAD) Enter(proto::PHASE_LOAD, t);
        break;
      case logs::MarkerKind::kTrainBegin:
        if (phase_ < proto::PHASE_TRAIN || phase_ >= proto::PHASE_TEARDOWN)
          Enter(proto::PHASE_FIRST_STEP, t);
        break;
      case logs::MarkerKind::kEvalBegin:
      case logs::MarkerKind::kEval:
        if (phase_ == proto::PHASE_TRAIN || phase_ == proto::PHASE_SAVE)
          Enter(proto::PHASE_EVAL, t);
        break;
      case logs::MarkerKind::kSaveBegin:
        if (phase_ >= proto::PHASE_FIRST_STEP && phase_ < proto::PHASE_TEARDOWN)
          Enter(proto::PHASE_SAVE, t);
        break;
      case logs::MarkerKind::kSaveEnd:
      case logs::MarkerKind::kSaveFailed:
        if (phase_ == proto::PHASE_SAVE) Enter(proto::PHASE_TRAIN, t);
        break;
      case logs::MarkerKind::kTrainEnd:
        Enter(proto::PHASE_TEARDOWN, t);
        break;
      case logs::MarkerKind::kBanner:
      case logs::MarkerKind::kRestart:
      case logs::MarkerKind::kLauncherBegin:
      case logs::MarkerKind::kFact:
      case logs::MarkerKind::kLossScale:
      case logs::MarkerKind::kPartialLoad:
      case logs::MarkerKind::kCompileBegin:
      case logs::MarkerKind::kCompileEnd:
      case logs::MarkerKind::kResumeAsked:
      case logs::MarkerKind::kFreshAsked:
      case logs::MarkerKind::kMetric:
        break;
    }
  }
  void OnProgress(Timestamp t) {
    if (phase_ != proto::PHASE_TRAIN) Enter(proto::PHASE_TRAIN, t);
  }

  proto::Phase phase() const { return phase_; }
  Timestamp since() const { return since_; }
  double save_seconds() const { return save_seconds_; }  // of all saves that came to an end
  double longest_save_seconds() const { return longest_save_; }
  double longest_eval_seconds() const { return longest_eval_; }

  template <class A>
  void Fields(A& a) {
    a(phase_, since_, save_seconds_, longest_save_, longest_eval_);
  }

 private:
  void Enter(proto::Phase next, Timestamp t) {
    const double spent = (t - since_).seconds();
    if (phase_ == proto::PHASE_SAVE) {
      save_seconds_ += spent;
      if (spent > longest_save_) longest_save_ = spent;
    }
    if (phase_ == proto::PHASE_EVAL && spent > longest_eval_) longest_eval_ = spent;
    phase_ = next;
    since_ = t;
  }

  proto::Phase phase_ = proto::PHASE_INIT;
  Timestamp since_;
  double save_seconds_ = 0;
  double longest_save_ = 0;
  double longest_eval_ = 0;
};

}  // namespace rankscope::windows
