// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a card has done under a job, for people to look at: part of the engine's public state. Plain
// data, about 1 KiB a card; NaN where nothing is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace rankscope {

struct GpuHistory {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  static constexpr size_t kMinutes = 60;

  int32_t index = -1;
  std::string uuid, model;
  std::string card;            // PciCard of its place
  std::string state;           // up | unresponsive | lost | denied | failed; empty = not told
  std::vector<int32_t> ranks;  // that have computed on it, rising

  // The highest use in each of at most 64 equal parts of the run, oldest first.
  double memory_total_bytes = kNone;
  double memory_begin_wall_seconds = kNone, memory_part_seconds = kNone;
  std::vector<float> memory_bytes;

  // Means over minutes, ratios: kMinutes each, the newest last, or none at all.
  double minutes_end_wall_seconds = kNone;  // of the newest
  std::vector<float> engine, sm;
  std::vector<float> throttled;  // share of the looks that found it held down by heat or power
};

}  // namespace rankscope
