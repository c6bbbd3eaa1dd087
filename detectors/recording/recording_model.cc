// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/recording/recording_model.h"

#include <algorithm>

namespace rankscope::recording {

namespace {

// Enumerations are open on the wire: a number of a later build reads as unspecified.
template <typename E>
E ToEnum(int value, E last) {
  return value >= 0 && value <= static_cast<int>(last) ? static_cast<E>(value) : E{};
}

ProcessKey ToModel(const proto::ProcessKey& key) {
  return {key.pid(), key.start_ticks()};
}
RankKey ToModel(const proto::RankKey& key) {
  return {key.job_id(), key.rank()};
}
KeyValue ToModel(const proto::KeyValue& pair) {
  return {pair.key(), pair.value()};
}

Epoch ToModel(const proto::Epoch& from) {
  return {from.wall_offset_ns(), from.uncertainty_ns(), from.boot_id(), {from.away_since_ns()}};
}

SourceState ToModel(const proto::SourceState& from) {
  return {from.source(),     from.name(), ToEnum(from.state(), Availability::kNotApplicable),
          from.reason(),     from.lost(), Duration{from.interval_ns()},
          from.lost_untold()};
}

RunMark ToModel(const proto::RunMark& from) {
  RunMark mark;
  mark.job_id = from.job_id();
  mark.what = ToEnum(from.what(), RunMark::What::kDisowned);
  mark.argv.assign(from.argv().begin(), from.argv().end());
  mark.wait_status = from.wait_status();
  mark.status_known = from.status_known();
  mark.error = from.error();
  mark.cwd = from.cwd();
  mark.log = from.log();
  mark.root = ToModel(from.root());
  mark.world_size = from.world_size();
  mark.slurm_restart = from.slurm_restart();
  if (from.has_uid()) mark.uid = from.uid();
  mark.from_folder = from.from_folder();
  return mark;
}

ProcessStart ToModel(const proto::ProcessStart& from) {
  ProcessStart start;
  start.key = ToModel(from.key());
  start.parent = ToModel(from.parent());
  start.uid = from.uid();
  start.comm = from.comm();
  start.argv.assign(from.argv().begin(), from.argv().end());
  for (const auto& pair : from.env()) start.env.push_back(ToModel(pair));
  start.cgroup = from.cgroup();
  start.ns_pids.assign(from.ns_pids().begin(), from.ns_pids().end());
  start.complete = from.complete();
  start.preexisting = from.preexisting();
  start.gpu_uuids.assign(from.gpu_uuids().begin(), from.gpu_uuids().end());
  start.gpu_minors.assign(from.gpu_minors().begin(), from.gpu_minors().end());
  start.job_id = from.job_id();
  return start;
}

ProcessExit ToModel(const proto::ProcessExit& from) {
  return {ToModel(from.key()), from.wait_status(), from.status_known(), from.core()};
}

SignalSent ToModel(const proto::SignalSent& from) {
  return {ToModel(from.target()), from.signo(),      from.si_code(),      ToModel(from.sender()),
          from.sender_comm(),     from.sender_uid(), from.sender_cgroup()};
}

// Numbers that are stored plus one, so that 0 says that there is none.
int32_t PlusOne(int32_t stored) {
  return stored > 0 ? stored - 1 : -1;
}

LogLine ToModel(const proto::LogLine& from) {
  LogLine line;
  line.stream = from.stream();
  line.stream_name = from.stream_name();
  line.job_id = from.job_id();
  line.writer = ToModel(from.writer());
  line.offset = from.offset();
  line.text = from.raw().empty() ? from.text() : from.raw();
  line.end = ToEnum(from.end(), LineEnd::kClosed);
  line.cut_bytes = from.cut_bytes();
  line.redactions = from.redactions();
  line.lost_before = from.lost_before();
  line.rank = PlusOne(from.rank_plus_one());
  line.local_rank = PlusOne(from.local_rank_plus_one());
  line.restart = PlusOne(from.restart_plus_one());
  line.printed_ms = from.printed_ms();
  line.file = {from.file_device(), from.file_inode(), from.file_end()};
  return line;
}

SampleBatch ToModel(const proto::SampleBatch& from, int64_t& unknown) {
  SampleBatch batch;
  switch (from.subject_case()) {
    case proto::SampleBatch::kRank:
      batch.subject.kind = Subject::Kind::kRank;
      batch.subject.rank = ToModel(from.rank());
      break;
    case proto::SampleBatch::kProcess:
      batch.subject.kind = Subject::Kind::kProcess;
      batch.subject.process = ToModel(from.process());
      break;
    case proto::SampleBatch::kGpuUuid:
      batch.subject.kind = Subject::Kind::kGpu;
      batch.subject.name = from.gpu_uuid();
      break;
    case proto::SampleBatch::kJobId:
      batch.subject.kind = Subject::Kind::kJob;
      batch.subject.name = from.job_id();
      break;
    case proto::SampleBatch::kHost:
      batch.subject.kind = Subject::Kind::kHost;
      break;
    case proto::SampleBatch::SUBJECT_NOT_SET:
      break;
  }
  // Recordings of earlier builds have single precision.
  const bool single = from.number_size() == 0;
  const int values = single ? from.value_size() : from.number_size();
  const int count = std::min(from.signal_size(), values);
  unknown += std::max(from.signal_size(), values) - count;
  for (int i = 0; i < count; ++i) {
    if (const auto row = FindSignal(from.signal(i))) {
      batch.samples.push_back({row->id, single ? from.value(i) : from.number(i)});
    } else {
      ++unknown;
    }
  }
  batch.query = from.query();
  return batch;
}

KernelEvent ToModel(const proto::KernelEvent& from) {
  return {from.kmsg_seq(),    KernelEventTypeOf(from.type()),
          from.text(),        ToModel(from.victim()),
          from.gpu_bus_id(),  from.code(),
          from.scope(),       from.cgroup(),
          from.limit_bytes(), from.used_bytes()};
}

SchedulerFact ToModel(const proto::SchedulerFact& from) {
  return {from.job_id(), from.step_id(), from.field(), from.value(),
          from.origin(), from.wall_ns(), from.node()};
}

SchedulerRecord ToModel(const proto::SchedulerRecord& from) {
  SchedulerRecord to;
  to.job_id = from.job_id();
  to.origin = from.origin();
  to.state = from.state();
  to.event = from.event();
  to.submit = from.submit();
  to.start = from.start();
  to.end = from.end();
  if (from.has_elapsed_seconds()) to.elapsed_seconds = from.elapsed_seconds();
  if (from.has_time_limit_seconds()) to.time_limit_seconds = from.time_limit_seconds();
  if (from.has_restarts()) to.restarts = from.restarts();
  if (from.has_gpus()) to.gpus = from.gpus();
  if (from.has_priority()) to.priority = from.priority();
  to.by = from.by();
  to.reason = from.reason();
  to.nodes = from.nodes();
  to.failed_node = from.failed_node();
  to.exit = from.exit();
  to.derived_exit = from.derived_exit();
  to.partition = from.partition();
  to.dependency = from.dependency();
  to.submit_line = from.submit_line();
  to.work_dir = from.work_dir();
  to.wall_ns = from.wall_ns();
  return to;
}

Event ToModel(const proto::Event& from) {
  Event event;
  if (from.has_rank()) event.rank = ToModel(from.rank());
  event.process = ToModel(from.process());
  event.type = from.type();
  event.request = from.request();
  for (const auto& pair : from.str()) event.str.push_back(ToModel(pair));
  for (const auto& pair : from.num()) event.num.push_back({pair.key(), pair.value()});
  event.begin.ns = from.begin_ns();
  return event;
}

}  // namespace

bool ToModel(const proto::Observation& from, Observation& to, int64_t& unknown_signals) {
  to.t.ns = from.t_ns();
  to.seq = from.seq();
  to.source = from.source();
  to.node = from.node();
  switch (from.kind_case()) {
    case proto::Observation::kEpoch:
      to.kind = ToModel(from.epoch());
      return true;
    case proto::Observation::kTick:
      to.kind = Tick{};
      return true;
    case proto::Observation::kSourceState:
      to.kind = ToModel(from.source_state());
      return true;
    case proto::Observation::kRun:
      to.kind = ToModel(from.run());
      return true;
    case proto::Observation::kStart:
      to.kind = ToModel(from.start());
      return true;
    case proto::Observation::kExit:
      to.kind = ToModel(from.exit());
      return true;
    case proto::Observation::kSignal:
      to.kind = ToModel(from.signal());
      return true;
    case proto::Observation::kLine:
      to.kind = ToModel(from.line());
      return true;
    case proto::Observation::kSamples:
      to.kind = ToModel(from.samples(), unknown_signals);
      return true;
    case proto::Observation::kKernel:
      to.kind = ToModel(from.kernel());
      return true;
    case proto::Observation::kScheduler:
      to.kind = ToModel(from.scheduler());
      return true;
    case proto::Observation::kRecord:
      to.kind = ToModel(from.record());
      return true;
    case proto::Observation::kEvent:
      to.kind = ToModel(from.event());
      return true;
    case proto::Observation::kState:
      to.kind = EngineState{from.state().build(), from.state().blob()};
      return true;
    case proto::Observation::KIND_NOT_SET:
      return false;
  }
  return false;
}

}  // namespace rankscope::recording
