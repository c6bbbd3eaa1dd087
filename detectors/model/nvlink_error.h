// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the driver says of an error of an NVLink of the fifth generation (Xids 144 to 150), as its
// line ends: "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x0 ..)". The unit of the
// link's logic, whether the link survived it, which link, and the words of the unit's registers.
// Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rankscope {

inline constexpr int32_t kFirstNvlinkXid = 144;
inline constexpr int32_t kLastNvlinkXid = 150;

struct NvlinkError {
  std::string unit;  // "RLW_RXPIPE": the layer, and what of it
  bool fatal = false;
  int32_t link = -1;     // -1: of no link of its own
  int32_t subcode = -1;  // bits 20 to 25 of the first word; -1 = no words
  int64_t status = -1;   // the second word; -1 = not told
  // Found here, made by the device at the other end: subcode 37.
  bool of_peer() const { return subcode == kOfPeer; }

  static constexpr int32_t kOfPeer = 37;
  static constexpr size_t kUnitCap = 32;
};

// Of the text behind the code; nullopt where it does not end like that. A process's name before it
// may hold anything.
std::optional<NvlinkError> ReadNvlinkError(std::string_view text);

}  // namespace rankscope
