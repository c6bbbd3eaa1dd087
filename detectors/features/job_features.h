// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a family may look at: a plain struct that a test builds by hand. No state, no time but
// `now`, no thresholds.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/features/cause.h"
#include "detectors/features/collective_features.h"
#include "detectors/features/evidence.h"
#include "detectors/features/fault_features.h"
#include "detectors/features/gpu_features.h"
#include "detectors/features/launch_features.h"
#include "detectors/features/lead_features.h"
#include "detectors/features/network_features.h"
#include "detectors/features/parent_features.h"
#include "detectors/features/report_features.h"
#include "detectors/features/scheduler_features.h"
#include "detectors/features/storage_features.h"
#include "detectors/features/wait_features.h"
#include "detectors/logs/record.h"
#include "detectors/model/ids.h"
#include "detectors/model/time.h"
#include "detectors/windows/incident_log.h"

namespace rankscope::features {

inline constexpr size_t kStores = proto::Store_ARRAYSIZE;

// What is seen from below the text may explain the end like an incident that somebody told of.
struct InferredIncident {
  std::shared_ptr<const windows::Candidate> candidate;
  EvidenceRef evidence = kNoEvidence;
};

struct LossFeatures {
  int64_t points = 0;  // records with a loss
  int64_t nonfinite = 0;
  int64_t trailing_nonfinite = 0;
  bool never_finite = false;  // not even the first record
  int64_t trailing_silent_nan = 0;
  // At the end, in a row: losses of exactly 0, and gradient norms that are not finite beside finite
  // losses; with the level of the losses before, and where it had settled.
  int64_t trailing_zeros = 0;
  double before_zeros = logs::kAbsent;
  int64_t trailing_bad_grads = 0;
  double at_bad_grads = logs::kAbsent;
  int64_t spikes = 0;
  std::vector<double> curve;      // finite, decimated evenly over the run
  int64_t stride = 1;             // records per point of the curve
  double start = logs::kAbsent;   // median of the first points
  double end = logs::kAbsent;     // median of the last points
  double lowest = logs::kAbsent;  // lowest median of a window
  double noise = 0;               // sigma around the trend
  double log_noise = 0;           // the same of the logarithm; 0 = some value is not positive
  int64_t start_points = 0;       // how many values each median speaks for
  int64_t end_points = 0;
  int64_t lowest_points = 0;
  double slope_per_point = 0;
  double trend_z = 0;       // Mann-Kendall over the whole curve
  double late_trend_z = 0;  // over the last third
  int64_t points_since_lowest = 0;
  double first = logs::kAbsent;              // of the first record
  double first_three = logs::kAbsent;        // median
  double last = logs::kAbsent;               // of the last record
  double highest = logs::kAbsent;            // of all records
  double peak_after_lowest = logs::kAbsent;  // highest median of a window behind the lowest one
  // The second largest of its rises that were followed by a fall to less than half of it, between
  // medians of a window, and the second longest: what this curve does and comes back from.
  double swing = 0;
  double log_swing = 0;
  int64_t points_of_swing = 0;
  int64_t points_above = 0;  // at the end, in a row, that are nearer to the end than to the lowest
  int64_t points_climbing = 0;  // at the end, in a row, above twice the median of the last points
  int64_t points_still = 0;     // at the end, in a row, within half a per cent of the last
  bool rate_sweep = false;      // the learning rate grows by a constant factor to the very end
  bool rate_climbs = false;     // the last learning rate is the highest yet
  int64_t trailing_zero_rates = 0;
  double highest_grad_norm = logs::kAbsent;
  double early_grad_norm = logs::kAbsent;
  double late_grad_norm = logs::kAbsent;
  double late_learning_rate = logs::kAbsent;
  double highest_learning_rate = logs::kAbsent;  // of the newest 64 that are printed
  EvidenceRef start_evidence = kNoEvidence;
  EvidenceRef end_evidence = kNoEvidence;
  EvidenceRef lowest_evidence = kNoEvidence;
  EvidenceRef nonfinite_evidence = kNoEvidence;
  EvidenceRef silent_nan_evidence = kNoEvidence;
  EvidenceRef zero_evidence = kNoEvidence;
  EvidenceRef bad_grad_evidence = kNoEvidence;
  EvidenceRef spike_evidence = kNoEvidence;
  EvidenceRef grad_norm_evidence = kNoEvidence;
  EvidenceRef learning_rate_evidence = kNoEvidence;
  EvidenceRef highest_evidence = kNoEvidence;
  EvidenceRef highest_grad_norm_evidence = kNoEvidence;
};

// How the run took its leave; kNoEvidence where it did not say.
struct LeaveFeatures {
  EvidenceRef save = kNoEvidence;
  EvidenceRef evaluation = kNoEvidence;
  EvidenceRef result = kNoEvidence;        // the newest metric among its last lines
  EvidenceRef train_result = kNoEvidence;  // and the newest that speaks of the training loss
  EvidenceRef done = kNoEvidence;
  EvidenceRef failure = kNoEvidence;  // what it says behind its last record, as an error
  EvidenceRef last_line = kNoEvidence;
};

// Was it meant to go on from a checkpoint, and did it?
struct ResumeFeatures {
  EvidenceRef flag_evidence = kNoEvidence;  // the command, or the submit line, asks for it
  bool flag_in_text = false;                // ... and only what is printed shows it
  bool fresh = false;                       // the command wants a checkpoint to begin anew from
  bool announced = false;                   // the program says that it resumes
  bool load_seen = false;                   // or that it reads a checkpoint, for whatever purpose
  EvidenceRef load_evidence = kNoEvidence;
  double loaded_step = logs::kAbsent;
  int64_t restarts = 0;           // by the scheduler or the launcher
  bool restarted = false;         // this attempt is a rerun of the one before, somebody says so
  bool looked_elsewhere = false;  // for a checkpoint that is not where this run saves
  std::string looked;             // for what, where it was not found
  bool weights_read = false;      // of whatever checkpoint, before it saved
  double loaded_epoch = logs::kAbsent;  // of a checkpoint whose epoch is said, and no step
  double first_step = logs::kAbsent;
  double interval = 1;  // steps between records
  double first_epoch = logs::kAbsent;
  double epoch_interval = logs::kAbsent;  // epochs between records
  bool counts_within_epochs = false;
  std::string partial;  // what was not restored: optimizer, scheduler, weights, rng, schedule
  EvidenceRef partial_evidence = kNoEvidence;
  // An attempt before this one that was not finished and had saved.
  bool earlier = false;
  double earlier_first_step = logs::kAbsent;
  double earlier_last_step = logs::kAbsent;
  double earlier_last_epoch = logs::kAbsent;
  double earlier_first_loss = logs::kAbsent;
  double earlier_last_loss = logs::kAbsent;
  double earlier_noise = 0;
  EvidenceRef earlier_save_evidence = kNoEvidence;
  EvidenceRef earlier_loss_evidence = kNoEvidence;
  ParentFeatures parent;
};

// What the optimizer says of its dynamic loss scale.
struct LossScaleFeatures {
  int64_t falls = 0;  // in a row, without a rise
  double value = logs::kAbsent;
  int64_t records_before = 0;  // training records before the first of them
  double step_before = logs::kAbsent;
  int64_t records_since = 0;  // and after the last
  EvidenceRef first_evidence = kNoEvidence;
  EvidenceRef last_evidence = kNoEvidence;
};

struct RewardFeatures {
  int64_t records = 0;
  int64_t trailing_flat = 0;  // records in a row, at the end, whose groups do not differ
  bool ever_differed = false;
  double first = logs::kAbsent;  // medians of ten
  double last = logs::kAbsent;
  double best = logs::kAbsent;
  int64_t kl_records = 0;
  double usual_kl = logs::kAbsent;
  bool kl_rose_early = false;
  double last_kl = logs::kAbsent;
  int64_t reward_records = 0;
  double best_median = logs::kAbsent;    // of ten records in a row
  double early_clipped = logs::kAbsent;  // share of completions at the length limit; medians of ten
  double late_clipped = logs::kAbsent;
  EvidenceRef clipped_evidence = kNoEvidence;
  EvidenceRef first_evidence = kNoEvidence;
  EvidenceRef last_evidence = kNoEvidence;
  EvidenceRef flat_evidence = kNoEvidence;
  EvidenceRef kl_evidence = kNoEvidence;
};

// The loss or reward that was printed most often outside of any training record, by its name.
struct MetricFeatures {
  int64_t values = 0;
  int64_t changes = 0;  // of one value to the next
  int64_t trailing_nonfinite = 0;
  double first = logs::kAbsent;
  double last = logs::kAbsent;
  EvidenceRef evidence = kNoEvidence;
  // Of a loss among them that is not finite any more: how often in a row, at its end.
  int64_t lost = 0;
  EvidenceRef lost_evidence = kNoEvidence;
};

// The throughput that the run should reach, and what it reaches: the median of its newest records.
struct TargetFeatures {
  double target = 0;  // 0 = none is set, or the run does not print what it is of
  double reached = logs::kAbsent;
  int64_t records = 0;  // past the warm-up
  EvidenceRef evidence = kNoEvidence;
  bool known() const { return target > 0; }
};

struct CompilerFeatures {
  bool open = false;        // begun and not ended, as far as the text says
  bool last_thing = false;  // and no training record since
  std::string what;         // "lock" where somebody else's is waited for
  double seconds = 0;       // since the newest word of it; meaningful only when timed
  EvidenceRef evidence = kNoEvidence;
};

struct RestartFeatures {
  int64_t count = 0;
  int64_t recent = 0;  // of them, in the half hour before the last end; all, where nothing is timed
  int64_t without_advance = 0;  // attempts at the end, in a row, that came no further
  int64_t advanced = 0;         // attempts at the end, in a row, each of which came further
  bool by_saves =
      false;  // of those that came no further some printed no steps: their checkpoints say
  double best_step = -1;
  EvidenceRef evidence = kNoEvidence;
};

// Whether all of the job stands still because somebody wants it to.
struct SuspensionFeatures {
  bool now = false;
  double seconds_ago = logs::kAbsent;       // 0 while it goes on
  double seconds = 0;                       // of the one that goes on
  double total_seconds = 0;                 // of all
  int64_t times = 0;                        // that are over
  EvidenceRef evidence = kNoEvidence;       // of the one that goes on
  EvidenceRef past_evidence = kNoEvidence;  // of those that are over
};

// Evidence that stands for itself: what is worth a warning, and what led up to an end of some kind.
struct Notice {
  EvidenceRef evidence = kNoEvidence;
  std::string_view warning;  // of the table of warnings; empty = it deserves none now
  std::optional<logs::IncidentKind> explains;
};

struct JobFeatures {
  // The run.
  std::string job_id;
  Timestamp now;
  Timestamp begin;
  bool running = true;
  bool ended = false;
  bool timed = false;  // observations carry arrival times that tell anything; false for text read
                       // from a file
  bool exit_known = false;  // of the whole command
  int32_t exit_code = 0;    // 128 + signal when killed
  int32_t exit_signal = 0;
  bool exec_failed = false;
  bool starts_training = false;  // its command is a launcher of ranks
  bool wrapper_lost = false;
  // How the command ended was not seen: nobody listened when it did.
  bool end_unseen = false;
  // Nobody listened after the newest training record, and what was printed then is not to be had.
  bool text_unseen = false;
  double unheard_seconds_ago = logs::kAbsent;  // since nobody listened last; NaN = never
  int32_t world_size = 0;                      // 0 = not known
  int64_t processes_seen = 0;
  int64_t processes_alive = 0;
  // Ranks that belong on this node and of which no process was ever seen, and how long ago the last
  // of the others began.
  std::vector<int32_t> missing_ranks;
  double missing_seconds = 0;
  EvidenceRef missing_evidence = kNoEvidence;
  std::vector<int32_t> rank_pids;  // as the process source knows them
  proto::Phase phase = proto::PHASE_INIT;
  std::array<Availability, kStores> stores{};
  EvidenceRef exit_evidence = kNoEvidence;
  // Of the job's command. The exit above is that of the step that trained, where a later step, or
  // the script around them, ended otherwise.
  bool command_exit_known = false;
  int32_t command_exit_code = 0;
  EvidenceRef command_exit_evidence = kNoEvidence;
  Timestamp training_over;  // what happened later is of what came after the training; 0 = not known
  Timestamp later_step_end;
  EvidenceRef later_step_evidence = kNoEvidence;  // of a step that failed after the training
  EvidenceRef oom_count_evidence = kNoEvidence;   // the kernel counted an OOM kill at the SIGKILL
  double unobserved_silence = 0;  // seconds of the silence before the job was observed
  // What its processes printed before anybody looked cannot be read back.
  bool beginning_unread = false;
  EvidenceRef lines_evidence = kNoEvidence;
  EvidenceRef alive_evidence = kNoEvidence;

  // Text.
  int64_t lines = 0;
  bool recognised = false;  // training records in a dialect that is not the generic fallback
  bool generic = false;     // training records, all from the generic fallback
  bool reward_objective = false;
  std::string framework;
  int64_t progress = 0;
  double steps = 0;  // steps done, by number where printed
  bool steps_known = false;
  logs::StepUnit step_unit = logs::StepUnit::kSteps;  // what the printed number counts
  double total_steps = logs::kAbsent;
  bool train_begin = false;
  bool train_end = false;
  EvidenceRef steps_evidence = kNoEvidence;
  EvidenceRef train_end_evidence = kNoEvidence;
  EvidenceRef train_begin_evidence = kNoEvidence;
  EvidenceRef last_progress_evidence = kNoEvidence;
  EvidenceRef rendezvous_begin_evidence = kNoEvidence;
  bool in_rendezvous = false;
  bool no_checkpoint = false;
  EvidenceRef no_checkpoint_evidence = kNoEvidence;
  LossFeatures loss;
  EvidenceRef first_progress_evidence = kNoEvidence;
  LeaveFeatures leave;
  ResumeFeatures resume;
  LossScaleFeatures loss_scale;
  RewardFeatures reward;
  MetricFeatures metric;
  TargetFeatures target;
  CompilerFeatures compiler;
  RestartFeatures restarts;

  // Time; meaningful only when `timed`. While it is suspended the job's time stands.
  SuspensionFeatures suspension;
  double silence_seconds = 0;  // since the last training record, up to now or the end
  double usual_record_seconds = logs::kAbsent;
  double p99_record_seconds = logs::kAbsent;
  double longest_record_seconds = 0;           // of all but the first few
  double step_seconds = logs::kAbsent;         // median of the newest
  double newest_step_seconds = logs::kAbsent;  // the same of fewer
  double max_step_seconds = logs::kAbsent;     // a step takes no longer, as far as the text tells
  double early_step_seconds = logs::kAbsent;   // median of the first after warm-up
  // How long a step takes; where none is timed, an epoch, or what else lies between two records
  // that are known to be equally far apart. The same three.
  double pace_seconds = logs::kAbsent;
  double newest_pace_seconds = logs::kAbsent;
  double early_pace_seconds = logs::kAbsent;
  double phase_seconds = 0;  // in the current phase
  double longest_save_seconds = 0;
  double longest_eval_seconds = 0;
  // The operator's knobs, for silence; the defaults are the product's.
  double hang_floor_seconds = 60;
  double rendezvous_suspect_seconds = 120;
  double rendezvous_fire_seconds = 300;
  EvidenceRef silence_evidence = kNoEvidence;
  EvidenceRef step_time_evidence = kNoEvidence;

  // From below the text.
  NetworkFeatures network;
  StorageFeatures storage;
  WaitFeatures waits;
  LaunchFeatures launches;
  CollectiveFeatures collectives;
  ReportFeatures reports;
  GpuFeatures gpu;
  SchedulerFeatures scheduler;
  LostWork lost;
  std::vector<NodeFault> faults;  // in order of their first lines
  std::vector<Notice> notices;

  std::vector<InferredIncident> inferred;

  // Incidents, the initiating ones first and in order of time and class.
  std::vector<Cause> causes;

  std::vector<Evidence> evidence;

  LeadFeatures leads;

  // The event that explains the end, if any.
  const Cause* Primary() const {
    return !causes.empty() && causes.front().role == Cause::Role::kInitiating ? &causes.front()
                                                                              : nullptr;
  }
  Availability store(proto::Store which) const { return stores[static_cast<size_t>(which)]; }
  const Evidence* At(EvidenceRef ref) const {
    return ref >= 0 && static_cast<size_t>(ref) < evidence.size()
               ? &evidence[static_cast<size_t>(ref)]
               : nullptr;
  }
};

}  // namespace rankscope::features
