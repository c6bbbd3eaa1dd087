// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/prologue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rankscope::probes {
namespace {

using Kind = Instruction::Kind;

std::vector<uint8_t> Bytes(std::string_view hex) {
  std::vector<uint8_t> bytes;
  for (size_t at = 0; at < hex.size(); at += 3) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(std::string(hex.substr(at, 2)), nullptr, 16)));
  }
  return bytes;
}

Site Place(std::string_view hex, bool skips_long_nops = false) {
  return PlaceProbe(Bytes(hex), skips_long_nops);
}

TEST(Prologue, TheRealDriversComparisonIsPassed) {
  // libcuda.so.1 535.261.03, cuLaunchKernel: cmpl $0x321cba00, x(%rip); je.
  EXPECT_EQ(Place("81 3d 16 53 25 01 00 ba 1c 32 74 0e e9 01 02 03 04"),
            (Site{10, SiteClass::kEmulated}));
  EXPECT_EQ(Place("81 3d 16 53 25 01 00 ba 1c 32 0f 84 01 02 03 04"),
            (Site{10, SiteClass::kEmulated}));
}

TEST(Prologue, APushOrANopIsTakenWhereItStands) {
  EXPECT_EQ(Place("41 56 41 55 41 54"), (Site{0, SiteClass::kPush}));  // libcudart 11.8
  EXPECT_EQ(Place("55 48 89 e5"), (Site{0, SiteClass::kPush}));
  EXPECT_EQ(Place("90 c3"), (Site{0, SiteClass::kNop}));
  EXPECT_EQ(Place("f3 0f 1e fa 55 48 89 e5"), (Site{4, SiteClass::kPush}));  // endbr64
  EXPECT_EQ(Place("f3 0f 1e fa 41 57 41 56"), (Site{4, SiteClass::kPush}));
  EXPECT_EQ(Place("e9 00 00 00 00"), (Site{0, SiteClass::kEmulated}));
}

TEST(Prologue, PastTheStackPointerNothingIsRightForTheReturn) {
  EXPECT_EQ(Place("48 83 ec 18 90"), (Site{0, SiteClass::kSingleStep}));  // sub $24,%rsp
  EXPECT_EQ(Place("48 81 ec 88 00 00 00 55"), (Site{0, SiteClass::kSingleStep}));
  EXPECT_EQ(Place("5d 55"), (Site{0, SiteClass::kUnknown}));                 // pop: not passed
  EXPECT_EQ(Place("48 89 7c 24 f8 55"), (Site{0, SiteClass::kSingleStep}));  // mov %rdi,-8(%rsp)
}

TEST(Prologue, PastAnArgumentNothingIsRightForTheArguments) {
  EXPECT_EQ(Place("31 ff 55"), (Site{0, SiteClass::kSingleStep}));           // xor %edi,%edi
  EXPECT_EQ(Place("48 8b 3f 55"), (Site{0, SiteClass::kSingleStep}));        // mov (%rdi),%rdi
  EXPECT_EQ(Place("4d 89 c1 55"), (Site{0, SiteClass::kSingleStep}));        // mov %r8,%r9
  EXPECT_EQ(Place("be 01 00 00 00 55"), (Site{0, SiteClass::kSingleStep}));  // mov $1,%esi
  EXPECT_EQ(Place("b6 01 55"), (Site{0, SiteClass::kSingleStep}));           // mov $1,%dh
  EXPECT_EQ(Place("99 55"), (Site{0, SiteClass::kUnknown}));                 // cltd writes edx
  EXPECT_EQ(Place("40 b4 01 55"), (Site{0, SiteClass::kSingleStep}));        // mov $1,%spl
}

TEST(Prologue, WhatTouchesNeitherIsPassed) {
  EXPECT_EQ(Place("31 c0 55"), (Site{2, SiteClass::kPush}));                       // xor %eax,%eax
  EXPECT_EQ(Place("48 85 ff 74 10"), (Site{3, SiteClass::kEmulated}));             // test %rdi,%rdi
  EXPECT_EQ(Place("64 48 8b 04 25 28 00 00 00 53"), (Site{9, SiteClass::kPush}));  // mov %fs:40
  EXPECT_EQ(Place("4c 8d 15 01 02 03 04 41 54"), (Site{7, SiteClass::kPush}));  // lea x(%rip),%r10
  EXPECT_EQ(Place("48 b8 01 02 03 04 05 06 07 08 55"), (Site{10, SiteClass::kPush}));
  EXPECT_EQ(Place("49 89 fb 85 f6 7e 05"), (Site{5, SiteClass::kEmulated}));  // mov %rdi,%r11
  EXPECT_EQ(Place("83 fe 07 77 02"), (Site{3, SiteClass::kEmulated}));        // cmp $7,%esi
  EXPECT_EQ(Place("f6 47 08 01 75 02"), (Site{4, SiteClass::kEmulated}));     // testb $1,8(%rdi)
  EXPECT_EQ(Place("0f b6 07 84 c0 74 02"), (Site{5, SiteClass::kEmulated}));  // movzbl (%rdi),%eax
}

TEST(Prologue, LongNopsAreEmulatedByNewKernelsOnly) {
  EXPECT_EQ(Place("0f 1f 44 00 00 55"), (Site{5, SiteClass::kPush}));
  EXPECT_EQ(Place("0f 1f 44 00 00 55", true), (Site{0, SiteClass::kNop}));
  EXPECT_EQ(Place("66 0f 1f 44 00 00 55", true), (Site{6, SiteClass::kPush}));
  EXPECT_EQ(Place("0f 1f 44 00 00 48 83 ec 08"), (Site{0, SiteClass::kSingleStep}));
}

TEST(Prologue, WhatIsNotKnownIsNotPassed) {
  EXPECT_EQ(Place("c5 f8 77 55"), (Site{0, SiteClass::kUnknown}));  // vzeroupper
  EXPECT_EQ(Place("f0 ff 07 55"), (Site{0, SiteClass::kUnknown}));  // lock incl
  EXPECT_EQ(Place("0f a2 55"), (Site{0, SiteClass::kUnknown}));     // cpuid writes edx
  EXPECT_EQ(Place("31 c0 0f a2 55"), (Site{0, SiteClass::kSingleStep}));
  EXPECT_EQ(Place("f7 e6 55"), (Site{0, SiteClass::kUnknown}));  // mul writes edx
  EXPECT_EQ(Place(""), (Site{0, SiteClass::kUnknown}));
  EXPECT_EQ(Place("66 55 c3"), (Site{0, SiteClass::kSingleStep}));  // push %bp: not emulated
}

TEST(Prologue, AnInstructionThatIsCutIsUnknown) {
  const auto whole = Bytes("81 3d 16 53 25 01 00 ba 1c 32 74 0e");
  for (size_t bytes = 0; bytes < 10; ++bytes) {
    EXPECT_EQ(Decode(std::span(whole).first(bytes)).bytes, 0u) << bytes;
    EXPECT_EQ(PlaceProbe(std::span(whole).first(bytes)), Site{}) << bytes;
  }
  EXPECT_EQ(Decode(whole).bytes, 10u);
  EXPECT_EQ(PlaceProbe(std::span(whole).first(11)).site, SiteClass::kSingleStep);
}

// Lengths as objdump gives them for the beginning of functions of Debian 12's libc.so.6.
TEST(Prologue, LengthsAreThoseOfADisassembler) {
  const struct {
    const char* hex;
    size_t bytes;
  } kCases[] = {
      {"f3 0f 1e fa", 4},
      {"41 57", 2},
      {"48 89 e5", 3},
      {"48 8d 35 51 a2 15 00", 7},
      {"48 8b 05 11 8d 18 00", 7},
      {"64 48 8b 04 25 28 00 00 00", 9},
      {"48 83 3d d8 ef 17 00 00", 8},
      {"80 3d 45 99 18 00 00", 7},
      {"48 c7 c0 ff ff ff ff", 7},
      {"c7 07 00 00 00 00", 6},
      {"66 c7 07 01 00", 5},
      {"48 8b 84 24 a0 00 00 00", 8},
      {"8b 44 97 10", 4},
      {"0f 84 c3 00 00 00", 6},
      {"eb fe", 2},
      {"e8 12 34 56 78", 5},
      {"b8 05 00 00 00", 5},
      {"66 b8 05 00", 4},
      {"66 0f 6f 07", 4},
      {"0f 11 47 10", 4},
      {"48 98", 2},
      {"66 2e 0f 1f 84 00 00 00 00 00", 10},
      {"f7 c6 03 00 00 00", 6},
      {"41 f6 c0 01", 4},
      {"48 c1 e0 04", 4},
  };
  for (const auto& one : kCases) {
    auto bytes = Bytes(one.hex);
    EXPECT_EQ(Decode(bytes).bytes, one.bytes) << one.hex;
    bytes.resize(20, 0xcc);  // what follows does not matter
    EXPECT_EQ(Decode(bytes).bytes, one.bytes) << one.hex;
  }
}

}  // namespace
}  // namespace rankscope::probes
