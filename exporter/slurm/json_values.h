// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One value of Slurm's JSON, in whichever of its shapes: a number has been 5, null and
// {"set": true, "infinite": false, "number": 5}; a state "RUNNING" and ["RUNNING"]; an exit status
// a number of wait(2) and an object. A value of another type is absent. For json_reader.cc. Pure;
// no exception but for memory; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

// A value as it was read. Its texts and elements are somebody else's: json_records.h says for how
// long.
struct Json {
  enum class Kind : uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

  std::string_view name;        // where it is a member
  std::string_view text;        // kString
  const Json* first = nullptr;  // kArray: elements, kObject: members
  size_t size = 0;
  int64_t number = -1;  // kNumber, towards zero; negative: none of Slurm's
  Kind kind = Kind::kNull;
  bool truth = false;  // kBoolean

  bool Is(Kind other) const { return kind == other; }
  std::span<const Json> items() const { return {first, size}; }
};

// The last value under a name; null where there is none, or `object` is no object.
const Json& At(const Json& object, std::string_view name);

// nullopt: not set, infinite, negative, or Slurm's number for none.
std::optional<int64_t> Number(const Json& value);

// Seconds since 1970; 0 = not set.
int64_t Time(const Json& value);

// Without Slurm's words for nothing.
std::string Text(const Json& value, size_t most);

std::vector<std::string> Texts(const Json& value);

std::optional<ExitStatus> Exit(const Json& value);

// GPUs in [{"type": "gres", "name": "gpu:a100", "count": 2}, ...]; of the same as text, GpusOfTres.
std::optional<int64_t> Gpus(const Json& tres);

}  // namespace rankscope::exporter::slurm
