// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/gpu_signature.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <variant>

#include "detectors/features/promql.h"
#include "detectors/windows/series/statistics.h"

namespace rankscope::features {
namespace {

using windows::GpuCount;
using windows::GpuSecond;
using windows::GpuWindow;

constexpr double kMinuteSeconds = 60;

double MedianBetween(const GpuWindow& gpu, Timestamp now, double from, float GpuSecond::*field) {
  std::vector<double> values;
  for (size_t i = 0; i < gpu.count(); ++i) {
    const GpuSecond& look = gpu.newest(i);
    const double age = (now - look.t).seconds();
    if (age >= from + kMinuteSeconds) break;
    if (age >= from && std::isfinite(look.*field)) values.push_back(look.*field);
  }
  return windows::Median(values);
}

// Of its SMs since it waits, of the looks that are still there.
double SpreadSince(const GpuWindow& gpu, Timestamp since) {
  double sum = 0, squares = 0;
  int32_t count = 0;
  for (size_t i = 0; i < gpu.count(); ++i) {
    const GpuSecond& look = gpu.newest(i);
    if (look.t < since) break;
    if (!std::isfinite(look.sm)) continue;
    sum += look.sm;
    squares += static_cast<double>(look.sm) * look.sm;
    ++count;
  }
  if (count < 2) return RunGpu::kNone;
  const double mean = sum / count;
  return std::sqrt(std::max(0.0, squares / count - mean * mean));
}

void Fill(const windows::JobWindow& job, const GpuWindow& window, Timestamp now, RunGpu& gpu) {
  constexpr size_t kMinutes = 5;
  gpu.engine_before = MedianBetween(window, now, kMinuteSeconds, &GpuSecond::engine);
  gpu.sm = MedianBetween(window, now, 0, &GpuSecond::sm);
  gpu.sm_before = MedianBetween(window, now, kMinuteSeconds, &GpuSecond::sm);
  gpu.calmest_engine = window.engine_minutes.Lowest(kMinutes);
  gpu.busiest_sm = window.sm_minutes.Highest(kMinutes);
  if (window.spins_since.ns == 0) return;
  gpu.spin_seconds = job.RunningSeconds(window.spins_since, now);
  gpu.spin_spread = SpreadSince(window, window.spins_since);
}

struct QueryRow {
  EvidenceKind kind;
  std::string_view what;  // empty = whatever it is
  std::string_view query;
};
#define UNCORRECTED "rankscope_gpu_ecc_errors_total{$,kind=\"uncorrected\",scope=\"volatile\"}"
#define REMAPPED "rankscope_gpu_row_remaps{$,cause=\"uncorrectable\"}"
// Seen to be slowed down while it worked.
#define SLOWED                                                                              \
  "avg_over_time((max(rankscope_gpu_throttle_active{$,reason=~\"hw_slowdown|sw_thermal|hw_" \
  "thermal|hw_power_brake\"}) and on() max(rankscope_gpu_engine_active_ratio{$}) >= 0.5)[1m:5s]"
// Not the job's: what of it the job's processes do not have.
#define OTHERS                                 \
  "sum(rankscope_gpu_memory_used_bytes{$}) - " \
  "(sum(rankscope_gpu_process_memory_used_bytes{$}) or vector(0))"
// Where between its low and its high level it is on average.
#define WORKED(series)                                                \
  "max((avg_over_time(" series ") - quantile_over_time(0.05, " series \
  ")) / (quantile_over_time(0.95, " series ") - quantile_over_time(0.05, " series ")))"
constexpr QueryRow kQueries[] = {
    {EvidenceKind::kGpuActivity, "",
     "quantile_over_time(0.5, rankscope_gpu_engine_active_ratio{$}[1m])"},
    {EvidenceKind::kGpuThrottle, "",
     "min(label_replace(" SLOWED "), \"minute\", \"now\", \"\", \"\") or label_replace(" SLOWED
     " offset 1m), \"minute\", \"before\", \"\", \"\"))"},
    {EvidenceKind::kGpuErrors, "ecc", "sum(" UNCORRECTED ") - @"},
    {EvidenceKind::kGpuErrors, "remap_failed", "rankscope_gpu_row_remap_failed{$} - @"},
    {EvidenceKind::kGpuErrors, "", REMAPPED " - @"},
    {EvidenceKind::kGpuLatent, "xid", "max(rankscope_gpu_xid_pending_action{$})"},
    {EvidenceKind::kGpuLatent, "remap_failed", "rankscope_gpu_row_remap_failed{$}"},
    {EvidenceKind::kGpuLatent, "remap_pending", "rankscope_gpu_row_remap_pending{$}"},
    {EvidenceKind::kGpuLatent, "remapped", REMAPPED},
    {EvidenceKind::kGpuLatent, "", "sum(" UNCORRECTED ")"},
    {EvidenceKind::kGpuForeign, "", OTHERS},
    {EvidenceKind::kGpuWaits, "spin",
     "quantile(0.5, quantile_over_time(0.5, rankscope_gpu_sm_active_ratio{$}[1m]))"},
    {EvidenceKind::kGpuWaits, "cold",
     "max(quantile_over_time(0.5, rankscope_gpu_engine_active_ratio{$}[1m]))"},
    {EvidenceKind::kGpuWaits, "work_sm", WORKED("rankscope_gpu_sm_active_ratio{$}[2m]")},
    {EvidenceKind::kGpuWaits, "work_power", WORKED("rankscope_gpu_power_watts{$}[2m]")},
    {EvidenceKind::kGpuWaits, "",
     "max(max_over_time(avg_over_time(rankscope_gpu_sm_active_ratio{$}[1m])[5m:1m]))"},
    {EvidenceKind::kGpuPeers, "engine",
     "quantile_over_time(0.5, rankscope_gpu_engine_active_ratio{$}[1m])"},
    {EvidenceKind::kGpuPeers, "engine_mean",
     "avg_over_time(rankscope_gpu_engine_active_ratio{$}[1m])"},
    {EvidenceKind::kGpuPeers, "power", "avg_over_time(rankscope_gpu_power_watts{$}[1m])"},
    {EvidenceKind::kGpuPeers, "", "quantile_over_time(0.5, rankscope_gpu_sm_active_ratio{$}[1m])"},
    {EvidenceKind::kGpuMemory, "", "max_over_time(rankscope_gpu_memory_used_bytes{$}[#])"},
    {EvidenceKind::kGpuClean, "", "sum(increase(" UNCORRECTED "[#]))"},
    {EvidenceKind::kGpuWork, "",
     "min(quantile_over_time(0.5, (rankscope_gpu_engine_active_ratio{$} >= 0.05)[2m:5s]))"},
    {EvidenceKind::kGpuLost, "", "% * (1 - avg_over_time(rankscope_gpu_up{$}[#]))"},
    {EvidenceKind::kGpuPowerLimit, "", "rankscope_gpu_power_limit_watts{$,kind=\"enforced\"}"},
    {EvidenceKind::kGpuClockLock, "",
     "quantile_over_time(0.5, rankscope_gpu_clock_hertz{$,domain=\"sm\"}[1m])"},
    {EvidenceKind::kGpuLink, "", "rankscope_gpu_pcie_link_width{$}"},
    {EvidenceKind::kGpuLinkErrors, "nvlink", "sum(rankscope_gpu_nvlink_errors_total{$}) - @"},
    {EvidenceKind::kGpuLinkErrors, "", "rankscope_gpu_pcie_replays_total{$} - @"},
    {EvidenceKind::kGpuCards, "", "sum(max_over_time(rankscope_job_gpu_attached{$}[#]))"},
    {EvidenceKind::kGpuUnused, "", "% * (1 - avg_over_time(rankscope_job_gpu_attached{$}[#]))"},
    {EvidenceKind::kGpuOutside, "", OTHERS},
};
#undef UNCORRECTED
#undef REMAPPED
#undef SLOWED
#undef OTHERS
#undef WORKED

// Of cards that a job may share with another, its series alone.
bool IsOfJob(EvidenceKind kind) {
  return kind == EvidenceKind::kGpuCards || kind == EvidenceKind::kGpuUnused;
}

class Describer {
 public:
  Describer(const windows::JobWindow& job, const std::vector<const GpuWindow*>& windows,
            Citer& citer, JobFeatures& f)
      : job_(job), windows_(windows), citer_(citer), f_(f), out_(f.gpu) {}

  void Run() {
    for (size_t i = 0; i < windows_.size(); ++i) Fill(job_, *windows_[i], f_.now, out_.gpus[i]);
    if (out_.gpus.empty()) return;
    DescribeWaiting();
    DescribeOdd(&RunGpu::sm, &RunGpu::sm_before, true, out_.busiest_sm);
    DescribeOdd(&RunGpu::engine, &RunGpu::engine_before, false, out_.calmest_engine);
    DescribeLevels();
    DescribeWorkingShare();
    DescribeMemory();
    DescribeCounters();
    DescribeWork();
  }

 private:
  Evidence Of(EvidenceKind kind, std::string_view what, double since_seconds,
              const std::vector<std::string>& uuids) const {
    Evidence evidence;
    evidence.kind = kind;
    evidence.store = proto::STORE_GPU;
    evidence.begin = f_.now - Seconds(since_seconds);
    evidence.end = f_.now;
    evidence.values = {{FieldId::kWhat, std::string(what)}};
    evidence.values.Set(FieldId::kQuery, GpuQuery(evidence, uuids, f_));
    return evidence;
  }

  std::vector<std::string> Uuids(const std::vector<int32_t>& ranks) const {
    std::vector<std::string> uuids;
    for (const RunGpu& gpu : out_.gpus) {
      const bool of = std::any_of(gpu.ranks.begin(), gpu.ranks.end(), [&ranks](int32_t rank) {
        return std::binary_search(ranks.begin(), ranks.end(), rank);
      });
      if (of) uuids.push_back(gpu.uuid);
    }
    return uuids;
  }

  static void Join(const std::vector<int32_t>& ranks, std::vector<int32_t>& into) {
    into.insert(into.end(), ranks.begin(), ranks.end());
    std::sort(into.begin(), into.end());
    into.erase(std::unique(into.begin(), into.end()), into.end());
  }

  void DescribeWaiting() {
    std::vector<double> levels;
    double cold_seconds = 0, cold_engine = 0;
    for (const RunGpu& gpu : out_.gpus) {
      if (gpu.spin_seconds >= kMinuteSeconds) {
        const bool first = out_.spinning_cards++ == 0;
        out_.spin_seconds =
            first ? gpu.spin_seconds : std::min(out_.spin_seconds, gpu.spin_seconds);
        if (std::isfinite(gpu.spin_spread))
          out_.spin_spread = first ? gpu.spin_spread : std::max(out_.spin_spread, gpu.spin_spread);
        levels.push_back(gpu.sm);
        Join(gpu.ranks, out_.spinning);
      } else if (gpu.idle_seconds >= kMinuteSeconds && std::isfinite(gpu.engine)) {
        const bool first = out_.cold_cards++ == 0;
        cold_seconds = first ? gpu.idle_seconds : std::min(cold_seconds, gpu.idle_seconds);
        cold_engine = std::max(cold_engine, gpu.engine);
        Join(gpu.ranks, out_.cold);
      }
    }
    out_.spin_sm = windows::Median(levels);
    if (out_.spinning_cards > 0) {
      Evidence evidence =
          Of(EvidenceKind::kGpuWaits, "spin", out_.spin_seconds, Uuids(out_.spinning));
      evidence.observed = out_.spin_sm;
      evidence.unit = "ratio";
      evidence.ranks = out_.spinning;
      evidence.times = static_cast<int64_t>(out_.spinning_cards);
      evidence.values.Set(FieldId::kSeconds, out_.spin_seconds);
      out_.spin_evidence = citer_.Add(std::move(evidence));
    }
    if (out_.cold_cards > 0) {
      Evidence evidence = Of(EvidenceKind::kGpuWaits, "cold", cold_seconds, Uuids(out_.cold));
      evidence.observed = cold_engine;
      evidence.unit = "ratio";
      evidence.ranks = out_.cold;
      evidence.times = static_cast<int64_t>(out_.cold_cards);
      evidence.values.Set(FieldId::kSeconds, cold_seconds);
      out_.cold_evidence = citer_.Add(std::move(evidence));
    }
  }

  double PeersOf(size_t at, double RunGpu::*field) const {
    std::vector<double> values;
    for (size_t i = 0; i < out_.gpus.size(); ++i) {
      if (i != at && std::isfinite(out_.gpus[i].*field)) values.push_back(out_.gpus[i].*field);
    }
    return windows::Median(values);
  }

  void DescribeOdd(double RunGpu::*now, double RunGpu::*before, bool highest, OddGpu& odd) {
    for (size_t i = 0; i < out_.gpus.size(); ++i) {
      const double value = out_.gpus[i].*now;
      if (!std::isfinite(value)) continue;
      const bool first = odd.at < 0;
      if (first || (highest ? value > odd.own : value < odd.own)) {
        odd.at = static_cast<int32_t>(i);
        odd.own = value;
      }
    }
    if (odd.at < 0) return;
    const auto at = static_cast<size_t>(odd.at);
    const RunGpu& gpu = out_.gpus[at];
    odd.peers = PeersOf(at, now);
    odd.own_before = gpu.*before;
    odd.peers_before = PeersOf(at, before);
    if (!std::isfinite(odd.peers)) {
      odd.at = -1;
      return;
    }
    Evidence evidence =
        Of(EvidenceKind::kGpuPeers, highest ? "sm" : "engine", 2 * kMinuteSeconds, {gpu.uuid});
    evidence.observed = odd.own;
    evidence.expected = odd.peers;
    evidence.unit = "ratio";
    evidence.ranks = gpu.ranks;
    evidence.values.Set(FieldId::kGpu, gpu.index)
        .Set(FieldId::kGpuUuid, gpu.uuid)
        .Set(FieldId::kPeers, static_cast<int64_t>(out_.gpus.size() - 1))
        .Set(FieldId::kEngine, gpu.engine)
        .Set(FieldId::kPeersEngine, PeersOf(at, &RunGpu::engine))
        .Set(FieldId::kClock, gpu.clock)
        .Set(FieldId::kPeersClock, PeersOf(at, &RunGpu::clock));
    odd.evidence = citer_.Add(std::move(evidence));
  }

  void DescribeLevels() {
    double engine = std::numeric_limits<double>::infinity(), sm = 0;
    std::vector<int32_t> ranks;
    for (const RunGpu& gpu : out_.gpus) {
      // One that does not tell leaves nothing to say of all.
      if (!std::isfinite(gpu.calmest_engine) || !std::isfinite(gpu.busiest_sm)) return;
      engine = std::min(engine, gpu.calmest_engine);
      sm = std::max(sm, gpu.busiest_sm);
      Join(gpu.ranks, ranks);
    }
    out_.engine_floor = engine;
    out_.sm_ceiling = sm;
    constexpr double kFiveMinutes = 300;
    Evidence evidence = Of(EvidenceKind::kGpuWaits, "level", kFiveMinutes, Uuids(ranks));
    evidence.observed = sm;
    evidence.unit = "ratio";
    evidence.ranks = std::move(ranks);
    evidence.times = static_cast<int64_t>(out_.gpus.size());
    evidence.values.Set(FieldId::kEngine, engine);
    out_.level_evidence = citer_.Add(std::move(evidence));
  }

  // How a number of a GPU was spread over the newest two minutes; low == high: nobody knows.
  struct Spread {
    double low = 0, high = 0, mean = 0;
  };

  Spread SpreadOf(const GpuWindow& gpu, float GpuSecond::*field) const {
    constexpr size_t kLooks = 60;
    std::vector<double> values;
    double sum = 0;
    for (size_t i = 0; i < gpu.count(); ++i) {
      const GpuSecond& look = gpu.newest(i);
      if ((f_.now - look.t).seconds() >= 2 * kMinuteSeconds) break;
      if (!std::isfinite(look.*field)) continue;
      values.push_back(static_cast<double>(look.*field));
      sum += values.back();
    }
    if (values.size() < kLooks) return {};
    std::sort(values.begin(), values.end());
    return {values[values.size() / 20], values[values.size() - 1 - values.size() / 20],
            sum / static_cast<double>(values.size())};
  }

  // Of a GPU that works and waits by turns, each for a second and more, what it waits with is its
  // low level and what it works with its high one: between them, its mean is the share of the time
  // in which it works. NaN: it has no two such levels, or the low one is no busy-wait's.
  struct Levels {
    double share = RunGpu::kNone;
    double apart = RunGpu::kNone;  // the low level as a part of the high one
  };

  Levels LevelsOf(const GpuWindow& gpu, bool watts) const {
    constexpr double kChannels = 0.27, kTensor = 0.02, kDram = 0.05;
    constexpr double kWaitingSm = 0.5, kWaitingWatts = 0.7;  // of the high level, at most
    const Spread spread = SpreadOf(gpu, watts ? &GpuSecond::power : &GpuSecond::sm);
    if (!(spread.low < (watts ? kWaitingWatts : kWaitingSm) * spread.high)) return {};
    if (!watts) {
      const double tensor = SpreadOf(gpu, &GpuSecond::tensor).low;
      const double dram = SpreadOf(gpu, &GpuSecond::dram).low;
      if (spread.low > kChannels || tensor >= kTensor || dram >= kDram) return {};
    }
    return {(spread.mean - spread.low) / (spread.high - spread.low), spread.low / spread.high};
  }

  // Of the GPU that works most.
  void DescribeWorkingShare() {
    const bool watts = std::none_of(out_.gpus.begin(), out_.gpus.end(),
                                    [](const RunGpu& gpu) { return std::isfinite(gpu.sm); });
    double most = 0, apart = 0, engine = std::numeric_limits<double>::infinity();
    std::vector<int32_t> ranks;
    for (size_t i = 0; i < windows_.size(); ++i) {
      const Levels levels = LevelsOf(*windows_[i], watts);
      if (!std::isfinite(levels.share) || !std::isfinite(out_.gpus[i].calmest_engine)) return;
      most = std::max(most, levels.share);
      apart = std::max(apart, levels.apart);
      engine = std::min(engine, out_.gpus[i].calmest_engine);
      Join(out_.gpus[i].ranks, ranks);
    }
    Evidence evidence = Of(EvidenceKind::kGpuWaits, watts ? "work_power" : "work_sm",
                           2 * kMinuteSeconds, Uuids(ranks));
    evidence.observed = most;
    evidence.unit = "ratio";
    evidence.ranks = std::move(ranks);
    evidence.times = static_cast<int64_t>(out_.gpus.size());
    evidence.values.Set(FieldId::kEngine, engine).Set(FieldId::kRatio, apart);
    citer_.Add(std::move(evidence));
  }

  void DescribeMemory() {
    GpuMemory& memory = out_.memory;
    const GpuWindow* fullest = nullptr;
    for (size_t i = 0; i < windows_.size(); ++i) {
      const GpuWindow& window = *windows_[i];
      if (window.memory.empty() || !(window.memory_total > 0)) continue;
      double peak = 0;
      for (const double value : window.memory.Peaks()) peak = std::fmax(peak, value);
      if (fullest != nullptr && peak / window.memory_total <= memory.peak / memory.total) continue;
      fullest = &window;
      memory.at = static_cast<int32_t>(i);
      memory.peak = peak;
      memory.total = window.memory_total;
    }
    if (fullest == nullptr) return;
    std::vector<double> peaks = fullest->memory.Peaks();
    std::erase_if(peaks, [](double value) { return !std::isfinite(value); });
    memory.first = peaks.front();
    // The model is loaded and the allocator's pool filled first: no leak.
    const std::vector<double> later(peaks.begin() + static_cast<ptrdiff_t>(peaks.size() / 4),
                                    peaks.end());
    memory.points = later.size();
    const std::vector<double> half(peaks.begin() + static_cast<ptrdiff_t>(peaks.size() / 2),
                                   peaks.end());
    memory.plateau = windows::Median(half);
    const windows::Trend trend = windows::MonotonicTrend(later);
    memory.rise_z = trend.z;
    memory.rise = trend.slope_per_index * static_cast<double>(later.size() - 1);
    for (size_t i = 1; i < later.size(); ++i)
      memory.largest_step = std::max(memory.largest_step, later[i] - later[i - 1]);
    const RunGpu& gpu = out_.gpus[static_cast<size_t>(memory.at)];
    Evidence evidence = Of(EvidenceKind::kGpuMemory, "curve",
                           (f_.now - fullest->memory.begin()).seconds(), {gpu.uuid});
    evidence.observed = memory.peak;
    evidence.expected = memory.total;
    evidence.unit = "By";
    evidence.ranks = gpu.ranks;
    evidence.values.Set(FieldId::kGpu, gpu.index).Set(FieldId::kFirst, memory.first);
    memory.evidence = citer_.Add(std::move(evidence));
  }

  void DescribeCounters() {
    std::vector<int32_t> ranks;
    for (size_t i = 0; i < windows_.size(); ++i) {
      const GpuWindow& window = *windows_[i];
      const windows::GpuRise& ecc = window.of(GpuCount::kEccUncorrected);
      if (!std::isfinite(ecc.first)) return;
      for (const GpuCount count :
           {GpuCount::kEccUncorrected, GpuCount::kRemapFailed, GpuCount::kRemapped}) {
        if (window.of(count).rose > 0) return;
      }
      Join(out_.gpus[i].ranks, ranks);
    }
    Evidence evidence =
        Of(EvidenceKind::kGpuClean, "clean", (f_.now - f_.begin).seconds(), Uuids(ranks));
    evidence.observed = 0;
    evidence.ranks = std::move(ranks);
    evidence.times = static_cast<int64_t>(windows_.size());
    out_.clean_evidence = citer_.Add(std::move(evidence));
  }

  void DescribeWork() {
    double engine = std::numeric_limits<double>::infinity(), sm = engine;
    std::vector<int32_t> ranks;
    for (size_t i = 0; i < windows_.size(); ++i) {
      if (!out_.gpus[i].worked) return;
      // While it worked at all: it may have ended since.
      std::vector<double> engines, sms;
      for (size_t look = 0; look < windows_[i]->count(); ++look) {
        const GpuSecond& second = windows_[i]->newest(look);
        constexpr float kWorks = 0.05F;
        if (!(second.engine >= kWorks)) continue;
        engines.push_back(second.engine);
        if (std::isfinite(second.sm)) sms.push_back(second.sm);
      }
      if (engines.empty()) return;
      engine = std::min(engine, windows::Median(engines));
      sm = sms.empty() ? RunGpu::kNone : std::fmin(sm, windows::Median(sms));
      Join(out_.gpus[i].ranks, ranks);
    }
    Evidence evidence = Of(EvidenceKind::kGpuWork, "work", 2 * kMinuteSeconds, Uuids(ranks));
    evidence.observed = engine;
    evidence.unit = "ratio";
    evidence.ranks = std::move(ranks);
    evidence.times = static_cast<int64_t>(windows_.size());
    evidence.values.Set(FieldId::kSm, sm);
    out_.work_evidence = citer_.Add(std::move(evidence));
  }

  const windows::JobWindow& job_;
  const std::vector<const GpuWindow*>& windows_;
  Citer& citer_;
  JobFeatures& f_;
  GpuFeatures& out_;
};

}  // namespace

std::string GpuQuery(const Evidence& evidence, const std::vector<std::string>& uuids,
                     const JobFeatures& f) {
  if (uuids.empty()) return {};
  std::string which;
  for (const std::string& uuid : uuids) which += (which.empty() ? "" : "|") + uuid;
  std::string matchers =
      std::string("gpu_uuid=") + (uuids.size() > 1 ? "~" : "") + "\"" + which + "\"";
  if (IsOfJob(evidence.kind)) matchers = "job_id=\"" + f.job_id + "\"," + matchers;
  const FieldValue* const before = evidence.values.Find(FieldId::kBefore);
  const double* const from = before == nullptr ? nullptr : std::get_if<double>(&before->value);
  for (const QueryRow& row : kQueries) {
    if (row.kind != evidence.kind) continue;
    if (!row.what.empty() && row.what != evidence.values.Text(FieldId::kWhat)) continue;
    return FillQuery(row.query, {.matchers = matchers,
                                 .seconds = (evidence.end - evidence.begin).seconds(),
                                 .from = from == nullptr ? 0 : *from});
  }
  return {};
}

void DescribeGpuSignature(const windows::JobWindow& job,
                          const std::vector<const GpuWindow*>& windows, Citer& citer,
                          JobFeatures& f) {
  Describer(job, windows, citer, f).Run();
}

}  // namespace rankscope::features
