// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/contradictions/contradictions.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace rankscope::contradictions {
namespace {

using sentences::Fact;
using sentences::Lasts;

// What a disposition asserts.
struct DispositionRow {
  std::string_view kind, fact;
};
constexpr DispositionRow kDispositions[] = {
    {"completed", "command.exit_code=0"},       {"cancelled", "scheduler.did=cancelled"},
    {"time_limit", "scheduler.did=time_limit"}, {"preempted", "scheduler.did=preemption"},
    {"requeued", "scheduler.did=requeue"},      {"node_lost", "scheduler.did=node_failure"}};

void Add(const std::string& sentence, std::string_view text, std::vector<Claim>& claims) {
  std::optional<Fact> fact = sentences::ReadFact(text);
  if (fact) claims.push_back({sentence, *std::move(fact)});
}

void AddEnd(const proto::Verdict& verdict, std::vector<Claim>& out) {
  Add("triage.running", verdict.triage().running() ? "job.running=yes" : "job.running=no", out);
  // A shell's status above 128 is one of a signal.
  if (verdict.exit_known() && verdict.exit_code() >= 0 && verdict.exit_code() < 128)
    Add("exit_code", "command.exit_code=" + std::to_string(verdict.exit_code()), out);
  const proto::Disposition& how = verdict.disposition();
  for (const DispositionRow& row : kDispositions) {
    if (row.kind == how.kind()) Add("disposition " + how.kind(), row.fact, out);
  }
  if (how.kind() == "cancelled" && !how.by().empty())
    Add("disposition by " + how.by(), "end.asked_by=known", out);
}

std::string Shown(const Claim& claim) {
  const Fact& fact = claim.fact;
  return "\"" + claim.sentence + "\" (" + (fact.denied ? "!" : "") +
         std::string(fact.predicate->name) + "=" + fact.value +
         (fact.subject.empty() ? "" : " of " + fact.subject) + ")";
}

// What lasts is compared where both are of one time. Claims without a time of their own are of the
// end of what the verdict knows.
bool Meet(const Claim& a, const Claim& b, int64_t now_ns) {
  constexpr int64_t kNow = 2'000'000'000;  // observations of one moment come within two ticks
  if (a.fact.predicate->lasts != Lasts::kWhile) return true;
  const auto is_now = [now_ns](const Claim& of) {
    return of.end_ns != 0 && of.end_ns >= now_ns - kNow;
  };
  if (!a.timed && !b.timed) return true;
  if (!a.timed) return is_now(b);
  if (!b.timed) return is_now(a);
  return a.end_ns != 0 && b.end_ns != 0 && a.begin_ns <= b.end_ns && b.begin_ns <= a.end_ns;
}

}  // namespace

std::vector<Claim> ClaimsOf(const engine::BuiltVerdict& verdict) {
  using Of = engine::Assertion::Of;
  const proto::Verdict& document = verdict.document;
  std::vector<Claim> claims;
  for (const engine::Assertion& assertion : verdict.assertions) {
    if (assertion.of == Of::kFamily) {
      const auto& family = document.families(assertion.number);
      Add(family.code() + ": " + family.by(), assertion.fact, claims);
    } else if (assertion.of == Of::kQuestion) {
      const auto& open = document.cannot_decide(assertion.number);
      Add("cannot decide " + open.question(), assertion.fact, claims);
    } else {
      const auto& evidence = document.shows(assertion.number);
      Add(evidence.text(), assertion.fact, claims);
      claims.back().timed = true;
      claims.back().begin_ns = evidence.begin_ns();
      claims.back().end_ns = std::max(evidence.begin_ns(), evidence.end_ns());
    }
  }
  AddEnd(document, claims);
  return claims;
}

std::vector<std::string> Contradictions(const std::vector<Claim>& claims) {
  int64_t now_ns = 0;
  for (const Claim& claim : claims) now_ns = std::max(now_ns, claim.end_ns);
  std::vector<std::string> found;
  for (auto a = claims.begin(); a != claims.end(); ++a) {
    for (auto b = std::next(a); b != claims.end(); ++b) {
      if (Contradict(a->fact, b->fact) && Meet(*a, *b, now_ns))
        found.push_back(Shown(*a) + " | " + Shown(*b));
    }
  }
  return found;
}

std::vector<std::string> Contradictions(const engine::BuiltVerdict& verdict) {
  return Contradictions(ClaimsOf(verdict));
}

}  // namespace rankscope::contradictions
