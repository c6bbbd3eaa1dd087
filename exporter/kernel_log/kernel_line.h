// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One record of /dev/kmsg, and whether it tells of hardware or of something that holds processes
// up. What the line means is decided where all text is read; here only its kind, its process and
// its GPU, which is what a line is addressed by. Anybody can have the kernel write a line with
// words of his own, in the name of a program that crashes: a record is one of these only by its
// form from the first byte on. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detectors/model/kernel_event.h"
#include "exporter/gpu/xid_ledger.h"

namespace rankscope::collectors {

struct KernelLine {
  int64_t sequence = 0;
  KernelEventType kind = KernelEventType::kXid;
  int32_t pid = 0;           // of the process that it names; 0 = none
  int32_t code = -1;         // of an Xid or SXid
  int64_t microseconds = 0;  // since the machine's start, as the kernel's log counts
  RecoveryAction recovery = RecoveryAction::kUntold;  // that an Xid 154 has come to
  bool nonfatal = false;  // an error of an NVLink or of an NVSwitch that it survived
  bool detail = false;    // of an error of an NVSwitch whose line came before
  // The kernel kept it as the rest of another line, and such a rest may be a name that a user gave:
  // a cgroup's, in the lines about an out-of-memory kill. It needs a second witness.
  bool continues = false;
  std::string bus_id;  // domain:bus:device in lower case; empty = no GPU is named
  std::string text;    // without the head, at most kTextCap

  static constexpr size_t kTextCap = 512;
};

// The number of a record ("6,1234,99999,-;text\n KEY=value"); nullopt for what is none.
std::optional<int64_t> SequenceOf(std::string_view record);

// The GPU of the first line of "NVRM: The NVIDIA GPU 0000:03:00.0 (PCI ID: ..)", "NVRM: installed
// in this system has", "NVRM: fallen off the bus ..", which the driver prints as three records;
// empty for other records.
std::string CardOfLongLoss(std::string_view record);

// nullopt for records of no kind above, for what daemons write there, and for the end of a line
// that the kernel could not put to its beginning, unless it reads as NVIDIA's driver writes.
std::optional<KernelLine> ParseKernelRecord(std::string_view record);

}  // namespace rankscope::collectors
