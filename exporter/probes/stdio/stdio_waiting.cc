// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What was heard and not yet told: of somebody whose job is not known yet, and of launchers, whose
// lines may be copies of what ranks are yet to be heard to say.
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "exporter/probes/stdio/stdio.h"

namespace rankscope::probes {
namespace {

using Answer = OutputRules::Answer;

// A launcher may be quicker to repeat what it has read than the rank to return from its write: that
// wakes the launcher, and on a busy machine the rank waits its turn behind others.
constexpr Duration kLag = Milliseconds(250);
// The loop's clock stands while it works, and what is heard meanwhile may be later than that.
constexpr Timestamp kAll{std::numeric_limits<int64_t>::max()};

}  // namespace

void Stdio::Hear(const ProcessKey& key, Speaker& speaker, Stream& stream, uint32_t slot,
                 Waiting piece) {
  if (stream.answer == Answer::kNot) {
    refused_ += piece.text.size();
    return;
  }
  if (stream.answer == Answer::kOutput && !stream.launcher && !Awaits(key, stream))
    return Say(stream, piece);
  if (stream.waiting_bytes + piece.text.size() > kMaxWaiting) {
    stream.lost_waiting += piece.lost_before + static_cast<int64_t>(piece.text.size());
  } else {
    piece.lost_before += std::exchange(stream.lost_waiting, 0);
    stream.waiting_bytes += piece.text.size();
    stream.waiting.push_back(std::move(piece));
  }
  if (stream.answer == Answer::kOutput) {
    any_waiting_ = true;
  } else {
    Settle(key, speaker, stream, slot);
  }
}

// Asks the rules again; the answer is given once.
void Stdio::Settle(const ProcessKey& key, Speaker& speaker, Stream& stream, uint32_t slot) {
  if (stream.waiting.empty()) return;
  if (Awaits(key, stream)) {
    any_waiting_ = true;
    return;
  }
  if (stream.answer == Answer::kOutput) {
    const bool lags = stream.launcher && Lives(key);
    return SayWaiting(stream, lags ? loop_->Now() - kLag : kAll);
  }
  Written written;
  written.writer = key;
  written.file = stream.file;
  written.input = stream.input;
  written.text = stream.waiting.front().text;
  written.first_look = !std::exchange(stream.looked, true);
  stream.answer = rules_.Decide(written);
  if (stream.answer == Answer::kLater && loop_->Now() - stream.since > kPatience) {
    stream.answer = Answer::kNot;  // of no job after all
  }
  if (stream.answer == Answer::kLater) {
    any_waiting_ = true;
    return;
  }
  if (stream.answer == Answer::kNot) return Refuse(key, speaker, stream, slot);
  if (!Open(key, stream, slot)) {
    for (const Waiting& piece : stream.waiting) {
      lost_ += piece.lost_before + static_cast<int64_t>(piece.text.size());
    }
    lost_ += stream.lost_waiting;
    return Refuse(key, speaker, stream, slot);
  }
  if (stream.launcher) {
    any_waiting_ = true;
  } else {
    SayWaiting(stream, kAll);
  }
}

// Up to what was written at `until`.
void Stdio::SayWaiting(Stream& stream, Timestamp until) {
  const auto later = std::find_if(stream.waiting.begin(), stream.waiting.end(),
                                  [until](const Waiting& piece) { return piece.t > until; });
  std::vector<Waiting> pieces(std::make_move_iterator(stream.waiting.begin()),
                              std::make_move_iterator(later));
  stream.waiting.erase(stream.waiting.begin(), later);
  // A full buffer, of 4 KiB at least, goes out in the middle of a line.
  const bool first = !pieces.empty() && std::exchange(stream.met_late, false);
  stream.begins_inside |=
      first && stream.waiting_bytes >= 2 * kSlice && pieces[0].text.size() >= kSlice;
  for (const Waiting& piece : pieces) {
    stream.waiting_bytes -= piece.text.size();
    Say(stream, piece);
  }
  if (stream.waiting.empty()) {
    Lose(stream, std::exchange(stream.lost_waiting, 0));
  } else {
    any_waiting_ = true;
  }
}

void Stdio::SettleWaiting() {
  for (auto& [key, speaker] : speakers_) {
    for (auto& [id, stream] : speaker.streams) Settle(key, speaker, stream, id.first);
  }
}

}  // namespace rankscope::probes
