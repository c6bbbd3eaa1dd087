// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// An exception in the middle of training on one rank; the others wait until the launcher ends them.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX1(World& world, Random& random) {
  struct Variant {
    const char* sub;
    const char* frame;
    const char* exception;
  };
  constexpr Variant kVariants[] = {
      {"shape_mismatch",
       "\"/opt/train/model.py\", line 77, in forward|x = torch.cat([x, y], dim=1)",
       "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 512 but got "
       "size 509 for tensor number 1 in the list."},
      {"key_or_index", "\"/opt/train/data.py\", line 31, in __getitem__|return self.rows[index]",
       "IndexError: list index out of range"},
      {"key_or_index", "\"/opt/train/data.py\", line 18, in collate|label = row['label']",
       "KeyError: 'label'"},
      {"division_by_zero", "\"/opt/train/metrics.py\", line 9, in mean|return total / count",
       "ZeroDivisionError: division by zero"},
      {"assertion", "\"/opt/train/model.py\", line 140, in forward|assert mask.any()",
       "AssertionError"},
      {"device_mismatch", "\"/opt/train/model.py\", line 52, in forward|return a + b",
       "RuntimeError: Expected all tensors to be on the same device, but found at least two "
       "devices, cuda:0 and cpu!"},
      {"bad_data",
       "\"/usr/lib/python3/dist-packages/PIL/Image.py\", line 3536, in open|raise "
       "UnidentifiedImageError(msg)",
       "PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f21c3>"}};
  const double onset = world.Onset(0.1, 0.85);
  const int rank = world.PickRank();
  const Variant variant = kVariants[random.Next() % std::size(kVariants)];
  world.Blame({rank}, onset);
  world.truth.sub = variant.sub;
  Interruption crash = CrashOf(onset, {rank});
  crash.speak = [variant](World& of, double t, int who) {
    of.Traceback(
        who, t,
        {Text("\"/opt/train/%s\", line 310, in <module>|main()", of.plan.script.c_str()),
         Text("\"/opt/train/%s\", line 204, in main|for batch in loader:", of.plan.script.c_str()),
         variant.frame},
        variant.exception);
  };
  world.interruptions.push_back(crash);
  world.decided_by = {{Witness::kFault, Witness::kText}, {Witness::kFault, Witness::kCalls}};
}

}  // namespace rankscope::generator
