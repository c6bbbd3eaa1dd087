// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One job's memory across ticks: which verdict stands, since when, and when it is final. Features
// and families are asked anew at each tick; holding, clearing, finality and revisions are decided
// here and nowhere else.
//
//   live --the command ended--> provisional --streams drained + final_after_end--> final
//     ^                           |               (or _scheduler, while Slurm may tell more)  |
//     +--- a new process of it ---+-----------------------------------------------------------+
//
// Single writer, loop thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/engine/ailments.h"
#include "detectors/engine/engine.h"
#include "detectors/families/family.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::engine {

struct JudgeContext {
  const Config* config = nullptr;
  std::string_view node;
  int64_t wall_offset_ns = 0;
  double clock_uncertainty_s = 0;
  std::array<Availability, features::kStores> stores{};
  const std::vector<SourceState>* sources = nullptr;
  std::string_view record;   // the authoritative record that asks for this evaluation; empty = none
  bool scheduled = false;    // a scheduler that answers has started it
  Timestamp scheduler_told;  // and told this attempt's end; 0 = not yet
  bool awaits_output = false;  // its processes have ended, and a file of it is still being read
  bool output_unread = false;  // or was given up before its end
  Timestamp output_read;       // when all of it had been read; 0 = nothing is followed
};

class Judge {
 public:
  // Judges the window as it stands at `now`. Returns whether the verdict changed in what matters
  // (family, sub, state, confidence, ranks).
  bool Evaluate(windows::JobWindow& job, const JudgeContext& context, Timestamp now);

  const proto::Verdict& verdict() const { return verdict_; }
  const std::vector<Assertion>& assertions() const { return assertions_; }
  bool has_judged() const { return !verdict_.job_id().empty(); }
  bool is_final() const { return verdict_.state() == proto::FINAL; }
  Timestamp final_since() const { return final_since_; }
  int64_t changes() const { return changes_; }

  template <class A>
  void Fields(A& a) {
    a(verdict_bytes_, attempts_bytes_, raised_, raised_since_, raised_pace_, candidate_,
      candidate_since_, raised_seen_, final_since_, changes_, ailments_, concluded_, judged_,
      history_bytes_, assertions_);
  }
  void BeforeSave();    // fills what Fields writes
  bool AfterRestore();  // false: the stored documents cannot be read

 private:
  struct Choice {
    const families::FamilyRow* family = nullptr;
    families::Finding finding;
  };

  // `standing`: the code that stands; empty = none.
  static Choice Choose(const features::JobFeatures& f, std::string_view standing = {});
  Choice Hold(Choice choice, const features::JobFeatures& f, Timestamp now);
  // Counts the time that the verdict has stood since it was judged last.
  void CountTime(const features::JobFeatures& f, Timestamp now);
  // What the run suffered from, if it ends by `end`; null: the end itself is the answer.
  const Ailment* Conclude(const Choice& end, const features::JobFeatures& f);
  void NoteChange(const proto::Verdict& next, int64_t wall_ns);
  void SummarizePrevious(windows::JobWindow& job, const JudgeContext& context);
  proto::State NextState(const windows::JobWindow& job, const features::JobFeatures& f,
                         const JudgeContext& context, Timestamp now) const;

  proto::Verdict verdict_;
  std::vector<Assertion> assertions_;  // of the verdict
  std::vector<proto::AttemptSummary> attempts_;
  std::string verdict_bytes_;
  std::vector<std::string> attempts_bytes_;
  std::string raised_;  // code that stands
  Timestamp raised_since_;
  double raised_pace_ = 0;  // longest seconds per step while it was seen; NaN: not known
  Timestamp raised_seen_;   // when the families last agreed with it
  std::string candidate_;   // code that would replace it
  Timestamp candidate_since_;
  Timestamp final_since_;
  int64_t changes_ = 0;
  Ailments ailments_;
  bool concluded_ = false;  // the verdict is what ailed the job, with its end
  Timestamp judged_;        // last; 0 = never
  std::vector<proto::Change> history_;
  std::vector<std::string> history_bytes_;
};

}  // namespace rankscope::engine
