// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/observer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "detectors/logs/text/masked_line.h"
#include "detectors/model/event_types.h"
#include "exporter/run/clock.h"
#include "exporter/run/process_facts.h"

namespace rankscope::run {
namespace {

// 0: not told, or no count.
int32_t ParseCount(std::string_view text) {
  int32_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() && count > 0 ? count : 0;
}

Timestamp NextOnGrid(Timestamp t, Duration grid) {
  return {(t.ns / grid.ns + 1) * grid.ns};
}

}  // namespace

Observer::Observer(Facts facts, Queue& queue, const Tap& tap, DaemonLink& link,
                   MakeConsumer make_consumer)
    : facts_(std::move(facts)),
      queue_(queue),
      tap_(tap),
      link_(link),
      make_consumer_(std::move(make_consumer)) {}

void Observer::Emit(Observation& observation, Timestamp t) {
  last_t_ = std::max(last_t_, t);
  observation.t = last_t_;
  observation.seq = ++seq_;
  consumer_.sink->Accept(observation);
  dirty_ = true;
}

template <typename Kind>
void Observer::EmitKind(Kind kind, Timestamp t) {
  Observation observation;
  observation.node = facts_.host;
  observation.kind = std::move(kind);
  Emit(observation, t);
}

void Observer::Begin() {
  consumer_ = make_consumer_(facts_.recording_fd);
  line_.node = facts_.host;
  LogLine line;
  line.job_id = facts_.job_id;
  line_.kind = std::move(line);

  EmitKind(ReadEpoch(), facts_.started);
  RunMark begin;
  begin.job_id = facts_.job_id;
  begin.what = RunMark::What::kBegin;
  begin.argv = RedactArguments(facts_.argv);
  begin.cwd = facts_.cwd;
  begin.log = facts_.log_path;
  begin.error = facts_.note;
  begin.root = facts_.child;
  begin.world_size = ParseCount(EnvironmentValue(facts_.environment, "WORLD_SIZE"));
  begin.slurm_restart = ParseCount(EnvironmentValue(facts_.environment, "SLURM_RESTART_COUNT"));
  EmitKind(std::move(begin), facts_.started);
  for (const std::string& target : facts_.targets) {
    const size_t equals = std::min(target.find('='), target.size());
    Event event;
    event.type = WireType(EventType::kTarget);
    event.rank.job_id = facts_.job_id;
    event.str = {{"measure", target.substr(0, equals)},
                 {"value", target.substr(std::min(equals + 1, target.size()))}};
    EmitKind(std::move(event), facts_.started);
  }
  ProcessStart child = DescribeChild(facts_.child, facts_.job_id, facts_.argv, facts_.environment);
  if (!facts_.notify.empty()) {
    // As if the command had it in its environment, which stays as it was.
    constexpr std::string_view kKey = "RANKSCOPE_NOTIFY";
    std::erase_if(child.env, [kKey](const KeyValue& entry) { return entry.key == kKey; });
    child.env.push_back({std::string(kKey), facts_.notify});
  }
  EmitKind(std::move(child), facts_.started);
  next_tick_ = NextOnGrid(last_t_, kTickInterval);
}

// Every tick that is due before `now`; of several (we were stopped) only the last.
void Observer::EmitTicks(Timestamp now) {
  if (now < next_tick_) return;
  const Timestamp tick{now.ns / kTickInterval.ns * kTickInterval.ns};
  EmitKind(Tick{}, tick);
  next_tick_ = NextOnGrid(tick, kTickInterval);
}

void Observer::EmitLine(int stream, const logs::AssembledLine& assembled) {
  streams_[static_cast<size_t>(stream)].last_end = assembled.end;
  auto& line = std::get<LogLine>(line_.kind);
  line.stream = static_cast<uint32_t>(stream) + 1;
  line.stream_name = facts_.stream_names[static_cast<size_t>(stream)];
  logs::FillLine(assembled, line, masked_);
  Emit(line_, streams_[static_cast<size_t>(stream)].last_bytes);
}

void Observer::TakeBytes(const QueueItem& item) {
  Stream& stream = streams_[static_cast<size_t>(item.stream)];
  const auto emit = [&](const logs::AssembledLine& line) { EmitLine(item.stream, line); };
  if (item.lost_before > 0) stream.assembler.Lose(item.lost_before, emit);
  stream.last_bytes = item.t;
  stream.assembler.Feed(item.bytes, emit);
}

void Observer::CloseStream(int index, int64_t lost_before) {
  Stream& stream = streams_[static_cast<size_t>(index)];
  if (std::exchange(stream.closed, true)) return;
  const auto emit = [&](const logs::AssembledLine& line) { EmitLine(index, line); };
  if (lost_before > 0) stream.assembler.Lose(lost_before, emit);
  stream.assembler.Flush(LineEnd::kClosed, emit);
}

void Observer::FlushSilentBars(Timestamp now) {
  for (int index = 0; index < kStreams; ++index) {
    Stream& stream = streams_[static_cast<size_t>(index)];
    if (!stream.assembler.has_open_line() || stream.last_end != LineEnd::kCr) continue;
    if (now.ns - stream.last_bytes.ns < kBarSilence.ns) continue;
    stream.assembler.Flush(LineEnd::kFlush,
                           [&](const logs::AssembledLine& line) { EmitLine(index, line); });
  }
}

// A log that could not be written is said when it begins and once more, with the final count, at
// the end.
void Observer::TellLogHealth(bool at_end) {
  const int64_t lost = tap_.lost_bytes();
  if (lost == told_lost_bytes_ || (told_lost_bytes_ > 0 && !at_end)) return;
  told_lost_bytes_ = lost;
  SourceState state;
  state.name = "run_log";
  state.state = Availability::kDown;
  state.reason = facts_.log_path + ": " + std::strerror(tap_.log_error()) +
                 "; the log ends there, the command continued; free space on that file system";
  state.lost = lost;
  EmitKind(std::move(state), MonotonicNow());
}

void Observer::Handle(const QueueItem& item) {
  switch (item.kind) {
    case QueueItem::Kind::kBytes:
      return TakeBytes(item);
    case QueueItem::Kind::kClosed:
      CloseStream(item.stream, item.lost_before);
      return link_.Release(item.stream);
    case QueueItem::Kind::kRelease:
      return link_.Release(item.stream);
    case QueueItem::Kind::kExited: {
      RunMark end;
      end.job_id = facts_.job_id;
      end.what = RunMark::What::kEnd;
      end.root = facts_.child;
      end.wait_status = item.wait_status;
      end.status_known = true;
      end.error = item.error;
      return EmitKind(std::move(end), item.t);
    }
    case QueueItem::Kind::kLogMoved: {
      SourceState state;
      state.name = "run_log";
      state.state = Availability::kUp;
      state.reason = item.error;
      return EmitKind(std::move(state), item.t);
    }
    case QueueItem::Kind::kFinish:
      finished_ = true;
      return;
  }
}

Timestamp Observer::NextDeadline() const {
  Timestamp deadline = next_tick_;
  if (const auto due = link_.next_due()) deadline = std::min(deadline, *due);
  return deadline;
}

Judgement Observer::Run() {
  Begin();
  link_.Poll(MonotonicNow());
  while (!finished_) {
    for (const QueueItem& item : queue_.TakeUntil(NextDeadline())) {
      EmitTicks(item.t);
      Handle(item);
    }
    const Timestamp now = MonotonicNow();
    EmitTicks(now);
    FlushSilentBars(now);
    TellLogHealth(false);
    if (std::exchange(dirty_, false)) {
      consumer_.flush();
      link_.NewData();
    }
    link_.Poll(now);
  }
  return Finish();
}

Judgement Observer::Finish() {
  for (int stream = 0; stream < kStreams; ++stream) CloseStream(stream, 0);
  TellLogHealth(true);
  RunMark closed;
  closed.job_id = facts_.job_id;
  closed.what = RunMark::What::kStreamsClosed;
  EmitKind(std::move(closed), MonotonicNow());
  consumer_.flush();

  std::optional<Judgement> answer = link_.End();
  Judgement own = consumer_.judge();
  consumer_.flush();
  if (!answer) return own;
  if (answer->text.empty()) answer->text = std::move(own.text);
  if (!answer->notified) answer->leave = std::move(own.leave);
  return *std::move(answer);
}

}  // namespace rankscope::run
