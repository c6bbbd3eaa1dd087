// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who is in a collective and who is not. Ranks of one step are within microseconds of each other
// while they train, and the numbers come once a second: only at a standstill does it mean anything,
// and the families decide when one is.
#include <algorithm>
#include <cmath>
#include <limits>

#include "detectors/features/calls.h"
#include "detectors/features/landmarks.h"

namespace rankscope::features {
namespace {

using windows::RankCalls;
using windows::RankCollective;

// A watchdog asks ten times a second; silent for this long, it does not run any more.
constexpr double kWatchdogSilence = 10;

class CollectiveDescriber {
 public:
  CollectiveDescriber(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f)
      : job_(job), view_(window.kernel), citer_(citer), f_(f), out_(f.collectives) {}

  void Run() {
    // Of a run that is over, as it was when it was last heard.
    if (f_.ended) {
      now_ = {};
      for (const auto& [rank, seen] : view_.collectives.ranks()) now_ = std::max(now_, seen.last());
    }
    DescribeCommunicators();
    for (const auto& [rank, seen] : view_.collectives.ranks()) {
      if (!Counts(seen)) continue;
      out_.asked = out_.asked || seen.ever_asked();
    }
    for (const auto& [rank, seen] : view_.collectives.ranks()) {
      if (Counts(seen)) out_.ranks.push_back(DescribeRank(rank, seen));
    }
    if (out_.ranks.empty()) return;
    out_.flight_known = std::all_of(out_.ranks.begin(), out_.ranks.end(),
                                    [](const RankCollectives& rank) { return rank.flight_known; });
    DescribeAdvance();
    DescribeSequences();
    Divide();
    Cite();
  }

 private:
  // The job's time, which stands while it is suspended.
  double Since(Timestamp then) const { return job_.RunningSeconds(then, now_); }

  bool Counts(const RankCollective& seen) const {
    return seen.counted() && (seen.alive() || f_.ended);
  }

  const RankCalls* CallsOf(int32_t rank) const {
    const auto found = view_.launches.ranks().find(rank);
    return found == view_.launches.ranks().end() || !found->second.counted() ? nullptr
                                                                             : &found->second;
  }

  RankCollectives DescribeRank(int32_t rank, const RankCollective& seen) const {
    RankCollectives out;
    out.rank = rank;
    out.process = seen.process();
    out.entered = seen.entered();
    out.seconds_since_entered = Since(seen.last_entered());
    out.asked = seen.ever_asked() && (now_ - seen.last_asked()).seconds() <= kWatchdogSilence;
    out.flight_known = seen.flight_known();
    out.in_flight = out.asked ? seen.in_flight() : 0;
    out.written_bytes = seen.written_since();
    out.cpu_share =
        out.seconds_since_entered > 0 ? seen.cpu_since() / out.seconds_since_entered : 0;
    const RankCalls* calls = CallsOf(rank);
    out.seconds_since_launch = std::numeric_limits<double>::infinity();
    if (calls != nullptr && calls->launched())
      out.seconds_since_launch = Since(calls->last_launch());
    // Watchdogs know; where none asks, whoever does not come back from the card may be waiting.
    if (out_.asked) {
      out.wait_seconds = out.asked ? seen.FlightSeconds(now_) : 0;
    } else if (calls != nullptr) {
      out.wait_seconds = calls->SyncSeconds(now_);
    }
    out.waits = out.wait_seconds > std::max(1.0, out.seconds_since_entered / 2);
    return out;
  }

  void DescribeAdvance() {
    out_.seconds_since_advance = std::numeric_limits<double>::infinity();
    std::vector<double> usual;
    std::vector<double> longest;
    std::vector<double> advances;
    for (const RankCollectives& rank : out_.ranks) {
      const RankCollective& seen = view_.collectives.ranks().at(rank.rank);
      out_.seconds_since_advance = std::min(out_.seconds_since_advance, Since(seen.last_advance()));
      out_.entered = std::max(out_.entered, seen.entered());
      out_.completed = std::max(out_.completed, seen.completed());
      usual.push_back(seen.pauses().Median());
      longest.push_back(seen.pauses().second);
      advances.push_back(static_cast<double>(seen.pauses().newest.size()));
    }
    out_.usual_pause = MedianOrZero(usual);
    out_.advances = static_cast<int32_t>(MedianOrZero(advances));
    out_.longest_pause = MedianOrZero(longest);
  }

  void DescribeSequences() {
    double most = -1;
    out_.exact = out_.ranks.size() > 1;
    for (const RankCollectives& rank : out_.ranks) {
      const double sequence = view_.collectives.ranks().at(rank.rank).sequence();
      out_.exact = out_.exact && sequence >= 0;
      most = std::max(most, sequence);
    }
    // More than any stream holds: these are not of one communicator.
    constexpr double kMostBehind = 1024;
    const bool one = std::all_of(out_.ranks.begin(), out_.ranks.end(), [&](const auto& rank) {
      const RankCollective& seen = view_.collectives.ranks().at(rank.rank);
      return most - seen.sequence() <= kMostBehind;
    });
    out_.exact = out_.exact && one;
    if (!out_.exact) return;
    for (RankCollectives& rank : out_.ranks)
      rank.behind = most - view_.collectives.ranks().at(rank.rank).sequence();
  }

  // Behind the others and not itself waiting in a smaller group; else behind; else not waiting.
  void Divide() {
    for (const RankCollectives& rank : out_.ranks) {
      if (rank.waits) out_.waiting.push_back(rank.rank);
    }
    const auto choose = [this](auto is_absent) {
      for (const RankCollectives& rank : out_.ranks) {
        if (is_absent(rank)) out_.absent.push_back(rank.rank);
      }
      return !out_.absent.empty();
    };
    const auto behind = [](const RankCollectives& rank) { return rank.behind > 0; };
    out_.by_sequence =
        choose([&](const RankCollectives& rank) { return behind(rank) && !rank.waits; }) ||
        choose(behind);
    if (!out_.by_sequence)
      choose([](const RankCollectives& rank) { return !rank.waits && rank.flight_known; });
    if (out_.by_sequence) {
      std::erase_if(out_.waiting, [this](int32_t rank) {
        return std::find(out_.absent.begin(), out_.absent.end(), rank) != out_.absent.end();
      });
    }
    out_.absent_since_launch = std::numeric_limits<double>::infinity();
    for (const RankCollectives& rank : out_.ranks) {
      if (std::find(out_.absent.begin(), out_.absent.end(), rank.rank) == out_.absent.end()) {
        out_.wait_seconds = std::max(out_.wait_seconds, rank.waits ? rank.wait_seconds : 0);
        continue;
      }
      out_.absent_written_bytes = std::max(out_.absent_written_bytes, rank.written_bytes);
      out_.absent_cpu_share = std::max(out_.absent_cpu_share, rank.cpu_share);
      out_.absent_since_launch = std::min(out_.absent_since_launch, rank.seconds_since_launch);
    }
  }

  Evidence About(std::string_view role, std::string_view query, std::vector<int32_t> ranks,
                 double seconds) const {
    Evidence evidence =
        OfRanks(EvidenceKind::kCollectives, proto::STORE_NCCL, query, job_, std::move(ranks));
    evidence.observed = seconds;
    evidence.unit = "s";
    evidence.begin = now_ - Seconds(seconds);
    evidence.end = now_;
    evidence.values.Set(FieldId::kRole, role);
    return evidence;
  }

  void Cite() {
    std::vector<int32_t> all;
    for (const RankCollectives& rank : out_.ranks) all.push_back(rank.rank);
    Evidence advance =
        About("advance", "time() - max(rankscope_nccl_last_advance_timestamp_seconds{$})",
              std::move(all), out_.seconds_since_advance);
    advance.values.Set(FieldId::kEntered, out_.entered);
    if (out_.completed > 0) advance.values.Set(FieldId::kCompleted, out_.completed);
    constexpr double kTold = 2;  // seconds; shorter ones are those between two looks
    if (out_.longest_pause > kTold) advance.values.Set(FieldId::kPause, out_.longest_pause);
    out_.advance_evidence = citer_.Add(std::move(advance));
    if (!out_.waiting.empty()) {
      Evidence waiting = About("waiting",
                               out_.asked ? "max(rankscope_rank_oldest_collective_seconds{$})"
                                          : "max(rankscope_cuda_oldest_sync_seconds{$})",
                               out_.waiting, out_.wait_seconds);
      waiting.values.Set(FieldId::kHow, out_.asked ? "flight" : "sync");
      out_.waiting_evidence = citer_.Add(std::move(waiting));
    }
    if (!out_.absent.empty()) CiteAbsent();
  }

  void CiteAbsent() {
    double since = 0;
    double behind = 0;
    for (const RankCollectives& rank : out_.ranks) {
      if (std::find(out_.absent.begin(), out_.absent.end(), rank.rank) == out_.absent.end())
        continue;
      since = std::max(since, rank.seconds_since_entered);
      behind = std::max(behind, rank.behind);
    }
    Evidence absent =
        About("absent", "time() - min(rankscope_nccl_last_enqueue_timestamp_seconds{$})",
              out_.absent, since);
    if (out_.by_sequence) absent.values.Set(FieldId::kBehind, behind);
    absent.values.Set(FieldId::kLaunch, out_.absent_since_launch);
    if (!out_.by_sequence) absent.values.Set(FieldId::kHow, out_.asked ? "flight" : "sync");
    out_.absent_evidence = citer_.Add(std::move(absent));
  }

  void DescribeCommunicators() {
    std::vector<int32_t> making;
    for (const auto& [rank, seen] : view_.collectives.ranks()) {
      out_.aborts += seen.aborts();
      out_.communicators = std::max(out_.communicators, seen.communicators());
      if (!seen.alive() || seen.inits_in_flight() < 1) continue;
      out_.inits_in_flight += seen.inits_in_flight();
      out_.init_seconds = std::max(out_.init_seconds, seen.InitSeconds(now_));
      making.push_back(rank);
    }
    if (making.empty()) return;
    Evidence evidence =
        OfRanks(EvidenceKind::kCommunicator, proto::STORE_NCCL,
                "max(rankscope_nccl_comm_init_in_flight_seconds{$})", job_, std::move(making));
    evidence.observed = out_.init_seconds;
    evidence.unit = "s";
    evidence.begin = now_ - Seconds(out_.init_seconds);
    evidence.end = now_;
    out_.communicator_evidence = citer_.Add(std::move(evidence));
  }

  const windows::JobWindow& job_;
  const windows::KernelView& view_;
  Citer& citer_;
  JobFeatures& f_;
  CollectiveFeatures& out_;
  Timestamp now_ = f_.now;
};

}  // namespace

void DescribeCollectives(const windows::JobWindow& job, const windows::AttemptWindow& window,
                         Citer& citer, JobFeatures& f) {
  CollectiveDescriber(job, window, citer, f).Run();
}

}  // namespace rankscope::features
