// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/fake_nvml/state.h"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <mutex>
#include <thread>
#include <tuple>

namespace fake_nvml {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uintptr_t kPartsOfOne = 256;
constexpr auto kHangLook = std::chrono::milliseconds(20);

struct Loaded {
  std::mutex mutex;
  const Clock::time_point start = Clock::now();
  std::string path;
  std::tuple<ino_t, off_t, int64_t, int64_t> file{};  // which is loaded
  std::string text;
  std::shared_ptr<const Script> script = std::make_shared<const Script>();
};

// Never destroyed: a call may hang in here while the process ends.
Loaded& TheLoaded() {
  static Loaded& loaded = *new Loaded;
  return loaded;
}

std::optional<uint64_t> ValueOf(const Number& number) {
  if (number.nan) return std::nullopt;
  if (number.per_second == 0) return number.base;
  return number.base + static_cast<uint64_t>(number.per_second * Seconds());
}

}  // namespace

double Seconds() {
  return std::chrono::duration<double>(Clock::now() - TheLoaded().start).count();
}

std::shared_ptr<const Script> Now() {
  const double seconds = Seconds();
  Loaded& loaded = TheLoaded();
  const std::lock_guard lock(loaded.mutex);
  const char* path = std::getenv("FAKE_NVML_SCRIPT");
  struct stat file {};
  if (path == nullptr || stat(path, &file) != 0) return std::make_shared<const Script>();
  const auto stamp =
      std::tuple(file.st_ino, file.st_size, static_cast<int64_t>(file.st_mtim.tv_sec),
                 static_cast<int64_t>(file.st_mtim.tv_nsec));
  const bool changed = stamp != loaded.file || loaded.path != path;
  if (changed) {
    std::ifstream in(path, std::ios::binary);
    loaded.text.assign(std::istreambuf_iterator<char>(in), {});
    loaded.file = stamp;
    loaded.path = path;
  }
  if (changed || (loaded.script->next && *loaded.script->next <= seconds)) {
    loaded.script = std::make_shared<const Script>(Parse(loaded.text, seconds));
  }
  return loaded.script;
}

abi::Device HandleOf(size_t gpu) {
  return reinterpret_cast<abi::Device>((gpu + 1) * kPartsOfOne);
}

abi::Device HandleOfPart(size_t gpu, size_t part) {
  return reinterpret_cast<abi::Device>((gpu + 1) * kPartsOfOne + part + 1);
}

Call::Call(abi::Device device, const char* function) {
  const auto handle = reinterpret_cast<uintptr_t>(device);
  if (handle < kPartsOfOne) {
    result = abi::kInvalidArgument;
    return;
  }
  index = handle / kPartsOfOne - 1;
  for (;;) {
    script = Now();
    if (index >= script->gpus.size()) {
      result = abi::kInvalidArgument;
      return;
    }
    gpu = &script->gpus[index];
    if (!gpu->hangs.contains("") && !gpu->hangs.contains(function)) break;
    std::this_thread::sleep_for(kHangLook);
  }
  if (gpu->lost) result = abi::kGpuIsLost;
  if (const auto error = script->errors.find(function); error != script->errors.end())
    result = abi::Return{error->second};
  if (const auto error = gpu->errors.find(function); error != gpu->errors.end())
    result = abi::Return{error->second};
  if (const size_t number = handle % kPartsOfOne; number > 0) {
    if (number > gpu->parts.size()) {
      result = abi::kInvalidArgument;
    } else {
      part = &gpu->parts[number - 1];
    }
  }
}

std::optional<uint64_t> Call::Get(std::string_view key) const {
  const auto found = gpu->values.find(key);
  return found == gpu->values.end() ? std::nullopt : ValueOf(found->second);
}

std::optional<double> Call::GetReal(std::string_view key) const {
  const auto found = gpu->values.find(key);
  if (found == gpu->values.end()) return std::nullopt;
  if (found->second.nan) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(*ValueOf(found->second));
}

abi::Return Result(const char* function) {
  const auto script = Now();
  const auto error = script->errors.find(function);
  return error == script->errors.end() ? abi::kSuccess : abi::Return{error->second};
}

}  // namespace fake_nvml
