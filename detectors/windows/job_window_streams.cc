// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Ranks that write to streams of their own: whose a stream is, whose records speak for the job, and
// whose text may begin another attempt.
#include "detectors/windows/job_window.h"

namespace rankscope::windows {

void JobWindow::NoteSpeaker(const LogLine& line, StreamWindow& stream, Timestamp t) {
  const bool known = stream.ranked();
  stream.rank = line.rank;
  stream.local_rank = line.local_rank;
  stream.restart = line.restart;
  stream.printed_ms = line.printed_ms;
  if (!known && stream.ranked()) ++ranked_streams_;
  if (line.restart <= attempt_.elastic_restart) return;
  // The launcher's text tells of the same restart, before or after.
  if (restart_balance_ > 0) {
    --restart_balance_;
  } else if (ranked_streams()) {
    BeginAttempt(t);
    --restart_balance_;
  }
  attempt_.elastic_restart = line.restart;
}

// Each rank may print each step: of several streams one speaks, and another takes over where it has
// got further.
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
  if (progress_stream_ != line.stream && progress_stream_ != 0 && current_.progress > 0 &&
      !(progress.step > current_.clock.last_step()))
    return false;
  progress_stream_ = line.stream;
  return true;
}

// Whether text of this stream can begin another attempt: among ranks' own streams only where the
// same stream had come to an end, and once for all ranks.
bool JobWindow::MayBegin(uint32_t stream) {
  if (!ranked_streams()) return true;
  StreamWindow& window = streams_[stream];
  if (terminal_stream_ != stream) return false;
  return ++window.begun >= attempt_.ordinal;
}

}  // namespace rankscope::windows
