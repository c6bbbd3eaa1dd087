// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/recorder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>

#include "exporter/replay/engine_state.h"
#include "exporter/replay/segments.h"

namespace rankscope::replay {

namespace {

// How long a recorder that cannot write waits, in the time of what it is given, before it tries a
// new segment.
constexpr Duration kRetryAfter = Seconds(10);

// Each process that goes on with a recording begins a segment, however short: more than this many
// files are none of a job's, whatever they hold.
constexpr size_t kMostSegments = 256;

int64_t SizeOf(int directory_fd, int64_t number) {
  struct stat info {};
  const std::string name = SegmentName(number);
  return fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 ? info.st_size : 0;
}

}  // namespace

Recorder::Recorder(int directory_fd, recording::Header header, RecorderHooks hooks,
                   RecorderBudgets budgets)
    : directory_(fcntl(directory_fd, F_DUPFD_CLOEXEC, 0)),
      header_(std::move(header)),
      hooks_(std::move(hooks)),
      budgets_(budgets),
      bulk_(budgets.buffer_bytes),
      facts_(budgets.buffer_bytes),
      progress_(budgets.buffer_bytes) {}

Recorder::~Recorder() {
  Flush();
}

Status Recorder::Open() {
  for (const int64_t number : ListSegments(directory_.get())) segments_.push_back(number);
  // Between the last segment of an earlier process and ours something may be missing: leave a
  // number out.
  if (!segments_.empty()) next_number_ = segments_.back() + 2;
  const std::string name = SegmentName(next_number_);
  if (StartSegment()) return {};
  return Error{"recording: " + name + ": " + std::strerror(bulk_.last_error()) +
               "; make the directory writable or free space"};
}

// Facts are few and explain the rest; text, numbers and ticks come by the million.
bool Recorder::IsFact(const Observation& observation) {
  return !std::holds_alternative<std::monostate>(observation.kind) &&
         !std::holds_alternative<LogLine>(observation.kind) &&
         !std::holds_alternative<SampleBatch>(observation.kind) &&
         !std::holds_alternative<Tick>(observation.kind) &&
         !std::holds_alternative<EngineState>(observation.kind);
}

void Recorder::Accept(const Observation& observation) {
  scratch_.clear();
  if (!recording::AppendObservation(observation, scratch_)) {
    ++observations_;
    MakeRoom(observation.t);
    Lose(1);
    return;
  }
  AcceptFrame(observation.t, scratch_, IsFact(observation));
}

void Recorder::MakeRoom(Timestamp now) {
  now_ = now;
  if (broken_) {
    if (now_ - broken_since_ >= kRetryAfter || broken_bytes_ >= budgets_.segment_bytes)
      StartSegment();
  } else if (bulk_.size() >= budgets_.segment_bytes) {
    StartSegment();
  }
}

void Recorder::AcceptFrame(Timestamp t, std::string_view frame, bool fact) {
  ++observations_;
  MakeRoom(t);
  if (broken_) {
    Lose(1);
    broken_bytes_ += static_cast<int64_t>(frame.size());
  } else {
    ++unflushed_;
    bytes_ += static_cast<int64_t>(frame.size());
    if (!bulk_.Append(frame)) {
      Break(now_);
    } else if (bulk_.buffered() == 0) {
      unflushed_ = 0;
    }
  }
  if (fact) AppendFact(frame);
}

// The segment is closed whole and a number left out.
void Recorder::Skip(int64_t observations, int64_t facts) {
  observations_ += observations;
  facts_dropped_ += facts;
  Lose(observations);
  if (broken_) return;
  if (!bulk_.Flush()) return Break(now_);
  unflushed_ = 0;
  ++next_number_;
  StartSegment();
}

void Recorder::SetBudgets(RecorderBudgets budgets) {
  const bool less = budgets.segment_bytes < budgets_.segment_bytes;
  budgets_ = budgets;
  if (!less) return;
  const int64_t room = budgets_.segment_bytes * static_cast<int64_t>(budgets_.segments);
  int64_t bytes = 0;
  size_t fit = 0;
  for (auto number = segments_.rbegin(); number != segments_.rend(); ++number, ++fit) {
    bytes += SizeOf(directory_.get(), *number);
    if (bytes > room) break;
  }
  // The one that is being written stays; the next begins by its new bound.
  RetireOld(std::max<size_t>(fit, 1));
}

void Recorder::Flush() {
  if (!broken_) {
    if (bulk_.Flush()) {
      unflushed_ = 0;
    } else {
      Break(now_);
    }
  }
  if (facts_.open()) facts_.Flush();
  if (progress_.open()) progress_.Flush();
}

void Recorder::Sync() {
  Flush();
  if (!broken_) bulk_.Sync();
  if (facts_.open()) facts_.Sync();
  if (progress_.open()) progress_.Sync();
  if (fsync(directory_.get()) != 0) {
    ++other_errors_;
    other_last_error_ = errno;
  }
}

void Recorder::Rest() {
  Flush();
  bulk_.Close();
  facts_.Close();
  progress_.Close();
  directory_.Reset();
}

void Recorder::Wake(int directory_fd) {
  directory_ = OwnedFd(fcntl(directory_fd, F_DUPFD_CLOEXEC, 0));
  if (broken_ || segments_.empty()) return;
  // Whoever changed it meanwhile is not this recording: what follows does not belong behind it.
  if (!bulk_.Reopen(directory_.get(), SegmentName(segments_.back()))) Break(now_);
}

Recorder::Counters Recorder::counters() const {
  Counters counters;
  counters.bytes = bytes_;
  counters.errors = bulk_.errors() + facts_.errors() + progress_.errors() + other_errors_;
  counters.observations = observations_;
  counters.lost = lost_;
  counters.facts_dropped = facts_dropped_;
  counters.progress_dropped = progress_dropped_;
  for (const int error :
       {other_last_error_, progress_.last_error(), facts_.last_error(), bulk_.last_error()}) {
    if (error != 0) counters.last_error = error;
  }
  counters.broken = broken_;
  return counters;
}

bool Recorder::StartSegment() {
  if (!broken_ && bulk_.open() && !bulk_.Flush()) Break(now_);
  bulk_.Close();
  unflushed_ = 0;
  RetireOld(SegmentsBesideANewOne());
  const int64_t number = next_number_;
  const std::string name = SegmentName(number);
  const std::string head = SegmentHead(number);
  const bool created = bulk_.Create(directory_.get(), name);
  // Written at once: a reader that follows must find a header, and a full disk shows here.
  if (!created || !bulk_.Append(head) || !bulk_.Flush()) {
    if (created) unlinkat(directory_.get(), name.c_str(), 0);
    Break(now_);
    return false;
  }
  segments_.push_back(number);
  next_number_ = number + 1;
  broken_ = false;
  bytes_ += static_cast<int64_t>(head.size());
  if (hooks_.state) uncovered_ = 0;
  return true;
}

std::string Recorder::SegmentHead(int64_t number) {
  std::string head;
  recording::AppendHeader(header_, head);
  if (number == 1 || !hooks_.state) return head;
  for (EngineState& part : SplitEngineState(hooks_.state())) {
    Observation observation;
    observation.t = now_;
    observation.kind = std::move(part);
    if (!recording::AppendObservation(observation, head)) ++other_errors_;
  }
  return head;
}

// What is in the buffer is lost, and so is everything until the next segment, which leaves a number
// out to say so.
void Recorder::Break(Timestamp now) {
  Lose(std::exchange(unflushed_, 0));
  if (!broken_) ++next_number_;
  broken_ = true;
  broken_since_ = now;
  broken_bytes_ = 0;
  bulk_.Close();
}

void Recorder::Lose(int64_t observations) {
  lost_ += observations;
  uncovered_ += observations;
}

void Recorder::Retire(int64_t number) {
  if (!hooks_.state) ++uncovered_;
  const std::string name = SegmentName(number);
  const OwnedFd fd = hooks_.keep_line ? OpenForReading(directory_.get(), name) : OwnedFd();
  if (fd) {
    recording::Decoder decoder;
    std::vector<char> piece(budgets_.buffer_bytes);
    for (int64_t at = 0; !decoder.failed();) {
      const ssize_t size = pread(fd.get(), piece.data(), piece.size(), at);
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) break;
      at += size;
      decoder.Feed(
          {piece.data(), static_cast<size_t>(size)}, [](const recording::Header&) {},
          [this](const Observation& observation) { KeepLine(observation); });
    }
  }
  if (unlinkat(directory_.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    ++other_errors_;
    other_last_error_ = errno;
  }
}

// Of those that are there, the newest. A full one counts as what a segment may hold; those of a
// daemon that was started again and again are short, and all of them stay.
size_t Recorder::SegmentsBesideANewOne() const {
  const auto most = static_cast<int64_t>(budgets_.segments - 1) * budgets_.segment_bytes;
  int64_t held = 0;
  size_t fit = 0;
  for (auto number = segments_.rbegin(); number != segments_.rend(); ++number, ++fit) {
    held += std::min(SizeOf(directory_.get(), *number), budgets_.segment_bytes);
    if (held > most || fit + 1 >= kMostSegments) break;
  }
  return fit;
}

void Recorder::RetireOld(size_t most) {
  while (segments_.size() > most) {
    Retire(segments_.front());
    segments_.pop_front();
  }
}

void Recorder::KeepLine(const Observation& observation) {
  const auto* line = std::get_if<LogLine>(&observation.kind);
  if (line == nullptr || !hooks_.keep_line(line->text)) return;
  std::string frame;
  if (!recording::AppendObservation(observation, frame)) return;
  if (!OpenLane(progress_, kProgressName) ||
      progress_.size() + static_cast<int64_t>(frame.size()) > budgets_.progress_bytes ||
      !progress_.Append(frame)) {
    ++progress_dropped_;
    return;
  }
  bytes_ += static_cast<int64_t>(frame.size());
}

void Recorder::AppendFact(std::string_view frame) {
  if (!OpenLane(facts_, kFactsName) ||
      facts_.size() + static_cast<int64_t>(frame.size()) > budgets_.facts_bytes ||
      !facts_.Append(frame)) {
    ++facts_dropped_;
    return;
  }
  bytes_ += static_cast<int64_t>(frame.size());
}

bool Recorder::OpenLane(Lane& lane, const char* name) {
  if (lane.open() || (lane.size() > 0 && lane.Reopen(directory_.get(), name))) return true;
  if (!lane.Continue(directory_.get(), name)) return false;
  if (lane.size() > 0) return true;
  std::string head;
  recording::AppendHeader(header_, head);
  return lane.Append(head);
}

}  // namespace rankscope::replay
