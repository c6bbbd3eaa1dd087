// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How training programs speak: the lines of real frameworks, written after their source. Single
// thread.
#pragma once

#include <string>

#include "tests/generator/world.h"

namespace rankscope::generator {

struct DialectRow {
  const char* name;
  double weight;  // how often it is drawn
  void (*begin)(World&, double t);
  void (*step)(World&, const Numbers&, double seconds);  // seconds of a step
  void (*save)(World&, double t, int step, bool done);
  void (*resume)(World&, double t);
  void (*evaluated)(World&, const Numbers&, double t);
  void (*end)(World&, double t);
};

// What the program prints on its speaking rank, or, where all ranks print, on each.
void Print(World& world, double t, const std::string& text, bool error = false);

// tqdm's bar, without what stands before it: " 10%|#         | 100/1000 [01:40<15:00,  1.00s/it".
std::string Bar(int done, int of, double elapsed, double seconds);

// Whether it draws a bar, each step anew.
bool IsBar(const std::string& dialect);
std::string DrawDialect(const Plan& plan, Random& random);
const DialectRow& DialectOf(const std::string& name);

// dialects_large.cc: those of large models.
extern const DialectRow kMegatron, kDeepspeed, kTorchtitan, kNemo, kNanogpt;

}  // namespace rankscope::generator
