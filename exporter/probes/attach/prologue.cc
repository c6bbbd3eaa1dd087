// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/prologue.h"

#include <algorithm>
#include <array>

namespace rankscope::probes {
namespace {

using Kind = Instruction::Kind;

// How an opcode continues, and which operand it writes.
enum Shape : uint16_t {
  kNone = 0,
  kModRm = 1,
  kImm8 = 2,
  kImm32 = 4,  // 16 bits with the operand-size prefix
  kImm64 = 8,  // with REX.W, else as kImm32
  kWritesRm = 16,
  kWritesReg = 32,
  kWritesLow = 64,  // the register in the opcode's low bits
  kByte = 128,      // 8-bit registers
  kBad = 256,       // unknown, or not to be passed
};

constexpr uint8_t kRcx = 1, kRdx = 2, kRsp = 4, kRsi = 6, kRdi = 7, kR8 = 8, kR9 = 9;

bool HoldsArgument(int reg) {
  return reg == kRdi || reg == kRsi || reg == kRdx || reg == kRcx || reg == kR8 || reg == kR9;
}

constexpr std::array<uint16_t, 256> OneByte() {
  std::array<uint16_t, 256> t{};
  t.fill(kBad);
  for (int op = 0; op < 0x40; op += 8) {  // add or adc sbb and sub xor cmp
    const bool compares = op == 0x38;
    t[op] = kModRm | kByte | (compares ? 0 : kWritesRm);
    t[op + 1] = kModRm | (compares ? 0 : kWritesRm);
    t[op + 2] = kModRm | kByte | (compares ? 0 : kWritesReg);
    t[op + 3] = kModRm | (compares ? 0 : kWritesReg);
    t[op + 4] = kImm8;   // al
    t[op + 5] = kImm32;  // eax
  }
  t[0x63] = kModRm | kWritesReg;
  t[0x80] = kModRm | kImm8 | kByte | kWritesRm;
  t[0x81] = kModRm | kImm32 | kWritesRm;
  t[0x83] = kModRm | kImm8 | kWritesRm;
  t[0x84] = t[0x85] = kModRm;
  t[0x88] = kModRm | kByte | kWritesRm;
  t[0x89] = kModRm | kWritesRm;
  t[0x8a] = kModRm | kByte | kWritesReg;
  t[0x8b] = t[0x8d] = kModRm | kWritesReg;
  t[0x98] = kNone;  // cdqe
  t[0xa8] = kImm8;
  t[0xa9] = kImm32;
  for (int op = 0xb0; op < 0xb8; ++op) t[op] = kImm8 | kByte | kWritesLow;
  for (int op = 0xb8; op < 0xc0; ++op) t[op] = kImm64 | kWritesLow;
  t[0xc0] = kModRm | kImm8 | kByte | kWritesRm;
  t[0xc1] = kModRm | kImm8 | kWritesRm;
  t[0xc6] = kModRm | kImm8 | kByte | kWritesRm;
  t[0xc7] = kModRm | kImm32 | kWritesRm;
  t[0xd0] = t[0xd2] = kModRm | kByte | kWritesRm;
  t[0xd1] = t[0xd3] = kModRm | kWritesRm;
  return t;
}

// After 0f.
constexpr std::array<uint16_t, 256> TwoByte() {
  std::array<uint16_t, 256> t{};
  t.fill(kBad);
  for (int op : {0x10, 0x11, 0x28, 0x29, 0x54, 0x57, 0x6e, 0x6f, 0x7f, 0xd6, 0xef}) t[op] = kModRm;
  t[0x7e] = kModRm | kWritesRm;                                             // movd from xmm
  for (int op = 0x40; op < 0x50; ++op) t[op] = kModRm | kWritesReg;         // cmov
  for (int op = 0x90; op < 0xa0; ++op) t[op] = kModRm | kByte | kWritesRm;  // set
  t[0xaf] = kModRm | kWritesReg;
  for (int op : {0xb6, 0xb7, 0xbe, 0xbf}) t[op] = kModRm | kWritesReg;
  return t;
}

constexpr std::array<uint16_t, 256> kOneByte = OneByte();
constexpr std::array<uint16_t, 256> kTwoByte = TwoByte();

class Decoder {
 public:
  explicit Decoder(std::span<const uint8_t> code) : code_(code) {}

  Instruction Run() {
    while (at_ < code_.size() && IsPrefix(code_[at_])) TakePrefix(code_[at_++]);
    if (at_ < code_.size() && (code_[at_] & 0xf0) == 0x40) rex_ = code_[at_++];
    if (at_ >= code_.size()) return {};
    const uint8_t op = code_[at_++];
    if (op == 0x0f) return Two();
    if (op == 0x90 && rex_ == 0) return Done(Kind::kNop);
    if ((op & 0xf8) == 0x50) return Push();
    if (op == 0xeb || (op & 0xf0) == 0x70) return Jump(1);
    if (op == 0xe8 || op == 0xe9) return Jump(4);
    if (op == 0xf6 || op == 0xf7) return Test(op);
    return Table(kOneByte[op], op);
  }

 private:
  static bool IsPrefix(uint8_t byte) {
    return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0x64 || byte == 0x65 ||
           byte == 0x2e || byte == 0x3e;
  }

  void TakePrefix(uint8_t byte) {
    ++prefixes_;
    short_ |= byte == 0x66;
    repeat_ |= byte == 0xf3;
  }

  Instruction Done(Kind kind) const {
    if (at_ > code_.size() || at_ > 15) return {};
    return {kind, at_};
  }

  Instruction Push() {
    // The kernel emulates push with no prefix but REX.B.
    return Done(prefixes_ == 0 && (rex_ == 0 || rex_ == 0x41) ? Kind::kPush : Kind::kOther);
  }

  Instruction Jump(size_t bytes) {
    at_ += bytes;
    return Done(short_ ? Kind::kOther : Kind::kJump);
  }

  Instruction Two() {
    if (at_ >= code_.size()) return {};
    const uint8_t op = code_[at_++];
    if ((op & 0xf0) == 0x80) return Jump(4);
    if (op == 0x1e && repeat_) {  // endbr64
      if (at_ >= code_.size() || code_[at_] != 0xfa) return {};
      ++at_;
      return Done(Kind::kHarmless);
    }
    if (op == 0x1f) {
      if (!ModRm()) return {};
      const bool five = at_ == 5 && prefixes_ == 0 && rex_ == 0;
      return Done(five ? Kind::kLongNop : Kind::kHarmless);
    }
    return Table(kTwoByte[op], op);
  }

  // Group 3: test, not, neg; what multiplies and divides writes rdx.
  Instruction Test(uint8_t op) {
    if (!ModRm() || reg_ % 8 >= 4) return {};
    if (reg_ % 8 < 2) at_ += op == 0xf6 ? 1 : (short_ ? 2 : 4);
    return Done(reg_ % 8 >= 2 && IsSpoilt(rm_, op == 0xf6) ? Kind::kOther : Kind::kHarmless);
  }

  Instruction Table(uint16_t shape, uint8_t op) {
    if ((shape & kBad) != 0) return {};
    if ((shape & kModRm) != 0 && !ModRm()) return {};
    if ((shape & kImm8) != 0) at_ += 1;
    if ((shape & kImm32) != 0) at_ += short_ ? 2 : 4;
    if ((shape & kImm64) != 0) at_ += (rex_ & 8) != 0 ? 8 : (short_ ? 2 : 4);
    const bool byte = (shape & kByte) != 0;
    // Group 1's last is a comparison.
    const bool compares = op >= 0x80 && op <= 0x83 && (shape & kWritesRm) != 0 && reg_ % 8 == 7;
    bool spoilt = false;
    if ((shape & kWritesRm) != 0 && !compares) spoilt |= IsSpoilt(rm_, byte);
    if ((shape & kWritesReg) != 0) spoilt |= IsSpoilt(reg_, byte);
    if ((shape & kWritesLow) != 0) spoilt |= IsSpoilt((op & 7) | ((rex_ & 1) << 3), byte);
    return Done(spoilt ? Kind::kOther : Kind::kHarmless);
  }

  // An argument, or the stack pointer. Without REX, 4 to 7 of the 8-bit registers are the second
  // bytes of the first four.
  bool IsSpoilt(int reg, bool byte) const {
    if (reg == kStackMemory) return true;
    if (reg == kMemory) return false;
    if (byte && rex_ == 0 && reg >= 4 && reg < 8) reg -= 4;
    return reg == kRsp || HoldsArgument(reg);
  }

  bool ModRm() {
    if (at_ >= code_.size()) return false;
    const uint8_t byte = code_[at_++];
    const int mod = byte >> 6;
    reg_ = (byte >> 3 & 7) | ((rex_ & 4) << 1);
    rm_ = (byte & 7) | ((rex_ & 1) << 3);
    if (mod == 3) return true;
    int base = rm_;
    bool displaced = mod == 0 && (byte & 7) == 5;  // to rip
    if ((byte & 7) == 4) {
      if (at_ >= code_.size()) return false;
      const uint8_t sib = code_[at_++];
      base = (sib & 7) | ((rex_ & 1) << 3);
      displaced = mod == 0 && (sib & 7) == 5;
    }
    if (mod == 1) at_ += 1;
    if (mod == 2 || displaced) at_ += 4;
    // Above the stack pointer stand the return address and arguments.
    rm_ = base == kRsp && (byte & 7) == 4 ? kStackMemory : kMemory;
    return true;
  }

  static constexpr int kMemory = 100;
  static constexpr int kStackMemory = 101;
  std::span<const uint8_t> code_;
  size_t at_ = 0;
  int prefixes_ = 0;
  uint8_t rex_ = 0;
  bool short_ = false;
  bool repeat_ = false;
  int reg_ = 0;
  int rm_ = 0;
};

}  // namespace

std::string_view SiteClassName(SiteClass site) {
  constexpr std::array<std::string_view, kSiteClasses> kNames = {"nop", "push", "emulated",
                                                                 "single_step", "unknown"};
  return kNames[static_cast<size_t>(site)];
}

Instruction Decode(std::span<const uint8_t> code) {
  return Decoder(code.subspan(0, std::min<size_t>(code.size(), 15))).Run();
}

Site PlaceProbe(std::span<const uint8_t> code, bool skips_long_nops) {
  code = code.subspan(0, std::min(code.size(), kPrologueBytes));
  Site entry;
  for (size_t at = 0; at < code.size();) {
    const Instruction next = Decode(code.subspan(at));
    if (next.bytes == 0) break;
    if (at == 0) entry.site = SiteClass::kSingleStep;
    switch (next.kind) {
      case Kind::kNop:
        return {at, SiteClass::kNop};
      case Kind::kPush:
        return {at, SiteClass::kPush};
      case Kind::kJump:
        return {at, SiteClass::kEmulated};
      case Kind::kLongNop:
        if (skips_long_nops) return {at, SiteClass::kNop};
        break;
      case Kind::kHarmless:
        break;
      case Kind::kOther:
      case Kind::kUnknown:
        return entry;
    }
    at += next.bytes;
  }
  return entry;
}

}  // namespace rankscope::probes
