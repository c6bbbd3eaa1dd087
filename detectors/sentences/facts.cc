// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/sentences/facts.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "detectors/sentences/render.h"

namespace rankscope::sentences {
namespace {

using features::Evidence;

constexpr std::string_view kOf = " of ";

std::string_view SubjectKind(const PredicateRow& predicate) {
  return predicate.name.substr(0, predicate.name.find('.'));
}

// Those of which a job has several.
bool IsOneOfSeveral(const PredicateRow& predicate) {
  constexpr std::string_view kSeveral[] = {"process", "rank", "gpu", "node", "run", "step"};
  return std::find(std::begin(kSeveral), std::end(kSeveral), SubjectKind(predicate)) !=
         std::end(kSeveral);
}

std::string ProcessName(const ProcessKey& process) {
  return "pid " + std::to_string(process.pid) + "/" + std::to_string(process.start_ticks);
}

std::string Value(const Evidence& evidence, FieldId id) {
  const FieldValue* const value = evidence.values.Find(id);
  return value == nullptr ? std::string() : Print(*value);
}

// Which one of its kind the observation is of; empty: not known.
std::string SubjectOf(const PredicateRow& predicate, const Evidence& evidence) {
  const std::string_view kind = SubjectKind(predicate);
  if (kind == "process" && evidence.process.pid != 0) return ProcessName(evidence.process);
  if (kind == "process" || kind == "rank") return RankList(evidence.ranks);
  if (kind == "node") return Value(evidence, FieldId::kNode);
  if (kind == "run") return Value(evidence, FieldId::kNumber);
  if (kind == "step") return Value(evidence, FieldId::kStep);
  if (kind == "gpu") {
    for (const FieldId id : {FieldId::kGpuUuid, FieldId::kGpu, FieldId::kBusId}) {
      if (std::string name = Value(evidence, id); !name.empty()) return name;
    }
  }
  return {};
}

// What a list renders to, one fact after the other.
template <class Each>
void EachFact(std::string_view text, Each&& each) {
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    // A value that the row lacks leaves no fact.
    if (space > 0 && text[space - 1] != '=') each(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
}

// "ranks 0-2, 7" -> each of them.
template <class Each>
bool AnyRank(std::string_view list, Each&& each) {
  const char* at = list.data() + std::min(list.find_first_of("0123456789"), list.size());
  const char* const end = list.data() + list.size();
  while (at < end) {
    int64_t first = 0, last = 0;
    at = std::from_chars(at, end, first).ptr;
    last = first;
    if (at < end && *at == '-') at = std::from_chars(at + 1, end, last).ptr;
    for (int64_t rank = first; rank <= last; ++rank) {
      if (each(rank)) return true;
    }
    at += std::min<ptrdiff_t>(2, end - at);  // ", "
  }
  return false;
}

bool IsSame(const Fact& a, const Fact& b) {
  if (!IsOneOfSeveral(*a.predicate)) return true;
  if (!a.subject.starts_with("rank") || !b.subject.starts_with("rank"))
    return !a.subject.empty() && a.subject == b.subject;
  return AnyRank(a.subject, [&b](int64_t of_a) {
    return AnyRank(b.subject, [of_a](int64_t of_b) { return of_a == of_b; });
  });
}

// A denial of nobody in particular is one of all.
bool Denies(const Fact& denial, const Fact& fact) {
  if (denial.value != "*" && denial.value != fact.value) return false;
  return (denial.subject.empty() && IsOneOfSeveral(*denial.predicate)) || IsSame(denial, fact);
}

}  // namespace

std::vector<std::string> Facts(const FactList& list, const Evidence& evidence) {
  std::vector<std::string> facts;
  if (list.none()) return facts;
  EachFact(RenderWords(list.text(), evidence), [&](std::string_view text) {
    std::string& fact = facts.emplace_back(text);
    const std::optional<Fact> read = ReadFact(fact);
    if (!read) return facts.pop_back();
    if (const std::string subject = SubjectOf(*read->predicate, evidence); !subject.empty())
      fact.append(kOf).append(subject);
  });
  return facts;
}

std::vector<std::string> Facts(const FactList& list, const FieldValues& values) {
  std::vector<std::string> facts;
  if (list.none()) return facts;
  EachFact(RenderWords(list.text(), values),
           [&](std::string_view text) { facts.emplace_back(text); });
  return facts;
}

std::optional<Fact> ReadFact(std::string_view text) {
  Fact fact;
  if (text.starts_with('!')) {
    fact.denied = true;
    text.remove_prefix(1);
  }
  if (const size_t of = text.find(kOf); of != std::string_view::npos) {
    fact.subject = text.substr(of + kOf.size());
    text = text.substr(0, of);
  }
  const size_t equals = std::min(text.find('='), text.size());
  if (const size_t place = PlaceOfPredicate(text.substr(0, equals)); place < kPredicates.size())
    fact.predicate = &kPredicates[place];
  fact.value = text.substr(std::min(equals + 1, text.size()));
  if (fact.predicate == nullptr || fact.value.empty()) return std::nullopt;
  return fact;
}

bool Contradict(const Fact& a, const Fact& b) {
  if (a.predicate != b.predicate || (a.denied && b.denied)) return false;
  if (a.denied) return Denies(a, b);
  if (b.denied) return Denies(b, a);
  return a.predicate->lasts != Lasts::kEvent && a.value != b.value && IsSame(a, b);
}

}  // namespace rankscope::sentences
