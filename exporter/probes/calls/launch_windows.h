// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Puts launch probes on and off as the governor decides, and looks at the returns of launches now
// and then.
//
//     all the time     measured each second; a window of timed returns every ten seconds
//     part of it       each second: on -> measure -> off -> decide
//     timed calls      on; where they cost too much off, and looked at again every half minute
//
// Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "bpf/events/calls.h"
#include "exporter/loop/event_loop.h"
#include "exporter/probes/attach/governor.h"
#include "exporter/probes/calls/call_attacher.h"
#include "exporter/probes/calls/cuda_numbers.h"

namespace rankscope::probes {

// How often the probes of one process have run.
struct ProbeRuns {
  uint64_t driver = 0;
  uint64_t runtime = 0;
  uint64_t below = 0;
  uint64_t returns = 0;
  uint64_t calls = 0;
  uint64_t stepped_calls = 0;
};
ProbeRuns RunsOf(const rs_cuda_counts& counts);
using CallerRuns = std::map<uint32_t, ProbeRuns>;  // by pid

// The rates of whichever process the probes cost most. Pure.
ProbeRates BusiestRates(const ProbeCosts& costs, const CallerRuns& before, const CallerRuns& after,
                        double seconds);

// What each probe costs where these are placed: the dearest site counts. Pure.
ProbeCosts CostsOf(const SiteCosts& sites, const std::set<PlacedProbe>& placed);

class LaunchWindows {
 public:
  LaunchWindows(exporter::EventLoop& loop, CallAttacher& attacher, double budget,
                std::function<CallerRuns()> read);
  ~LaunchWindows();

  void OnSecond(int64_t now_ns);
  void OnAttached(int64_t now_ns);

  const LaunchWatch& watch() const { return watch_; }
  const LaunchPlan& plan() const { return plan_; }
  ProbeCosts costs() const;
  // Of the time, in which the returns of launches are timed.
  double returns_share() const;

 private:
  void Begin(int64_t now_ns);
  void Decide(int64_t now_ns);
  void Open();
  void Close();
  void TimeReturns(int64_t now_ns);
  void Want(bool launches, bool returns);

  exporter::EventLoop& loop_;
  CallAttacher& attacher_;
  double budget_;
  std::function<CallerRuns()> read_;
  LaunchPlan plan_;
  LaunchWatch watch_;
  CallerRuns before_;       // at the beginning of what is measured
  int64_t before_ns_ = 0;   // 0: nothing is being measured
  bool open_ = true;        // the probes are on, or will be
  int64_t timed_ns_ = 0;    // when returns were last timed
  int64_t untimed_ns_ = 0;  // since when not all calls are timed; 0: they are
  double driver_rate_ = 0;  // launch probes a second, of the busiest process
  exporter::EventLoop::TimerId timer_ = 0;
};

}  // namespace rankscope::probes
