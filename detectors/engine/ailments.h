// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a job has been seen to suffer from while it ran: the findings that were raised, how long
// each stood, and the verdict that said so. The end of a run adds how it ended and takes none of
// this away: a hang that is cancelled was a hang. Bounded. Single writer.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/families/disposition.h"
#include "detectors/model/time.h"
#include "detectors/proto/verdict.pb.h"
#include "detectors/verdict/assertion.h"

namespace rankscope::engine {

struct Ailment {
  std::string code;
  double seconds = 0;    // that it stood, without what nobody observed; a slowness, from its onset
  bool slow = false;     // the run went on with it
  bool hang = false;     // nothing of the run moved
  bool wrong = false;    // what it learned, or did not
  std::string document;  // the verdict that stood last, serialised; empty = it stands now
  std::vector<Assertion> assertions;  // of the document

  template <class A>
  void Fields(A& a) {
    a(code, seconds, slow, hang, wrong, document, assertions);
  }
};

class Ailments {
 public:
  static constexpr size_t kMax = 8;

  // Whether a family is something that a running job may suffer from.
  static bool IsOne(std::string_view code);

  // `verdict` stood from the last call to this one, which `seconds` were observed of. Nothing of
  // the run has moved for `still_seconds`.
  void Stood(const proto::Verdict& verdict, double seconds, double still_seconds);
  // It is about to be replaced: nothing of what comes next is in it.
  void Keep(const proto::Verdict& verdict, const std::vector<Assertion>& assertions);
  void Clear() { *this = {}; }

  // Which of them the run suffered from, if it ends like this; null = none.
  const Ailment* Conclude(families::EndKind end) const;

  // Seconds in which any verdict stood.
  double seconds() const { return seconds_; }
  const std::vector<Ailment>& all() const { return all_; }

  template <class A>
  void Fields(A& a) {
    a(all_, standing_, seconds_, undetermined_seconds_);
    if (all_.size() > kMax) all_.resize(kMax);  // restored from damaged bytes
  }

 private:
  Ailment* Find(std::string_view code);
  bool HangGoesOn(const proto::Verdict& verdict, double seconds, double still_seconds);

  std::vector<Ailment> all_;
  std::string standing_;  // code of the verdict that stood last
  double seconds_ = 0;
  double undetermined_seconds_ = 0;  // since a hang gave way to U0
};

// The verdict of a job that suffered from `ailment` and ended as `end` says: the claims are those
// of the ailment, and the end is what followed. `share` of the observed time in which it stood.
BuiltVerdict ConcludedVerdict(const Ailment& ailment, const BuiltVerdict& end, double share);

}  // namespace rankscope::engine
