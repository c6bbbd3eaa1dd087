// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The one door between the world and the detectors. Called on the loop thread only, in stream
// order.
#pragma once

#include "detectors/model/observation.h"

namespace rankscope {

class Sink {
 public:
  virtual ~Sink() = default;

  // Takes one observation; borrowed views in it are dead after the call. Never fails: what cannot
  // be used is counted.
  virtual void Accept(const Observation& observation) = 0;
};

}  // namespace rankscope
