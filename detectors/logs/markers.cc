// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Sentences that say where in its life a run is. Each rule is a phrase; a sentence inside quotes is
// a program's source or configuration being printed, not the program speaking.
#include <array>
#include <utility>

#include "detectors/logs/dialects.h"
#include "detectors/logs/progress_fields.h"

namespace rankscope::logs {
namespace {

enum class Text : bool { kNone, kFollows };  // whether a path follows the phrase

struct Rule {
  std::string_view name;
  std::string_view framework;
  MarkerKind kind;
  std::string_view phrase;  // the anchor
  std::string_view
      number_after;  // word behind the phrase that a number follows; "" = directly, "-" = no number
  Text text;
  std::string_view example;
};

using enum MarkerKind;

constexpr Rule kRules[] = {
    // Hugging Face Trainer
    {"hf_train_begin", "hf_trainer", kTrainBegin, "***** Running training *****", "-", Text::kNone,
     "***** Running training *****"},
    {"hf_total_steps", "hf_trainer", kTrainBegin, "Total optimization steps = ", "", Text::kNone,
     "  Total optimization steps = 1,250"},
    {"hf_evaluation", "hf_trainer", kEval, "***** Running Evaluation *****", "-", Text::kNone,
     "***** Running Evaluation *****"},
    {"hf_save", "hf_trainer", kSaveBegin, "Saving model checkpoint to ", "-", Text::kFollows,
     "Saving model checkpoint to out/checkpoint-500"},
    {"hf_resume", "hf_trainer", kLoadBegin, "Continuing training from checkpoint, will skip", "-",
     Text::kNone, "  Continuing training from checkpoint, will skip to saved global_step"},
    {"hf_resumed", "hf_trainer", kLoaded, "Continuing training from global step ", "", Text::kNone,
     "  Continuing training from global step 500"},
    {"hf_model_load", "hf_trainer", kLoadBegin, "Loading model from ", "-", Text::kFollows,
     "Loading model from out/checkpoint-500."},
    {"unsloth_banner", "unsloth", kBanner, "Unsloth - 2x faster free finetuning", "-", Text::kNone,
     "==((====))==  Unsloth - 2x faster free finetuning | Num GPUs = 1"},
    // Lightning
    {"lightning_banner", "lightning", kBanner, "GPU available: ", "-", Text::kNone,
     "GPU available: True (cuda), used: True"},
    {"lightning_end", "lightning", kTrainEnd, "Trainer.fit` stopped: ", "-", Text::kNone,
     "`Trainer.fit` stopped: `max_epochs=10` reached."},
    {"lightning_load", "lightning", kLoadBegin, "Restoring states from the checkpoint path at ",
     "-", Text::kFollows, "Restoring states from the checkpoint path at runs/last.ckpt"},
    {"lightning_loaded", "lightning", kLoaded, "Restored all states from the checkpoint", "-",
     Text::kNone, "Restored all states from the checkpoint at runs/last.ckpt"},
    {"lightning_rendezvous", "lightning", kRendezvousBegin,
     "Initializing distributed: GLOBAL_RANK: ", "-", Text::kNone,
     "Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/2"},
    {"lightning_ready", "lightning", kRendezvousEnd,
     "All distributed processes registered. Starting with ", "-", Text::kNone,
     "All distributed processes registered. Starting with 2 processes"},
    // DeepSpeed
    {"deepspeed_banner", "deepspeed", kBanner, "DeepSpeed info: version=", "-", Text::kNone,
     "[INFO] [logging.py:96:log_dist] [Rank -1] DeepSpeed info: version=0.9.1, git-hash=unknown"},
    {"deepspeed_rendezvous", "deepspeed", kRendezvousBegin,
     "Initializing TorchBackend in DeepSpeed", "-", Text::kNone,
     "[INFO] [comm.py:586:init_distributed] Initializing TorchBackend in DeepSpeed with backend "
     "nccl"},
    {"deepspeed_no_checkpoint", "deepspeed", kNoCheckpoint, "Unable to find latest file at ", "-",
     Text::kFollows,
     "[WARNING] Unable to find latest file at out/latest, if trying to load latest checkpoint"},
    {"deepspeed_save", "deepspeed", kSaveBegin, "Saving model checkpoint: ", "-", Text::kFollows,
     "[logging.py:96:log_dist] [Rank 0] Saving model checkpoint: "
     "out/step9/mp_rank_00_model_states.pt"},
    {"deepspeed_saved", "deepspeed", kSaveEnd, " is ready now!", "-", Text::kNone,
     "[INFO] [engine.py:33:commit] [Torch] Checkpoint global_step9 is ready now!"},
    // Megatron-LM and its forks
    {"megatron_rendezvous", "megatron", kRendezvousBegin, "> initializing torch distributed ...",
     "-", Text::kNone, "> initializing torch distributed ..."},
    {"megatron_ready", "megatron", kRendezvousEnd, "> initialized tensor model parallel with size",
     "-", Text::kNone, "> initialized tensor model parallel with size 4"},
    {"megatron_begin", "megatron", kTrainBegin, "[before the start of training step] datetime:",
     "-", Text::kNone, "[before the start of training step] datetime: 2026-02-03 04:05:06"},
    {"megatron_end", "megatron", kTrainEnd, "[after training is done] datetime:", "-", Text::kNone,
     "[after training is done] datetime: 2026-02-03 04:05:06"},
    {"megatron_saved", "megatron", kSaveEnd, "successfully saved checkpoint", "iteration",
     Text::kNone, "  successfully saved checkpoint at iteration     500 to out"},
    {"megatron_save", "megatron", kSaveBegin, "saving checkpoint at iteration", "", Text::kNone,
     "saving checkpoint at iteration     500 to out"},
    {"megatron_loaded", "megatron", kLoaded, "successfully loaded checkpoint from ", "at iteration",
     Text::kFollows, "  successfully loaded checkpoint from out at iteration 500"},
    {"megatron_load", "megatron", kLoadBegin, " checkpoint from ", "at iteration", Text::kFollows,
     " loading release checkpoint from out at iteration 500"},
    {"megatron_no_checkpoint", "megatron", kNoCheckpoint,
     "will not load any checkpoints and will start from random", "-", Text::kNone,
     "    will not load any checkpoints and will start from random"},
    // Hand-written loops
    {"no_checkpoint", "pytorch_example", kNoCheckpoint, "o checkpoint found", "-", Text::kNone,
     "no checkpoint found, starting from scratch"},
    {"resumed", "pytorch_example", kLoaded, "esumed from ", "step", Text::kFollows,
     "resumed from checkpoint out/60.pt at step 60"},
    {"resuming", "pytorch_example", kLoadBegin, "esuming from ", "step", Text::kFollows,
     "Resuming from out/60.pt (step 60)"},
    {"resuming_training", "pytorch_example", kLoadBegin, "esuming training from ", "step",
     Text::kFollows, "Resuming training from out"},
    {"example_load", "pytorch_example", kLoadBegin, "=> loading checkpoint ", "-", Text::kFollows,
     "=> loading checkpoint 'out/model.pt'"},
    {"example_loaded", "pytorch_example", kLoaded, "=> loaded checkpoint ", "step", Text::kFollows,
     "=> loaded checkpoint 'out/model.pt' (epoch 3)"},
    {"loaded", "pytorch_example", kLoaded, "oaded checkpoint from ", "step", Text::kFollows,
     "Loaded checkpoint from out/60.pt, step 60"},
    {"save", "pytorch_example", kSaveBegin, "aving checkpoint to ", "-", Text::kFollows,
     "saving checkpoint to out/60.pt"},
    {"saved", "pytorch_example", kSaveEnd, "aved checkpoint ", "step", Text::kFollows,
     "saved checkpoint out/60.pt"},
    {"checkpoint_saved", "pytorch_example", kSaveEnd, "heckpoint saved", "-", Text::kNone,
     "Checkpoint saved to out/60.pt"},
    {"train_end", "pytorch_example", kTrainEnd, "raining complete", "-", Text::kNone,
     "Training completed in 3 h"},
    {"train_finished", "pytorch_example", kTrainEnd, "raining finished", "-", Text::kNone,
     "training finished"},
    {"finished_training", "pytorch_example", kTrainEnd, "Finished Training", "-", Text::kNone,
     "Finished Training"},
    {"training_done", "pytorch_example", kTrainEnd, "raining done", "-", Text::kNone,
     "training done"},
    // Rendezvous
    {"rendezvous_begin", "torch", kRendezvousBegin, "nitializing process group", "-", Text::kNone,
     "Initializing process group with backend gloo"},
    {"distributed_init", "torch", kRendezvousBegin, "| distributed init (rank ", "-", Text::kNone,
     "| distributed init (rank 0): env://"},
    {"barrier_begin", "torch", kRendezvousBegin, "Added key: store_based_barrier_key", "-",
     Text::kNone,
     "INFO:torch.distributed.distributed_c10d:Added key: store_based_barrier_key:1 to store for "
     "rank: 0"},
    {"barrier_end", "torch", kRendezvousEnd, "Completed store-based barrier for key", "-",
     Text::kNone,
     "INFO:torch.distributed.distributed_c10d:Rank 0: Completed store-based barrier for key:1 with "
     "2 nodes."},
    {"rendezvous_end", "torch", kRendezvousEnd, "rocess group initialized", "-", Text::kNone,
     "process group initialized, world size 4"},
    {"nccl_ready", "nccl", kRendezvousEnd, " - Init COMPLETE", "-", Text::kNone,
     "n1:312:340 [0] NCCL INFO comm 0x55d0 rank 0 nranks 2 cudaDev 0 - Init COMPLETE"},
    // Launchers
    {"torchrun_begin", "torchrun", kLauncherBegin,
     "Setting OMP_NUM_THREADS environment variable for each process", "-", Text::kNone,
     "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default"},
    {"torchrun_workers", "torchrun", kLauncherBegin, "starting workers for entrypoint", "-",
     Text::kNone, "[default] starting workers for entrypoint: python"},
    {"deepspeed_launch", "deepspeed", kLauncherBegin, ", num_local_procs=", "-", Text::kNone,
     "[INFO] [launch.py:151:main] nnodes=1, num_local_procs=2, node_rank=0"},
    {"torchrun_restart", "torchrun", kRestart, "will restart worker group", "-", Text::kNone,
     "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"},
    {"slurm_requeue", "slurm", kRestart, "DUE TO JOB REQUEUE", "-", Text::kNone,
     "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-02-03T04:05:06 DUE TO JOB REQUEUE ***"},
};

constexpr size_t kRuleCount = std::size(kRules);

// The next word, without the quotes or punctuation around it.
std::string_view TakePath(std::string_view rest) {
  rest = LeftTrimmed(rest);
  for (const std::string_view word : {"checkpoint: ", "checkpoint ", "path ", "step "}) {
    if (rest.starts_with(word)) rest = LeftTrimmed(rest.substr(word.size()));
  }
  if (!rest.empty() && (rest[0] == '\'' || rest[0] == '"' || rest[0] == '`')) {
    const size_t close = rest.find(rest[0], 1);
    if (close != std::string_view::npos) return rest.substr(1, close - 1);
  }
  std::string_view path = rest.substr(0, rest.find_first_of(" \t"));
  while (!path.empty() && std::string_view(".,;:)").find(path.back()) != std::string_view::npos)
    path.remove_suffix(1);
  return path;
}

double TakeNumber(std::string_view rest, std::string_view after) {
  if (!after.empty()) {
    const size_t at = rest.find(after);
    if (at == std::string_view::npos) return kAbsent;
    rest.remove_prefix(at + after.size());
  }
  while (!rest.empty() && std::string_view(" \t:=").find(rest[0]) != std::string_view::npos)
    rest.remove_prefix(1);
  const Number number = ReadNumber(rest, Ending::kDelimiter, Thousands::kYes);
  return IsIndex(number) ? number.value : kAbsent;
}

bool ParseRule(const Rule& rule, const CleanLine& line, RecordList& out) {
  constexpr size_t kMaxBefore =
      400;  // a sentence begins early; further in stands a dump of something
  const size_t at = line.text.find(rule.phrase);
  if (at == std::string_view::npos || at > kMaxBefore) return false;
  const std::string_view before = line.text.substr(0, at);
  if (before.find_first_of("\"'") != std::string_view::npos ||
      before.find("print") != std::string_view::npos) {
    return false;
  }
  // "successfully saved", "successfully loaded": Megatron's own rules.
  if (rule.framework == "pytorch_example" &&
      before.find("successfully") != std::string_view::npos) {
    return false;
  }
  if (rule.name == "megatron_load" && !before.ends_with("loading") &&
      !before.ends_with("loading release") && !before.ends_with("loading distributed")) {
    return false;
  }
  const std::string_view rest = line.text.substr(at + rule.phrase.size());
  Marker marker = MakeMarker(rule.kind, rule.name, line);
  if (rule.kind == kBanner) marker.text = rule.framework;
  if (rule.text == Text::kFollows) marker.text = TakePath(rest);
  if (rule.number_after != "-") marker.number = TakeNumber(rest, rule.number_after);
  if (rule.kind == kTrainBegin && rule.number_after.empty() && marker.number != marker.number)
    return false;
  out.push_back(marker);
  return true;
}

template <size_t i>
bool ParseNth(const CleanLine& line, RecordList& out) {
  return ParseRule(kRules[i], line, out);
}

template <size_t... i>
constexpr std::array<FormatRow, kRuleCount> MakeRows(std::index_sequence<i...>) {
  return {FormatRow{kRules[i].name, kRules[i].framework, std::span(&kRules[i].phrase, 1),
                    ParseNth<i>, kRules[i].example}...};
}

constexpr std::array<FormatRow, kRuleCount> kRows =
    MakeRows(std::make_index_sequence<kRuleCount>());

}  // namespace

std::span<const FormatRow> MarkerRows() {
  return kRows;
}

}  // namespace rankscope::logs
