// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A job that goes on from a checkpoint begins anew without a word, or stops because it cannot read
// it.

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

void ApplyE2(World& world, Random& random) {
  Plan& plan = world.plan;
  plan.resumes = true;
  plan.first_step = random.InInt(500, 20000);
  plan.checkpoint_bytes = std::max(plan.checkpoint_bytes, 2e9);
  plan.restarts = random.Chance(0.6) ? 1 : 0;
  const bool crash = random.Chance(0.35);
  const double onset = 2 + plan.import_seconds + plan.rendezvous_seconds;
  world.Blame({}, onset);
  world.truth.sub = crash ? "load_crash" : "not_loaded";
  if (crash) {
    Interruption end;
    end.phase = Phase::kLoad;
    end.at = 0.6;
    end.crash = true;
    for (int i = 0; i < plan.locals(); ++i) end.ranks.push_back(plan.first_local() + i);
    const bool torn = random.Chance(0.5);
    end.speak = [torn](World& of, double t, int rank) {
      of.Traceback(
          rank, t,
          {Text("\"/opt/train/%s\", line 120, in resume|model.load_state_dict(torch.load(path))",
                of.plan.script.c_str())},
          torn ? "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding "
                 "central directory"
               : "RuntimeError: Error(s) in loading state_dict for GPT: size mismatch for "
                 "lm_head.weight: copying a param with shape torch.Size([50257, 768]) from "
                 "checkpoint, the shape in current model is torch.Size([50304, 768]).");
    };
    world.interruptions.push_back(end);
    world.decided_by = {{Witness::kFault}};
    return;
  }
  world.loads_checkpoint = false;
  const int asked = plan.first_step;
  plan.first_step = 0;
  world.on_load.push_back([asked](World& of, double t) {
    const int rank = of.plan.first_local();
    of.Happen(t + 0.5, Source::kIo, EventType::kFileMissing, rank,
              {{"name", "latest_checkpointed_iteration.txt"},
               {"directory", "ckpt"},
               {"call", "openat"},
               {"class", "checkpoint"},
               {"filesystem", "nfs"}},
              {{"errno", 2}, {"times", 1}});
    if (of.plan.dialect == "megatron") {
      of.Say(0, t + 0.6,
             "WARNING: could not find the metadata file ckpt/latest_checkpointed_iteration.txt ");
      of.Say(0, t + 0.6, "    will not load any checkpoints and will start from random");
    } else if (of.plan.dialect == "deepspeed") {
      of.Say(0, t + 0.6,
             "[" + Calendar(of.Wall(t), "%Y-%m-%d %H:%M:%S,%L") +
                 "] [WARNING] [engine.py:2914:load_checkpoint] Unable to find latest file at "
                 "ckpt/latest, if trying to load latest checkpoint please ensure this file exists "
                 "or pass an explicit checkpoint tag when loading a checkpoint.");
    }
    if (asked > 0) of.truth.accepted_subs = {"restarted", "load_crash"};
  });
  world.Reserve(world.TrainBegin(), 180);
  world.decided_by = {{Witness::kFault, Witness::kText}};
}

}  // namespace rankscope::generator
