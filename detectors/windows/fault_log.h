// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel's log said of the node while an attempt ran, besides Xids: switches, PCIe,
// machine checks, memory, disks, file servers, tasks that hang. Equal lines are one fault with a
// count. Bounded: of more kinds than kMax the oldest goes. Single writer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::windows {

struct KernelFault {
  static constexpr size_t kTextCap = 512;

  KernelEventType type = KernelEventType::kUnnamed;
  std::string text;    // the newest line
  std::string device;  // domain:bus:device, or the file server's name; empty = none is named
  int32_t code = -1;   // of an NVSwitch's error
  int32_t pid = 0;     // of the process of this job that it befell; 0 = none
  int32_t rank = -1;   // its
  bool over = false;   // the file server answers again
  int64_t times = 0;
  Timestamp first, last;

  bool own() const { return pid != 0; }

  template <class A>
  void Fields(A& a) {
    a(type, text, device, code, pid, rank, over, times, first, last);
  }
};

class FaultLog {
 public:
  static constexpr size_t kMax = 64;

  // Whether events of this type are of the node rather than of one card or process.
  static bool Takes(KernelEventType type);

  // `pid`, `rank`: of the process of this job that the event names; 0 and -1 = it names none.
  void OnKernelEvent(const KernelEvent& event, int32_t pid, int32_t rank, Timestamp t);

  // In order of their first lines.
  const std::vector<KernelFault>& all() const { return faults_; }
  int64_t dropped() const { return dropped_; }

  template <class A>
  void Fields(A& a) {
    a(faults_, dropped_);
    if (faults_.size() > kMax) faults_.resize(kMax);  // restored from damaged bytes
  }

 private:
  std::vector<KernelFault> faults_;
  int64_t dropped_ = 0;
};

}  // namespace rankscope::windows
