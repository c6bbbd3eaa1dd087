// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "detectors/features/gpu_signature.h"
#include "detectors/features/landmarks.h"
#include "detectors/windows/series/statistics.h"

namespace rankscope::features {
namespace {

using windows::LeadSeries;
using windows::RankLead;

// A collective keeps one multiprocessor for each of its channels: 8 of 132 at least. What waiting
// shows of itself is smaller by that than it is.
constexpr double kFewestChannels = 8.0 / 132;

// The number behind an argument: --name=4, --name 4, or 0.
int32_t NumberOf(const std::vector<std::string>& argv, std::string_view name) {
  for (size_t i = 0; i < argv.size(); ++i) {
    const size_t at = argv[i].find(name);
    if (at == std::string::npos) continue;
    const size_t end = at + name.size();
    if (end < argv[i].size() && argv[i][end] == '=') return std::atoi(argv[i].c_str() + end + 1);
    if (end == argv[i].size() && i + 1 < argv.size()) return std::atoi(argv[i + 1].c_str());
  }
  return 0;
}

// "pipeline-model-parallel-size", with dashes on the command line and underscores elsewhere.
int32_t SizeOf(const windows::JobWindow& job, std::string name) {
  for (const windows::Surrounding& fact : job.surroundings().all()) {
    if (!fact.variable && fact.name == name) return std::max(0, std::atoi(fact.value.c_str()));
  }
  int32_t size = NumberOf(job.argv(), name);
  std::replace(name.begin(), name.end(), '_', '-');
  if (size == 0) size = NumberOf(job.argv(), name);
  return std::max(0, size);
}

class Describer {
 public:
  Describer(const windows::JobWindow& job, const windows::AttemptWindow& window, Citer& citer,
            JobFeatures& f)
      : series_(&job.leads().gpus()),
        power_(job.leads().power()),
        calls_(job.leads().calls()),
        windows_(window.kernel.gpus.gpus()),
        round_seconds_(job.leads().round_seconds()),
        citer_(citer),
        f_(f),
        out_(f.leads) {
    out_.layout = {SizeOf(job, "pipeline_model_parallel_size"),
                   SizeOf(job, "expert_model_parallel_size")};
  }

  void Run() {
    DescribeGpus();
    if (out_.late.evidence == kNoEvidence) DescribeCalls();
    DescribePower();
  }

 private:
  void DescribeGpus() {
    out_.seconds = series_->seconds();
    rounds_ = round_seconds_ >= 5 ? 12 : 30;
    if (!IsKnown()) return;
    DescribeLate();
    if (series_->scale() > 0) DescribeGroups();
  }

  bool IsKnown() const {
    if (series_->ranks().size() < 2 || !(series_->scale() >= 0)) return false;
    return std::all_of(series_->ranks().begin(), series_->ranks().end(),
                       [this](const auto& rank) { return rank.second.leads.size() >= rounds_; });
  }

  // Of GPUs that do not tell of their SMs: a GPU that waits draws far less than one that computes.
  void DescribePower() {
    if (series_->scale() > 0 || !(power_.scale() > 0)) return;
    series_ = &power_;
    watts_ = true;
    if (!IsKnown()) return;
    if (out_.late.evidence == kNoEvidence) {
      out_.late = {};
      DescribeLate();
    }
    DescribeGroups();
  }

  // Where the GPUs do not tell, the waits inside calls do of a host that became late.
  void DescribeCalls() {
    const LaunchFeatures& launches = f_.launches;
    const auto found = calls_.ranks().find(launches.slow_rank);
    if (found == calls_.ranks().end() || !found->second.late) return;
    constexpr size_t kMost = 30;
    const RankLead& own = found->second;
    const size_t rounds = RoundsSince(own, kMost);
    LateRank late;
    for (const auto& [number, rank] : calls_.ranks()) {
      const double lead = rank.Level(rounds) - rank.usual;
      if (number == launches.slow_rank) {
        late.lead = lead;
      } else if (lead > late.next) {
        late.next = lead;
      }
    }
    late.rank = launches.slow_rank;
    late.changed = true;
    late.since = own.late_since;
    late.identity = own.Identity(rounds);
    late.evidence = launches.slow_evidence;
    out_.late = late;
  }

  // Since its lead grew, and no more than `most`.
  size_t RoundsSince(const RankLead& rank, size_t most) const {
    constexpr double kLeast = 5;
    const double since = (f_.now - rank.late_since).seconds() / round_seconds_;
    return static_cast<size_t>(std::clamp(since, kLeast, static_cast<double>(most)));
  }

  // What a lead is of the time, of what the GPUs show of it.
  double Whole(double lead) const {
    // What waiting draws of itself nobody knows: the lead is at least this.
    if (watts_) return lead;
    const double scale = series_->scale();
    return scale > 2 * kFewestChannels ? lead / (1 - kFewestChannels / scale) : lead;
  }

  // The newest rounds, or those since its lead grew.
  double LeadOf(const RankLead& rank) const {
    if (!rank.late) return Whole(rank.Level(rounds_));
    return Whole(rank.Level(RoundsSince(rank, rounds_)) - rank.usual);
  }

  void DescribeLate() {
    LateRank& late = out_.late;
    for (const auto& [number, rank] : series_->ranks()) {
      const double lead = LeadOf(rank);
      // Whose lead has grown comes before who always had one.
      if (late.rank >= 0 && (late.changed != rank.late ? late.changed : lead <= late.lead))
        continue;
      late.rank = number;
      late.lead = lead;
      late.changed = rank.late;
      late.since = rank.late ? rank.late_since : series_->begin();
      late.identity = rank.Identity(rounds_);
    }
    const RankLead& own = series_->ranks().at(late.rank);
    std::vector<double> others, spread;
    for (const auto& [number, rank] : series_->ranks()) {
      if (number == late.rank) continue;
      others.push_back(late.changed ? LeadOf(rank) - (rank.late ? 0 : Whole(rank.usual))
                                    : LeadOf(rank));
    }
    late.next = *std::max_element(others.begin(), others.end());
    const double middle = windows::Median(others);
    for (const double lead : others) spread.push_back(std::abs(lead - middle));
    // Of one peer, or few, the rank's own noise says more.
    // GPUs of one model differ by some percent in what they draw.
    const double least = watts_ ? 0.03 : 0.01;
    const double noise = std::max({least, 1.4826 * windows::Median(spread),
                                   own.noise / std::sqrt(static_cast<double>(rounds_))});
    late.z = (late.lead - middle) / noise;
    CiteLate();
  }

  const RunGpu* GpuOf(int32_t rank) const {
    for (const RunGpu& gpu : f_.gpu.gpus) {
      if (gpu.ranks.size() == 1 && gpu.ranks.front() == rank) return &gpu;
    }
    return nullptr;
  }

  double MedianOf(const std::vector<int32_t>& ranks, double RunGpu::*field) const {
    std::vector<double> values;
    for (const int32_t rank : ranks) {
      const RunGpu* const gpu = GpuOf(rank);
      if (gpu != nullptr && std::isfinite(gpu->*field)) values.push_back(gpu->*field);
    }
    return windows::Median(values);
  }

  // Mean of the newest minute; NaN: it does not tell.
  double MeanOf(const RunGpu& gpu, float windows::GpuSecond::*field) const {
    constexpr double kMinute = 60;
    const auto found = windows_.find(gpu.uuid);
    if (found == windows_.end()) return RunGpu::kNone;
    double sum = 0;
    int32_t looks = 0;
    for (size_t i = 0; i < found->second.count(); ++i) {
      const windows::GpuSecond& look = found->second.newest(i);
      if ((f_.now - look.t).seconds() > kMinute) break;
      if (!std::isfinite(look.*field)) continue;
      sum += static_cast<double>(look.*field);
      ++looks;
    }
    return looks > 0 ? sum / looks : RunGpu::kNone;
  }

  double MedianOfMeans(const std::vector<int32_t>& ranks, float windows::GpuSecond::*field) const {
    std::vector<double> values;
    for (const int32_t rank : ranks) {
      const RunGpu* const gpu = GpuOf(rank);
      const double value = gpu == nullptr ? RunGpu::kNone : MeanOf(*gpu, field);
      if (std::isfinite(value)) values.push_back(value);
    }
    return windows::Median(values);
  }

  std::vector<int32_t> PeersOf(int32_t of) const {
    std::vector<int32_t> peers;
    for (const auto& [number, rank] : series_->ranks()) {
      if (number != of) peers.push_back(number);
    }
    return peers;
  }

  // A GPU beside others, as CardsAlike and OddCard cite it; by `what` = sm | engine_mean | power.
  EvidenceRef Cite(const RunGpu& gpu, const std::vector<int32_t>& peers, std::string_view what) {
    constexpr double kTwoMinutes = 120;
    const bool sm = what == "sm", power = what == "power";
    const auto field = power ? &windows::GpuSecond::power : &windows::GpuSecond::engine;
    Evidence evidence;
    evidence.kind = EvidenceKind::kGpuPeers;
    evidence.store = proto::STORE_GPU;
    evidence.begin = f_.now - Seconds(kTwoMinutes);
    evidence.end = f_.now;
    evidence.observed = sm ? gpu.sm : MeanOf(gpu, field);
    evidence.expected = sm ? MedianOf(peers, &RunGpu::sm) : MedianOfMeans(peers, field);
    evidence.unit = power ? "W" : "ratio";
    evidence.ranks = gpu.ranks;
    evidence.values = {{FieldId::kWhat, std::string(what)}};
    evidence.values.Set(FieldId::kQuery, GpuQuery(evidence, {gpu.uuid}, f_))
        .Set(FieldId::kGpu, gpu.index)
        .Set(FieldId::kGpuUuid, gpu.uuid)
        .Set(FieldId::kPeers, static_cast<int64_t>(peers.size()))
        .Set(FieldId::kEngine, gpu.engine)
        .Set(FieldId::kPeersEngine, MedianOf(peers, &RunGpu::engine))
        .Set(FieldId::kClock, gpu.clock)
        .Set(FieldId::kPeersClock, MedianOf(peers, &RunGpu::clock));
    return citer_.Add(std::move(evidence));
  }

  void CiteLate() {
    LateRank& late = out_.late;
    const RunGpu* const gpu = GpuOf(late.rank);
    constexpr double kCited = 0.02;
    if (gpu == nullptr || !(late.lead >= kCited)) return;
    const std::vector<int32_t> peers = PeersOf(late.rank);
    if (watts_) return CiteLatePower(*gpu, peers);
    // Of steps of some seconds the engine rests in few of the looks: their median hides it.
    const double own = MeanOf(*gpu, &windows::GpuSecond::engine);
    const double engine = MedianOfMeans(peers, &windows::GpuSecond::engine);
    const double sm = MedianOf(peers, &RunGpu::sm);
    const bool rests = own < engine - late.lead / 2;
    late.works = std::isfinite(gpu->sm) && std::isfinite(sm) && !rests;
    late.own = late.works ? gpu->sm : own;
    late.peers = late.works ? sm : engine;
    if (!std::isfinite(late.own) || !std::isfinite(late.peers)) return;
    late.evidence = Cite(*gpu, peers, late.works ? "sm" : "engine_mean");
  }

  // It draws more at the same clock: a GPU of another limit, or that heat holds down, tells nothing
  // by its power.
  void CiteLatePower(const RunGpu& gpu, const std::vector<int32_t>& peers) {
    LateRank& late = out_.late;
    constexpr double kAlike = 0.05;
    const double clock = MedianOf(peers, &RunGpu::clock);
    if (!(std::abs(gpu.clock - clock) <= kAlike * clock)) return;
    late.works = true;
    late.own = MeanOf(gpu, &windows::GpuSecond::power);
    late.peers = MedianOfMeans(peers, &windows::GpuSecond::power);
    if (!(late.own > late.peers)) return;
    late.evidence = Cite(gpu, peers, "power");
  }

  // Ranks by group: blocks of neighbours are stages of a pipeline, equal remainders are experts.
  struct Split {
    std::string_view kind;
    std::vector<std::vector<int32_t>> groups;
  };

  std::vector<Split> Splits() const {
    std::vector<int32_t> ranks;
    for (const auto& [number, rank] : series_->ranks()) ranks.push_back(number);
    const auto n = ranks.size();
    std::vector<Split> splits;
    for (const size_t parts : {size_t{2}, size_t{4}}) {
      if (n % parts != 0 || n / parts < 2) continue;
      Split stages{"stage", std::vector<std::vector<int32_t>>(parts)};
      Split experts{"expert", std::vector<std::vector<int32_t>>(parts)};
      for (size_t i = 0; i < n; ++i) {
        stages.groups[i / (n / parts)].push_back(ranks[i]);
        experts.groups[i % parts].push_back(ranks[i]);
      }
      splits.push_back(std::move(stages));
      splits.push_back(std::move(experts));
    }
    return splits;
  }

  // A rank that waits less than the median has a lead over the upper of the two middle waits, one
  // that waits more over the lower: between leads of the two halves stands the gap of those waits
  // once more than between their waits, and it is half of the gap between the middle leads.
  double MiddleGap() const {
    std::vector<double> leads;
    for (const auto& [number, rank] : series_->ranks()) leads.push_back(Whole(rank.Level(rounds_)));
    std::sort(leads.begin(), leads.end());
    const size_t half = leads.size() / 2;
    return leads.size() % 2 == 0 ? leads[half] - leads[half - 1] : 0;
  }

  void DescribeGroups() {
    constexpr double kAlike = 0.05, kApart = 4;
    for (Split& split : Splits()) {
      std::vector<double> middles;
      double spread = 0, moved = 0;
      for (const std::vector<int32_t>& group : split.groups) {
        std::vector<double> leads;
        for (const int32_t number : group) {
          const RankLead& rank = series_->ranks().at(number);
          leads.push_back(Whole(rank.Level(rounds_)));
          // What was learned first, where so many rounds are known: a design does not change.
          if (rank.noise > 0) moved = std::max(moved, std::abs(leads.back() - Whole(rank.learned)));
        }
        const auto [least, most] = std::minmax_element(leads.begin(), leads.end());
        spread = std::max(spread, *most - *least);
        middles.push_back(windows::Median(leads));
      }
      const auto [light, heavy] = std::minmax_element(middles.begin(), middles.end());
      const double apart = *heavy - *light - MiddleGap() / 2;
      if (spread > kAlike || moved > kAlike || apart < kApart * spread) continue;
      const double ratio = 1 / (1 - std::clamp(apart, 0.0, 0.9));
      if (ratio <= out_.groups.ratio) continue;
      Take(split, middles, static_cast<size_t>(heavy - middles.begin()),
           static_cast<size_t>(light - middles.begin()));
      out_.groups.ratio = ratio;
      out_.groups.spread = spread;
    }
    CiteGroups();
  }

  void Take(Split& split, const std::vector<double>& middles, size_t heavy, size_t light) {
    UnevenGroups& groups = out_.groups;
    groups.kind = split.kind;
    groups.groups = split.groups.size();
    groups.heavy = split.groups[heavy];
    // Groups as heavy as the heaviest belong to it.
    for (size_t i = 0; i < middles.size(); ++i) {
      if (i == heavy || middles[i] < middles[heavy] - (middles[heavy] - middles[light]) / 4)
        continue;
      groups.heavy.insert(groups.heavy.end(), split.groups[i].begin(), split.groups[i].end());
    }
    std::sort(groups.heavy.begin(), groups.heavy.end());
    const auto work = [this](const std::vector<int32_t>& ranks) {
      return watts_ ? MedianOfMeans(ranks, &windows::GpuSecond::power)
                    : MedianOf(ranks, &RunGpu::sm);
    };
    groups.heavy_sm = work(split.groups[heavy]);
    groups.light_sm = work(split.groups[light]);
    const double clock = MedianOf(split.groups[heavy], &RunGpu::clock);
    const double other = MedianOf(split.groups[light], &RunGpu::clock);
    constexpr double kAlike = 0.95;
    groups.clocks_alike = !(clock < kAlike * other);
    // Of power it must hold both ways: GPUs that are held down draw less than the others.
    if (watts_) groups.clocks_alike = clock >= kAlike * other && other >= kAlike * clock;
    groups.since = series_->begin();
    light_ = split.groups[light];
  }

  void CiteGroups() {
    UnevenGroups& groups = out_.groups;
    constexpr double kCited = 1.1;
    if (groups.kind.empty() || groups.ratio < kCited) return;
    const RunGpu* const gpu = GpuOf(groups.heavy.front());
    if (gpu == nullptr || !(watts_ || std::isfinite(gpu->sm))) return;
    groups.evidence = Cite(*gpu, light_, watts_ ? "power" : "sm");
  }

  const LeadSeries* series_;
  const LeadSeries& power_;
  const LeadSeries& calls_;
  const std::map<std::string, windows::GpuWindow>& windows_;
  double round_seconds_;
  Citer& citer_;
  JobFeatures& f_;
  LeadFeatures& out_;
  size_t rounds_ = 0;
  bool watts_ = false;  // by what GPUs draw
  std::vector<int32_t> light_;
};

}  // namespace

void DescribeLeads(const windows::JobWindow& job, const windows::AttemptWindow& window,
                   Citer& citer, JobFeatures& f) {
  Describer(job, window, citer, f).Run();
}

}  // namespace rankscope::features
