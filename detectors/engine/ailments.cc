// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/engine/ailments.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "detectors/sentences/facts.h"
#include "detectors/sentences/remarks.h"

namespace rankscope::engine {

using families::EndKind;
using sentences::Fact;

namespace {

// Of a run that ended by itself, what stood for half of it is what there is to say of it; a quarter
// where it stood to its end.
constexpr double kLargePart = 0.5;
constexpr double kLargePartStanding = 0.25;

// From its onset until it was named.
double SecondsUnnamed(const proto::Verdict& verdict) {
  if (verdict.onset_ns() == 0 || verdict.detected_ns() <= verdict.onset_ns()) return 0;
  return Duration{verdict.detected_ns() - verdict.onset_ns()}.seconds();
}

// The kernel tells of a death at once, and slurmstepd's line of the cancel that it was comes
// through srun and a file.
constexpr double kTextIsLate = 5;

// Slurm's KillWait is 30 s, and the record of the end comes some seconds later.
constexpr double kLongestEnd = 60;

}  // namespace

bool Ailments::IsOne(std::string_view code) {
  // How a run ended, that it does well, and that nothing is known.
  constexpr std::string_view kNone[] = {"", "F2", "F3", "X20", "G1", "U0", "E3", "X19"};
  return std::find(std::begin(kNone), std::end(kNone), code) == std::end(kNone);
}

Ailment* Ailments::Find(std::string_view code) {
  const auto found = std::find_if(all_.begin(), all_.end(),
                                  [code](const Ailment& each) { return each.code == code; });
  return found == all_.end() ? nullptr : &*found;
}

// Who is ended from outside loses one process after the other, and with them what shows the hang.
// It is not over before something has moved; past the longest time that an end takes, who knows.
bool Ailments::HangGoesOn(const proto::Verdict& verdict, double seconds, double still_seconds) {
  const Ailment* const standing = Find(standing_);
  undetermined_seconds_ += seconds;
  return verdict.code() == "U0" && standing != nullptr && standing->hang &&
         undetermined_seconds_ <= std::min(kLongestEnd, still_seconds);
}

void Ailments::Stood(const proto::Verdict& verdict, double seconds, double still_seconds) {
  seconds_ += seconds;
  if (HangGoesOn(verdict, seconds, still_seconds)) return;
  standing_ = verdict.code();
  undetermined_seconds_ = 0;
  if (!IsOne(verdict.code())) return;
  Ailment* known = Find(verdict.code());
  if (known == nullptr) {
    if (all_.size() == kMax) {
      all_.erase(std::min_element(all_.begin(), all_.end(), [](const Ailment& a, const Ailment& b) {
        return a.seconds < b.seconds;
      }));
    }
    known = &all_.emplace_back();
    known->code = verdict.code();
  }
  known->slow = verdict.triage().symptom() == "slow";
  // It takes minutes before a run is known to be slow, and it was slow in them.
  if (known->slow && known->seconds <= 0) known->seconds = SecondsUnnamed(verdict);
  known->seconds = std::min(known->seconds + seconds, seconds_);
  known->hang = verdict.triage().symptom() == "hang";
  known->wrong = verdict.triage().symptom() == "wrong_result";
}

void Ailments::Keep(const proto::Verdict& verdict, const std::vector<Assertion>& assertions) {
  Ailment* const known = Find(verdict.code());
  if (known == nullptr) return;
  known->document = verdict.SerializeAsString();
  known->assertions = assertions;
}

const Ailment* Ailments::Conclude(EndKind end) const {
  if (end == EndKind::kCause) return nullptr;
  const Ailment* longest = nullptr;
  for (const Ailment& ailment : all_) {
    if (ailment.document.empty()) continue;
    // A death that the end turned out to be is no ailment that came before it.
    if (ailment.code == "A2" && ailment.seconds <= kTextIsLate) continue;
    // A rank that nobody knows who shot did not die of having been slow.
    if (end == EndKind::kUnclear && ailment.slow) continue;
    const bool standing = ailment.code == standing_;
    if (standing && end != EndKind::kQuiet) return &ailment;
    // What was over before the end, and what it came to a good end with, it survived, unless it was
    // slow for much of its time, or its curve was wrong for much of it and to its end: the last
    // records of a run are as noisy as any others.
    const double large = standing ? kLargePartStanding : kLargePart;
    const bool lasts = ailment.slow || (ailment.wrong && standing);
    if (!lasts || ailment.seconds < large * seconds_) continue;
    if (longest == nullptr || ailment.seconds > longest->seconds) longest = &ailment;
  }
  return longest;
}

namespace {

// Those of one place of a verdict, to a place of another.
void CopyAssertions(const std::vector<Assertion>& from, Assertion::Of of, int32_t number,
                    int32_t to, std::vector<Assertion>& out) {
  for (const Assertion& assertion : from) {
    if (assertion.of == of && assertion.number == number) out.push_back({of, to, assertion.fact});
  }
}

// Evidence of the end, behind that of the ailment; by its number there, the one here.
class EvidenceOfEnd {
 public:
  EvidenceOfEnd(const BuiltVerdict& end, BuiltVerdict& out)
      : end_(end.document), asserted_(end.assertions), out_(out) {}

  // What the end itself rests on follows from the ailment.
  void TakeCauses() {
    for (const uint32_t cited : end_.isolation().ruled_in_by()) {
      const size_t known = numbers_.size();
      const auto here = Take(cited);
      if (!here || numbers_.size() == known) continue;
      proto::Cause* const link = out_.document.add_cause_chain();
      link->set_evidence(*here);
      link->set_role(proto::Cause::CASCADE);
      causes_.push_back(*here);
    }
  }

  std::optional<uint32_t> Take(uint32_t cited) {
    if (const auto known = numbers_.find(cited); known != numbers_.end()) return known->second;
    for (const proto::Evidence& evidence : end_.shows()) {
      if (evidence.id() != cited) continue;
      proto::Evidence* const added = out_.document.add_shows();
      *added = evidence;
      added->set_id(static_cast<uint32_t>(out_.document.shows_size() - 1));
      numbers_[cited] = added->id();
      CopyAssertions(asserted_, Assertion::Of::kEvidence, static_cast<int32_t>(cited),
                     static_cast<int32_t>(added->id()), out_.assertions);
      return added->id();
    }
    return std::nullopt;
  }

  const std::vector<uint32_t>& causes() const { return causes_; }

 private:
  const proto::Verdict& end_;
  const std::vector<Assertion>& asserted_;
  BuiltVerdict& out_;
  std::map<uint32_t, uint32_t> numbers_;
  std::vector<uint32_t> causes_;
};

// What the end shows. How something was at a time is not denied by how it is at another.
std::vector<Fact> FactsOf(const BuiltVerdict& end) {
  std::vector<Fact> facts;
  for (const Assertion& assertion : end.assertions) {
    if (assertion.of != Assertion::Of::kEvidence) continue;
    std::optional<Fact> fact = sentences::ReadFact(assertion.fact);
    if (fact && fact->predicate->lasts != sentences::Lasts::kWhile)
      facts.push_back(*std::move(fact));
  }
  return facts;
}

bool IsOfFamily(const Assertion& assertion, int32_t family) {
  return assertion.of == Assertion::Of::kFamily && assertion.number == family;
}

// Whether one of these facts contradicts what is said of the family.
bool IsDenied(const std::vector<Assertion>& assertions, int32_t family,
              const std::vector<Fact>& facts) {
  return std::any_of(assertions.begin(), assertions.end(), [&](const Assertion& assertion) {
    if (!IsOfFamily(assertion, family)) return false;
    const std::optional<Fact> said = sentences::ReadFact(assertion.fact);
    return said && std::any_of(facts.begin(), facts.end(), [&said](const Fact& fact) {
             return sentences::Contradict(*said, fact);
           });
  });
}

// That the job was still running excludes nothing any more, nor does what the end shows to be
// untrue: what the end says of the family holds.
void CorrectWhatTheEndChanged(const BuiltVerdict& end, EvidenceOfEnd& evidence, BuiltVerdict& out) {
  const std::vector<Fact> facts = FactsOf(end);
  for (int32_t i = 0; i < out.document.families_size(); ++i) {
    proto::FamilyState& family = *out.document.mutable_families(i);
    const bool waited = family.waits() && !end.document.triage().running();
    if (!waited && !IsDenied(out.assertions, i, facts)) continue;
    std::erase_if(out.assertions, [i](const Assertion& each) { return IsOfFamily(each, i); });
    for (int32_t j = 0; j < end.document.families_size(); ++j) {
      const proto::FamilyState& now = end.document.families(j);
      if (now.code() != family.code()) continue;
      family = now;
      family.clear_evidence();
      for (const uint32_t cited : now.evidence()) {
        if (const auto here = evidence.Take(cited)) family.add_evidence(*here);
      }
      CopyAssertions(end.assertions, Assertion::Of::kFamily, j, i, out.assertions);
    }
  }
}

}  // namespace

BuiltVerdict ConcludedVerdict(const Ailment& ailment, const BuiltVerdict& built_end, double share) {
  BuiltVerdict built;
  proto::Verdict& out = built.document;
  const proto::Verdict& end = built_end.document;
  if (!out.ParseFromString(ailment.document)) return built_end;
  built.assertions = ailment.assertions;
  // Whoever builds a verdict adds these, whatever its document was built from.
  out.clear_history();
  out.clear_attempts();
  out.clear_data_quality();
  EvidenceOfEnd evidence(built_end, built);
  evidence.TakeCauses();
  CorrectWhatTheEndChanged(built_end, evidence, built);
  *out.mutable_attempt() = end.attempt();
  out.set_phase(end.phase());
  out.set_exit_known(end.exit_known());
  out.set_exit_code(end.exit_code());
  out.mutable_triage()->set_running(end.triage().running());
  if (!end.triage().running()) {
    out.mutable_resolution()->mutable_immediate()->Swap(
        out.mutable_resolution()->mutable_immediate_ended());
    out.mutable_resolution()->mutable_verify()->Swap(
        out.mutable_resolution()->mutable_verify_ended());
    auto& tests = *out.mutable_next_tests();
    tests.erase(std::remove_if(tests.begin(), tests.end(),
                               [](const proto::NextTest& test) { return test.of_running(); }),
                tests.end());
  }
  out.clear_amended_by();
  if (end.has_disposition()) *out.mutable_disposition() = end.disposition();
  for (int32_t i = 0; i < out.families_size(); ++i) {
    proto::FamilyState& family = *out.mutable_families(i);
    if (family.code() != end.code() || end.code() == out.code()) continue;
    std::erase_if(built.assertions, [i](const Assertion& each) { return IsOfFamily(each, i); });
    family.Clear();
    family.set_code(end.code());
    family.set_state(proto::FamilyState::RULED_OUT);
    family.set_by(sentences::RemarkText(sentences::Remark::kEndIsNoCause));
    for (const uint32_t here : evidence.causes()) family.add_evidence(here);
  }
  FieldValues values;
  values.Set(FieldId::kSeconds, std::round(ailment.seconds)).Set(FieldId::kShare, share);
  proto::Implication* const implication = out.add_implies();
  implication->set_text(sentences::RemarkText(sentences::Remark::kStoodBeforeTheEnd, values));
  implication->set_remedy("none");
  implication->set_domain(out.domain());
  for (const uint32_t here : evidence.causes()) implication->add_evidence(here);
  return built;
}

}  // namespace rankscope::engine
