// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/engine_state.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace rankscope::replay {

namespace {

constexpr std::string_view kPartMark = ";part=";
constexpr int64_t kMostParts =
    256;  // 192 MiB: far above any state, far below what a damaged count could ask for

struct Part {
  std::string_view build;
  int64_t index = 1;  // from 1
  int64_t count = 1;
};

Part ParsePart(std::string_view build) {
  const size_t at = build.rfind(kPartMark);
  if (at == std::string_view::npos) return {build};
  const char* end = build.data() + build.size();
  Part part{build.substr(0, at)};
  const auto index = std::from_chars(build.data() + at + kPartMark.size(), end, part.index);
  if (index.ec != std::errc() || index.ptr == end || *index.ptr != '/') return {build};
  const auto count = std::from_chars(index.ptr + 1, end, part.count);
  if (count.ec != std::errc() || count.ptr != end) return {build};
  return part;
}

}  // namespace

std::vector<EngineState> SplitEngineState(EngineState state, size_t part_bytes) {
  std::vector<EngineState> parts;
  const size_t count = std::max<size_t>(1, (state.blob.size() + part_bytes - 1) / part_bytes);
  if (count == 1) {
    parts.push_back(std::move(state));
    return parts;
  }
  for (size_t i = 0; i < count; ++i) {
    parts.push_back(
        {state.build + std::string(kPartMark) + std::to_string(i + 1) + "/" + std::to_string(count),
         state.blob.substr(i * part_bytes, part_bytes)});
  }
  return parts;
}

std::optional<EngineState> EngineStateJoiner::Add(const EngineState& state) {
  const Part part = ParsePart(state.build);
  const bool begins = part.index == 1 && part.count >= 1 && part.count <= kMostParts;
  const bool continues =
      next_ != 0 && part.index == next_ && part.count == parts_ && part.build == so_far_.build;
  if (begins) {
    so_far_ = {std::string(part.build), state.blob};
    parts_ = part.count;
  } else if (continues) {
    so_far_.blob += state.blob;
  } else {
    next_ = 0;
    return std::nullopt;
  }
  next_ = part.index + 1;
  if (part.index < part.count) return std::nullopt;
  next_ = 0;
  return std::move(so_far_);
}

}  // namespace rankscope::replay
