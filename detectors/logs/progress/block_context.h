// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Records that stand on several lines: OLMo's "[step=10/1000]" and composer's
// "[epoch=1][batch=10/1000]:" with their indented metrics below, and the dicts that the TensorFlow
// models print below a line that names the step. One per stream, on
// the reader's thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::logs {

class BlockContext {
 public:
  bool open() const { return kind_ != kNone; }
  // Remembers a line that opens a block; any other text is ignored.
  void Observe(std::string_view text);
  // Offers a line to the open block; true where it belongs there. The views of the record that it
  // may append stay valid until the next call.
  bool Feed(const CleanLine& line, RecordList& out);

  template <class A>
  void Fields(A& a) {
    a(kind_, lines_, total_steps_, step_seconds_, epoch_, step_, loss_, grad_norm_, learning_rate_);
  }

 private:
  enum Kind : int32_t { kNone, kOlmo, kDict, kComposer };

  void Open(Kind kind, std::string_view step);
  bool FeedOlmo(std::string_view text, RecordList& out);
  bool ObserveComposer(std::string_view text);
  bool FeedComposer(std::string_view text, RecordList& out);
  bool FeedDict(std::string_view text, RecordList& out);
  Progress Take(std::string_view format);

  int32_t kind_ = kNone;
  int32_t lines_ = 0;  // fed since it opened
  double total_steps_ = kAbsent;
  double epoch_ = kAbsent;
  double step_seconds_ = kAbsent;
  std::string step_;
  std::string loss_;
  std::string grad_norm_;
  std::string learning_rate_;
};

}  // namespace rankscope::logs
