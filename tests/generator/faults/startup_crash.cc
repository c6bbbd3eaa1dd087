// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The program dies before its first step by an error of its own: nearly always on all ranks at
// once.

#include <iterator>

#include "tests/generator/faults.h"
#include "tests/generator/text.h"

namespace rankscope::generator {

namespace {

struct StartupError {
  const char* sub;
  const char* frame;
  const char* exception;
  bool all;  // ranks fail alike
  Phase phase;
};

constexpr StartupError kStartupErrors[] = {
    {"missing_module", "\"/opt/train/%s\", line 12, in <module>|import flash_attn",
     "ModuleNotFoundError: No module named 'flash_attn'", true, Phase::kImport},
    {"missing_module", "\"/opt/train/%s\", line 9, in <module>|import torch",
     "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory", true,
     Phase::kImport},
    {"file_not_found", "\"/opt/train/%s\", line 88, in main|dataset = load(args.data)",
     "FileNotFoundError: [Errno 2] No such file or directory: '/data/corpus/train.bin'", true,
     Phase::kLoad},
    {"asset_unavailable",
     "\"/usr/lib/python3/dist-packages/transformers/utils/hub.py\", line 522, in "
     "cached_files|raise OSError(",
     "OSError: You are trying to access a gated repo.", true, Phase::kLoad},
    {"bad_data",
     "\"/usr/lib/python3.11/json/decoder.py\", line 355, in raw_decode|raise "
     "JSONDecodeError(\"Expecting value\", s, err.value) from None",
     "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", false,
     Phase::kLoad},
    {"bad_config", "\"/opt/train/%s\", line 140, in parse|cfg = Config(**raw)",
     "TypeError: Config.__init__() got an unexpected keyword argument 'n_layers'", true,
     Phase::kImport},
    {"bad_config", "\"/opt/train/%s\", line 71, in build|raise ValueError(msg)",
     "ValueError: hidden_size 1000 is not divisible by num_attention_heads 12", true, Phase::kLoad},
    {"permission", "\"/opt/train/%s\", line 201, in main|os.makedirs(args.out)",
     "PermissionError: [Errno 13] Permission denied: '/scratch/out'", true, Phase::kImport},
    {"cuda_runtime",
     "\"/usr/lib/python3/dist-packages/torch/cuda/__init__.py\", line 412, in "
     "_lazy_init|torch._C._cuda_init()",
     "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", true,
     Phase::kImport},
};

}  // namespace

void ApplyA1(World& world, Random& random) {
  const StartupError variant = kStartupErrors[random.Next() % std::size(kStartupErrors)];
  std::vector<int> ranks;
  if (variant.all) {
    for (int i = 0; i < world.plan.locals(); ++i) ranks.push_back(world.plan.first_local() + i);
  } else {
    ranks.push_back(world.PickRank());
  }
  const double share = random.Share(0.3, 0.95);
  const double before = variant.phase == Phase::kImport
                            ? world.plan.import_seconds * share
                            : world.plan.import_seconds + world.plan.rendezvous_seconds +
                                  world.plan.load_seconds * share;
  world.Blame(ranks, 2 + before);
  world.truth.sub = variant.sub;
  Interruption crash;
  crash.phase = variant.phase;
  crash.at = share;
  crash.ranks = ranks;
  crash.crash = true;
  crash.speak = [variant](World& of, double t, int rank) {
    std::string frame(variant.frame);
    if (const size_t at = frame.find("%s"); at != std::string::npos)
      frame.replace(at, 2, of.plan.script);
    of.Traceback(
        rank, t,
        {Text("\"/opt/train/%s\", line 310, in <module>|main()", of.plan.script.c_str()), frame},
        variant.exception);
  };
  world.interruptions.push_back(crash);
  world.plan.resumes = false;
  world.decided_by = {{Witness::kFault}};
}

}  // namespace rankscope::generator
