// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The script as it holds now: read from the file that FAKE_NVML_SCRIPT names, again whenever that
// changes. Any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "exporter/gpu/nvml_abi.h"
#include "tests/support/fake_nvml/script.h"

namespace fake_nvml {

namespace abi = rankscope::collectors::nvml;

std::shared_ptr<const Script> Now();
double Seconds();  // since the library's load

// A device's handle, of a whole GPU or of a part of it.
abi::Device HandleOf(size_t gpu);
abi::Device HandleOfPart(size_t gpu, size_t part);

// One call for one device: hangs, fails or goes on as the script says.
struct Call {
  Call(abi::Device device, const char* function);

  std::shared_ptr<const Script> script;
  const Gpu* gpu = nullptr;       // null when it fails
  const MigPart* part = nullptr;  // null: the whole
  size_t index = 0;
  abi::Return result = abi::kSuccess;

  bool fails() const { return result != abi::kSuccess; }
  std::optional<uint64_t> Get(std::string_view key) const;
  std::optional<double> GetReal(std::string_view key) const;
};

// For calls that are of no device.
abi::Return Result(const char* function);

// The value of `key`, or that the card does not support it.
template <class T>
abi::Return Give(abi::Device device, const char* function, const std::string& key, T* out) {
  const Call call(device, function);
  if (call.fails()) return call.result;
  const std::optional<uint64_t> value = call.Get(key);
  if (!value) return abi::kNotSupported;
  *out = static_cast<T>(*value);
  return abi::kSuccess;
}

template <class... Numbers>
std::string Key(std::string name, Numbers... numbers) {
  ((name += '_' + std::to_string(numbers)), ...);
  return name;
}

}  // namespace fake_nvml
