// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The text of a file that gzip has packed, a block at a time. What is damaged, cut or endless gives
// what could be read of it, and says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rankscope::replay {

// The program that has packed bytes which begin so; empty where none is known to.
std::string_view PackerOf(std::string_view begin);

class PackedText {
 public:
  // Logs shrink to a tenth or a hundredth. What unpacks to more than kMostText, and to more than
  // kMostRatio times its own size by then, was made to be endless (gzip reaches 1032).
  static constexpr int64_t kMostText = int64_t{4} << 30;
  static constexpr int64_t kMostRatio = 400;

  explicit PackedText(int64_t most_text = kMostText);
  ~PackedText();

  // Unpacks from the front of `packed`, from which it takes what it has read, to `text`. Less than
  // `size` where all of `packed` is read, or where it has ended.
  size_t Read(std::string_view& packed, char* text, size_t size);

  bool ended() const { return ended_; }
  // There are no more bytes in the file.
  void Close();
  // What was wrong with it; empty where nothing was.
  const std::string& fault() const { return fault_; }

 private:
  struct Stream;

  void Fail(std::string_view what);
  bool BeginNext(std::string_view& packed);

  std::unique_ptr<Stream> stream_;
  int64_t most_text_;
  int64_t packed_bytes_ = 0;
  int64_t text_bytes_ = 0;
  bool between_ = true;  // before a part, or behind the last one
  std::string head_;     // of a part, while it may be one
  bool ended_ = false;
  std::string fault_;
};

}  // namespace rankscope::replay
