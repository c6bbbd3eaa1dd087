// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: the GPUs of its node, who computes on them, what they did in the last minutes,
// and by how much each counter of trouble has risen since the attempt began. A number that was
// there before the run is a fact about the card; one that rises under it is a fact about the run.
// Bounded: kMaxGpus of about 8 KiB. Single writer.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/windows/series/minute_means.h"
#include "detectors/windows/series/peak_curve.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

// One look at a card. NaN: it does not tell.
struct GpuSecond {
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  Timestamp t;
  float engine = kNone;  // of the time since the look before, in which anything ran
  float sm = kNone;
  float tensor = kNone;
  float dram = kNone;
  float sm_clock = kNone;  // Hz
  float power = kNone;     // W
  float temperature = kNone;
  float memory_used = kNone;
  float throttle = kNone;  // bits as the driver gives them

  template <class A>
  void Fields(A& a) {
    a(t, engine, sm, tensor, dram, sm_clock, power, temperature, memory_used, throttle);
  }
};

// A counter since the attempt began. A smaller value is a card that was reset: what it counted
// before stays counted.
struct GpuRise {
  double first = std::numeric_limits<double>::quiet_NaN();
  double last = std::numeric_limits<double>::quiet_NaN();
  double rose = 0;
  Timestamp risen;  // when last

  void Add(double value, Timestamp t);
  template <class A>
  void Fields(A& a) {
    a(first, last, rose, risen);
  }
};

struct GpuHolder {
  int32_t rank = -1;  // of this job; -1 = somebody else's process
  bool own = false;   // of this job, a rank or a process of one
  double bytes = 0;
  std::string name;

  template <class A>
  void Fields(A& a) {
    a(rank, own, bytes, name);
  }
};

enum class GpuCount : uint8_t {
  kEccUncorrected,
  kEccCorrected,
  kRemapPending,
  kRemapFailed,
  kRemapped,  // rows, for errors that could not be corrected
  kNvlinkErrors,
  kPcieReplays,
};
inline constexpr size_t kGpuCounts = 7;

// The power that a GPU may draw, in W.
struct GpuPowerLimit {
  double now = std::numeric_limits<double>::quiet_NaN();
  double highest = std::numeric_limits<double>::quiet_NaN();  // since the attempt began
  Timestamp since;                                            // that it is what it is now

  void Set(double watts, Timestamp t);
  template <class A>
  void Fields(A& a) {
    a(now, highest, since);
  }
};

struct GpuWindow {
  static constexpr size_t kSeconds = 128;

  std::string uuid;
  std::string bus_id;  // domain:bus:device, lower case
  std::string model;
  std::string state;  // up | unresponsive | lost | denied | failed; empty = not told
  Timestamp state_since;
  int32_t xid = 0;  // the newest that asks for something that was not done since; 0 = none
  Timestamp xid_since;
  int32_t index = -1;
  int32_t minor = -1;           // of its device node; -1 = not told
  bool processes_told = false;  // the driver tells who computes on it
  bool mig = false;             // divided into instances
  double memory_total = GpuSecond::kNone;
  GpuPowerLimit power_limit;
  int32_t lanes = 0, lanes_max = 0;  // of its PCIe link: in use, and built in; 0 = not told
  std::map<ProcessKey, GpuHolder> holders;
  Timestamp foreign_until;     // a process that is not the job's was on it; 0 = never
  bool held = false;           // a process of the job has computed on it
  std::vector<int32_t> ranks;  // that have, rising
  bool worked = false;         // under the job: its engine was busy
  Timestamp first;             // look
  Timestamp active;            // the newest look that found anything running; 0 = none
  MinuteMeans engine_minutes, sm_minutes;
  MinuteMeans throttled_minutes;  // share of the looks at which heat or power supply held it down
  PeakCurve memory;               // used, whoever holds it, since the first look
  Timestamp spins_since;          // each look since then was a busy-wait's; 0 = the newest was not
  // The highest mean over ten busy seconds that were not throttled; 0 = there was none.
  double best_clock = 0;
  double clock_sum = 0;
  int32_t clock_count = 0;
  std::array<GpuRise, kGpuCounts> counts;
  uint32_t written = 0;
  std::array<GpuSecond, kSeconds> seconds{};

  size_t count() const { return written < kSeconds ? written : kSeconds; }
  // Newest first: i < count().
  const GpuSecond& newest(size_t i) const { return seconds[(written - 1 - i) % kSeconds]; }
  const GpuRise& of(GpuCount which) const { return counts[static_cast<size_t>(which)]; }
  // Held by processes that are none of the job's.
  double ForeignBytes() const;
  // The same, now or a moment ago: a process whose error the driver tells of may be gone by then.
  bool IsShared(Timestamp now) const {
    constexpr Duration kMoment = Seconds(30);
    return foreign_until.ns != 0 && now - foreign_until <= kMoment;
  }

  template <class A>
  void Fields(A& a) {
    a(uuid, bus_id, model, state, state_since, xid, xid_since, index, minor, processes_told, mig,
      memory_total, power_limit, lanes, lanes_max, holders, foreign_until, held, ranks, worked,
      first, active, engine_minutes, sm_minutes, throttled_minutes, memory, spins_since, best_clock,
      clock_sum, clock_count, counts, written, seconds);
  }
};

class GpuTracker {
 public:
  static constexpr size_t kMaxGpus = 4096;    // a node has 16 at most, a recording those of all
  static constexpr size_t kMaxHolders = 128;  // of one card
  static constexpr size_t kMaxRanks = 64;
  static constexpr size_t kNameCap = 64;

  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  void OnSamples(const SampleBatch& batch, Timestamp t);
  void OnProcessExit(const ProcessKey& process);

  // The node's cards are those of the attempt before.
  void KeepCards(const GpuTracker& before);

  const std::map<std::string, GpuWindow>& gpus() const { return gpus_; }  // by uuid
  // The card of this bus, if a process of the job computes on it or has; null otherwise.
  const GpuWindow* HeldAt(std::string_view bus_id) const;

  template <class A>
  void Fields(A& a) {
    a(gpus_);
    while (gpus_.size() > kMaxGpus) gpus_.erase(gpus_.begin());  // restored from damaged bytes
  }

 private:
  GpuWindow* FindOrAdd(std::string_view uuid);
  void OnIdentity(const Event& event, GpuWindow& gpu, Timestamp t);
  static void OnHolder(const Event& event, const Speaker& speaker, GpuWindow& gpu, Timestamp t);

  std::map<std::string, GpuWindow> gpus_;
};

}  // namespace rankscope::windows
