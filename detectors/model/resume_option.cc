// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/resume_option.h"

#include <algorithm>
#include <iterator>

namespace rankscope {
namespace {

// Options that name the checkpoint to go on from. --load is Megatron-LM's, ckpt_path Lightning's.
constexpr std::string_view kFlags[] = {"--resume",
                                       "--resume-from",
                                       "--resume_from",
                                       "--resume-path",
                                       "--resume_path",
                                       "--resume_from_checkpoint",
                                       "--resume-from-checkpoint",
                                       "--load",
                                       "--ckpt_path",
                                       "--ckpt-path",
                                       "--continue-from",
                                       "--continue_from",
                                       "--init_from=resume",
                                       "--init-from=resume",
                                       "resume_from_checkpoint",
                                       "trainer.resume_from_checkpoint",
                                       "ckpt_path",
                                       "resume",
                                       "--auto-resume",
                                       "--auto_resume"};
// Values that say no.
constexpr std::string_view kNo[] = {"", "None", "none", "null", "False", "false", "no", "0", "off"};
// A checkpoint as the beginning of another training.
constexpr std::string_view kFresh[] = {"--finetune",      "--fine-tune",       "--reset-optimizer",
                                       "--no-load-optim", "--reset_optimizer", "--weights-only"};
template <class List>
bool IsOneOf(const List& list, std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

// The value behind an option of that name.
std::string_view ValueOf(const std::vector<std::string>& argv, std::string_view name) {
  for (size_t i = 1; i + 1 < argv.size(); ++i) {
    if (argv[i] == name) return argv[i + 1];
  }
  return {};
}

}  // namespace

bool SaysNo(std::string_view value) {
  return IsOneOf(kNo, value);
}

bool BeginsAnew(const std::vector<std::string>& argv) {
  return std::any_of(argv.begin(), argv.end(),
                     [](const std::string& word) { return IsOneOf(kFresh, word); });
}

std::string ResumeFlagOf(const std::vector<std::string>& argv) {
  // To load from where one saves asks for a checkpoint if there is one.
  const std::string_view load = ValueOf(argv, "--load");
  if (!load.empty() && load == ValueOf(argv, "--save")) return {};
  if (BeginsAnew(argv)) return {};
  std::string found;
  for (size_t i = 1; i < argv.size(); ++i) {
    const std::string_view word = argv[i];
    if (!found.empty()) continue;
    if (word == "--init_from=resume" || word == "--init-from=resume") found = word;
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    if (!IsOneOf(kFlags, name)) continue;
    const bool dashed = word.starts_with("--");
    if (equals != std::string_view::npos) {
      if (!SaysNo(word.substr(equals + 1))) found = word;
    } else if (dashed) {
      const std::string_view value = i + 1 < argv.size() ? std::string_view(argv[i + 1]) : "";
      if (value.empty() || value.starts_with("-")) {
        found = word;
      } else if (!SaysNo(value)) {
        found = std::string(word) + " " + std::string(value);
      }
    }
  }
  return found;
}

}  // namespace rankscope
