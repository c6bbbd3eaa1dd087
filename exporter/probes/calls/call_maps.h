// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reading the maps of the programs at library calls. Loop thread only.
#pragma once

#include <bpf/bpf.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace rankscope::probes {

template <typename K, typename V>
std::optional<V> ReadEntry(int map, const K& key) {
  V value{};
  if (bpf_map_lookup_elem(map, &key, &value) != 0) return std::nullopt;
  return value;
}

// All keys; who comes or goes meanwhile may be missed. At most `most`: a key that is removed while
// it is stood on leads back to the first.
template <typename K>
std::vector<K> ReadKeys(int map, size_t most) {
  std::vector<K> keys;
  K key{};
  for (bool more = bpf_map_get_next_key(map, nullptr, &key) == 0; more && keys.size() < most;
       more = bpf_map_get_next_key(map, &key, &key) == 0) {
    keys.push_back(key);
  }
  return keys;
}

}  // namespace rankscope::probes
