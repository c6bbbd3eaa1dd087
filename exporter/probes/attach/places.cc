// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/places.h"

#include <iterator>
#include <system_error>
#include <thread>

namespace rankscope::probes {

void Places::Add(Places places) {
  places_.insert(places_.end(), std::make_move_iterator(places.places_.begin()),
                 std::make_move_iterator(places.places_.end()));
  places.places_.clear();
}

void Places::Leave() {
  {
    std::vector<std::jthread> leaving;
    try {
      for (size_t i = 1; i < places_.size(); ++i)
        leaving.emplace_back([place = &places_[i]] { *place = OwnedFd(); });
    } catch (const std::system_error&) {
      // No more threads: the rest are left one after the other.
    }
    if (!places_.empty()) places_.front() = OwnedFd();
  }
  places_.clear();
}

}  // namespace rankscope::probes
