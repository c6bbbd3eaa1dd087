// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/speeds.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace rankscope {

std::optional<Target> ReadTarget(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const auto* const name =
      std::find(kSpeedNames.begin(), kSpeedNames.end(), text.substr(0, equals));
  if (name == kSpeedNames.end()) return std::nullopt;
  const std::string_view number = text.substr(equals + 1);
  Target target;
  target.of = static_cast<Speed>(name - kSpeedNames.begin());
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), target.value);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  if (!(target.value > 0) || !std::isfinite(target.value)) return std::nullopt;
  if (target.of == Speed::kMfu && target.value > 1) return std::nullopt;
  return target;
}

}  // namespace rankscope
