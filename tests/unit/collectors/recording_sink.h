// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A sink that keeps what it is given, for the tests of sources that own what they say. One thread.
#pragma once

#include <functional>
#include <vector>

#include "detectors/model/sink.h"

namespace rankscope::collectors {

class RecordingSink final : public Sink {
 public:
  void Accept(const Observation& observation) override {
    all.push_back(observation);
    if (on_accept) on_accept(all.back());
  }

  template <typename T>
  std::vector<T> Of() const {
    std::vector<T> found;
    for (const Observation& observation : all) {
      if (const T* kind = std::get_if<T>(&observation.kind)) found.push_back(*kind);
    }
    return found;
  }

  std::vector<Observation> all;
  std::function<void(const Observation&)> on_accept;
};

}  // namespace rankscope::collectors
