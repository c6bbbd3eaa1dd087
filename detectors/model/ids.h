// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Identities. A pid is reused, so a process is its pid and its start; a rank lives inside a job's
// attempt. Any thread.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace rankscope {

struct ProcessKey {
  int32_t pid = 0;
  int64_t start_ticks = 0;  // clock ticks after boot, /proc/PID/stat field 22

  auto operator<=>(const ProcessKey&) const = default;
  template <class A>
  void Fields(A& a) {
    a(pid, start_ticks);
  }
};

// `rank` is global; -1 where the speaker is not known.
struct RankKey {
  std::string job_id;
  int32_t rank = -1;

  auto operator<=>(const RankKey&) const = default;
  template <class A>
  void Fields(A& a) {
    a(job_id, rank);
  }
};

struct Attempt {
  int32_t slurm_restart = 0;
  int32_t elastic_restart = 0;
  int32_t ordinal = 1;

  auto operator<=>(const Attempt&) const = default;
  template <class A>
  void Fields(A& a) {
    a(slurm_restart, elastic_restart, ordinal);
  }
};

}  // namespace rankscope

template <>
struct std::hash<rankscope::ProcessKey> {
  size_t operator()(const rankscope::ProcessKey& key) const noexcept {
    return static_cast<size_t>(key.start_ticks) * 0x9E3779B97F4A7C15ull ^
           static_cast<size_t>(key.pid);
  }
};
