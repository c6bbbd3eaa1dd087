// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One record of /dev/kmsg, taken apart: "6,1234,99999,-,caller=T1;text\n SUBSYSTEM=pci\n
// DEVICE=+pci:0000:4f:00.0\n" (Documentation/ABI/testing/dev-kmsg). Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rankscope {

struct KmsgRecord {
  int64_t sequence = 0;
  int64_t microseconds = 0;  // since the machine's start
  bool by_kernel = true;     // facility 0, with which nobody else can write
  // Written as the rest of a line ("c" for "-"), which may begin with anybody's name. NVIDIA's
  // driver writes whole lines so: where the record before has ended, the kernel keeps the mark and
  // makes it a record of its own (seen of driver 580.159 on Linux 6.18).
  bool continues = false;
  std::string_view text;
  // What dev_printk adds, and a hand cannot: of a text the kernel escapes what would begin a line.
  std::string_view device;
};

// nullopt for what is no record; for one of a daemon (facilities above 1, which is what an operator
// writes by hand), which may quote a driver; and for what went on in a record before ("+", until
// Linux 4.9).
std::optional<KmsgRecord> ReadKmsgRecord(std::string_view record);

}  // namespace rankscope
