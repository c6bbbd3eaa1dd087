// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The stand-in for NVML under a script of the test's own. One at a time.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "exporter/gpu/nvml_device.h"
#include "exporter/gpu/nvml_library.h"

namespace rankscope::collectors::nvml {

class Fake {
 public:
  explicit Fake(const std::string& script)
      : folder_(testing::TempDir() + "nvml_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    Say(script);
    setenv("FAKE_NVML_SCRIPT", (folder_ + "/script").c_str(), 1);
  }
  ~Fake() {
    Say("driver gone");  // whoever hangs in there may go
    std::filesystem::remove_all(folder_);
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  // From now on. Renamed into place: nobody reads half of it.
  void Say(const std::string& script) {
    std::ofstream(folder_ + "/next") << script;
    std::filesystem::rename(folder_ + "/next", folder_ + "/script");
  }

 private:
  std::string folder_;
};

// Looks a second apart.
class Looks {
 public:
  explicit Looks(const std::string& path = FAKE_NVML, int32_t index = 0)
      : reader_(Library::Open(path).library, index) {}

  GpuStatus Next() { return reader_.Look({now_ns_ += Seconds(1).ns}); }
  GpuStatus After(int looks) {
    for (int i = 1; i < looks; ++i) Next();
    return Next();
  }

 private:
  int64_t now_ns_ = Seconds(1000).ns;
  DeviceReader reader_;
};

}  // namespace rankscope::collectors::nvml
