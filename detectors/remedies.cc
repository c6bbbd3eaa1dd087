// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/remedies.h"

#include <array>

namespace rankscope::engine {
namespace {

constexpr auto kNever = proto::RETRY_CANNOT_RECOVER;
constexpr auto kMaybe = proto::RETRY_MAY_RECOVER;
constexpr auto kUnknownOutlook = proto::RETRY_UNKNOWN;

constexpr std::array kRemedies = {
    RemedyRow{"A1", "missing_module",
              "a package that the program imports is missing or does not fit: {message}",
              "fix_environment",
              "install the package that the message names into the environment of {where}",
              "pin the environment; import everything once in the job's prolog",
              "python -c 'import <module>' on the node", kNever},
    RemedyRow{"A1", "file_not_found", "a file that the program needs is not there: {message}",
              "fix_config", "correct the path, or put the file where {where} sees it",
              "check inputs before the allocation starts", "stat the path on the node that failed",
              kNever},
    RemedyRow{"A1", "permission", "the program may not read or write what it needs: {message}",
              "fix_environment", "grant the access that the message names",
              "check inputs before the allocation starts", "", kNever},
    RemedyRow{"A1", "bad_data", "the data cannot be read as it is: {message}", "fix_data",
              "repair or skip the record that the message names",
              "validate the data set before the run", "read the data set once without a GPU",
              kNever},
    RemedyRow{
        "A1", "asset_unavailable", "a model, tokenizer or data set cannot be loaded: {message}",
        "fix_config", "check the name, the token and the network of {where}",
        "stage assets on shared storage and run offline", "download it once from the node", kNever},
    RemedyRow{"A1", "bad_config", "the program rejects its configuration: {message}", "fix_config",
              "correct the setting that the message names and resubmit",
              "start once with one step on one GPU before the real run", "", kNever},
    RemedyRow{"A1", "exec", "the command itself cannot be executed: {error}", "fix_environment",
              "check the command's path and mode", "", "", kNever},
    RemedyRow{"A1", "*", "the run died at its start by its own error, {type}: {message}",
              "fix_code", "correct what the message names and resubmit",
              "start once with one step on one GPU before the real run", "", kNever},
    RemedyRow{"A2", "host_oom",
              "{who} was killed because host memory ran out: data loader workers, pinned buffers "
              "or a model held in host memory",
              "fix_config",
              "ask for more memory per node, or lower the number of data loader workers and their "
              "prefetch",
              "watch resident memory per rank over the run", "the same run with half the workers",
              kMaybe},
    RemedyRow{"A2", "shm",
              "{who} ran out of shared memory: data loader workers pass batches through /dev/shm",
              "fix_environment", "enlarge /dev/shm, or use fewer workers",
              "set the sharing strategy to file_system", "df -h /dev/shm during the run", kMaybe},
    RemedyRow{"A2", "sigkill",
              "{who} was killed without a word of its own: host memory exhaustion, a cgroup limit "
              "or another process",
              "rerun", "look for an OOM kill on {where}, then rerun",
              "ask for more host memory; record kernel messages per job", "", kUnknownOutlook},
    RemedyRow{"A2", "sigabrt", "{who} aborted itself in native code", "fix_code",
              "read the last lines before the abort", "", "", kUnknownOutlook},
    RemedyRow{"A2", "sighup", "{who} lost its terminal or session", "rerun",
              "start the run from a batch job, or under nohup or tmux", "", "", kMaybe},
    RemedyRow{"A2", "*", "{who} crashed in native code ({signal})", "fix_code",
              "rerun with PYTHONFAULTHANDLER=1 to learn the frame", "enable core dumps for the job",
              "", kUnknownOutlook},
    RemedyRow{"B1", "oversize",
              "one allocation asks for more than the card has; no memory setting can help",
              "fix_config",
              "find the tensor: a batch, a sequence or a gather that is too large for {total_gib}",
              "", "", kNever},
    RemedyRow{"B1", "fragmentation",
              "the memory is reserved but in pieces: the allocator holds more than the tensors use",
              "fix_config", "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
              "keep shapes constant; pad or bucket sequences", "", kMaybe},
    RemedyRow{
        "B1", "*",
        "the workload's memory plan does not fit the card; nothing points at a hardware fault",
        "fix_config",
        "lower the micro-batch or sequence length, or shard and checkpoint activations",
        "measure peak memory of one step before the run", "the same run with half the micro-batch",
        kNever},
    RemedyRow{"B2", "*", "the GPU or its memory failed under the run; the code is not the cause",
              "drain_node", "drain the node, reset or replace the GPU, rerun elsewhere",
              "run the vendor's diagnostics before the node returns", "dcgmi diag -r 3 on the node",
              kMaybe},
    RemedyRow{"C1", "port_in_use", "another process holds the coordinator's port", "fix_config",
              "use another master port, for example derived from the job id",
              "let the launcher choose a free port", "ss -ltnp on the coordinator", kMaybe},
    RemedyRow{"C1", "dns", "the coordinator's name does not resolve where the ranks run",
              "fix_environment", "correct MASTER_ADDR or the name service",
              "use the scheduler's node names", "getent hosts of that name on every node", kNever},
    RemedyRow{"C1", "refused",
              "the coordinator's host answers but nothing listens: rank 0 is not there, or uses "
              "another port",
              "fix_config", "check that rank 0 starts and that address and port agree",
              "let the launcher export address and port", "", kUnknownOutlook},
    RemedyRow{"C1", "*",
              "the ranks never formed their process group: a coordination failure before any "
              "training, not a fault of the model",
              "fix_config",
              "check that every rank starts, and that MASTER_ADDR and MASTER_PORT are reachable "
              "from each node",
              "", "connect to the coordinator's port from each node", kUnknownOutlook},
    RemedyRow{"C2", "*",
              "a collective never completed: a rank is missing, stuck or in another collective, "
              "and its peers wait for it",
              "rerun", "find the rank that did not enter; its last lines come before the timeout",
              "keep the watchdog on, with a timeout that the save and evaluation phases fit in", "",
              kUnknownOutlook},
    RemedyRow{
        "E1", "nonfinite",
        "the loss became NaN or infinite and the run went on: what it trains since then is "
        "worthless",
        "fix_config",
        "stop, return to a checkpoint before the onset, lower the learning rate or switch to bf16",
        "stop on a loss that is not finite", "the first hundred steps with the lower rate", kNever},
    RemedyRow{"E1", "silent_nan", "the loss is NaN although the log prints 0 or nothing",
              "fix_config", "stop, return to a checkpoint before the onset",
              "log the unfiltered loss (logging_nan_inf_filter off)", "", kNever},
    RemedyRow{
        "E1", "*",
        "no fault was seen, and the loss is wrong: it went from {start} to {end}, lowest {lowest}",
        "fix_config", "check learning rate and schedule, then the data around the onset",
        "alert on the loss slope, not on NaN", "", kNever},
    RemedyRow{"E2", "*", "the checkpoint that the run resumes from cannot be loaded: {message}",
              "fix_config",
              "use the checkpoint that belongs to this model, or the last one that is complete",
              "write checkpoints to a temporary name and rename", "load it once on one GPU",
              kNever},
    RemedyRow{"E3", "*", "the run made {steps} steps in all: it trained next to nothing",
              "fix_config", "raise the number of steps or epochs and resubmit",
              "refuse budgets below a minimum in the launch script", "", kNever},
    RemedyRow{"F1", "*", "the cluster lost a node under the run", "rerun",
              "rerun on healthy nodes; have the node examined",
              "checkpoint often enough for the node failure rate", "", kMaybe},
    RemedyRow{"F2", "*", "the scheduler took the run's nodes back; not a fault of the run", "wait",
              "let it rerun, and check that the rerun resumes from the last checkpoint",
              "save on the preemption signal", "", kMaybe},
    RemedyRow{"F3", "stalled",
              "the run made no progress when its time ended: the hang is the cause, the limit only "
              "ended it",
              "rerun", "look at the last training record and what came after it", "", "",
              kUnknownOutlook},
    RemedyRow{"F3", "slow", "the run was making progress when its time ended", "fix_config",
              "raise the time limit, or resume from the last checkpoint",
              "save before the limit on a signal", "", kMaybe},
    RemedyRow{"F3", "*", "the run reached its time limit; the limit is not the cause of anything",
              "fix_config", "raise the limit if it progressed, look for a hang if not", "", "",
              kUnknownOutlook},
    RemedyRow{"G1", "healthy",
              "the run did real work and learned: the loss fell from {loss_start} to {loss_end}",
              "none", "", "", "", kUnknownOutlook},
    RemedyRow{"G1", "*", "nothing failed, and nothing in the text shows that the model learned",
              "none", "print step and loss in a form that is recognised", "",
              "rankscope progress <log>", kUnknownOutlook},
    RemedyRow{"U0", "too_early", "the run has not shown enough to judge it", "wait", "", "", "",
              kUnknownOutlook},
    RemedyRow{"U0", "wrapper_lost",
              "the wrapper was killed, so the end of the command was not recorded", "rerun", "",
              "run the wrapper under the scheduler's step, not beside it", "", kUnknownOutlook},
    RemedyRow{"U0", "no_evidence", "nothing that was recorded says anything about the run", "none",
              "", "", "", kUnknownOutlook},
    RemedyRow{"U0", "*", "the run ended abnormally and nothing that was recorded says why", "rerun",
              "", "", "", kUnknownOutlook},
    RemedyRow{
        "X1", "*",
        "the program failed in the middle of training by its own exception, {type}: {message}",
        "fix_code", "correct what the message names; resume from the last checkpoint", "",
        "whether the same step fails again", kUnknownOutlook},
    RemedyRow{"X2", "*", "{foreign_gib} GiB of the card are held by other processes", "escalate",
              "find and end the process that the allocator's message names",
              "check that the GPUs are empty in the job's prolog",
              "nvidia-smi on the node before the run", kMaybe},
    RemedyRow{"X3", "*", "a kernel of the program itself faulted on the GPU", "fix_code",
              "rerun with CUDA_LAUNCH_BLOCKING=1 to find the kernel", "",
              "whether the fault follows the program or the GPU", kUnknownOutlook},
    RemedyRow{"X5", "*", "the connection between ranks broke and no dead peer explains it",
              "escalate", "check the path between the two ends", "", "", kMaybe},
    RemedyRow{"X20", "cancelled", "the run was cancelled from outside", "none", "", "", "", kMaybe},
    RemedyRow{"X20", "*", "somebody outside the program asked it to stop with {signal}", "none",
              "find who sent it before rerunning", "", "", kMaybe},
    RemedyRow{"X21", "*", "the storage under the run refused to write: {message}", "escalate",
              "free space or raise the quota, then resume from the last complete checkpoint",
              "keep fewer checkpoints", "df and quota of the checkpoint directory", kMaybe},
    RemedyRow{"X24", "*",
              "the loss scale fell to its minimum: half precision cannot hold this run's gradients",
              "fix_config", "lower the learning rate, or train in bf16", "", "", kNever},
    RemedyRow{"*", "*", "see the evidence", "none", "", "", "", kUnknownOutlook},
};

}  // namespace

std::span<const RemedyRow> Remedies() {
  return kRemedies;
}

const RemedyRow& FindRemedy(std::string_view code, std::string_view sub) {
  const RemedyRow* any = &kRemedies.back();
  for (const RemedyRow& row : kRemedies) {
    if (row.code != code) continue;
    if (row.sub == sub) return row;
    if (row.sub == "*") any = &row;
  }
  return *any;
}

}  // namespace rankscope::engine
