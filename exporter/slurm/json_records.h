// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The objects in an answer of Slurm, one at a time: {"jobs": [{...}, {...}], "meta": {...}}. An
// answer of 5,000 jobs is 16 MB of text and would be 200 MB of values at once; so each object is
// handed out and forgotten, and names that nobody reads are passed over. For json_reader.cc. Any
// bytes; no exception but for memory; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "exporter/slurm/json_values.h"

namespace rankscope::exporter::slurm {

// 80,000 jobs of 3.1 kB. The index of a text takes as much again.
inline constexpr size_t kMaxJsonBytes = size_t{256} << 20;
// Slurm's deepest, the cores of a job's sockets, stand at 11.
inline constexpr size_t kMaxJsonDepth = 32;
// Kept values of one job, node or step: an accounting record has 150, of diagnostics 3,000.
inline constexpr size_t kMaxRecordValues = 65'536;

struct JsonRecord {
  std::string_view list;  // the name it stands under: "jobs", "nodes", "statistics"
  bool step = false;      // of the list "steps" of the record that follows
  const Json& value;      // until the next record
};

// Hands out each object of the lists (and each object) under the outermost names, steps before the
// job that they belong to. `text` without its end is no object at all; bytes that are no UTF-8 cost
// themselves only. False: it is no JSON, or beyond the bounds; what was handed out was whole.
bool ForEachJsonRecord(std::string text, bool (*keep)(std::string_view name),
                       const std::function<void(const JsonRecord&)>& take);

}  // namespace rankscope::exporter::slurm
