// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Bytes of one stream -> lines. Splits at LF and CR (CR LF is one end), keeps offsets into the
// unmodified stream, holds at most one unfinished line, cuts the middle out of over-long lines. No
// copy where a line lies whole inside the bytes fed.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "detectors/model/observation.h"

namespace rankscope::logs {

// An over-long line keeps this much: enough for a 64 KiB dict line, small enough that 4,096 streams
// hold 256 MiB at worst.
inline constexpr size_t kLineCap = 64 * 1024;
inline constexpr size_t kLineTail = 8 * 1024;  // of kLineCap, how much is kept from the end

struct AssembledLine {
  std::string_view text;  // valid during the call
  int64_t offset = 0;
  LineEnd end = LineEnd::kLf;
  int32_t cut_bytes = 0;
  int64_t lost_before = 0;
};

class LineAssembler {
 public:
  // `start`: offset of the first byte that will be fed.
  explicit LineAssembler(int64_t start = 0) : offset_(start) {}

  // Calls emit(const AssembledLine&) for each line that is complete now, as the next two do.
  template <typename Emit>
  void Feed(std::string_view bytes, Emit&& emit);
  // The source lost `bytes` here: the open line ends (kFlush), offsets go on, the next line says
  // lost_before.
  template <typename Emit>
  void Lose(int64_t bytes, Emit&& emit);
  // Emits the open line, if any.
  template <typename Emit>
  void Flush(LineEnd end, Emit&& emit);

  bool has_open_line() const { return open_size_ > 0 || after_cr_; }
  int64_t offset() const { return offset_; }  // of the next byte to be fed

  template <class A>
  void Fields(A& a) {
    a(open_, open_size_, open_offset_, offset_, lost_, after_cr_);
  }

 private:
  static const char* FindByte(const char* begin, const char* end, char byte) {
    const void* found =
        begin == end ? nullptr : std::memchr(begin, byte, static_cast<size_t>(end - begin));
    return found == nullptr ? end : static_cast<const char*>(found);
  }

  void Append(std::string_view bytes);
  AssembledLine CloseOpen(LineEnd end);  // its text is good until the next byte comes

  std::string open_;       // head and, past the cap, tail of the open line
  int64_t open_size_ = 0;  // bytes of the open line, cut ones too
  int64_t open_offset_ = 0;
  int64_t offset_ = 0;
  int64_t lost_ = 0;
  bool after_cr_ =
      false;  // the open line ended in a CR, the last byte fed: an LF would belong to it
};

template <typename Emit>
void LineAssembler::Feed(std::string_view bytes, Emit&& emit) {
  const char* p = bytes.data();
  const char* const end = p + bytes.size();
  if (p != end && after_cr_) {
    const bool pair = *p == '\n';
    if (pair) {
      ++p;
      ++offset_;
    }
    emit(CloseOpen(pair ? LineEnd::kLf : LineEnd::kCr));
  }
  const char* cr = FindByte(p, end, '\r');
  while (p != end) {
    const char* stop = FindByte(p, cr, '\n');  // the CR, or the end, where no LF comes before it
    const std::string_view text(p, static_cast<size_t>(stop - p));
    const bool whole = open_size_ == 0 && text.size() <= kLineCap;
    if (open_size_ == 0) open_offset_ = offset_;
    offset_ += static_cast<int64_t>(text.size());
    p = stop;
    if (stop == end) {
      Append(text);
      return;
    }
    LineEnd kind = LineEnd::kLf;
    const bool is_cr = *p == '\r';
    ++p;
    ++offset_;
    if (is_cr) {
      if (p == end) {  // whether an LF belongs to it is in the bytes to come
        Append(text);
        after_cr_ = true;
        return;
      }
      kind = LineEnd::kCr;
      if (*p == '\n') {
        kind = LineEnd::kLf;
        ++p;
        ++offset_;
      }
      cr = FindByte(p, end, '\r');
    }
    if (whole) {
      emit(AssembledLine{text, open_offset_, kind, 0, std::exchange(lost_, 0)});
    } else {
      Append(text);
      emit(CloseOpen(kind));
    }
  }
}

template <typename Emit>
void LineAssembler::Lose(int64_t bytes, Emit&& emit) {
  if (bytes <= 0) return;
  Flush(LineEnd::kFlush, emit);
  offset_ += bytes;
  lost_ += bytes;
}

template <typename Emit>
void LineAssembler::Flush(LineEnd end, Emit&& emit) {
  if (has_open_line()) emit(CloseOpen(after_cr_ ? LineEnd::kCr : end));
}

}  // namespace rankscope::logs
