// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A line of NVIDIA's driver about an error of a card, read from its first byte on: "NVRM: Xid
// (PCI:0000:4F:00): 31, pid=4711, name=python3, Ch 00000008". The process's name is that process's
// own choice and may hold anything, so nothing that could be of it is read. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rankscope {

struct XidLine {
  std::string bus_id;  // PciCard of its place
  int32_t code = 0;
  int32_t pid = 0;          // 0: the driver names none
  std::string_view name;    // of that process, as it calls itself; may hold a part of the detail
  std::string_view detail;  // what follows; without a byte of the name
};

// nullopt for every other text. Of 2009 and older "Xid (0000:01:00): 13, ..", since then "Xid
// (PCI:0000:01:00)", of a MIG instance "Xid (PCI:0000:01:00 GPU-I:05)"; the process is named since
// driver 450 (pid) and 460 (name).
std::optional<XidLine> ReadXidLine(std::string_view text);

// TASK_COMM_LEN of include/linux/sched.h, without the zero at the end.
inline constexpr size_t kCommBytes = 15;

// The bytes that the kernel's log wrote for the first `bytes` ones: it writes "\x0a" for what
// cannot be printed and for "\" (kernel/printk/printk.c, msg_add_ext_text).
size_t LoggedSize(std::string_view text, size_t bytes);

}  // namespace rankscope
