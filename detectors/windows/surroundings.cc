// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/surroundings.h"

#include <algorithm>
#include <array>

namespace rankscope::windows {
namespace {

// Variables that change how the libraries below a training behave; who a rank is belongs to
// attribution.
constexpr std::array<std::string_view, 9> kPrefixes = {
    "NCCL_", "TORCH_NCCL_", "TORCH_DISTRIBUTED_", "PYTORCH_", "CUDA_LAUNCH_", "TRITON_",
    "FI_",   "UCX_",        "OMP_NUM_THREADS"};

}  // namespace

Surrounding* Surroundings::FindOrAdd(bool variable, std::string_view name, std::string_view value,
                                     Timestamp t) {
  value = value.substr(0, kValueCap);
  size_t values = 0;
  for (Surrounding& known : all_) {
    if (known.variable != variable || known.name != name) continue;
    if (known.value == value) return &known;
    ++values;
  }
  if (values >= kMostValues || all_.size() >= kMost) return nullptr;
  Surrounding& added = all_.emplace_back();
  added.variable = variable;
  added.name = name;
  added.value = value;
  added.t = t;
  return &added;
}

void Surroundings::OnEnvironment(const std::vector<KeyValue>& environment,
                                 const ProcessKey& process, int32_t rank, Timestamp t) {
  for (const KeyValue& entry : environment) {
    const bool wanted =
        std::any_of(kPrefixes.begin(), kPrefixes.end(),
                    [&entry](std::string_view prefix) { return entry.key.starts_with(prefix); });
    if (!wanted) continue;
    Surrounding* known = FindOrAdd(true, entry.key, entry.value, t);
    if (known == nullptr) continue;
    if (known->process.pid == 0) known->process = process;
    const auto at = std::lower_bound(known->ranks.begin(), known->ranks.end(), rank);
    if (rank >= 0 && known->ranks.size() < kMostRanks && (at == known->ranks.end() || *at != rank))
      known->ranks.insert(at, rank);
  }
}

void Surroundings::OnFact(const logs::Marker& marker, uint32_t stream, int64_t offset,
                          std::string_view line, Timestamp t) {
  std::string_view name = marker.name;
  std::string_view value = marker.text;
  bool variable = false;
  constexpr std::string_view kSetBy = " set by environment to ";
  if (const size_t at = value.find(kSetBy); name == "nccl_setting" && at != value.npos) {
    variable = true;
    name = value.substr(0, at);
    value.remove_prefix(at + kSetBy.size());
    while (value.ends_with('.')) value.remove_suffix(1);  // of a sentence
  }
  Surrounding* known = FindOrAdd(variable, name, value, t);
  if (known == nullptr || known->offset >= 0 || known->process.pid != 0) return;
  known->stream = stream;
  known->offset = offset;
  known->line.assign(line.substr(0, logs::kCitationCap));
}

}  // namespace rankscope::windows
