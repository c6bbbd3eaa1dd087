// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One observation of every kind with every field set, for tests of whatever stores or forwards
// them. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::testing {

inline RunMark ExampleRunMark() {
  RunMark mark;
  mark.job_id = "8841";
  mark.what = RunMark::What::kEnd;
  mark.argv = {"python", "train.py", "--name=a b"};
  mark.wait_status = 9;
  mark.status_known = true;
  mark.error = "no such file";
  mark.cwd = "/home/u";
  mark.log = "/home/u/train.log";
  mark.root = {312, 4711};
  mark.world_size = 4;
  mark.uid = 1000;
  return mark;
}

inline Event ExampleEvent() {
  Event event;
  event.rank = {"8841", 1};
  event.process = {400, 5000};
  event.type = 3;
  event.request = -5;
  event.str = {{"stack", "f g h"}};
  event.num = {{"count", -1}};
  event.begin = {12};
  return event;
}

inline SchedulerRecord ExampleSchedulerRecord() {
  SchedulerRecord record;
  record.job_id = "8841";
  record.origin = "sacct";
  record.state = "NODE_FAIL";
  record.start = 1'700'000'000;
  record.end = 1'700'000'600;
  record.restarts = 0;
  record.failed_node = "n1";
  record.wall_ns = 1'700'000'600'000'000'000;
  return record;
}

// Views in log lines point at literals.
inline std::vector<Observation> OneOfEachKind() {
  ProcessStart start;
  start.key = {400, 5000};
  start.parent = {312, 4711};
  start.uid = 1000;
  start.comm = "python";
  start.argv = {"python", "-u", ""};
  start.env = {{"RANK", "3"}, {"EMPTY", ""}};
  start.cgroup = "/slurm/uid_1000/job_8841";
  start.ns_pids = {400, 17};
  start.complete = true;
  start.preexisting = true;
  start.gpu_uuids = {"GPU-0", "GPU-1"};
  start.job_id = "8841";

  LogLine line;
  line.stream = 2;
  line.stream_name = "stderr";
  line.job_id = "8841";
  line.writer = {400, 5000};
  line.offset = 18231;
  line.text = "step 10 loss 2.5 \xC3\xA9";
  line.end = LineEnd::kLf;
  line.cut_bytes = 7;
  line.redactions = 2;
  line.lost_before = 99;
  LogLine binary = line;
  binary.text = std::string_view("caf\xE9 \x00\xFF", 7);

  SampleBatch ranks;
  ranks.subject.kind = Subject::Kind::kRank;
  ranks.subject.rank = {"8841", 3};
  ranks.samples = {{SignalId::kLoss, 2.5f}, {SignalId::kStep, 10.0f}};
  ranks.query = "rankscope_training_loss{job_id=\"8841\"}";
  SampleBatch process = ranks;
  process.subject = {Subject::Kind::kProcess, {}, {400, 5000}, {}};
  SampleBatch gpu = ranks;
  gpu.subject = {Subject::Kind::kGpu, {}, {}, "GPU-0"};
  SampleBatch job = ranks;
  job.subject = {Subject::Kind::kJob, {}, {}, "8841"};
  SampleBatch host = ranks;
  host.subject = {Subject::Kind::kHost, {}, {}, {}};

  std::vector<Observation> all;
  const auto add = [&](auto kind) {
    Observation observation;
    observation.t = {1'000'000'000 + static_cast<int64_t>(all.size())};
    observation.seq = static_cast<int64_t>(all.size()) + 1;
    observation.source = 4;
    observation.node = "n1";
    observation.kind = std::move(kind);
    all.push_back(std::move(observation));
  };
  add(Epoch{1'700'000'000'000'000'000, 1000, "boot"});
  add(Tick{});
  add(SourceState{4, "procfs", Availability::kDenied, "no right to read; run as root", 5,
                  Seconds(1)});
  add(ExampleRunMark());
  add(std::move(start));
  add(ProcessExit{{400, 5000}, 139, true, true});
  add(SignalSent{{400, 5000}, 9, -6, {1, 2}, "bash", 1000, "/user.slice"});
  add(line);
  add(binary);
  add(std::move(ranks));
  add(std::move(process));
  add(std::move(gpu));
  add(std::move(job));
  add(std::move(host));
  add(KernelEvent{77,
                  KernelEventType::kOomKill,
                  "Out of memory: Killed process 400",
                  {400, 5000},
                  "0000:81:00.0",
                  79});
  add(SchedulerFact{"8841", "0", "State", "NODE_FAIL", "sacct", 1'700'000'000, "n1"});
  add(ExampleSchedulerRecord());
  add(ExampleEvent());
  add(EngineState{"0.1.0", std::string("\x00\x01\xFF", 3)});
  return all;
}

}  // namespace rankscope::testing
