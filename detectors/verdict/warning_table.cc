// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "detectors/verdict/warnings.h"

namespace rankscope::engine {
namespace {

constexpr std::array kRows = {
    WarningRow{"loss_spike", "loss", "", "info", "", "none: a spike that recovers is usual"},
    WarningRow{"loss_nonfinite_recovered", "loss", "", "warning", "",
               "check the data and the precision around it"},
    WarningRow{"grad_norm_spike", "grad_norm", "grad_norm", "info",
               "the gradient norm rose to {value}{at}, against {usual} usually; {times} such "
               "records in all",
               "look at the batches of that step; where the loss follows, a lower learning rate "
               "or clipping bound"},
    WarningRow{"grad_norm_zero", "grad_norm", "grad_norm", "warning",
               "the gradient norm is printed as 0 in {times} records in a row, the first{at}",
               "check that the parameters need gradients, that not every label is masked, and "
               "that the loss scale has not collapsed"},
    WarningRow{"gradient_zeros", "grad_norm", "num_zeros", "warning",
               "{value} of the gradient's elements are zero{at}, against {usual} before, for "
               "{times} records in a row",
               "a vanishing gradient or a part of the model that no longer takes part: compare "
               "with the gradient norm"},
    WarningRow{"gradient_zeros_share", "grad_norm", "num_zeros", "warning",
               "{value} of {of} gradient elements are zero{at}, {share} %",
               "a vanishing gradient: check activations, masks and the loss scale"},
    WarningRow{
        "loss_scale_falling", "loss_scale", "loss_scale", "warning",
        "the loss scale was halved {times} times without a rise, from {usual} to {value}{at}",
        "look for overflowing activations; bf16 needs no loss scale"},
    WarningRow{
        "learning_rate_zero", "learning_rate", "learning_rate", "warning",
        "the learning rate has been 0 in the last {times} records, since{at}, while "
        "training goes on",
        "the schedule is over or was never begun: compare its length with the steps planned"},
    WarningRow{"learning_rate_jump", "learning_rate", "learning_rate", "warning",
               "the learning rate jumped to {value}{at}; the highest before was {usual}",
               "check what changed the schedule at that step: a resume with other settings, a "
               "second optimizer, a scaled batch size"},
    WarningRow{"learning_rate_restart", "learning_rate", "learning_rate", "warning",
               "the learning rate fell from {usual} to {value}{at} and rose again as a warm-up "
               "does, while the steps went on",
               "check that the scheduler's state is restored with the checkpoint"},
    WarningRow{"step_time_spikes", "step_time", "step_seconds", "info",
               "{times} of {of} timed records took far longer than usual; the slowest {value} "
               "s{at}, against {usual} s",
               "compare with saves, evaluations, data shards and other jobs on the node"},
    WarningRow{"throughput_drop", "throughput", "throughput", "warning",
               "{measure} fell by {share} %, from {usual} to {value} (medians), up to{at}",
               "look for throttling, a slow rank, or data that comes slower than before"},
    WarningRow{
        "iterations_skipped", "step", "skipped_iterations", "warning",
        "{times} of {of} iterations after the warm-up were skipped, {share} %, the newest{at}",
        "overflowing gradients: look at loss scale, learning rate and data"},
    WarningRow{"iterations_nan", "step", "nan_iterations", "warning",
               "{times} iterations gave NaN and were left out of the mean loss, the first{at}",
               "find the batch: the mean hides it"},
    WarningRow{"checkpoint_overdue", "checkpoint", "checkpoint", "warning",
               "no checkpoint for {value} steps, though this run saved every {usual} steps; the "
               "last was at step {step}",
               "check the free space, the writer's thread and the save condition: a failure now "
               "loses this much"},
    WarningRow{"checkpoint_save_failed", "checkpoint", "checkpoint", "warning",
               "a checkpoint could not be saved, and training went on: {line}",
               "check the free space and the permissions of the checkpoint folder"},
    WarningRow{"checkpoint_space", "checkpoint", "checkpoint", "warning",
               "the checkpoints' file system has {free} bytes free, and {need}",
               "delete old checkpoints or save elsewhere, before a save fails in the middle"},
    WarningRow{"checkpoint_torn", "checkpoint", "checkpoint", "warning",
               "the checkpoint file {name} was left unfinished with {value} bytes{by}",
               "do not resume from it; take the checkpoint before it"},
    WarningRow{"port_faults", "network", "port_counters", "warning", "",
               "look at the cable and both ends of the link; compare with the switch's counters"},
    WarningRow{"gpu_latent", "gpu", "gpu_errors", "warning", "",
               "reset the card when its node is free, and run the vendor's diagnostics"},
    WarningRow{"gpu_errors", "gpu", "gpu_errors", "warning", "",
               "save soon; let the node be looked at when the run is over"},
    WarningRow{"gpu_throttled", "gpu", "gpu_throttle", "warning", "",
               "look at the card's cooling and power; the steps do not suffer yet"},
    WarningRow{"gpu_half_idle", "gpu", "gpu_engine_active", "info", "",
               "look at what the ranks wait for between steps: data, the host, blocking calls; or "
               "give the card larger batches"},
    WarningRow{"ranks_renumbered", "rank", "nccl_ras", "warning", "",
               "ranks here are the environment's, those that NCCL and the program print are "
               "theirs: find a process by its pid, or let the program take RANK as its rank"},
    WarningRow{"suspended", "job", "suspended", "warning", "",
               "scontrol resume, where Slurm has suspended it; thaw its cgroup or send SIGCONT to "
               "its processes, where somebody else has"},
    WarningRow{"was_suspended", "job", "suspended", "info", "", "none: it goes on"},
    WarningRow{"host_hardware", "host", "kernel_log", "warning", "",
               "save soon; let the node be looked at when the run is over"},
    WarningRow{"file_server_silent", "storage", "kernel_log", "warning", "",
               "look at the file server and the path to it; a save or a read will wait for it"},
    WarningRow{"gpu_unused", "gpu", "gpu_processes", "warning", "",
               "ask for fewer cards, or start a rank for each; where its process fell back to the "
               "CPU, look at its first lines for why"},
    WarningRow{"gpu_outside", "gpu", "gpu_processes", "warning", "",
               "find whose process it is; a process that outlived its own job keeps the card's "
               "memory from this one"},
    WarningRow{"known_hazard", "setting", "setting", "info", "", ""},
    WarningRow{"error_survived", "log", "", "info", "", "none: the run went on"},
    WarningRow{"error_at_exit", "log", "", "info", "", "none: training had finished"},
    WarningRow{"rank_late", "rank", "", "warning", "",
               "look at what else the host of that rank does in a step: printing, saving, a slower "
               "CPU, another process on its cores"},
    WarningRow{
        "allocation_refused", "gpu_memory", "", "info", "",
        "none: the run went on; an allocator that frees what it holds and asks again does so"},
    WarningRow{"started_from_scratch", "checkpoint", "", "info", "",
               "check that this run was not meant to resume"},
};

}  // namespace

std::span<const WarningRow> Warnings() {
  return kRows;
}

}  // namespace rankscope::engine
