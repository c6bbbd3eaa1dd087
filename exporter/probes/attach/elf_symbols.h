// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Finds functions by their names in a file of ELF format, shared or executable, stripped or not.
// The files are those of the jobs' users: they are read in pieces with every bound checked, never
// mapped, so that neither a damaged file nor one that shrinks can end the daemon, and no more of
// them than kMostWork. Pure but for the reading; any thread.
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
  bool cut = false;   // there is more than is read of one file: what it has is not known
  uint64_t work = 0;  // bytes read, and what looking at them has cost beyond that
};

// Names that are wanted, none longer than kLongestName, each beginning with "cu" or "nccl": only
// such are looked for in the string tables. Or one name, which may be any.
using Names = std::unordered_set<std::string_view>;
inline constexpr size_t kLongestName = 63;

// A library of 2 GB has 64 MB of names and 30 MB of symbols, and twice that when it is not
// stripped.
inline constexpr uint64_t kMostWork = 256 << 20;
// Places of one file: of all names, and of one name, which a static library may have in some units.
inline constexpr size_t kMostFunctions = 512;
inline constexpr int kMostOfOneName = 8;

Result<ElfFile> ReadElf(const ReadAt& read, const Names& wanted);

// Of a descriptor, which must stay open as long as this is used.
ReadAt ReaderOf(int fd);

}  // namespace rankscope::probes
