// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What libraries say of themselves at start, for known hazards: settings that NCCL read from the
// environment (misc/param.cc and ncclGetEnv's callers print them at NCCL_DEBUG=INFO), the version
// of the aws-ofi-nccl plugin, the interface of NCCL's bootstrap, callbacks in a printed
// configuration.
#include <algorithm>
#include <array>

#include "detectors/logs/dialects.h"
#include "detectors/logs/progress_fields.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kSetBy = " set by environment to ";

bool OfName(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view Word(std::string_view text) {
  return text.substr(0, text.find_first_of(" \t,;<"));
}

// "NCCL INFO NCCL_ALGO set by environment to Ring": the text is "NAME set by ... VALUE", whole.
bool ParseEnvironment(const CleanLine& line, RecordList& out) {
  const size_t at = line.text.find(kSetBy);
  if (at == std::string_view::npos || line.text.find("NCCL INFO ") > at) return false;
  size_t begin = at;
  while (begin > 0 && OfName(line.text[begin - 1])) --begin;
  std::string_view text = line.text.substr(begin);
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.remove_suffix(1);
  if (begin == at || text.size() <= at - begin + kSetBy.size()) return false;
  out.push_back(MakeMarker(MarkerKind::kFact, "environment", line, text));
  return true;
}

bool Follows(const CleanLine& line, std::string_view name, std::string_view phrase,
             RecordList& out) {
  const size_t at = line.text.find(phrase);
  if (at == std::string_view::npos || line.text.find("NCCL INFO ") > at) return false;
  std::string_view value = line.text.substr(at + phrase.size());
  // "[0]eth0:10.0.0.4<0>", "eth0:10.0.0.4<0>"
  if (value.starts_with('[')) value.remove_prefix(std::min(value.find(']') + 1, value.size()));
  value = Word(value);
  if (value.empty()) return false;
  out.push_back(MakeMarker(MarkerKind::kFact, name, line, value));
  return true;
}

bool ParsePlugin(const CleanLine& line, RecordList& out) {
  return Follows(line, "aws_ofi_nccl_version", "Initializing aws-ofi-nccl ", out);
}
bool ParseInterface(const CleanLine& line, RecordList& out) {
  return Follows(line, "nccl_interface", "Bootstrap : Using ", out) ||
         Follows(line, "nccl_interface", "Bootstrap: Using ", out);
}

// "- _target_: nemo.lightning.pytorch.callbacks.GarbageCollectionCallback": a configuration that is
// being run with, not a sentence about it.
bool ParseCallback(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kTarget = "_target_: ";
  const size_t at = line.text.find(kTarget);
  if (at == std::string_view::npos ||
      line.text.substr(0, at).find_first_not_of(" -\t") != std::string_view::npos)
    return false;
  const std::string_view value = Word(line.text.substr(at + kTarget.size()));
  if (!value.ends_with("Callback") && !value.ends_with("Monitor")) return false;
  out.push_back(MakeMarker(MarkerKind::kFact, "callback", line, value));
  return true;
}

constexpr std::string_view kEnvironment[] = {kSetBy};
constexpr std::string_view kPlugin[] = {"Initializing aws-ofi-nccl "};
constexpr std::string_view kInterface[] = {"Bootstrap : Using ", "Bootstrap: Using "};
constexpr std::string_view kCallback[] = {"_target_: "};

constexpr std::array kRows = {
    FormatRow{"environment_of_nccl", "nccl", kEnvironment, ParseEnvironment,
              "n1:312:340 [0] NCCL INFO NCCL_ALGO set by environment to Ring"},
    FormatRow{"aws_ofi_nccl_version", "nccl", kPlugin, ParsePlugin,
              "n1:312:340 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.15.0"},
    FormatRow{"nccl_interface", "nccl", kInterface, ParseInterface,
              "n1:312:312 [0] NCCL INFO Bootstrap : Using ens5:10.0.0.4<0>"},
    FormatRow{"callback_configured", "nemo", kCallback, ParseCallback,
              "- _target_: nemo.lightning.pytorch.callbacks.GarbageCollectionCallback"},
};

}  // namespace

std::span<const FormatRow> LibraryFactRows() {
  return kRows;
}

}  // namespace rankscope::logs
