// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where the time of ranks goes by their calls into CUDA. A rank's wall is divided into what it
// spends inside synchronisation, copies, allocation and launching, and the rest: the host's own.
#include <algorithm>
#include <cmath>
#include <map>

#include "detectors/features/calls.h"
#include "detectors/features/landmarks.h"
#include "detectors/windows/series/statistics.h"

namespace rankscope::features {
namespace {

using windows::LaunchPiece;
using windows::RankCalls;

constexpr int64_t kPieceSeconds = 10;
constexpr int64_t kWindowPieces = 30;  // 300 s

// Of those that it has taken most have as many launches: work of one kind, and no answers to
// whoever asks.
bool TakesTurns(const RankCalls& calls) {
  constexpr size_t kTurns = 4;
  constexpr double kAlike = 0.05, kMost = 0.75;
  std::vector<double> turns;
  for (size_t i = 0; i < calls.turns().size(); ++i)
    turns.push_back(static_cast<double>(calls.turns()[i]));
  if (turns.size() < kTurns) return false;
  const double usual = windows::Median(turns);
  const auto alike = std::count_if(turns.begin(), turns.end(), [usual](double of) {
    return std::abs(of - usual) <= kAlike * usual;
  });
  return static_cast<double>(alike) >= kMost * static_cast<double>(turns.size());
}

class LaunchDescriber {
 public:
  LaunchDescriber(const windows::JobWindow& job, const windows::AttemptWindow& window, Citer& citer,
                  JobFeatures& f)
      : job_(job), tracker_(window.kernel.launches), citer_(citer), f_(f), out_(f.launches) {}

  void Run() {
    // Of a run that is over, as it was when it was last heard.
    if (f_.ended) {
      now_ = {};
      for (const auto& [rank, calls] : tracker_.ranks()) now_ = std::max(now_, calls.last());
    }
    for (const auto& [rank, calls] : tracker_.ranks()) {
      DescribeFailures(rank, calls);
      if (!calls.counted() || !(calls.alive() || f_.ended)) continue;
      out_.ranks.push_back(DescribeRank(rank, calls));
    }
    DescribeEnvironment();
    if (out_.ranks.empty()) return;
    DescribeIdle();
    DescribeShares();
    DescribeStraggler();
  }

 private:
  // Complete pieces of the window in which nothing that is timed was left out; the one being filled
  // is not among them.
  std::vector<LaunchPiece> PiecesOf(const RankCalls& calls) const {
    std::vector<LaunchPiece> pieces;
    const int64_t now = now_.ns / (kPieceSeconds * 1'000'000'000);
    for (size_t i = 0; i < calls.pieces().size(); ++i) {
      const LaunchPiece& piece = calls.pieces()[i];
      if (piece.index >= now - kWindowPieces && piece.wall_seconds > 0 && piece.timed_share >= 1)
        pieces.push_back(piece);
    }
    // Before its first launch a rank loads and prepares; that is no part of how it feeds its GPU.
    double launches = static_cast<double>(calls.current().launches);
    for (const LaunchPiece& piece : pieces) launches += static_cast<double>(piece.launches);
    constexpr double kRounded = 1e-6;  // sums of single precision
    if (launches >= calls.launches() * (1 - kRounded)) {
      const auto first = std::find_if(pieces.begin(), pieces.end(),
                                      [](const LaunchPiece& piece) { return piece.launches > 0; });
      pieces.erase(pieces.begin(), first);
    }
    return pieces;
  }

  RankLaunches DescribeRank(int32_t rank, const RankCalls& calls) const {
    RankLaunches out;
    out.rank = rank;
    out.process = calls.process();
    out.launches = calls.launches();
    const Timestamp since = calls.launched() ? calls.last_launch() : calls.first();
    out.seconds_since_launch = job_.RunningSeconds(since, now_);  // the job's time
    out.longest_pause = calls.pauses().second;
    out.sync_seconds = calls.SyncSeconds(now_);
    out.counted_share = calls.counted_share();
    LaunchPiece sum;
    sum.cpu_seconds = 0;
    for (const LaunchPiece& piece : PiecesOf(calls)) {
      sum.wall_seconds += piece.wall_seconds;
      sum.launches += piece.launches;
      sum.launch_seconds += piece.launch_seconds;
      sum.sync_calls += piece.sync_calls;
      sum.sync_seconds += piece.sync_seconds;
      sum.copy_seconds += piece.copy_seconds;
      sum.allocation_seconds += piece.allocation_seconds;
      sum.cpu_seconds += piece.cpu_seconds;
      sum.stalls += piece.stalls;
      sum.stall_seconds += piece.stall_seconds;
    }
    if (sum.wall_seconds > 0) {
      const auto share = [&sum](float seconds) {
        return std::min(1.0, static_cast<double>(seconds / sum.wall_seconds));
      };
      out.launch_share = share(sum.launch_seconds);
      out.sync_share = share(sum.sync_seconds);
      out.copy_share = share(sum.copy_seconds);
      out.allocation_share = share(sum.allocation_seconds);
      if (sum.cpu_seconds > 0)
        out.cpu_share = static_cast<double>(sum.cpu_seconds / sum.wall_seconds);
    }
    if (sum.launches > 0) {
      out.syncs_per_launch = static_cast<double>(sum.sync_calls / sum.launches);
      out.launch_call_seconds = static_cast<double>(sum.launch_seconds / sum.launches);
    }
    out.stalls = static_cast<int32_t>(sum.stalls);
    out.stall_seconds = static_cast<double>(sum.stall_seconds);
    out.rate_before = RateBefore(calls);
    out.rate = RateOfLate(calls);
    const double counted = job_.RunningSeconds(calls.first(), calls.last());
    if (counted > 0) out.usual_rate = calls.launches() / counted;
    return out;
  }

  // Of the newest six pieces in which it launched anything.
  static double RateBefore(const RankCalls& calls) {
    double launches = static_cast<double>(calls.current().launches);
    double wall = launches > 0 ? static_cast<double>(calls.current().wall_seconds) : 0;
    int used = 0;
    for (size_t i = calls.pieces().size(); i-- > 0 && used < 6;) {
      const LaunchPiece& piece = calls.pieces()[i];
      if (piece.launches <= 0) continue;
      launches += static_cast<double>(piece.launches);
      wall += static_cast<double>(piece.wall_seconds);
      ++used;
    }
    return wall > 0 ? launches / wall : 0;
  }

  static double RateOfLate(const RankCalls& calls) {
    auto launches = static_cast<double>(calls.current().launches);
    auto wall = static_cast<double>(calls.current().wall_seconds);
    if (!calls.pieces().empty()) {
      const LaunchPiece& newest = calls.pieces()[calls.pieces().size() - 1];
      launches += static_cast<double>(newest.launches);
      wall += static_cast<double>(newest.wall_seconds);
    }
    return wall > 0 ? launches / wall : 0;
  }

  std::vector<int32_t> AllRanks() const {
    std::vector<int32_t> ranks;
    for (const RankLaunches& rank : out_.ranks) ranks.push_back(rank.rank);
    return ranks;
  }

  template <class Get>
  double MedianOf(Get get) const {
    std::vector<double> values;
    for (const RankLaunches& rank : out_.ranks) {
      if (const double value = get(rank); std::isfinite(value)) values.push_back(value);
    }
    return MedianOrZero(values);
  }

  void DescribeIdle() {
    bool any = false;
    for (const RankLaunches& rank : out_.ranks) {
      out_.sync_seconds = std::max(out_.sync_seconds, rank.sync_seconds);
      if (rank.launches <= 0) continue;
      out_.seconds_since_launch =
          any ? std::min(out_.seconds_since_launch, rank.seconds_since_launch)
              : rank.seconds_since_launch;
      any = true;
      if (rank.seconds_since_launch > std::max(1.0, rank.longest_pause))
        out_.idle_ranks.push_back(rank.rank);
    }
    out_.rate_before = MedianOf([](const RankLaunches& rank) { return rank.rate_before; });
    if (!any) return;
    Evidence evidence =
        OfRanks(EvidenceKind::kLaunches, proto::STORE_CUDA,
                "time() - max(rankscope_cuda_last_launch_timestamp_seconds{$})", job_, AllRanks());
    evidence.observed = out_.seconds_since_launch;
    evidence.unit = "s";
    evidence.begin = now_ - Seconds(out_.seconds_since_launch);
    evidence.end = now_;
    evidence.values.Set(FieldId::kRate, out_.rate_before);
    SetCountedShare(evidence);
    out_.idle_evidence = citer_.Add(std::move(evidence));
  }

  void DescribeShares() {
    out_.exact = std::all_of(out_.ranks.begin(), out_.ranks.end(),
                             [](const RankLaunches& rank) { return rank.counted_share >= 1; });
    std::vector<double> walls;
    std::vector<double> launches;
    for (const RankLaunches& rank : out_.ranks) {
      double wall = 0;
      double sum = 0;
      for (const LaunchPiece& piece : PiecesOf(tracker_.ranks().at(rank.rank))) {
        out_.exact = out_.exact && piece.counted_share >= 1;
        wall += static_cast<double>(piece.wall_seconds);
        sum += static_cast<double>(piece.launches);
      }
      walls.push_back(wall);
      launches.push_back(sum);
    }
    out_.window_seconds = MedianOrZero(walls);
    out_.launches = MedianOrZero(launches);
    out_.launch_share = MedianOf([](const RankLaunches& rank) { return rank.launch_share; });
    out_.sync_share = MedianOf([](const RankLaunches& rank) { return rank.sync_share; });
    out_.copy_share = MedianOf([](const RankLaunches& rank) { return rank.copy_share; });
    out_.allocation_share =
        MedianOf([](const RankLaunches& rank) { return rank.allocation_share; });
    out_.host_share = std::max(
        0.0, 1 - out_.launch_share - out_.sync_share - out_.copy_share - out_.allocation_share);
    out_.syncs_per_launch =
        MedianOf([](const RankLaunches& rank) { return rank.syncs_per_launch; });
    out_.launch_call_seconds =
        MedianOf([](const RankLaunches& rank) { return rank.launch_call_seconds; });
    const bool cpu =
        std::any_of(out_.ranks.begin(), out_.ranks.end(),
                    [](const RankLaunches& rank) { return std::isfinite(rank.cpu_share); });
    if (cpu) out_.cpu_share = MedianOf([](const RankLaunches& rank) { return rank.cpu_share; });
    out_.stalls = static_cast<int32_t>(
        MedianOf([](const RankLaunches& rank) { return static_cast<double>(rank.stalls); }));
    out_.stall_seconds = MedianOf([](const RankLaunches& rank) { return rank.stall_seconds; });
    out_.in_turns = std::all_of(out_.ranks.begin(), out_.ranks.end(), [this](const auto& rank) {
      return TakesTurns(tracker_.ranks().at(rank.rank));
    });
    if (out_.window_seconds > 0) CiteShares();
  }

  // What was left out is said with the number, unless it rounds to nothing.
  void SetCountedShare(Evidence& evidence) const {
    constexpr double kAll = 0.9995;
    const double share = MedianOf([](const RankLaunches& rank) { return rank.counted_share; });
    if (share < kAll) evidence.values.Set(FieldId::kCountedShare, share);
  }

  void CiteShares() {
    constexpr std::string_view kHostShare =
        "clamp_min(1 - quantile(0.5, rate(rankscope_cuda_launch_seconds_total{$}[#]))"
        " - quantile(0.5, rate(rankscope_cuda_sync_seconds_total{$}[#]))"
        " - quantile(0.5, rate(rankscope_cuda_memcpy_seconds_total{$}[#]))"
        " - quantile(0.5, rate(rankscope_cuda_alloc_seconds_total{$}[#])), 0)";
    Evidence evidence = OfRanks(EvidenceKind::kCudaCalls, proto::STORE_CUDA, kHostShare, job_,
                                AllRanks(), out_.window_seconds);
    evidence.observed = out_.host_share;
    evidence.begin = now_ - Seconds(out_.window_seconds);
    evidence.end = now_;
    evidence.values.Set(FieldId::kSeconds, std::round(out_.window_seconds))
        .Set(FieldId::kSync, out_.sync_share)
        .Set(FieldId::kLaunching, out_.launch_share)
        .Set(FieldId::kCopying, out_.copy_share)
        .Set(FieldId::kSyncs, out_.syncs_per_launch)
        .Set(FieldId::kCallSeconds, out_.launch_call_seconds)
        .Set(FieldId::kCpu, out_.cpu_share);
    if (out_.stalls > 0) {
      evidence.values.Set(FieldId::kStalls, int64_t{out_.stalls})
          .Set(FieldId::kStalled, out_.stall_seconds);
    }
    if (!out_.exact) SetCountedShare(evidence);
    out_.calls_evidence = citer_.Add(std::move(evidence));
  }

  // Shares of waiting in a piece, by rank; only of pieces that every rank has.
  std::map<int64_t, std::map<int32_t, double>> WaitByPiece() const {
    std::map<int64_t, std::map<int32_t, double>> waits;
    for (const RankLaunches& rank : out_.ranks) {
      for (const LaunchPiece& piece : PiecesOf(tracker_.ranks().at(rank.rank))) {
        if (piece.launches <= 0 && piece.counted_share >= 1) continue;  // it does not train
        waits[piece.index][rank.rank] =
            std::min(1.0, static_cast<double>(piece.sync_seconds / piece.wall_seconds));
      }
    }
    std::erase_if(waits,
                  [this](const auto& piece) { return piece.second.size() < out_.ranks.size(); });
    return waits;
  }

  // In step with each other, ranks wait for the one that comes last: it waits least, and by so much
  // less as it is late. Whoever is late on the card itself waits for it like all others: not seen.
  void DescribeStraggler() {
    if (out_.ranks.size() < 2) return;
    const auto waits = WaitByPiece();
    std::map<int32_t, int32_t> least;
    std::map<int32_t, std::vector<double>> by_rank;
    for (const auto& [index, piece] : waits) {
      const auto slow =
          std::min_element(piece.begin(), piece.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      ++least[slow->first];
      for (const auto& [rank, wait] : piece) by_rank[rank].push_back(wait);
    }
    if (waits.empty()) return;
    const auto most =
        std::max_element(least.begin(), least.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<int32_t> peers;
    std::vector<double> peer_waits;
    for (const auto& [rank, values] : by_rank) {
      if (rank == most->first) continue;
      peers.push_back(rank);
      peer_waits.push_back(windows::Median(values));
    }
    const double own = windows::Median(by_rank[most->first]);
    const double usual = windows::Median(peer_waits);
    std::vector<double> spread;
    spread.reserve(peer_waits.size());
    for (const double wait : peer_waits) spread.push_back(std::abs(wait - usual));
    constexpr double kLeastSigma = 0.01;  // a share of the wall
    out_.slow_rank = most->first;
    out_.slow_pieces = static_cast<int32_t>(waits.size());
    out_.slow_identity = static_cast<double>(most->second) / static_cast<double>(waits.size());
    out_.slow_z = (usual - own) / std::max(kLeastSigma, 1.4826 * windows::Median(spread));
    constexpr double kMostLate = 0.99;
    out_.slow_ratio = 1 / (1 - std::clamp(usual - own, 0.0, kMostLate));
    out_.slow_evidence = CiteWait("slow", {most->first}, own);
    out_.peers_evidence = CiteWait("peers", std::move(peers), usual);
  }

  EvidenceRef CiteWait(std::string_view role, std::vector<int32_t> ranks, double share) {
    const auto seconds = static_cast<double>(out_.slow_pieces * kPieceSeconds);
    Evidence evidence = OfRanks(EvidenceKind::kCudaCalls, proto::STORE_CUDA,
                                "quantile(0.5, rate(rankscope_cuda_sync_seconds_total{$}[#]))",
                                job_, std::move(ranks), seconds);
    evidence.observed = share;
    evidence.begin = now_ - Seconds(seconds);
    evidence.end = now_;
    evidence.values.Set(FieldId::kRole, role)
        .Set(FieldId::kSeconds, static_cast<int64_t>(out_.slow_pieces * kPieceSeconds))
        .Set(FieldId::kIdentity, out_.slow_identity);
    return citer_.Add(std::move(evidence));
  }

  void DescribeFailures(int32_t rank, const RankCalls& calls) {
    out_.allocation_failures += calls.allocation_failures();
    out_.cuda_errors += calls.cuda_errors();
    if (calls.allocation_failures() > 0) {
      const double since = std::max(0.0, (f_.now - calls.failed_at()).seconds());
      // Of several ranks, the first to be refused.
      if (out_.failed_rank < 0 || since > out_.seconds_since_failure) {
        out_.failed_rank = rank;
        out_.seconds_since_failure = since;
        out_.last_failed_bytes = calls.last_failed_bytes();
        out_.launches_since_failure = calls.launches_since_failure();
        Evidence evidence = OfRanks(EvidenceKind::kAllocationFailed, proto::STORE_CUDA,
                                    "rankscope_cuda_last_failed_alloc_bytes{$}", job_, {rank});
        if (std::isfinite(calls.last_failed_bytes())) evidence.observed = calls.last_failed_bytes();
        evidence.unit = "By";
        evidence.begin = evidence.end = calls.failed_at();
        evidence.process = calls.process();
        evidence.values.Set(FieldId::kCall, calls.failed_call())
            .Set(FieldId::kFailures, calls.allocation_failures());
        out_.allocation_evidence = citer_.Add(std::move(evidence));
      }
    }
    if (calls.cuda_errors() > 0 && out_.error_evidence == kNoEvidence &&
        std::isfinite(calls.last_cuda_error())) {
      Evidence evidence = OfRanks(EvidenceKind::kCudaCalls, proto::STORE_CUDA,
                                  "rankscope_cuda_errors_total{$}", job_, {rank});
      evidence.observed = calls.cuda_errors();
      evidence.begin = evidence.end = now_;
      evidence.values.Set(FieldId::kRole, "error")
          .Set(FieldId::kCall, calls.error_call())
          .Set(FieldId::kCode, static_cast<int64_t>(calls.last_cuda_error()));
      out_.error_evidence = citer_.Add(std::move(evidence));
    }
  }

  void DescribeEnvironment() {
    for (const windows::Surrounding& setting : job_.surroundings().all()) {
      if (!setting.variable || setting.name != "CUDA_LAUNCH_BLOCKING" || setting.value == "0" ||
          setting.value.empty())
        continue;
      out_.launch_blocking = true;
      Evidence evidence;
      evidence.kind = EvidenceKind::kCudaCalls;
      evidence.store = proto::STORE_PROCESS;
      evidence.ranks = setting.ranks;
      evidence.process = setting.process;
      evidence.begin = evidence.end = setting.t;
      evidence.values = {{FieldId::kRole, "environment"},
                         {FieldId::kSetting, setting.name + "=" + setting.value}};
      out_.launch_blocking_evidence = citer_.Add(std::move(evidence));
      return;
    }
  }

  const windows::JobWindow& job_;
  const windows::LaunchTracker& tracker_;
  Citer& citer_;
  JobFeatures& f_;
  LaunchFeatures& out_;
  Timestamp now_ = f_.now;
};

}  // namespace

void DescribeLaunches(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f) {
  LaunchDescriber(job, window, citer, f).Run();
}

}  // namespace rankscope::features
