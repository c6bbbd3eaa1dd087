// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/watch/job_judge.h"

#include "detectors/logs/text/masked_line.h"
#include "exporter/output/past_text.h"

namespace rankscope::watch {
namespace {

engine::Config ConfigOf() {
  engine::Config config;
  config.max_jobs = JobJudge::kMaxJobs;
  // Jobs leave when they are forgotten: one that was put back may wait for days.
  config.forget_after_end = Seconds(1e9);
  return config;
}

}  // namespace

JobJudge::JobJudge() : engine_(ConfigOf()) {
  line_.kind = LogLine{};
}

void JobJudge::SetClock(int64_t wall_offset_ns, Timestamp now) {
  constexpr int64_t kOneSecond = 1'000'000'000;  // the controller's clock is another machine's
  Epoch epoch;
  epoch.wall_offset_ns = wall_offset_ns;
  epoch.uncertainty_ns = kOneSecond;
  Give(std::move(epoch), now);
}

void JobJudge::TellSlurm(bool answers, const std::string& why, Timestamp now) {
  SourceState state;
  state.source = 1;
  state.name = "slurm";
  state.state = answers ? Availability::kUp : Availability::kDown;
  state.reason = why;
  Give(std::move(state), now);
}

void JobJudge::Begin(const std::string& job_id, const std::string& output,
                     std::optional<uint32_t> uid, int32_t restart, Timestamp start) {
  RunMark mark;
  mark.job_id = job_id;
  mark.what = RunMark::What::kBegin;
  mark.log = output;
  mark.slurm_restart = restart;
  mark.uid = uid;
  Give(std::move(mark), start);
}

void JobJudge::TellPast(const std::string& job_id, const Stream& stream, int64_t end,
                        Timestamp written, Timestamp t) {
  Give(collectors::PastText(job_id, stream.number, end, written), t);
}

void JobJudge::GiveLine(const std::string& job_id, const Stream& stream,
                        const logs::AssembledLine& assembled, Timestamp t) {
  LogLine& line = std::get<LogLine>(line_.kind);
  line.job_id = job_id;
  line.stream = stream.number;
  line.stream_name = stream.path;
  logs::FillLine(assembled, line, masked_);
  line_.t = t;
  line_.seq = ++seq_;
  engine_.Accept(line_);
}

void JobJudge::Feed(const std::string& job_id, Stream& stream, std::string_view bytes,
                    Timestamp t) {
  stream.lines.Feed(bytes,
                    [&](const logs::AssembledLine& line) { GiveLine(job_id, stream, line, t); });
}

void JobJudge::Skip(const std::string& job_id, Stream& stream, int64_t bytes, Timestamp t) {
  stream.lines.Lose(bytes,
                    [&](const logs::AssembledLine& line) { GiveLine(job_id, stream, line, t); });
}

void JobJudge::Close(const std::string& job_id, Stream& stream, Timestamp t) {
  stream.lines.Flush(LineEnd::kClosed,
                     [&](const logs::AssembledLine& line) { GiveLine(job_id, stream, line, t); });
}

void JobJudge::Tell(SchedulerRecord record, Timestamp t) {
  Give(std::move(record), t);
}

void JobJudge::Tell(SchedulerFact fact, Timestamp t) {
  Give(std::move(fact), t);
}

void JobJudge::End(const std::string& job_id, std::optional<int32_t> wait_status, Timestamp t) {
  RunMark end;
  end.job_id = job_id;
  end.what = RunMark::What::kEnd;
  end.status_known = wait_status.has_value();
  end.wait_status = wait_status.value_or(0);
  Give(std::move(end), t);
  RunMark closed;
  closed.job_id = job_id;
  closed.what = RunMark::What::kStreamsClosed;
  Give(std::move(closed), t);
}

void JobJudge::Forget(const std::string& job_id, Timestamp t) {
  RunMark mark;
  mark.job_id = job_id;
  mark.what = RunMark::What::kDisowned;
  Give(std::move(mark), t);
}

const proto::Verdict* JobJudge::Find(const std::string& job_id) const {
  const auto view = engine_.Find(job_id);
  return view ? view->verdict : nullptr;
}

}  // namespace rankscope::watch
