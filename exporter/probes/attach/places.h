// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where programs stand, at system calls or in libraries: taken one by one, left together. To leave
// one, the kernel waits for every task that may be in the program, 20 to 40 ms and more under load;
// those who leave at the same time wait together. Any thread.
#pragma once

#include <utility>
#include <vector>

#include "exporter/loop/owned_fd.h"

namespace rankscope::probes {

class Places {
 public:
  Places() = default;
  ~Places() { Leave(); }
  Places(Places&&) = default;
  Places& operator=(Places&& other) noexcept {
    std::swap(places_, other.places_);
    return *this;
  }

  void Add(OwnedFd place) { places_.push_back(std::move(place)); }
  // Takes over all of another's.
  void Add(Places places);
  bool empty() const { return places_.empty(); }
  // Returns when no program stands at any.
  void Leave();

 private:
  std::vector<OwnedFd> places_;
};

}  // namespace rankscope::probes
