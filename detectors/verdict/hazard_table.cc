// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "detectors/verdict/hazards.h"

namespace rankscope::engine {
namespace {

using Where = HazardCondition::Where;
using Test = HazardCondition::Test;

constexpr std::string_view kNcclVariables =
    "docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html";
constexpr std::string_view kTorchVariables =
    "pytorch.org/docs/stable/torch_nccl_environment_variables.html";

constexpr HazardCondition Variable(std::string_view name, Test test = Test::kSet,
                                   std::string_view value = {}) {
  return {Where::kVariable, name, test, value};
}
constexpr HazardCondition Fact(std::string_view name, Test test, std::string_view value) {
  return {Where::kFact, name, test, value};
}
constexpr std::string_view kTrue = "1|y|yes|t|true|on|Y|YES|True|TRUE|ON";
constexpr std::string_view kFalse = "0|n|no|f|false|off|N|NO|False|FALSE|OFF";

constexpr std::array kRows = {
    HazardRow{"nccl_socket_ifname", Variable("NCCL_SOCKET_IFNAME", Test::kBegins, "eth|=eth"),
              Fact("nccl_interface", Test::kBegins, "eth|[0]eth"),
              "C1 X5 rendezvous DistBackendError",
              "{setting} asks for an interface that hosts with predictable names (ens5, enp3s0) do "
              "not have",
              "unset it, or exclude instead: NCCL_SOCKET_IFNAME=^lo,docker", kNcclVariables},
    HazardRow{"nccl_proto",
              Variable("NCCL_PROTO"),
              {},
              "C2 D2 throughput_drop step_time_spikes",
              "{setting} forces the protocol of every collective and keeps tuner plugins from "
              "choosing; LL128 on platforms without its ordering guarantee corrupts data",
              "unset it outside of experiments",
              kNcclVariables},
    HazardRow{"nccl_algo",
              Variable("NCCL_ALGO"),
              {},
              "C2 D2 throughput_drop step_time_spikes",
              "{setting} forces the algorithm of every collective and keeps tuner plugins from "
              "choosing",
              "unset it outside of experiments",
              kNcclVariables},
    HazardRow{"aws_ofi_nccl",
              Fact("nccl_ofi_version", Test::kVersionBelow, "1.17.2"),
              {},
              "C2 X5 collective_timeout",
              "aws-ofi-nccl {value}: registering memory can deadlock in its RDMA protocol before "
              "1.17.2",
              "install 1.17.2 or newer",
              "github.com/aws/aws-ofi-nccl/pull/968"},
    HazardRow{"nccl_nvls",
              Variable("NCCL_NVLS_ENABLE", Test::kOneOf, "1"),
              {},
              "X3 B2 cuda_error",
              "{setting} insists on NVLink SHARP; where multicast cannot be set up, "
              "communicators fail instead of falling back",
              "unset it (the default falls back by itself) or set NCCL_NVLS_ENABLE=0",
              kNcclVariables},
    HazardRow{"nccl_ib_disabled",
              Variable("NCCL_IB_DISABLE", Test::kOneOf, kTrue),
              {},
              "D2 X5 C2 throughput_drop",
              "{setting} sends traffic between nodes over TCP sockets",
              "unset it where the nodes have InfiniBand or RoCE",
              kNcclVariables},
    HazardRow{"nccl_p2p_disabled",
              Variable("NCCL_P2P_DISABLE", Test::kOneOf, kTrue),
              {},
              "D2 throughput_drop",
              "{setting} keeps the cards of a node from talking over NVLink or PCIe",
              "unset it, or repair what it works around (ACS, IOMMU)",
              kNcclVariables},
    HazardRow{"nccl_shm_disabled",
              Variable("NCCL_SHM_DISABLE", Test::kOneOf, kTrue),
              {},
              "D2 throughput_drop",
              "{setting} keeps the processes of a node from sharing memory; they use the network",
              "unset it, and give the container a larger /dev/shm",
              kNcclVariables},
    HazardRow{"nccl_debug_volume",
              Variable("NCCL_DEBUG", Test::kOneOf, "INFO|TRACE|info|trace"),
              {},
              "X21 storage_error",
              "{setting} writes without end; at scale this is gigabytes an hour",
              "NCCL_DEBUG=WARN once the question is answered, or NCCL_DEBUG_FILE on a local disk",
              kNcclVariables},
    HazardRow{"nccl_timeout_unread",
              Variable("NCCL_TIMEOUT|TORCH_DISTRIBUTED_TIMEOUT"),
              {},
              "C2 collective_timeout",
              "{setting} is read neither by NCCL nor by torch.distributed: the timeout stays what "
              "the program passes",
              "pass timeout= to init_process_group (Megatron-LM: --distributed-timeout-minutes)",
              "pytorch.org/docs/stable/distributed.html"},
    HazardRow{"launch_blocking",
              Variable("CUDA_LAUNCH_BLOCKING", Test::kOneOf, kTrue),
              {},
              "D2 D1 throughput_drop C2",
              "{setting} waits for every kernel: training is slow",
              "unset it outside of debugging",
              "docs.nvidia.com/cuda/cuda-c-programming-guide (CUDA environment variables)"},
    HazardRow{"torch_blocking_wait",
              Variable("TORCH_NCCL_BLOCKING_WAIT|NCCL_BLOCKING_WAIT", Test::kOneOf, kTrue),
              {},
              "D2 throughput_drop C2",
              "{setting} blocks the host in every wait for a collective",
              "unset it; the watchdog finds timeouts without it",
              kTorchVariables},
    HazardRow{
        "torch_no_error_handling",
        Variable("TORCH_NCCL_ASYNC_ERROR_HANDLING|NCCL_ASYNC_ERROR_HANDLING", Test::kOneOf, "0"),
        {},
        "C2 C3",
        "{setting}: a rank that is lost or late leaves the others waiting for ever",
        "unset it, so that the watchdog ends a job that hangs",
        kTorchVariables},
    HazardRow{"torch_no_monitoring",
              Variable("TORCH_NCCL_ENABLE_MONITORING", Test::kOneOf, kFalse),
              {},
              "C2 C3",
              "{setting}: nobody ends a process whose watchdog is stuck in a CUDA or NCCL call",
              "unset it",
              kTorchVariables},
    HazardRow{"torch_debug_detail",
              Variable("TORCH_DISTRIBUTED_DEBUG", Test::kOneOf, "DETAIL|detail"),
              {},
              "D2 throughput_drop step_time_spikes",
              "{setting} compares every collective across ranks before it runs",
              "unset it, or use INFO",
              "pytorch.org/docs/stable/distributed.html"},
    HazardRow{"allocator_without_cache",
              Variable("PYTORCH_NO_CUDA_MEMORY_CACHING|PYTORCH_NO_HIP_MEMORY_CACHING"),
              {},
              "D2 throughput_drop B1",
              "{setting} asks the driver for every allocation: training is slow",
              "unset it outside of debugging",
              "pytorch.org/docs/stable/notes/cuda.html"},
    HazardRow{
        "expandable_segments_shared",
        Variable("PYTORCH_CUDA_ALLOC_CONF|PYTORCH_ALLOC_CONF", Test::kContains,
                 "expandable_segments:True"),
        {},
        "X1 A1",
        "{setting}: memory of expandable segments is shared between processes by pidfd, "
        "which containers without ptrace rights refuse (pidfd_getfd: Operation not permitted)",
        "leave it on unless tensors are shared over CUDA IPC; there, "
        "expandable_segments:False for the sender",
        "github.com/pytorch/pytorch/issues/165685"},
    HazardRow{
        "triton_cache_shared",
        Variable("TRITON_CACHE_DIR", Test::kSharedPath),
        {},
        "X12 C2 C3 A1 storage_error",
        "{setting} lies on what looks like a shared file system: all ranks compile into it at "
        "once and wait for its locks",
        "TRITON_CACHE_DIR=/tmp/triton-$USER on each node",
        "github.com/triton-lang/triton (cache manager)"},
    HazardRow{"gc_callback",
              Fact("callback", Test::kContains, "GarbageCollectionCallback"),
              {},
              "X14 C2 D3 step_time_spikes",
              "{value} collects garbage on each rank by itself: the others wait in their next "
              "collective",
              "collect on all ranks at the same step, or disable automatic collection and collect "
              "rarely",
              "github.com/NVIDIA/NeMo (GarbageCollectionCallback)"},
    HazardRow{"nan_unchecked",
              Fact("check_for_nan_in_loss_and_grad", Test::kOneOf, "False"),
              {},
              "E1 X24 grad_norm_spike iterations_nan",
              "{setting}: a loss or gradient that is not a number does not end the run",
              "leave the check on, or watch the loss from outside",
              "github.com/NVIDIA/Megatron-LM (--no-check-for-nan-in-loss-and-grad)"},
    HazardRow{"missing_checkpoint_accepted",
              Fact("exit_on_missing_checkpoint", Test::kOneOf, "False"),
              Fact("load", Test::kOneOf, "None"), "E2 started_from_scratch",
              "{setting}: a checkpoint that is not found means a start from random weights",
              "--exit-on-missing-checkpoint, once the first checkpoint has been written",
              "github.com/NVIDIA/Megatron-LM (training arguments)"},
    HazardRow{"optimizer_not_loaded", Fact("no_load_optim", Test::kOneOf, "True"),
              Fact("load", Test::kOneOf, "None"), "E2 E1 loss_spike grad_norm_spike",
              "{setting}: a resume begins with an empty optimizer",
              "drop --no-load-optim where the run is to go on",
              "github.com/NVIDIA/Megatron-LM (training arguments)"},
    HazardRow{"nothing_saved",
              Fact("save", Test::kOneOf, "None"),
              {},
              "A2 B1 B2 C2 F1 F2 F3 X1 X20",
              "{setting}: no checkpoint is written, so that all is lost with the run",
              "--save DIRECTORY --save-interval N",
              "github.com/NVIDIA/Megatron-LM (training arguments)"},
    HazardRow{
        "cache_emptied",
        Fact("empty_unused_memory_level", Test::kOneOf, "2"),
        {},
        "D2 throughput_drop",
        "{setting} gives the allocator's memory back twice in each iteration, and asks for it "
        "again",
        "--empty-unused-memory-level 0",
        "github.com/NVIDIA/Megatron-LM (training arguments)"},
    HazardRow{"optimizer_monitor",
              Fact("callback", Test::kContains, "OptimizerMonitor"),
              {},
              "D2 throughput_drop X17",
              "{value} visits each parameter at each step; with many experts this costs a good "
              "part of the step",
              "log it every hundred steps, or not for mixtures of experts",
              "github.com/mosaicml/composer (OptimizerMonitor)"},
};

}  // namespace

std::span<const HazardRow> Hazards() {
  return kRows;
}

}  // namespace rankscope::engine
