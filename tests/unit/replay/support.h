// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A directory that goes with the test, and recordings in it. Any thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/loop/owned_fd.h"

namespace rankscope::testing {

class TempDir {
 public:
  TempDir() {
    std::string name = ::testing::TempDir() + "rankscope-replay-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
    fd_ = OwnedFd(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  void Write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << bytes;
  }
  std::string Read(const std::string& name) const {
    std::ostringstream bytes;
    bytes << std::ifstream(path_ + "/" + name, std::ios::binary).rdbuf();
    return bytes.str();
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::string path_;
  OwnedFd fd_;
};

// Observations with running times (10 ms apart) and numbers.
class Script {
 public:
  Observation Line(std::string_view text) {
    LogLine line;
    line.stream = 1;
    line.stream_name = "stdout";
    line.job_id = "j";
    line.text = text;
    line.end = LineEnd::kLf;
    return Next(line);
  }
  Observation Mark(RunMark::What what) {
    RunMark mark;
    mark.job_id = "j";
    mark.what = what;
    mark.status_known = what == RunMark::What::kEnd;
    return Next(std::move(mark));
  }
  Observation Exit(int32_t pid) { return Next(ProcessExit{{pid, 1}, 0, true, false}); }
  Observation OfTick() { return Next(Tick{}); }
  template <typename Kind>
  Observation Next(Kind kind) {
    Observation observation;
    observation.t = {(100 + ++seq_) * 10'000'000};
    observation.seq = seq_;
    observation.kind = std::move(kind);
    return observation;
  }

 private:
  int64_t seq_ = 0;
};

// What was said, in short: "3 line text", "4 run", "5 exit", "6 tick".
inline std::string Short(const Observation& observation) {
  const std::string seq = std::to_string(observation.seq) + " ";
  if (const auto* line = std::get_if<LogLine>(&observation.kind))
    return seq + "line " + std::string(line->text);
  if (std::holds_alternative<RunMark>(observation.kind)) return seq + "run";
  if (std::holds_alternative<ProcessExit>(observation.kind)) return seq + "exit";
  if (std::holds_alternative<Tick>(observation.kind)) return seq + "tick";
  if (std::holds_alternative<EngineState>(observation.kind)) return seq + "state";
  return seq + "other";
}

}  // namespace rankscope::testing
