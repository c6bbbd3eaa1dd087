// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a printed configuration says that will run with the training: callbacks, for known hazards.
#include <algorithm>
#include <array>

#include "detectors/logs/dialects.h"
#include "detectors/logs/progress_fields.h"

namespace rankscope::logs {
namespace {

// "- _target_: nemo.lightning.pytorch.callbacks.GarbageCollectionCallback": a configuration that is
// being run with, not a sentence about it.
bool ParseCallback(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kTarget = "_target_: ";
  const size_t at = line.text.find(kTarget);
  if (at == std::string_view::npos ||
      line.text.substr(0, at).find_first_not_of(" -\t") != std::string_view::npos)
    return false;
  std::string_view value = line.text.substr(at + kTarget.size());
  value = value.substr(0, value.find_first_of(" \t,;"));
  if (!value.ends_with("Callback") && !value.ends_with("Monitor")) return false;
  out.push_back(MakeMarker(MarkerKind::kFact, "callback", line, value));
  return true;
}

constexpr std::string_view kCallback[] = {"_target_: "};

constexpr std::array kRows = {
    FormatRow{"callback", "nemo", kCallback, ParseCallback,
              "- _target_: nemo.lightning.pytorch.callbacks.GarbageCollectionCallback"},
};

}  // namespace

std::span<const FormatRow> LibraryFactRows() {
  return kRows;
}

}  // namespace rankscope::logs
