// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X10: ranks disagree about the collective.
#include <charconv>
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

// In what two ranks' words for the same place of the same group differ. Sequence numbers of
// different groups have nothing to do with each other, and older releases print no group: there
// only a large number that several ranks share is believed to be one group's.
std::string_view Difference(const Cause& a, const Cause& b) {
  const logs::Incident& x = a.incident();
  const logs::Incident& y = b.incident();
  if (Field(x, "pg") != Field(y, "pg")) return {};
  const int64_t seq = Whole(Field(x, "seq"));
  if (seq < 0 || seq != Whole(Field(y, "seq"))) return {};
  constexpr int64_t kLarge = 1000;
  if (Field(x, "pg").empty() && seq < kLarge) return {};
  if (Field(x, "op") != Field(y, "op")) return "op";
  // All-gathers and scatters of uneven shares are legal, reductions of them are not.
  const bool even = Field(x, "op") == "ALLREDUCE" || Field(x, "op") == "BROADCAST";
  const bool sized = !Field(x, "numel").empty() && !Field(y, "numel").empty();
  return even && sized && Field(x, "numel") != Field(y, "numel") ? "size" : std::string_view();
}

struct Desync {
  std::string_view sub;  // empty: the ranks agree, as far as they say
  const Cause* a = nullptr;
  const Cause* b = nullptr;
};

// Two ranks that gave up on different collectives at the same place.
Desync FindDesync(const JobFeatures& f) {
  for (size_t i = 0; i < f.causes.size(); ++i) {
    if (!IsWatchdog(f.causes[i])) continue;
    for (size_t j = i + 1; j < f.causes.size(); ++j) {
      if (!IsWatchdog(f.causes[j])) continue;
      const std::string_view sub = Difference(f.causes[i], f.causes[j]);
      if (!sub.empty()) return {sub, &f.causes[i], &f.causes[j]};
    }
  }
  return {};
}

// Ranks whose watchdog stands at the place of this one and names the same operation.
std::vector<int32_t> Agreeing(const JobFeatures& f, const Cause& with) {
  std::set<int32_t> ranks;
  for (const Cause& cause : f.causes) {
    const logs::Incident& said = cause.incident();
    if (!IsWatchdog(cause) || Field(said, "pg") != Field(with.incident(), "pg") ||
        Field(said, "seq") != Field(with.incident(), "seq") || !Difference(cause, with).empty())
      continue;
    ranks.insert(cause.candidate->ranks.begin(), cause.candidate->ranks.end());
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

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (Finding reported = ReportedDisorder(f); reported.matched) return reported;
  const Cause* primary = f.Primary();
  if (primary == nullptr) return {};
  const logs::Incident& incident = primary->incident();
  const bool said = incident.sub == subs::kDesync;
  const bool device = incident.sub == subs::kMismatch;
  const Desync desync = said || device ? Desync{} : FindDesync(f);
  const bool watchdogs = !desync.sub.empty() && incident.kind == IncidentKind::kCollectiveTimeout;
  if (!said && !device && !watchdogs) return {};
  Finding finding = FromPrimary(f);
  finding.sub = said ? SubOfFingerprints(incident.message) : desync.sub;
  if (device) finding.sub = "op";
  if (watchdogs) {
    Show(desync.a->evidence, finding);
    Show(desync.b->evidence, finding);
    finding.root = {desync.a->evidence, desync.b->evidence};
    std::vector<int32_t> few = Agreeing(f, *desync.a), most = Agreeing(f, *desync.b);
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
    if (const Desync desync = FindDesync(f); !desync.sub.empty())
      return Excluded(Reason::kOtherEvent, {desync.a->evidence, desync.b->evidence});
    return NotDecidable(proto::STORE_NCCL, Reason::kSameCollective,
                        {{FieldId::kOp, std::string(Field(cause->incident(), "op"))}});
  }
  if (f.ended && f.exit_known && f.exit_code == 0) return Exited(f, {f.exit_evidence});
  return NotDecidable(proto::STORE_NCCL);
}

}  // namespace rankscope::families::collective_desync
