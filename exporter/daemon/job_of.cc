// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/job_of.h"

namespace rankscope::exporter {
namespace {

struct Visitor {
  attribution::Attribution& attribution;
  const std::string& boot_id;
  Timestamp t;

  std::string OfProcess(const ProcessKey& key) const {
    const attribution::ProcessInfo* info = attribution.Find(key);
    return info == nullptr ? std::string() : info->job_id;
  }
  std::string operator()(const ProcessStart& start) const {
    const attribution::ProcessInfo* info = attribution.OnStart(start, boot_id, t);
    return info == nullptr ? std::string() : info->job_id;
  }
  std::string operator()(const ProcessExit& exit) const {
    const attribution::ProcessInfo* info = attribution.OnExit(exit, t);
    return info == nullptr ? std::string() : info->job_id;
  }
  std::string operator()(const RunMark& mark) const {
    if (mark.what == RunMark::What::kBegin) attribution.OnRunBegin(mark, t);
    if (mark.what == RunMark::What::kDisowned) attribution.ForgetJob(mark.job_id);
    return mark.job_id;
  }
  std::string operator()(const LogLine& line) const { return line.job_id; }
  std::string operator()(const SchedulerFact& fact) const { return fact.job_id; }
  std::string operator()(const SchedulerRecord& record) const { return record.job_id; }
  std::string operator()(const SignalSent& sent) const { return OfProcess(sent.target); }
  std::string operator()(const KernelEvent& event) const { return OfProcess(event.victim); }
  std::string operator()(const Event& event) const {
    if (attribution::Computes(event)) attribution.OnComputes(event.process);
    return event.rank.job_id.empty() ? OfProcess(event.process) : event.rank.job_id;
  }
  std::string operator()(const SampleBatch& batch) const {
    switch (batch.subject.kind) {
      case Subject::Kind::kRank:
        return batch.subject.rank.job_id;
      case Subject::Kind::kProcess:
        if (attribution::Computes(batch)) attribution.OnComputes(batch.subject.process);
        return OfProcess(batch.subject.process);
      case Subject::Kind::kJob:
        return batch.subject.name;
      default:
        return {};
    }
  }
  std::string operator()(const std::monostate&) const { return {}; }
  std::string operator()(const Epoch&) const { return {}; }
  std::string operator()(const Tick&) const { return {}; }
  std::string operator()(const SourceState&) const { return {}; }
  std::string operator()(const EngineState&) const { return {}; }
};

}  // namespace

std::string JobOf(const Observation& observation, attribution::Attribution& attribution,
                  const std::string& boot_id) {
  return std::visit(Visitor{attribution, boot_id, observation.t}, observation.kind);
}

}  // namespace rankscope::exporter
