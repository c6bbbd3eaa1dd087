// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/verdict/rank_logs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "detectors/sentences/remarks.h"

namespace rankscope::engine {
namespace {

using features::Cause;
using features::Evidence;
using features::JobFeatures;
using sentences::Remark;
using sentences::RemarkText;
using windows::StreamWindow;

// Of a rank that stopped before the others, by text alone.
constexpr families::Ground kSuspect = families::cap::kLookalike;

bool Initiates(const Cause& cause) {
  return cause.role == Cause::Role::kInitiating || cause.role == Cause::Role::kSupport;
}

class Describer {
 public:
  Describer(const VerdictContext& context, EvidenceWriter& writer, proto::Verdict& verdict)
      : job_(*context.job),
        f_(*context.features),
        group_(context.family->group),
        writer_(writer),
        verdict_(verdict) {
    for (const auto& [id, stream] : job_.streams()) {
      if (stream.rank >= 0) by_rank_[stream.rank].push_back(&stream);
    }
    for (const Cause& cause : f_.causes) {
      if (Initiates(cause)) Insert(cause, failed_);
      if (cause.role == Cause::Role::kCascade) Insert(cause, followed_);
    }
    std::erase_if(followed_, [this](int32_t rank) { return failed_.contains(rank); });
  }

  void Run() {
    if (by_rank_.size() < 2) return;
    if (const Cause* primary = f_.Primary(); primary != nullptr && RankOf(*primary)) {
      DescribeFailure(*primary);
    } else {
      DescribeStop();
    }
    LinkCascades();
  }

 private:
  static void Insert(const Cause& cause, std::set<int32_t>& ranks) {
    ranks.insert(cause.candidate->ranks.begin(), cause.candidate->ranks.end());
  }

  static bool RankOf(const Cause& cause) { return !cause.candidate->ranks.empty(); }

  void Imply(Remark remark, const FieldValues& values, const std::vector<uint32_t>& evidence) {
    proto::Implication* implication = verdict_.add_implies();
    implication->set_text(RemarkText(remark, values));
    implication->set_remedy("none");
    implication->set_domain(verdict_.domain());
    for (const uint32_t number : evidence) implication->add_evidence(number);
  }

  static std::vector<int32_t> List(const std::set<int32_t>& ranks) {
    return {ranks.begin(), ranks.end()};
  }

  // Whose logs report what the primary cause is, the same or one of its kind.
  std::set<int32_t> RanksThatReport(const Cause& primary) const {
    const logs::Incident& what = primary.incident();
    std::set<int32_t> ranks;
    for (const Cause& cause : f_.causes) {
      if (cause.incident().kind == what.kind &&
          cause.incident().exception_type == what.exception_type)
        Insert(cause, ranks);
    }
    std::erase_if(ranks, [this](int32_t rank) { return !by_rank_.contains(rank); });
    return ranks;
  }

  void DescribeFailure(const Cause& primary) {
    const std::vector<int32_t>& who = primary.candidate->ranks;
    const auto number = static_cast<uint32_t>(writer_.Cite(primary.evidence));
    const std::set<int32_t> reporting = RanksThatReport(primary);
    const bool all = reporting.size() == by_rank_.size();
    verdict_.mutable_localization()->set_scope(all ? "job" : who.size() == 1 ? "rank" : "ranks");
    // What the kernel or a parent process saw stands in no rank's log.
    const Evidence* const seen = f_.At(primary.evidence);
    if (seen != nullptr && seen->store == proto::STORE_LOG && !reporting.empty()) {
      FieldValues values = {{FieldId::kOf, static_cast<int64_t>(by_rank_.size())},
                            {FieldId::kRanks, List(reporting)}};
      std::set<int32_t> followed, silent;
      for (const auto& [rank, streams] : by_rank_) {
        if (reporting.contains(rank)) continue;
        if (followed_.contains(rank)) followed.insert(rank);
        if (!failed_.contains(rank) && !followed_.contains(rank)) silent.insert(rank);
      }
      if (!all) values.Set(FieldId::kFollowed, List(followed)).Set(FieldId::kSilent, List(silent));
      Imply(all ? Remark::kAllRanksSayTheSame : Remark::kSomeRanksSay, values, {number});
    }
    DescribeOrder(primary, number);
  }

  // Who was first, where lines carry times; a second apart is a second apart, clocks of nodes
  // differ.
  void DescribeOrder(const Cause& primary, uint32_t number) {
    const int64_t first = primary.candidate->printed_ms;
    if (first == 0) return;
    const Cause* next = nullptr;
    for (const Cause& cause : f_.causes) {
      if (cause.candidate == primary.candidate || !RankOf(cause) ||
          cause.candidate->printed_ms == 0 || cause.candidate->ranks == primary.candidate->ranks)
        continue;
      if (cause.role == Cause::Role::kRecovered || cause.role == Cause::Role::kSupport) continue;
      if (next == nullptr || cause.candidate->printed_ms < next->candidate->printed_ms)
        next = &cause;
    }
    if (next == nullptr) return;
    const int64_t between = next->candidate->printed_ms - first;
    constexpr int64_t kClocksMs = 1000;
    FieldValues values = {{FieldId::kRanks, primary.candidate->ranks},
                          {FieldId::kPrinted, first / 1000},
                          {FieldId::kOthers, next->candidate->ranks}};
    const double seconds = static_cast<double>(between) / 1000;
    if (between < -kClocksMs) values.Set(FieldId::kEarlier, -seconds);
    if (between > kClocksMs) values.Set(FieldId::kLater, seconds);
    Imply(Remark::kOrder, values, {number, static_cast<uint32_t>(writer_.Cite(next->evidence))});
  }

  // No rank says why: one may have stopped before the others.
  void DescribeStop() {
    const bool stuck = verdict_.code() == "C2" || verdict_.code() == "U0" ||
                       verdict_.code() == "F3" || verdict_.code() == "X5" ||
                       verdict_.code() == "C3" || verdict_.code() == "X10";
    if (!stuck) return;
    // Who was seen from below, while the run went on, to hold up the others is known better.
    if (f_.timed && verdict_.ranks_size() > 0) return;
    // Last step -> ranks; a rank has as many streams as it has pipes.
    std::map<double, std::vector<std::pair<int32_t, const StreamWindow*>>> last;
    for (const auto& [rank, streams] : by_rank_) {
      const StreamWindow* newest = nullptr;
      for (const StreamWindow* stream : streams) {
        const bool of_earlier_start =
            stream->restart >= 0 && stream->restart < job_.attempt().elastic_restart;
        if (of_earlier_start || !std::isfinite(stream->last_progress.step)) continue;
        if (newest == nullptr || stream->last_progress.step > newest->last_progress.step)
          newest = stream;
      }
      if (newest == nullptr) return;  // a rank that prints no steps says nothing about its last
      last[newest->last_progress.step].emplace_back(rank, newest);
    }
    if (last.size() != 2) return;  // all alike, or text held back in buffers
    const auto& [step, behind] = *last.begin();
    const auto& [others_step, others] = *last.rbegin();
    if (behind.size() != 1 || others.size() < 2) return;
    const auto& [rank, stream] = behind.front();
    // Block-buffered output ends in the middle of a line; what lay in the buffer is not known.
    if (stream->open_end) return;
    const FieldValues values = {{FieldId::kRanks, std::vector<int32_t>{rank}},
                                {FieldId::kStep, step},
                                {FieldId::kOtherRanks, static_cast<int64_t>(others.size())},
                                {FieldId::kOthersStep, others_step}};
    const uint32_t behind_number = Quote(*stream, RemarkText(Remark::kStoppedBefore, values));
    const uint32_t others_number =
        Quote(*others.front().second, RemarkText(Remark::kOthersCameTo, values));
    Imply(Remark::kSuspect, values, {behind_number, others_number});
    verdict_.clear_ranks();
    verdict_.add_ranks(rank);
    verdict_.mutable_localization()->set_scope("rank");
    if (verdict_.ground() <= kSuspect) return;
    verdict_.set_ground(kSuspect);
    verdict_.set_confidence(
        std::min(verdict_.confidence(), families::Confidence(group_, kSuspect)));
  }

  uint32_t Quote(const StreamWindow& stream, std::string text) {
    Evidence evidence;
    evidence.observed = stream.last_progress.step;
    evidence.ranks = {stream.rank};
    evidence.stream = stream.name;
    evidence.offset = stream.last_progress.offset;
    evidence.line = stream.last_progress.line;
    evidence.begin = evidence.end = stream.last_progress.t;
    return writer_.Add(evidence, "step", std::move(text));
  }

  // Consequences that the family did not need for its story.
  void LinkCascades() {
    constexpr int kMost = 6;
    std::set<uint32_t> linked;
    for (const auto& link : verdict_.cause_chain()) linked.insert(link.evidence());
    int added = 0;
    for (const Cause& cause : f_.causes) {
      if (cause.role != Cause::Role::kCascade || added == kMost) continue;
      const int64_t number = writer_.Cite(cause.evidence);
      if (number < 0 || !linked.insert(static_cast<uint32_t>(number)).second) continue;
      proto::Cause* link = verdict_.add_cause_chain();
      link->set_evidence(static_cast<uint32_t>(number));
      link->set_role(proto::Cause::CASCADE);
      ++added;
    }
  }

  const windows::JobWindow& job_;
  const JobFeatures& f_;
  const families::Group group_;
  EvidenceWriter& writer_;
  proto::Verdict& verdict_;
  std::map<int32_t, std::vector<const StreamWindow*>> by_rank_;
  std::set<int32_t> failed_;    // ranks with an error of their own
  std::set<int32_t> followed_;  // ranks with consequences only
};

}  // namespace

void DescribeRankLogs(const VerdictContext& context, EvidenceWriter& writer,
                      proto::Verdict& verdict) {
  Describer(context, writer, verdict).Run();
}

}  // namespace rankscope::engine
