// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where to put a probe on a function. The kernel emulates a few instructions; every other one that
// a probe replaces it executes out of line, one step at a time, at 7 to 19 times the cost. So a
// probe may move down from the entry to an instruction that is emulated, past such as change
// neither the arguments nor the stack pointer, so that arguments, return address and return value
// still stand where the calling convention has them. x86-64. Pure; any thread.
//
//     libcuda.so.1      +0   cmpl $0x321cba00, x(%rip)   single-stepped: 10 us
//                       +10  je ...                      emulated: 0.5 us, nothing has changed
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rankscope::probes {

enum class SiteClass : uint8_t {
  kNop,         // skipped
  kPush,        // emulated
  kEmulated,    // a jump or a call
  kSingleStep,  // stepped out of line
  kUnknown,     // an instruction that this decoder does not know; stepped, if the kernel takes it
};
inline constexpr int kSiteClasses = 5;
std::string_view SiteClassName(SiteClass site);
constexpr bool IsCheap(SiteClass site) {
  return site <= SiteClass::kEmulated;
}

struct Site {
  size_t offset = 0;  // from the function's first byte
  SiteClass site = SiteClass::kUnknown;
  bool operator==(const Site&) const = default;
};

// What of a function is looked at: beyond that, a prologue is over.
inline constexpr size_t kPrologueBytes = 32;

// `code`: the first bytes of the function; it may be cut anywhere. `skips_long_nops`: kernels from
// 6.18 on emulate the 5-byte nop too.
Site PlaceProbe(std::span<const uint8_t> code, bool skips_long_nops = false);

// What the placement is made of.
struct Instruction {
  enum class Kind : uint8_t {
    kUnknown,
    kNop,
    kLongNop,  // the one of 5 bytes that compilers leave for tracers
    kPush,
    kJump,      // or call: emulated; nothing behind it can be relied on
    kHarmless,  // writes no argument, no stack pointer
    kOther,
  };
  Kind kind = Kind::kUnknown;
  size_t bytes = 0;  // 0 = unknown
};
Instruction Decode(std::span<const uint8_t> code);

}  // namespace rankscope::probes
