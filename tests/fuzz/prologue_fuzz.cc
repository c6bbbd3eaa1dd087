// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a function's beginning and as an ELF file: a probe lies on an instruction's first
// byte within what was read, and nothing is read beyond the end.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "exporter/probes/attach/elf_symbols.h"
#include "exporter/probes/attach/prologue.h"

using namespace rankscope::probes;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> code(data, size);
  for (const bool long_nops : {false, true}) {
    const Site site = PlaceProbe(code, long_nops);
    if (site.offset != 0 && site.offset >= kPrologueBytes) std::abort();
    size_t at = 0;
    while (at < site.offset) {
      const Instruction next = Decode(code.subspan(at));
      if (next.bytes == 0 || next.bytes > 15) std::abort();
      at += next.bytes;
    }
    if (at != site.offset) std::abort();
    if (site.offset != 0 && !IsCheap(site.site)) std::abort();
  }
  const ReadAt read = [code](uint64_t offset, std::span<std::byte> into) -> size_t {
    if (offset >= code.size()) return 0;
    const size_t n = std::min<uint64_t>(into.size(), code.size() - offset);
    std::memcpy(into.data(), code.data() + offset, n);
    return n;
  };
  const auto elf = ReadElf(read, {"cuLaunchKernel", "ncclAllReduce"});
  if (elf) {
    if (elf->functions.size() > kMostFunctions) std::abort();
    for (const ElfFunction& function : elf->functions) {
      if (function.code.size() > kPrologueBytes) std::abort();
    }
  }
  return 0;
}
