// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// NVIDIA's management library, found at run time: a machine without a card has none, and one with
// an older driver has fewer functions. Opening and every call may wait for the driver, so all of
// this is for workers; several threads may call at once.
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include "detectors/model/observation.h"
#include "exporter/collectors/nvml_abi.h"

namespace rankscope::collectors::nvml {

struct Functions {
#define NVML_FUNCTION(member, symbol, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
#include "exporter/collectors/nvml_functions.inc"
#undef NVML_FUNCTION
};

inline constexpr char kLibraryName[] = "libnvidia-ml.so.1";

// What opening has come to.
struct Opening;

// Open, and initialised. Never closed again: a thread that hangs in it for good would find its code
// gone, and the process that ends takes everything along.
class Library {
 public:
  static Opening Open(const std::string& path);

  // Calls what the library has, and says kFunctionNotFound of what it has not.
  template <class F, class... Arguments>
  Return Call(F Functions::*member, Arguments... arguments) const {
    const F function = functions_.*member;
    return function == nullptr ? kFunctionNotFound : function(arguments...);
  }

  const Functions& functions() const { return functions_; }
  const std::string& driver() const { return driver_; }

 private:
  Functions functions_;
  std::string driver_;
};

struct Opening {
  std::shared_ptr<const Library> library;  // null: state and reason say why
  Availability state = Availability::kUp;
  std::string reason;
};

// What the driver's error means to whoever has to mend it.
Opening Refused(Return error);

// "lost", "no permission": for reasons and logs.
std::string Words(Return error);

}  // namespace rankscope::collectors::nvml
