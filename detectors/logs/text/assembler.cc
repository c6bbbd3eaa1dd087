// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/assembler.h"

#include <algorithm>
#include <utility>

namespace rankscope::logs {
namespace {

constexpr size_t kHead = kLineCap - kLineTail;

}  // namespace

// Adds to the open line: the first kHead bytes as they come, of the rest the last kLineTail.
void LineAssembler::Append(std::string_view bytes) {
  if (open_size_ == 0) open_.clear();
  open_size_ += static_cast<int64_t>(bytes.size());
  if (open_.size() < kHead) {
    const size_t take = std::min(bytes.size(), kHead - open_.size());
    open_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
  }
  if (bytes.size() >= kLineTail) {
    open_.resize(kHead);
    bytes.remove_prefix(bytes.size() - kLineTail);
  }
  if (bytes.empty()) return;
  open_.append(bytes);
  // The tail grows to twice its size before its front is dropped: each byte moves at most once
  // more.
  if (open_.size() > kHead + 2 * kLineTail) open_.erase(kHead, open_.size() - kHead - kLineTail);
}

AssembledLine LineAssembler::CloseOpen(LineEnd end) {
  if (open_.size() > kLineCap) open_.erase(kHead, open_.size() - kLineCap);
  const int64_t cut = open_size_ - static_cast<int64_t>(open_.size());
  const auto cut_bytes = static_cast<int32_t>(std::min<int64_t>(cut, INT32_MAX));
  open_size_ = 0;
  after_cr_ = false;
  return {open_, open_offset_, end, cut_bytes, std::exchange(lost_, 0)};
}

}  // namespace rankscope::logs
