// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the NVIDIA driver's error codes mean: whose fault each is, and what brings the card back to
// order. The table is xids.inc. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace rankscope {

enum class XidClass : uint8_t {
  kProgram,   // a kernel or a call of the program, first of all
  kHardware,  // the card, its memory, its links
  kDriver,    // driver or firmware, and the hardware may be behind it
  kFollows,   // comes after another error, or after the end of a process
  kLatent,    // damage that ends nothing yet
  kInforms,
  kUnknown,  // not in the catalogue
};

enum class XidAction : uint8_t {
  kNone,
  kRestartApp,
  kResetGpu,
  kRestartNode,
  kInspect,  // the card, its power, its links
  kUpdateDriver,
};

struct Xid {
  int32_t code = 0;
  XidClass kind = XidClass::kUnknown;
  XidAction action = XidAction::kInspect;
  std::string_view meaning;  // a phrase; empty where nobody knows
};

Xid FindXid(int64_t code);

// "reset the card"; empty where there is nothing to do.
std::string_view XidActionPhrase(XidAction action);

}  // namespace rankscope
