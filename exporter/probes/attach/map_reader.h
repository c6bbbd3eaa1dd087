// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What maps in the kernel hold: all entries in a few calls, and counters. Any thread.
#pragma once

#include <bpf/bpf.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rankscope::probes {

// At most `most`; what is written meanwhile may be missed until the next time.
template <typename Key, typename Value>
std::vector<std::pair<Key, Value>> ReadMap(int map, size_t most) {
  constexpr uint32_t kBatch = 256;
  std::vector<std::pair<Key, Value>> entries;
  std::vector<Key> keys(kBatch);
  std::vector<Value> values(kBatch);
  uint32_t position = 0;  // the kernel's own, of a hash map
  for (bool first = true; entries.size() < most; first = false) {
    uint32_t count = kBatch;
    const int result = bpf_map_lookup_batch(map, first ? nullptr : &position, &position,
                                            keys.data(), values.data(), &count, nullptr);
    // At the end, ENOENT with the last ones; anything else, ENOSPC for one, gives none.
    if (result != 0 && errno != ENOENT) break;
    for (uint32_t i = 0; i < count && i < kBatch; ++i) entries.emplace_back(keys[i], values[i]);
    if (result != 0) break;
  }
  return entries;
}

// One of the numbers that a program counts in an array.
inline int64_t ReadCounter(int map, uint32_t index) {
  uint64_t value = 0;
  return bpf_map_lookup_elem(map, &index, &value) == 0 ? static_cast<int64_t>(value) : 0;
}

// The first `kinds` of them together.
inline int64_t SumCounters(int map, uint32_t kinds) {
  int64_t sum = 0;
  for (uint32_t index = 0; index < kinds; ++index) sum += ReadCounter(map, index);
  return sum;
}

}  // namespace rankscope::probes
