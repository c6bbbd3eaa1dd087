// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a printed configuration says that will run with the training: callbacks, for known hazards.
#include <algorithm>
#include <array>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"

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

// What Megatron prints of its arguments before it trains, as far as a known hazard or a warning
// asks for it; the whole list is several hundred lines.
constexpr std::string_view kArguments[] = {"check_for_nan_in_loss_and_grad",
                                           "empty_unused_memory_level",
                                           "exit_on_missing_checkpoint",
                                           "load",
                                           "no_load_optim",
                                           "pipeline_model_parallel_size",
                                           "save",
                                           "tensor_model_parallel_size"};

// "  tensor_model_parallel_size ...................... 8": the name, at least three dots, the
// value.
bool ParseArgument(const CleanLine& line, RecordList& out) {
  std::string_view text = Trimmed(line.text);
  const size_t space = text.find(' ');
  if (space == std::string_view::npos) return false;
  const std::string_view name = text.substr(0, space);
  const auto known = std::find(std::begin(kArguments), std::end(kArguments), name);
  if (known == std::end(kArguments)) return false;
  text = LeftTrimmed(text.substr(space));
  const size_t dots = std::min(text.find_first_not_of('.'), text.size());
  constexpr size_t kLeastDots = 3;
  if (dots < kLeastDots || dots == text.size() || text[dots] != ' ') return false;
  const std::string_view value = LeftTrimmed(text.substr(dots));
  if (value.empty()) return false;
  out.push_back(MakeMarker(MarkerKind::kFact, *known, line, value));
  return true;
}

// " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 354871296"
bool ParseParameters(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kRank =
      "number of parameters on (tensor, pipeline) model parallel rank (0, 0): ";
  const size_t at = line.text.find(kRank);
  if (at == std::string_view::npos) return false;
  const std::string_view value = Trimmed(line.text.substr(at + kRank.size()));
  if (value.empty() || value.find_first_not_of("0123456789") != std::string_view::npos)
    return false;
  out.push_back(MakeMarker(MarkerKind::kFact, "parameters", line, value));
  return true;
}

constexpr std::string_view kArgument[] = {" ..."};
constexpr std::string_view kParameters[] = {"number of parameters on (tensor, pipeline)"};

constexpr std::array kRows = {
    FormatRow{"load_argument", "megatron", kArgument, ParseArgument,
              "  load ............................................ out/gpt"},
    FormatRow{
        "parameters_of_megatron", "megatron", kParameters, ParseParameters,
        " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): 354871296"},
    FormatRow{"callback", "nemo", kCallback, ParseCallback,
              "- _target_: nemo.lightning.pytorch.callbacks.GarbageCollectionCallback"},
};

}  // namespace

std::span<const FormatRow> LibraryFactRows() {
  return kRows;
}

}  // namespace rankscope::logs
