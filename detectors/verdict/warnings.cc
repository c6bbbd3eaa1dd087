// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/verdict/warnings.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "detectors/families/curve.h"
#include "detectors/families/gpu.h"
#include "detectors/families/gpu_peers.h"
#include "detectors/families/standstill.h"
#include "detectors/sentences/evidence_text.h"
#include "detectors/sentences/render.h"
#include "detectors/verdict/hazards.h"
#include "detectors/verdict/schedule.h"
#include "detectors/windows/checkpoint_summary.h"
#include "detectors/windows/series/statistics.h"

namespace rankscope::engine {
namespace {

using features::Cause;
using features::Evidence;
using features::EvidenceRef;
using windows::CitedPoint;
using windows::Sighting;
using windows::TrainingTracker;

// Records in a row that make a number that stands still more than chance.
constexpr int64_t kInARow = 10;

const WarningRow& FindWarning(std::string_view kind) {
  for (const WarningRow& row : Warnings()) {
    if (row.kind == kind) return row;
  }
  return Warnings().back();
}

class Writer {
 public:
  Writer(const VerdictContext& context, EvidenceWriter& evidence, proto::Verdict& verdict)
      : job_(*context.job),
        f_(*context.features),
        training_(context.job->now().training),
        evidence_(evidence),
        verdict_(verdict) {}

  void Run() {
    AddLoss();
    AddGradients();
    AddScale();
    AddLearningRate();
    AddSpeed();
    if (families::Stalls(f_) && verdict_.triage().symptom() != "hang")
      Cited("progress_stalled", f_.silence_evidence);
    AddIterations();
    AddCheckpoints();
    AddSpace();
    AddTorn();
    if (!f_.ended) Cited("port_faults", f_.reports.port_evidence);
    AddCards();
    Cited("ranks_renumbered", f_.reports.renumbered_evidence);
    for (const features::Notice& notice : f_.notices) {
      if (!notice.warning.empty()) Cited(notice.warning, notice.evidence);
    }
    AddNode();
    AddUnusedCards();
    AddSurvived();
    AddRanks();
  }

 private:
  proto::Warning& Put(const WarningRow& row, std::string text, uint32_t evidence) {
    proto::Warning& warning = *verdict_.add_warnings();
    warning.set_kind(std::string(row.kind));
    warning.set_subject(std::string(row.subject));
    warning.set_severity(std::string(row.severity));
    warning.set_text(std::move(text));
    warning.set_remedy(std::string(row.remedy));
    warning.add_evidence(evidence);
    return warning;
  }

  // A warning whose evidence a family may cite as well.
  void Cited(std::string_view kind, EvidenceRef ref, const FieldValues& values = {}) {
    const Evidence* evidence = f_.At(ref);
    if (evidence == nullptr) return;
    const WarningRow& row = FindWarning(kind);
    Put(row, sentences::EvidenceText(*evidence) + sentences::Render(row.text, values),
        static_cast<uint32_t>(evidence_.Cite(ref)));
  }

  // What is wrong with a card and ends nothing. Of a large node some are enough.
  void AddCards() {
    constexpr size_t kMost = 4;
    constexpr double kDuty = 0.2;
    const bool told = verdict_.code() == "B2" || verdict_.code() == "B3";
    const bool slow = verdict_.code() == "B3" || verdict_.code() == "D3";
    if (verdict_.code() == "G1" || verdict_.code() == "U0")
      Cited("gpu_half_idle", families::HalfIdleCards(f_));
    for (size_t i = 0; i < f_.gpu.gpus.size() && i < kMost; ++i) {
      const features::RunGpu& gpu = f_.gpu.gpus[i];
      Cited("gpu_latent", gpu.latent_evidence);
      if (!f_.ended && !slow) AddSettings(gpu);
      if (!f_.ended) Cited("gpu_link_errors", gpu.link_errors_evidence);
      if (told || f_.ended) continue;
      Cited("gpu_errors", gpu.errors_evidence);
      if (gpu.now.severe_duty >= kDuty && gpu.before.severe_duty >= kDuty)
        Cited("gpu_throttled", gpu.throttle_evidence);
    }
  }

  // What makes a GPU slower than it could be, or than its peers.
  void AddSettings(const features::RunGpu& gpu) {
    Cited("gpu_power_limit", gpu.power_limit_evidence);
    Cited("gpu_clock_lock", gpu.clock_lock_evidence);
    Cited("gpu_link", gpu.link_evidence);
  }

  // What the kernel says of the node while the run goes on.
  void AddNode() {
    constexpr size_t kMost = 4;
    if (f_.ended) return;
    size_t told = 0;
    for (const features::NodeFault& fault : f_.faults) {
      if (fault.type == KernelEventType::kHungTask || fault.over || told >= kMost) continue;
      // A link that corrects its errors does so all day on many a node.
      if (fault.corrected) continue;
      ++told;
      Cited(fault.type == KernelEventType::kNetworkFile ? "file_server_silent" : "host_hardware",
            fault.evidence);
    }
  }

  // Cards that the job was given and leaves alone while it trains. What a process may see is not
  // yet what it was given.
  void AddUnusedCards() {
    constexpr size_t kMost = 4;
    constexpr double kSeconds = 600;
    if (f_.ended || f_.gpu.divided || f_.gpu.hidden) return;
    size_t said = 0;
    for (const features::UnusedGpu& gpu : f_.gpu.unused) {
      if (said >= kMost ||
          (gpu.source != "devices" && gpu.source != "slurm" && gpu.source != "container"))
        continue;
      const bool idle = gpu.told && !gpu.ran && gpu.looked_seconds >= kSeconds && f_.progress > 0;
      if (gpu.outside_evidence == features::kNoEvidence && !idle) continue;
      ++said;
      if (idle) Cited("gpu_unused", gpu.evidence);
      Cited("gpu_outside", gpu.outside_evidence);
    }
  }

  // A warning of the training's own numbers.
  void Say(std::string_view kind, const CitedPoint& point, double observed, double expected,
           FieldValues values, int64_t times = 1) {
    if (std::isfinite(point.step)) {
      values.Set(FieldId::kAtStep, point.step);
    } else {
      values.Set(FieldId::kRecord, int64_t{point.index + 1});
    }
    Evidence evidence;
    evidence.values = std::move(values);
    evidence.times = times;
    evidence.observed = observed;
    evidence.expected = expected;
    const auto stream = job_.streams().find(point.stream);
    if (stream != job_.streams().end()) evidence.stream = stream->second.name;
    evidence.offset = point.offset;
    evidence.line = point.line;
    evidence.begin = evidence.end = point.t;
    Say(kind, evidence);
  }

  void Say(std::string_view kind, const Sighting& sighting, FieldValues values = {}) {
    Say(kind, sighting.point, sighting.point.value, sighting.usual, std::move(values),
        sighting.times);
  }

  void Say(std::string_view kind, const Evidence& evidence) {
    const WarningRow& row = FindWarning(kind);
    std::string text = sentences::RenderWhole(row.text, evidence);
    if (text.empty()) return;
    const uint32_t number = evidence_.Add(evidence, row.signal, text);
    Put(row, std::move(text), number);
  }

  void AddLoss() {
    if (f_.loss.spikes > 0) {
      const CitedPoint& spike = job_.now().loss.last_spike();
      constexpr int64_t kTogether = 10;  // records: the gradient leads the loss by a few
      const int64_t high = training_.last_high_index();
      const bool together = high >= 0 && std::abs(high - spike.index) <= kTogether;
      Cited("loss_spike", f_.loss.spike_evidence, {{FieldId::kTogether, together ? "yes" : ""}});
    }
    if (f_.loss.nonfinite > 0 && f_.loss.trailing_nonfinite == 0)
      Cited("loss_nonfinite_recovered", f_.loss.nonfinite_evidence);
    if (verdict_.code() != "E1" && families::HasNotMoved(f_)) {
      Cited("loss_flat", f_.loss.end_evidence,
            {{FieldId::kLossStart, f_.loss.start}, {FieldId::kPoints, f_.loss.points}});
    }
  }

  void AddGradients() {
    if (training_.grad_norm_high().seen()) Say("grad_norm_spike", training_.grad_norm_high());
    constexpr int64_t kZeroNorms = 5;
    // Stacks that do not compute the norm print 0 from the first record on, and learn all the same.
    const Sighting& zero = training_.grad_norm_zero();
    const bool computed = std::isfinite(zero.usual);
    if (zero.times >= kZeroNorms && (computed || !LossMoved())) Say("grad_norm_zero", zero);
    const Sighting& zeros = training_.gradient_zeros();
    if (const double of = Parameters(); zeros.point.present() && of > 0) {
      const double share = zeros.point.value / of;
      if (share > 0.5 && share <= 1)
        Say("gradient_zeros_share", zeros, {{FieldId::kOf, of}, {FieldId::kShare, share}});
    } else if (zeros.times >= kInARow) {
      Say("gradient_zeros", zeros);
    }
  }

  bool LossMoved() const {
    const features::LossFeatures& loss = f_.loss;
    return loss.points >= 10 && std::abs(loss.end - loss.start) > 3 * loss.noise;
  }

  // What the program printed of its own settings; empty where it did not.
  std::string_view Fact(std::string_view name) const {
    for (const windows::Surrounding& fact : job_.surroundings().all()) {
      if (!fact.variable && fact.name == name) return fact.value;
    }
    return {};
  }

  // How many parameters the model has, where a library said so. Of a model in parts each part is
  // printed by itself, and their sum is not known.
  double Parameters() const {
    for (const std::string_view parts :
         {Fact("tensor_model_parallel_size"), Fact("pipeline_model_parallel_size")}) {
      if (!parts.empty() && parts != "1") return 0;
    }
    if (Fact("tensor_model_parallel_size").empty()) return 0;
    return std::atof(std::string(Fact("parameters")).c_str());
  }

  void AddScale() {
    constexpr int64_t kHalvings = 3;
    if (training_.scale_falls().times >= kHalvings)
      Say("loss_scale_falling", training_.scale_falls());
  }

  void AddLearningRate() {
    const windows::LearningRateTracker& rate = training_.learning_rate();
    if (rate.zero().times >= kInARow) Say("learning_rate_zero", rate.zero());
    if (rate.jump().seen()) Say("learning_rate_jump", rate.jump());
    if (rate.restart().seen()) Say("learning_rate_restart", rate.restart());
    if (rate.zero().times > 0) return;
    const auto off = LeavesItsSchedule(job_.argv(), job_.now().clock.total_steps(), rate);
    if (!off) return;
    FieldValues values;
    if (off->warm_up > 0) values.Set(FieldId::kWarmUpSteps, off->warm_up);
    if (!off->style.empty()) values.Set(FieldId::kStyle, std::string(off->style));
    if (off->decay > 0) values.Set(FieldId::kDecaySteps, off->decay);
    Say("learning_rate_schedule", rate.newest(), rate.last(), off->expected, std::move(values));
  }

  void AddSpeed() {
    constexpr int64_t kSpikes = 3;
    const Sighting& slow = training_.slow_steps();
    if (slow.times >= kSpikes)
      Say("step_time_spikes", slow,
          {{FieldId::kOf, static_cast<int64_t>(training_.timed_steps())}});
    AddThroughput();
  }

  // Two medians, and hardly a value of the newest within what it was at first.
  void AddThroughput() {
    constexpr int64_t kLeast = 80;
    constexpr double kDrop = 0.2;
    if (training_.throughput_records() < kLeast) return;
    const std::vector<double>& early = training_.early_throughput();
    const std::vector<double> late = training_.late_throughput();
    const double before = windows::Median(early), now = windows::Median(late);
    if (!(now < (1 - kDrop) * before)) return;
    if (windows::Quantile(late, 0.9) > windows::Quantile(early, 0.1)) return;
    constexpr const char* kNames[] = {"", "tokens", "samples", "tflops", "mfu"};
    Say("throughput_drop", job_.now().last_progress, now, before,
        {{FieldId::kMeasure, kNames[static_cast<size_t>(training_.throughput_measure())]},
         {FieldId::kShare, 1 - now / before}});
  }

  void AddIterations() {
    constexpr int64_t kLeast = 5;
    constexpr double kShare = 0.05;
    const Sighting& skipped = training_.skipped();
    const double of = training_.skippable();
    if (const auto times = static_cast<double>(skipped.times);
        skipped.times >= kLeast && times > kShare * of) {
      Say("iterations_skipped", skipped, {{FieldId::kOf, of}, {FieldId::kShare, times / of}});
    }
    if (training_.nan_iterations().seen()) Say("iterations_nan", training_.nan_iterations());
  }

  void AddCheckpoints() {
    const windows::SaveTracker& saves = training_.saves();
    constexpr double kIntervals = 3;
    const double since = training_.last_step() - saves.last().value;
    if (const double interval = saves.Interval(); !f_.train_end && since > kIntervals * interval) {
      Say("checkpoint_overdue", saves.last(), since, interval,
          {{FieldId::kSavedStep, saves.last().value}});
    }
    const windows::MarkerSeen& failed = job_.now().marker(logs::MarkerKind::kSaveFailed);
    if (failed.count > 0) {
      CitedPoint point;
      point.stream = failed.stream;
      point.offset = failed.offset;
      point.t = failed.last;
      point.line = failed.line;
      Say("checkpoint_save_failed", point, static_cast<double>(failed.count), logs::kAbsent,
          {{FieldId::kLine, failed.line}});
    }
  }

  // What calls into CUDA show beside the answer.
  void AddRanks() {
    const features::LaunchFeatures& l = f_.launches;
    constexpr double kLate = 1.05, kLead = 0.05;
    constexpr double kLeastZ = 3;
    constexpr double kIdentity = 0.6;
    constexpr int32_t kPieces = 6;
    const bool late = l.slow_pieces >= kPieces && l.slow_ratio >= kLate && l.slow_z >= kLeastZ &&
                      l.slow_identity >= kIdentity;
    const features::LateRank& last = f_.leads.late;
    if (verdict_.code() == "D3") {
      // The rank is named already.
    } else if (families::StandsOut(f_, last.changed ? windows::LeadSeries::kNotable : kLead)) {
      Cited("rank_late", last.evidence, {{FieldId::kShare, last.lead}});
    } else if (late) {
      Cited("rank_late", l.slow_evidence, {{FieldId::kShare, 1 - 1 / l.slow_ratio}});
    }
    if (l.allocation_failures > 0 && l.launches_since_failure > 0 && verdict_.code() != "B1")
      Cited("allocation_refused", l.allocation_evidence);
  }

  // A new checkpoint is written beside the old ones before any of them is deleted.
  void AddSpace() {
    const windows::CheckpointTracker& tracker = job_.now().kernel.checkpoints;
    const windows::CheckpointSummary summary = windows::SummarizeCheckpoints(job_, f_.now);
    if (f_.ended || f_.train_end || !std::isfinite(summary.free_bytes)) return;
    constexpr double kIntervals = 2;
    const bool apart = tracker.saves() >= 2 && tracker.newest().name != tracker.before().name;
    Evidence evidence;
    if (std::isfinite(summary.bytes) && apart && summary.free_bytes < summary.bytes) {
      evidence.expected = summary.bytes;
    } else if (std::isfinite(summary.full_in_seconds) &&
               summary.full_in_seconds < kIntervals * summary.interval_seconds) {
      evidence.expected = tracker.LossPerInterval();
      evidence.values.Set(FieldId::kSeconds, summary.interval_seconds);
    } else {
      return;
    }
    evidence.store = proto::STORE_HOST;
    evidence.observed = summary.free_bytes;
    evidence.unit = "By";
    evidence.begin = evidence.end = f_.now;
    evidence.values.Set(FieldId::kQuery,
                        "rankscope_checkpoint_free_bytes{job_id=\"" + job_.job_id() + "\"}");
    Say("checkpoint_space", evidence);
  }

  // A file that is still open may yet be finished; one whose writer has ended may not.
  void AddTorn() {
    const windows::TornFile& torn = job_.now().kernel.checkpoints.torn();
    if (!torn.present()) return;
    Evidence evidence;
    evidence.store = proto::STORE_KERNEL;
    evidence.observed = static_cast<double>(torn.bytes);
    evidence.unit = "By";
    if (torn.rank >= 0) evidence.ranks = {torn.rank};
    evidence.begin = evidence.end = torn.t;
    evidence.line = torn.name;
    evidence.values = {{FieldId::kShape, "checkpoint_written"},
                       {FieldId::kName, torn.name},
                       {FieldId::kBytes, static_cast<int64_t>(torn.bytes)}};
    Say("checkpoint_torn", evidence);
  }

  void AddSurvived() {
    constexpr size_t kMost = 5;
    size_t said = 0;
    for (const auto& [role, kind] : {std::pair{Cause::Role::kRecovered, "error_survived"},
                                     std::pair{Cause::Role::kTeardown, "error_at_exit"}}) {
      for (const Cause& cause : f_.causes) {
        if (cause.role != role || said == kMost) continue;
        ++said;
        Cited(kind, cause.evidence);
      }
    }
    if (f_.no_checkpoint) Cited("started_from_scratch", f_.no_checkpoint_evidence);
  }

  const windows::JobWindow& job_;
  const features::JobFeatures& f_;
  const TrainingTracker& training_;
  EvidenceWriter& evidence_;
  proto::Verdict& verdict_;
};

}  // namespace

void AddWarnings(const VerdictContext& context, EvidenceWriter& writer, proto::Verdict& verdict) {
  Writer(context, writer, verdict).Run();
  AddHazards(context, writer, verdict);
}

}  // namespace rankscope::engine
