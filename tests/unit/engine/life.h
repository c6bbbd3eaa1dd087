// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What tests of a job's life say in a line.
#pragma once

#include "tests/unit/engine/driver.h"

namespace rankscope::testing {

// Of the tape's job, after what lies before that second.
inline proto::State StateAt(const Tape& tape, double second) {
  engine::Engine engine({}, "n1");
  PlayUntil(tape, engine, 0, second);
  return VerdictOf(engine).state();
}

// A short run that learns and exits with 0 after 8.5 s.
inline Tape Healthy() {
  Tape tape;
  tape.Begin(0.1);
  tape.Train(1, 1, 60, 0.1);
  tape.End(8.5, 0);
  tape.Closed(9.5);
  return tape;
}

}  // namespace rankscope::testing
