// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Finds functions by their names in a file of ELF format, shared or executable, stripped or not.
// The files are those of the jobs' users: they are read in pieces with every bound checked, never
// mapped, so that neither a damaged file nor one that shrinks can end the daemon. Pure but for the
// reading; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "detectors/model/result.h"

namespace rankscope::probes {

// Fills `into` from `offset` of the file; returns how many bytes there were.
using ReadAt = std::function<size_t(uint64_t offset, std::span<std::byte> into)>;

struct ElfFunction {
  std::string name;
  uint64_t offset = 0;        // in the file
  std::vector<uint8_t> code;  // the first kPrologueBytes, or fewer
};

struct ElfFile {
  bool x86_64 = false;
  std::string build_id;                // raw bytes; empty = none
  std::vector<ElfFunction> functions;  // by offset; several names for one are one, the first wanted
};

// Names that are wanted, none longer than kLongestName, each beginning with "cu" or "nccl": only
// such are looked for in the string tables.
using Names = std::unordered_set<std::string_view>;
inline constexpr size_t kLongestName = 63;

Result<ElfFile> ReadElf(const ReadAt& read, const Names& wanted);

}  // namespace rankscope::probes
