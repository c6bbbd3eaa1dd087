// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a Keras record needs from earlier lines: the "Epoch 3/10" above it, and whether that epoch
// is already complete, because `evaluate` prints bars of the same form below the last one. One per
// stream, on the reader's thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::logs {

class KerasContext {
 public:
  // Remembers an "Epoch i/N" line; any other text is ignored.
  void Observe(std::string_view text);
  // Gives an epoch-final record its step. Returns false where the record is not training's. The
  // step's view stays valid until the next Observe.
  bool Complete(std::string_view text, Progress& progress);

  template <class A>
  void Fields(A& a) {
    a(epoch_, seen_, open_);
  }

 private:
  std::string epoch_;
  bool seen_ = false;  // some header was read
  bool open_ = false;  // and its epoch-final line was not
};

}  // namespace rankscope::logs
