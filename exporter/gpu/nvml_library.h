// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// NVIDIA's management library, found at run time: a machine without a GPU has none, and one with
// an older driver has fewer functions. Opening and every call may wait for the driver, so all of
// this is for workers; several threads may call at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/gpu/nvml_abi.h"
#include "exporter/gpu/nvml_calls.h"

namespace rankscope::collectors::nvml {

struct Functions {
#define NVML_FUNCTION(member, symbol, ...) std::add_pointer_t<__VA_ARGS__> member = nullptr;
#include "exporter/gpu/nvml_functions.inc"
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
    if (function == nullptr) return kFunctionNotFound;
    const auto begin = std::chrono::steady_clock::now();
    const Return result = function(arguments...);
    const auto took = std::chrono::steady_clock::now() - begin;
    calls_->Note(PlaceOf(member), result,
                 std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
    return result;
  }

  const Functions& functions() const { return functions_; }
  const std::string& driver() const { return driver_; }
  std::vector<LibraryCall> calls() const { return calls_->Read(); }

 private:
  // In nvml_functions.inc, of which each line is one pointer.
  template <class F>
  size_t PlaceOf(F Functions::*member) const {
    static_assert(sizeof(Functions) == kFunctions * sizeof(F));
    const auto* const first = reinterpret_cast<const std::byte*>(&functions_);
    const auto* const place = reinterpret_cast<const std::byte*>(&(functions_.*member));
    return static_cast<size_t>(place - first) / sizeof(F);
  }

  Functions functions_;
  std::unique_ptr<CallBook> calls_ = std::make_unique<CallBook>();
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
