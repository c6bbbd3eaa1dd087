// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <cmath>
#include <cstdlib>

#include "detectors/families/family.h"
#include "detectors/wording.h"
#include "detectors/wording_rooms.h"

namespace rankscope::engine {
namespace {

using families::Number;
using features::Evidence;
using features::EvidenceKind;

std::string Percent(double share) {
  return Number(std::round(100 * share)) + " %";
}

std::string Card(const Evidence& e) {
  const std::string ranks = RankList(e.ranks);
  return "GPU " + std::string(e.Capture("gpu")) + (ranks.empty() ? "" : " of " + ranks);
}

struct Reason {
  uint32_t bit;
  std::string_view words;
};
constexpr std::array kReasons = {
    Reason{0x8, "a hardware slowdown"},
    Reason{0x20, "heat, by software"},
    Reason{0x40, "heat, by hardware"},
    Reason{0x80, "the power brake"},
};

std::string Reasons(std::string_view number) {
  const auto bits = static_cast<uint32_t>(std::strtoul(std::string(number).c_str(), nullptr, 10));
  std::string text;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) == 0) continue;
    text += (text.empty() ? "" : " and ") + std::string(reason.words);
  }
  return text;
}

std::string What(const Evidence& e) {
  const std::string_view what = e.Capture("what");
  if (what == "ecc") return " uncorrected memory errors";
  return what == "remapped" ? " memory rows replaced for uncorrectable errors"
                            : " failed row remaps";
}

std::string Known(std::string_view before, std::string_view value, std::string_view after) {
  return value.empty() ? std::string()
                       : std::string(before) + std::string(value) + std::string(after);
}

}  // namespace

std::string GpuText(const Evidence& e) {
  const double value = e.observed.value_or(0);
  switch (e.kind) {
    case EvidenceKind::kGpuActivity: {
      std::string text = "the engine of " + Card(e) + " ran for " + Percent(value) +
                         " of the last minute" +
                         Known(", at most ", e.Capture("busiest"), " % in any of the last five");
      text += Known(", with ", e.Capture("used"), " MiB held");
      return text + (value < 0.02 && e.Capture("idle") != "0"
                         ? Known("; nothing has run on it for ", e.Capture("idle"), " s")
                         : "");
    }
    case EvidenceKind::kGpuThrottle:
      return Card(e) + " was held down by " + Reasons(e.Capture("bits")) + " for at least " +
             Percent(value) + " of its busy time in each of the last two minutes" +
             Known(": ", e.Capture("clock"), " MHz") +
             (e.Capture("best") == "0" ? "" : Known(" against ", e.Capture("best"), " MHz")) +
             Known(", at ", e.Capture("temperature"), " degrees Celsius");
    case EvidenceKind::kGpuErrors:
      return Card(e) + " counted " + Number(value) + What(e) + " under the run" +
             Known(", after ", e.Capture("before"), " before it");
    case EvidenceKind::kGpuForeign:
      return Number(std::round(value / (1 << 30) * 10) / 10) + " GiB of " + Card(e) +
             " are held by processes that are not the job's, most by " +
             std::string(e.Capture("name")) + " (pid " + std::string(e.Capture("pid")) + ")";
    case EvidenceKind::kGpuLatent:
      if (e.Capture("what") == "remap_pending")
        return Card(e) +
               " has had memory rows to replace since before the run, which a reset of it "
               "would do";
      return Card(e) + " has had " + Number(value) + What(e) +
             " since before the run, and none has come under it";
    default:
      return {};
  }
}

}  // namespace rankscope::engine
