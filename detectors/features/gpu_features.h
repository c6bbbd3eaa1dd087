// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of the GPUs that the job's processes compute on, for the families. Plain data; NaN where
// a card does not tell.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "detectors/features/evidence.h"
#include "detectors/model/time.h"

namespace rankscope::features {

// The looks of one minute at a card.
struct GpuMinute {
  int32_t looks = 0;
  int32_t busy = 0;          // its engine ran for half of the time or more
  double severe_duty = 0;    // of those, the share that heat or power supply held down
  uint32_t severe_bits = 0;  // which of them
  int32_t told = 0;          // looks that tell of reasons at all
  // Of the busy looks, too: the share that its power limit, or a clock that was set, held down.
  double capped_duty = 0, locked_duty = 0;
};

struct RunGpu {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  int32_t index = -1;
  std::string uuid, model;
  std::vector<int32_t> ranks;
  bool worked = false;      // its engine was busy under the run
  bool ran = false;         // anything at all, while it was looked at
  double idle_seconds = 0;  // since then, or since the first look
  double engine = kNone;    // medians of the newest minute
  double clock = kNone;     // while busy
  double temperature = kNone;
  double busiest_minute = kNone;  // of the newest five
  double best_clock = 0;          // that it has kept for ten busy seconds, nothing holding it down
  double peers_clock =
      kNone;              // median of the same while busy, of the run's other cards of its model
  GpuMinute now, before;  // the newest minute and the one before
  // Medians of those two minutes, and means over whole minutes, of the newest five.
  double engine_before = kNone;
  double sm = kNone, sm_before = kNone;
  double calmest_engine = kNone, busiest_sm = kNone;
  double spin_seconds = 0;     // for as long it has only waited inside something; 0 = it does not
  double spin_spread = kNone;  // of its SMs meanwhile, standard deviation
  double own_bytes = 0, foreign_bytes = 0;
  std::string foreign_name;  // of the largest process that is not the job's
  int32_t foreign_pid = 0;
  // Uncorrected memory errors and failed remaps under the run.
  double errors = 0;
  bool errors_counted = false;  // whether the card counts them at all
  Timestamp errors_risen;
  Timestamp looked;  // newest look
  // W; what it was before somebody lowered it; of the run's other GPUs of its model.
  double power_limit = kNone, power_before = kNone, peers_power = kNone;
  Timestamp power_since;
  bool lost = false;  // the driver says so, now
  Timestamp lost_since;
  std::string bus_id;
  EvidenceRef activity_evidence = kNoEvidence;
  EvidenceRef throttle_evidence = kNoEvidence;
  EvidenceRef errors_evidence = kNoEvidence;
  EvidenceRef latent_evidence = kNoEvidence;  // of damage that was there before the run
  EvidenceRef foreign_evidence = kNoEvidence;
  EvidenceRef lost_evidence = kNoEvidence;
  EvidenceRef power_limit_evidence = kNoEvidence;  // lower than before, than its peers', or usual
  EvidenceRef clock_lock_evidence = kNoEvidence;   // a clock that was set, below its peers'
  EvidenceRef link_evidence = kNoEvidence;         // to its host, slower than its peers'
  EvidenceRef link_errors_evidence = kNoEvidence;  // that go on
};

// One card against the median of the run's others, of the newest minute and of the one before.
struct OddGpu {
  int32_t at = -1;  // place in `gpus`; -1 = there is none, or it has no peers
  double own = RunGpu::kNone, peers = RunGpu::kNone;
  double own_before = RunGpu::kNone, peers_before = RunGpu::kNone;
  EvidenceRef evidence = kNoEvidence;
};

// Of the card of the run that is or was the fullest.
struct GpuMemory {
  int32_t at = -1;
  double total = RunGpu::kNone;
  double first = RunGpu::kNone;    // when the run began
  double plateau = RunGpu::kNone;  // median of the curve's newer half
  double peak = RunGpu::kNone;
  double rise_z = 0;        // Mann-Kendall of the peaks after the first quarter; > 0 rises
  double rise = 0;          // over them, in bytes, by Theil and Sen
  double largest_step = 0;  // of them, from one to the next
  size_t points = 0;
  EvidenceRef evidence = kNoEvidence;
};

// A card that is the job's by its environment, and on which no process of the job has computed
// since the attempt began.
struct UnusedGpu {
  int32_t index = -1;
  std::string uuid;
  std::string_view source;      // who says that it is the job's: slurm | container | uuid | ordinal
  std::vector<int32_t> ranks;   // that should use it, where anybody says
  bool told = false;            // it answers, and tells of its processes and its activity
  bool ran = false;             // anything at all
  double looked_seconds = 0;    // since the first look at it
  double used = RunGpu::kNone;  // bytes, now
  double rise = 0;              // of its memory, over the lowest that was ever seen
  double foreign_bytes = 0;     // of processes that are not the job's
  EvidenceRef evidence = kNoEvidence;
  EvidenceRef outside_evidence = kNoEvidence;  // of those processes
};

struct GpuFeatures {
  std::vector<RunGpu> gpus;  // by index of the driver

  // Which cards are the job's, used or not.
  size_t cards = 0;
  EvidenceRef cards_evidence = kNoEvidence;
  std::vector<UnusedGpu> unused;  // by index of the driver
  bool hidden = false;            // a rank is told to see no card
  bool divided = false;           // into instances, which look idle as cards do not
  bool interactive = false;       // a notebook, a shell, a server: it idles until somebody comes

  // Cards that only wait inside something, for at least `spin_seconds`, and cards that have run
  // nothing for a minute and more.
  std::vector<int32_t> spinning, cold;  // ranks that compute on them
  size_t spinning_cards = 0, cold_cards = 0;
  double spin_seconds = 0, spin_sm = RunGpu::kNone, spin_spread = RunGpu::kNone;
  EvidenceRef spin_evidence = kNoEvidence, cold_evidence = kNoEvidence;

  OddGpu busiest_sm;      // the card with the most active SMs
  OddGpu calmest_engine;  // the card whose engine runs least

  // The lowest engine activity and the highest of SMs of any card in any of the last five minutes.
  double engine_floor = RunGpu::kNone, sm_ceiling = RunGpu::kNone;
  EvidenceRef level_evidence = kNoEvidence;

  GpuMemory memory;
  // That no card has counted anything that would be a fault of its own; absent where one has, or
  // where cards do not count.
  EvidenceRef clean_evidence = kNoEvidence;
  // That every card has worked under the run.
  EvidenceRef work_evidence = kNoEvidence;

  bool known() const { return !gpus.empty(); }
};

}  // namespace rankscope::features
