// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the sources "cuda" and "nccl" have in common: an object in the kernel, attached to a table's
// functions in every library that tracked processes use; once a second the numbers of each process,
// and what is rare at once. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bpf/events/calls.h"
#include "detectors/model/observation.h"
#include "exporter/probes/attach/probe_source.h"
#include "exporter/probes/calls/call_attacher.h"
#include "exporter/probes/calls/call_object.h"

namespace rankscope::probes {

class Calls : public ProbeSource {
 public:
  Calls(CallObjectKind kind, std::string name, std::span<const CallRow> functions,
        std::shared_ptr<collectors::ProcessTable> processes, std::shared_ptr<TrackedMap> tracked,
        bool force);
  ~Calls() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override;

 protected:
  // Says what has been counted of this process; `gone`: for the last time, if anything has.
  virtual void Report(const ProcessKey& process, int64_t now_ns, bool gone) = 0;
  virtual void OnCall(const ProcessKey& process, const rs_call& call) = 0;
  // It has ended, or the source stops: what is remembered of it goes.
  virtual void Forget(const ProcessKey& process) = 0;
  // Once a second, before the reports.
  virtual void OnSecond(int64_t /*now_ns*/) {}
  // The attacher has done something.
  virtual void OnAttached() {}
  // Why not everything is counted; empty = it is.
  virtual std::string Shortcoming() const { return {}; }

  // Whether it may make calls that no probe sees. It has no numbers then: what is counted of it
  // says nothing of what it does, and none is not known to be none.
  bool IsUnprobed(const ProcessKey& process) const;
  void TellSamples(const ProcessKey& process, std::vector<Sample> samples, const char* query);
  void TellEvent(Event event, int64_t time_ns);
  std::string FunctionName(uint32_t function) const;
  static exporter::ProbeUse UseOf(std::string probe, uint64_t runs, double cost_seconds,
                                  double duty_ratio);
  static bool ThreadLives(int32_t pid, uint32_t thread);

  CallObject* object() const { return object_.get(); }
  CallAttacher* attacher() const { return attacher_.get(); }
  exporter::EventLoop* loop() const { return loop_; }

 private:
  void OnTimer();
  void ReportAll(int64_t now_ns);
  void OnGone(const ProcessKey& process);
  bool IsOwner(const ProcessKey& process) const;
  std::string Reason() const;

  CallObjectKind kind_;
  std::span<const CallRow> functions_;
  std::shared_ptr<CallObject> object_;
  std::unique_ptr<CallAttacher> attacher_;
  exporter::EventLoop::TimerId timer_ = 0;
  int looks_ = 0;
  ProcessKey leaving_;  // whose last facts are being read
  int64_t lost_before_ = 0;
};

}  // namespace rankscope::probes
