// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/traceback.h"

namespace rankscope::logs {
namespace {

constexpr size_t kFileCap = 256;
constexpr size_t kCodeCap = 160;

}  // namespace

bool TracebackMachine::FeedPlainFrame(const CleanLine& line) {
  // What several writers tangle is for FeedFrames.
  if (state_ != State::kFrames || headers_ > 1 || !line.text.starts_with("  ")) return false;
  const std::string_view text = TrimRight(line.text);
  if (text.size() <= 4) return false;
  if (text[2] == 'F') {
    if (!AddFrame(text)) return false;
    after_frame_ = true;
    return true;
  }
  const size_t last = (frame_count_ - 1) % kMaxFrames;
  const bool wanted = frame_count_ > 0 && last < frames_.size() && frames_[last].code.empty();
  const bool is_code = text[2] == ' ' && text[3] == ' ' && text[4] >= 'a' && text[4] <= 'z';
  if (!wanted || !is_code || text.ends_with("Traceback (most recent call last):") ||
      Contains(text, "%|"))
    return false;
  SetCode(text.substr(4), line);
  return true;
}

bool TracebackMachine::AddFrame(std::string_view text) {
  const std::string_view rest = TrimLeft(text);
  if (!rest.starts_with("File \"")) return false;
  const size_t quote = rest.find('"', 6);
  if (quote == std::string_view::npos || !rest.substr(quote).starts_with("\", line ")) return false;
  const std::string_view number = rest.substr(quote + 8);
  const auto line = LeadingInt(number);
  NewFrame(rest.substr(6, quote - 6),
           line && *line > 0 && *line < (1 << 30) ? static_cast<int32_t>(*line) : 0,
           After(number, ", in "));
  return true;
}

void TracebackMachine::NewFrame(std::string_view file, int32_t line, std::string_view function) {
  if (frames_.size() < kMaxFrames) frames_.emplace_back();
  Frame& frame = frames_[frame_count_++ % kMaxFrames];
  // The end of a long path tells more than its beginning.
  if (file.size() > kFileCap) file.remove_prefix(file.size() - kFileCap);
  frame.file.assign(file);
  frame.line = line;
  frame.function.assign(Capped(function, kCodeCap));
  frame.code.clear();
  frame.code_line.clear();
}

// The source line of the newest frame, unless it has one.
void TracebackMachine::SetCode(std::string_view code, const CleanLine& line) {
  if (frame_count_ == 0) return;
  Frame& frame = frames_[(frame_count_ - 1) % kMaxFrames];
  if (!frame.code.empty()) return;
  frame.code.assign(Capped(code, kCodeCap));
  frame.code_line.assign(Capped(line.original.empty() ? line.text : line.original, kCitationCap));
  frame.code_offset = line.offset;
}

std::vector<const TracebackMachine::Frame*> TracebackMachine::OrderedFrames() const {
  std::vector<const Frame*> ordered;
  const uint32_t size = std::min<uint32_t>(frame_count_, kMaxFrames);
  for (uint32_t i = frame_count_ - size; i < frame_count_; ++i) {
    if (i % kMaxFrames < frames_.size()) ordered.push_back(&frames_[i % kMaxFrames]);
  }
  return ordered;
}

}  // namespace rankscope::logs
