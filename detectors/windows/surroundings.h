// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is known of the software around a training: settings in the environment of its ranks, and
// what libraries said of themselves (versions, interfaces, settings that they read). Bounded; read
// for known hazards. Single writer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/logs/record.h"
#include "detectors/model/observation.h"

namespace rankscope::windows {

// One setting or fact with one value, and who said it.
struct Surrounding {
  bool variable = false;  // an environment variable; else a library's word
  std::string name;
  std::string value;
  std::vector<int32_t> ranks;  // whose environment; rising
  ProcessKey process;          // the first; pid 0 where text said it
  uint32_t stream = 0;
  int64_t offset = -1;
  std::string line;
  Timestamp t;

  template <class A>
  void Fields(A& a) {
    a(variable, name, value, ranks, process, stream, offset, line, t);
  }
};

class Surroundings {
 public:
  static constexpr size_t kMost = 128;      // settings and facts
  static constexpr size_t kMostValues = 4;  // different ones of a name
  static constexpr size_t kMostRanks = 64;  // named for one value
  static constexpr size_t kValueCap = 200;

  void OnEnvironment(const std::vector<KeyValue>& environment, const ProcessKey& process,
                     int32_t rank, Timestamp t);
  // A kFact marker. A library that repeats a variable it read ("nccl_setting", "NAME set by
  // environment to VALUE") tells of that variable.
  void OnFact(const logs::Marker& marker, uint32_t stream, int64_t offset, std::string_view line,
              Timestamp t);

  const std::vector<Surrounding>& all() const { return all_; }

  template <class A>
  void Fields(A& a) {
    a(all_);
  }

 private:
  Surrounding* FindOrAdd(bool variable, std::string_view name, std::string_view value, Timestamp t);

  std::vector<Surrounding> all_;
};

}  // namespace rankscope::windows
