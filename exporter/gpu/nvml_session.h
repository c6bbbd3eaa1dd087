// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One look at one device: passes its calls on until one says that the GPU is gone, and remembers
// what they have come to. What a GPU does not support is absent, not an error. The device's worker
// only.
#pragma once

#include <cstdint>

#include "exporter/gpu/nvml_library.h"
#include "exporter/gpu/nvml_values.h"

namespace rankscope::collectors::nvml {

class Session {
 public:
  Session(const Library& library, Device device) : library_(library), device_(device) {}

  // Whether the call was made and succeeded. The device goes before the arguments.
  template <class F, class... Arguments>
  bool Ask(F Functions::*member, Arguments... arguments) {
    return AskOf(device_, member, arguments...);
  }
  template <class F, class... Arguments>
  bool AskOf(Device device, F Functions::*member, Arguments... arguments) {
    if (gone_ != kSuccess) return false;
    return Note(library_.Call(member, device, arguments...));
  }

  // The number that the call leaves in its last argument.
  template <class F, class... Arguments>
  GpuValue Number32(F Functions::*member, Arguments... arguments) {
    uint32_t value = kNotAvailable32;
    return Ask(member, arguments..., &value) ? Known(value) : std::nullopt;
  }
  template <class F, class... Arguments>
  GpuValue Number64(F Functions::*member, Arguments... arguments) {
    uint64_t value = UINT64_MAX;
    return Ask(member, arguments..., &value) ? Known(value) : std::nullopt;
  }

  bool Note(Return result) {
    if (result == kSuccess) {
      ++answers_;
    } else if (result == kGpuIsLost || result == kResetRequired || result == kUninitialized) {
      gone_ = result;
    } else if (result != kNotSupported && result != kFunctionNotFound) {
      last_error_ = result;
    }
    return result == kSuccess;
  }

  const Library& library() const { return library_; }
  Device device() const { return device_; }
  int answers() const { return answers_; }
  Return gone() const { return gone_; }              // kSuccess: it is there
  Return last_error() const { return last_error_; }  // kSuccess: there was none

 private:
  const Library& library_;
  Device device_;
  int answers_ = 0;
  Return gone_ = kSuccess;
  Return last_error_ = kSuccess;
};

}  // namespace rankscope::collectors::nvml
