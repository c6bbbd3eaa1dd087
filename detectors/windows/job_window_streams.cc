// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Ranks that write to streams of their own: whose a stream is, whose records speak for the job, and
// whose text may begin another attempt.
#include <algorithm>

#include "detectors/windows/job_window.h"

namespace rankscope::windows {

namespace {

bool SameSpeaker(const StreamWindow& a, const StreamWindow& b) {
  return a.ranked() && a.rank == b.rank && a.local_rank == b.local_rank;
}

}  // namespace

// What was lost before this line: the source's word, and what lies between two lines that should
// meet. A launcher's stream leaves out what its ranks have said, so there its offsets tell nothing.
void JobWindow::NoteLoss(const LogLine& line, StreamWindow& stream) {
  constexpr int64_t kTerminator = 1;  // the second byte of CR LF is not told
  int64_t lost = line.lost_before;
  const bool meets = line.writer.pid == 0 || line.rank >= 0;
  const int64_t between = line.offset - stream.next_offset;
  if (meets && stream.next_offset >= 0 && between > kTerminator) lost = std::max(lost, between);
  const bool ended = line.end == LineEnd::kLf || line.end == LineEnd::kCr;
  stream.next_offset = line.offset + static_cast<int64_t>(line.text.size()) + line.cut_bytes +
                       (ended ? kTerminator : 0);
  if (lost <= 0) return;
  // Offsets are what their source says: no sum of them leaves the numbers.
  constexpr int64_t kMost = int64_t{1} << 61;
  stream.lost_bytes = std::min(kMost, stream.lost_bytes + std::min(kMost, lost));
  stream.lost_up_to = line.offset;
}

void JobWindow::NoteSpeaker(const LogLine& line, StreamWindow& stream, Timestamp t) {
  const bool known = stream.ranked();
  stream.rank = line.rank;
  stream.local_rank = line.local_rank;
  stream.restart = line.restart;
  stream.printed_ms = line.printed_ms;
  // Standard output and error of one rank are one speaker.
  if (!known && stream.ranked() &&
      std::none_of(streams_.begin(), streams_.end(), [&stream](const auto& other) {
        return &other.second != &stream && SameSpeaker(other.second, stream);
      })) {
    ++ranked_streams_;
  }
  if (line.restart <= attempt().elastic_restart) return;
  // The launcher's text tells of the same restart, before or after.
  if (!attempts_.RestartIsUntold()) {
    attempts_.SeeRestart();
  } else if (ranked_streams()) {
    BeginAttempt(t);
    attempts_.SeeRestart();
  }
  attempts_.RaiseRestarts(0, line.restart);
}

// Each rank may print each step: of several ranks one speaks, and another takes over where it has
// got further. What a rank prints may be spread over its streams: a bar here, the losses there.
bool JobWindow::TakesProgress(const logs::Progress& progress, const LogLine& line, Timestamp t) {
  StreamWindow& stream = streams_[line.stream];
  if (!stream.ranked()) return true;
  ++stream.progress;
  CitedPoint& last = stream.last_progress;
  last.value = progress.loss;
  last.step = progress.step;
  last.index = stream.progress;
  last.stream = line.stream;
  last.offset = line.offset;
  last.t = t;
  last.line.assign(line.text.substr(0, logs::kCitationCap));
  const auto speaking = streams_.find(progress_stream_);
  const bool another = speaking != streams_.end() && !SameSpeaker(speaking->second, stream);
  if (another && now().progress > 0 && !(progress.step > now().clock.last_step())) return false;
  progress_stream_ = line.stream;
  return true;
}

// Whether text of this stream can begin another attempt: among ranks' own streams only where the
// same rank had come to an end, and once for all ranks.
bool JobWindow::MayBegin(uint32_t stream) {
  if (!ranked_streams()) return true;
  StreamWindow& window = streams_[stream];
  const auto ended = streams_.find(attempts_.terminal_stream());
  const bool own = attempts_.terminal_stream() == stream ||
                   (ended != streams_.end() && SameSpeaker(ended->second, window));
  if (!own) return false;
  return ++window.begun >= attempt().ordinal;
}

void JobWindow::ConfirmSuspected(Timestamp t) {
  attempts_.Confirm(t, CloseNow(), incidents_);
}

}  // namespace rankscope::windows
