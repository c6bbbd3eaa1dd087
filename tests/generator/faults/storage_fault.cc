// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The storage is full, fails, or hangs while a checkpoint is written.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyX21(World& world, Random& random) {
  Plan& plan = world.plan;
  const int variant = random.Weighted({2, 1.5, 2});
  constexpr const char* kSubs[] = {"full", "io_error", "hang"};
  plan.save_seconds = std::max(plan.save_seconds, 4.0);
  plan.checkpoint_bytes = std::max(plan.checkpoint_bytes, 4e9);
  plan.save_every = std::max(8, static_cast<int>(random.In({40, 150}) / plan.step_seconds));
  const double onset = world.Onset(0.15, 0.5);
  world.Reserve(onset, (variant == 2 ? 500 : 200) + 2 * plan.save_every * plan.step_seconds);
  const int writer = plan.sharded ? plan.first_local() : 0;
  world.Blame({writer}, onset);
  world.truth.sub = kSubs[variant];
  world.truth.accepted_subs = {"save_stall"};
  if (variant == 2) world.truth.accepted = {"C2"};
  Interruption end;
  end.phase = Phase::kSave;
  end.after = onset;
  end.at = 0.5;
  end.ranks = {writer};
  end.crash = variant != 2;
  end.doing = Doing::kStuckFile;
  world.on_process.push_back([=](ProcessSecond& process) {
    if (variant == 0 && process.rank == writer)
      process.checkpoint_free = std::max(0.0, 4e11 * (1 - process.t / (onset + 60)));
  });
  end.speak = [variant](World& of, double t, int who) {
    of.truth.onset = t;
    if (variant == 2) {
      of.Kernel(t + 20, "network_file", "nfs: server filer1 not responding, still trying");
      of.Kernel(
          t + 122, "hung_task",
          Text("INFO: task python3:%d blocked for more than 122 seconds.", of.KeyOf(who).pid));
      for (int k = 1; k < 6; ++k)
        of.Happen(t + 60 * k, Source::kIo, EventType::kFileCallHangs, who, {{"call", "fsync"}},
                  {{"seconds", 60 * k}});
      return;
    }
    const int error = variant == 0 ? 28 : 5;
    of.Happen(t, Source::kIo, EventType::kFileError, who,
              {{"name", "model.pt"},
               {"directory", "checkpoints"},
               {"call", "write"},
               {"class", "checkpoint"},
               {"filesystem", "nfs"}},
              {{"errno", error}, {"times", 1}});
    of.Traceback(who, t,
                 {Text("\"/opt/train/%s\", line 177, in save|torch.save(state, path)",
                       of.plan.script.c_str()),
                  "\"/usr/lib/python3/dist-packages/torch/serialization.py\", line 966, in "
                  "_save|zip_file.write_record(name, storage, num_bytes)"},
                 variant == 0 ? "OSError: [Errno 28] No space left on device"
                              : "OSError: [Errno 5] Input/output error");
  };
  world.interruptions.push_back(end);
  world.plan.max_steps = 1 << 24;
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
