// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/follower.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <variant>

#include "exporter/replay/segments.h"

namespace rankscope::replay {

namespace {

constexpr size_t kPieceBytes = 128 * 1024;

}  // namespace

Follower::Follower(int directory_fd, int64_t after_seq, FollowerLimits limits)
    : directory_(fcntl(directory_fd, F_DUPFD_CLOEXEC, 0)),
      after_seq_(after_seq),
      limits_(limits),
      piece_(kPieceBytes) {}

bool Follower::Poll(const std::function<void(const Observation&)>& deliver) {
  int64_t budget = limits_.bytes_per_poll;
  // A segment is finished when the next one was there before a read of it found nothing.
  Segment next;
  while (budget > 0) {
    const int64_t size = left_ ? 0 : ReadPiece(budget, deliver);
    budget -= size;
    if (size > 0) continue;
    if (next.number == 0) {
      next = FindNext();
      if (next.number == 0) return false;
    } else {
      Take(std::exchange(next, {}));
    }
  }
  return true;
}

// Bytes read; 0 where there are none now, or this segment can give no more.
int64_t Follower::ReadPiece(int64_t budget,
                            const std::function<void(const Observation&)>& deliver) {
  if (!segment_.fd) return 0;
  ssize_t size = 0;
  do {
    const auto most = std::min<int64_t>(static_cast<int64_t>(piece_.size()), budget);
    size = pread(segment_.fd.get(), piece_.data(), static_cast<size_t>(most), offset_);
  } while (size < 0 && errno == EINTR);
  if (size < 0) Leave(std::strerror(errno));
  if (size <= 0) return 0;
  offset_ += size;
  bytes_ += size;
  decoder_.Feed(
      {piece_.data(), static_cast<size_t>(size)}, [](const recording::Header&) {},
      [&](const Observation& observation) { Deliver(observation, deliver); });
  if (decoder_.failed()) {
    Leave(decoder_.error());
  } else if (offset_ > limits_.segment_bytes) {
    Leave("larger than a segment may be");
  }
  return size;
}

void Follower::Deliver(const Observation& observation,
                       const std::function<void(const Observation&)>& deliver) {
  if (std::holds_alternative<EngineState>(observation.kind)) return;
  // Whether the segments that were gone at the start had been delivered before.
  if (std::exchange(check_start_, false) && observation.seq - 1 > after_seq_) {
    Gap("segments before " + SegmentName(segment_.number) + " are gone");
  }
  if (observation.seq <= after_seq_) return;
  last_seq_ = std::max(last_seq_, observation.seq);
  deliver(observation);
}

// The segment behind the present one, or, where that is gone or was left out, the oldest one behind
// it.
Follower::Segment Follower::FindNext() const {
  Segment next{OpenForReading(directory_.get(), SegmentName(segment_.number + 1)),
               segment_.number + 1};
  if (next.fd) return next;
  for (const int64_t number : ListSegments(directory_.get())) {
    if (number <= segment_.number) continue;
    next = {OpenForReading(directory_.get(), SegmentName(number)), number};
    if (next.fd) return next;
  }
  return {};
}

void Follower::Take(Segment next) {
  const bool first = segment_.number == 0;
  if (!first && next.number != segment_.number + 1) {
    Gap("segments before " + SegmentName(next.number) + " are gone");
  } else if (!left_ && decoder_.pending() > 0) {
    Gap(SegmentName(segment_.number) + ": ends in the middle of a frame");
  }
  check_start_ = first && next.number != 1;
  segment_ = std::move(next);
  offset_ = 0;
  left_ = false;
  decoder_ = {};
}

void Follower::Leave(const std::string& problem) {
  Gap(SegmentName(segment_.number) + ": " + problem);
  left_ = true;
}

void Follower::Gap(std::string problem) {
  ++gaps_;
  last_problem_ = std::move(problem);
}

}  // namespace rankscope::replay
