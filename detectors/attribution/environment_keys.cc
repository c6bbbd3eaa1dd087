// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/environment_keys.h"

#include <algorithm>
#include <array>

namespace rankscope::attribution {
namespace {

// Sorted, for the binary search.
constexpr std::array<std::string_view, 89> kKeys = {
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "GLOO_SOCKET_IFNAME",
    "GPU_DEVICE_ORDINAL",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "HIP_VISIBLE_DEVICES",
    "JOB_COMPLETION_INDEX",
    "KMP_AFFINITY",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "MKL_NUM_THREADS",
    "MPI_LOCALNRANKS",
    "MPI_LOCALRANKID",
    "NVIDIA_VISIBLE_DEVICES",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMP_NUM_THREADS",
    "OMP_PROC_BIND",
    "PMIX_RANK",
    "PMI_RANK",
    "PMI_SIZE",
    "PYTHONFAULTHANDLER",
    "PYTHONUNBUFFERED",
    "RANK",
    "RANKSCOPE_NOTIFY",
    "ROCR_VISIBLE_DEVICES",
    "ROLE_NAME",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "SLURMD_NODENAME",
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_COUNT",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_CLUSTER_NAME",
    "SLURM_CPUS_ON_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_GPUS",
    "SLURM_GPUS_ON_NODE",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_TASK",
    "SLURM_GTIDS",
    "SLURM_HET_JOB_ID",
    "SLURM_HET_JOB_OFFSET",
    "SLURM_HET_SIZE",
    "SLURM_JOBID",
    "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_JOB_DEPENDENCY",
    "SLURM_JOB_END_TIME",
    "SLURM_JOB_GPUS",
    "SLURM_JOB_ID",
    "SLURM_JOB_NAME",
    "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_QOS",
    "SLURM_JOB_START_TIME",
    "SLURM_JOB_UID",
    "SLURM_JOB_USER",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_LOCALID",
    "SLURM_MEM_PER_NODE",
    "SLURM_NNODES",
    "SLURM_NODEID",
    "SLURM_NODELIST",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_PROCID",
    "SLURM_RESTART_COUNT",
    "SLURM_STEPID",
    "SLURM_STEP_GPUS",
    "SLURM_STEP_ID",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_SUBMIT_DIR",
    "SLURM_SUBMIT_HOST",
    "SLURM_TASKS_PER_NODE",
    "SLURM_TASK_PID",
    "TP_SOCKET_IFNAME",
    "TRITON_CACHE_DIR",
    "WORLD_SIZE",
};
static_assert(std::is_sorted(kKeys.begin(), kKeys.end()));

// Whole families of settings: NCCL's own, torch's and torchrun's, and torchrun's arguments given as
// environment (PET_).
constexpr std::array<std::string_view, 7> kPrefixes = {
    "NCCL_", "PET_", "PYTORCH_", "TORCHELASTIC_", "TORCH_", "TORCHINDUCTOR_", "UCX_"};

}  // namespace

bool IsAllowedEnvironmentKey(std::string_view key) {
  if (std::binary_search(kKeys.begin(), kKeys.end(), key)) return true;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [key](std::string_view prefix) { return key.starts_with(prefix); });
}

}  // namespace rankscope::attribution
