// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The engine's state as observations: one may be larger than a frame may be, so it travels in parts
// whose `build` ends in
// ";part=1/3". Any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::replay {

// Well below the cap of a frame, with room for everything around the bytes.
inline constexpr size_t kStatePartBytes = 768 * 1024;

// One part, with `build` unchanged, where the state fits.
std::vector<EngineState> SplitEngineState(EngineState state, size_t part_bytes = kStatePartBytes);

// Puts parts together again. Parts must come in order; anything else starts over.
class EngineStateJoiner {
 public:
  // The whole state when `part` was its last.
  std::optional<EngineState> Add(const EngineState& part);

 private:
  EngineState so_far_;
  int64_t parts_ = 0;
  int64_t next_ = 0;  // 0 = nothing begun
};

}  // namespace rankscope::replay
