// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X10: ranks disagree about the collective.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "detectors/families/curve.h"
#include "detectors/families/report_culprit.h"
#include "detectors/families/rows.h"
#include "detectors/model/subs.h"

namespace rankscope::families::collective_desync {

using features::Cause;
using features::JobFeatures;
using features::kNoEvidence;
using logs::IncidentKind;

namespace {

std::string_view Field(const logs::Incident& incident, std::string_view key) {
  for (const KeyValue& field : incident.fields) {
    if (field.key == key) return field.value;
  }
  return {};
}

bool IsWatchdog(const Cause& cause) {
  const logs::Incident& incident = cause.incident();
  return incident.kind == IncidentKind::kCollectiveTimeout && !Field(incident, "seq").empty() &&
         !Field(incident, "op").empty();
}

int64_t Whole(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The group whose collective this is. Work prints its rank alone since torch 2.6; what the group's
// watchdog prints behind it names the group, and the same number. Empty: nobody tells.
std::string_view GroupOf(const JobFeatures& f, const Cause& cause) {
  const std::string_view own = Field(cause.incident(), "pg");
  if (!own.empty()) return own;
  std::string_view group;
  for (const Cause& other : f.causes) {
    const logs::Incident& said = other.incident();
    const std::string_view named = Field(said, "pg");
    if (named.empty() || said.kind != IncidentKind::kCollectiveTimeout ||
        Field(said, "seq") != Field(cause.incident(), "seq") ||
        !std::ranges::includes(other.candidate->ranks, cause.candidate->ranks))
      continue;
    if (!group.empty() && group != named) return {};
    group = named;
  }
  return group;
}

// A rank whose watchdog names the collective that it waits in.
struct Word {
  const Cause* cause = nullptr;
  std::string_view group;  // empty: not known
};

std::vector<Word> WordsOf(const JobFeatures& f) {
  std::vector<Word> words;
  for (const Cause& cause : f.causes) {
    if (IsWatchdog(cause)) words.push_back({&cause, GroupOf(f, cause)});
  }
  return words;
}

bool SamePlace(const Word& a, const Word& b) {
  return a.group == b.group &&
         Whole(Field(a.cause->incident(), "seq")) == Whole(Field(b.cause->incident(), "seq"));
}

// In what two ranks' words for the same place of the same group differ. Sequence numbers of
// different groups have nothing to do with each other: where the group is not known, only a large
// number that several ranks share is believed to be one group's.
std::string_view Difference(const Word& a, const Word& b) {
  const logs::Incident& x = a.cause->incident();
  const logs::Incident& y = b.cause->incident();
  constexpr int64_t kLarge = 1000;
  const int64_t seq = Whole(Field(x, "seq"));
  if (seq < 0 || !SamePlace(a, b) || (a.group.empty() && seq < kLarge)) return {};
  if (Field(x, "op") != Field(y, "op")) return "op";
  // All-gathers and scatters of uneven shares are legal, reductions of them are not.
  const bool even = Field(x, "op") == "ALLREDUCE" || Field(x, "op") == "BROADCAST";
  const bool sized = !Field(x, "numel").empty() && !Field(y, "numel").empty();
  return even && sized && Field(x, "numel") != Field(y, "numel") ? "size" : std::string_view();
}

struct Desync {
  std::string_view sub;  // empty: the ranks agree, as far as they say
  Word a, b;
};

// Two ranks that gave up on different collectives at the same place.
Desync FindDesync(const std::vector<Word>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    for (size_t j = i + 1; j < words.size(); ++j) {
      const std::string_view sub = Difference(words[i], words[j]);
      if (!sub.empty()) return {sub, words[i], words[j]};
    }
  }
  return {};
}

// Ranks whose watchdog stands at the place of this one and names the same operation.
std::vector<int32_t> Agreeing(const std::vector<Word>& words, const Word& with) {
  std::set<int32_t> ranks;
  for (const Word& word : words) {
    const std::vector<int32_t>& speakers = word.cause->candidate->ranks;
    if (SamePlace(word, with) && Difference(word, with).empty())
      ranks.insert(speakers.begin(), speakers.end());
  }
  return {ranks.begin(), ranks.end()};
}

// torch.distributed's DETAIL wrapper prints both fingerprints: CollectiveFingerPrint(
// SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[20], ..), but Rank 1 is running ..
std::string_view SubOfFingerprints(std::string_view message) {
  const auto both = [message](std::string_view key) {
    const size_t one = message.find(key);
    const size_t two = one == std::string_view::npos ? one : message.find(key, one + key.size());
    if (two == std::string_view::npos) return std::pair<std::string_view, std::string_view>();
    const auto value = [&](size_t at) {
      const std::string_view rest = message.substr(at + key.size());
      return rest.substr(0, rest.find_first_of(key == "TensorShape=" ? "]" : ",)"));
    };
    return std::pair(value(one), value(two));
  };
  const auto [op, other_op] = both("OpType=");
  if (op != other_op) return "op";
  const auto [number, other_number] = both("SequenceNumber=");
  if (number != other_number) return "order";
  return "size";
}

// The two ranks whose fingerprints a message prints: the one that speaks, and the first that it
// differs from.
std::vector<int32_t> RanksOfFingerprints(std::string_view message) {
  const auto rank_after = [message](std::string_view words) {
    const size_t at = message.find(words);
    const int64_t rank = at == message.npos ? -1 : Whole(message.substr(at + words.size()));
    return rank >= 0 && rank < (1 << 24) ? static_cast<int32_t>(rank) : -1;
  };
  const int32_t one = rank_after("ollectives on ranks. Rank ");
  const int32_t other = rank_after("but Rank ");
  if (one < 0 || other < 0 || one == other) return {};
  return {std::min(one, other), std::max(one, other)};
}

// Each rank compares its fingerprint with all others, so that the one that differs stands in each
// message. Of a single message, or two of two ranks, nothing says which of both is wrong.
std::vector<int32_t> RanksThatDiffer(const JobFeatures& f) {
  std::vector<int32_t> all;
  for (const Cause& cause : f.causes) {
    const std::vector<int32_t> both = RanksOfFingerprints(cause.incident().message);
    if (both.empty()) continue;
    std::vector<int32_t> common;
    std::set_intersection(all.begin(), all.end(), both.begin(), both.end(),
                          std::back_inserter(common));
    if (!all.empty() && common.empty()) return {};  // several groups differ
    all = all.empty() ? both : common;
  }
  return all;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (Finding reported = ReportedDisorder(f); reported.matched) return reported;
  const Cause* primary = f.Primary();
  if (primary == nullptr) return {};
  const logs::Incident& incident = primary->incident();
  const bool said = incident.sub == subs::kDesync;
  const bool device = incident.sub == subs::kMismatch;
  const std::vector<Word> words = WordsOf(f);
  const Desync desync = said || device ? Desync{} : FindDesync(words);
  const bool watchdogs = !desync.sub.empty() && incident.kind == IncidentKind::kCollectiveTimeout;
  if (!said && !device && !watchdogs) return {};
  Finding finding = FromPrimary(f);
  finding.sub = said ? SubOfFingerprints(incident.message) : desync.sub;
  if (said) {
    if (std::vector<int32_t> differ = RanksThatDiffer(f); !differ.empty())
      finding.ranks = std::move(differ);
  }
  if (device) finding.sub = "op";
  if (watchdogs) {
    finding.root = {desync.a.cause->evidence, desync.b.cause->evidence};
    for (const features::EvidenceRef evidence : finding.root) Show(evidence, finding);
    std::vector<int32_t> few = Agreeing(words, desync.a), most = Agreeing(words, desync.b);
    if (few.size() > most.size()) few.swap(most);
    finding.ranks.clear();
    if (few.size() < most.size()) finding.ranks = std::move(few);  // else nobody is the odd one out
  }
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "collective";
  finding.symptom = "hang";
  finding.open.push_back(Question::kFixSemantics);
  Show(f.last_progress_evidence, finding);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.world_size == 1) return Excluded(Reason::kOneRank, {}, {{FieldId::kWhat, "agreement"}});
  if (f.reports.flight.evidence != kNoEvidence && f.reports.disorder.sub.empty()) {
    return Excluded(Reason::kSameOperations, {f.reports.flight.evidence},
                    {{FieldId::kDumps, f.reports.dumps}});
  }
  if (const Cause* cause = FindCause(f, IncidentKind::kCollectiveTimeout)) {
    if (const Desync desync = FindDesync(WordsOf(f)); !desync.sub.empty())
      return Excluded(Reason::kOtherEvent, {desync.a.cause->evidence, desync.b.cause->evidence});
    return NotDecidable(proto::STORE_NCCL, Reason::kSameCollective,
                        {{FieldId::kOp, std::string(Field(cause->incident(), "op"))}});
  }
  if (f.ended && f.exit_known && f.exit_code == 0) return Exited(f, {f.exit_evidence});
  return NotDecidable(proto::STORE_NCCL);
}

}  // namespace rankscope::families::collective_desync
