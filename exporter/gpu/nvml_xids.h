// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Waits for the Xids that the driver tells its library of, where the kernel's log may not be read
// or has lost them. The library keeps a set of GPUs to wait for; it is made anew when a GPU of it
// is lost, or is there again. A worker of its own only: the wait sleeps in the library, and every
// call may hang in the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/time.h"
#include "exporter/gpu/nvml_library.h"

namespace rankscope::collectors::nvml {

struct XidHeard {
  std::string card;  // PciCard of its place
  int32_t code = 0;
};

// What one wait has come to.
struct Hearing {
  bool listens = false;  // to one GPU at least
  Return error = kSuccess;
  std::vector<XidHeard> xids;
};

class XidListener {
 public:
  explicit XidListener(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  // The set is left to the driver, which takes it back when the process ends: to free it may hang.
  ~XidListener() = default;
  XidListener(const XidListener&) = delete;
  XidListener& operator=(const XidListener&) = delete;

  // For at most so long, and not longer than until the first has come; then all that wait, kMost
  // together. `anew`: with a new set, of the first `count` GPUs.
  Hearing Listen(bool anew, uint32_t count, Duration wait);

  static constexpr size_t kMost = 1000;

 private:
  Return Begin(uint32_t count);
  void End();

  std::shared_ptr<const Library> library_;
  EventSet set_ = nullptr;
  std::vector<std::pair<Device, std::string>> cards_;  // that are listened to
};

}  // namespace rankscope::collectors::nvml
