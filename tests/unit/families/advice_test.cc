// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The remedy follows the cause: each cause with its words, and near it a text that must not be
// taken for it. Each advice has a row.
#include "detectors/verdict/advice.h"

#include <gtest/gtest.h>

#include <csignal>
#include <ostream>
#include <string>

#include "detectors/sentences/render.h"
#include "detectors/verdict/remedies.h"

namespace rankscope::families {
namespace {

using engine::AdviceOf;
using features::JobFeatures;

// A run that an incident ended, and the finding of that.
struct Ended {
  JobFeatures f;
  windows::Candidate candidate, sent;
  Finding finding;

  explicit Ended(const logs::Incident& incident) {
    candidate.incident = incident;
    f.evidence.resize(2);
    features::Cause cause;
    cause.candidate = &candidate;
    cause.evidence = 0;
    cause.role = features::Cause::Role::kInitiating;
    f.causes.push_back(cause);
    finding.matched = true;
    finding.root = {0};
    finding.signal = incident.signal;
  }

  void SentBy(std::string_view by) {
    sent.incident.shape = "signal_sent";
    sent.incident.fields = {{"sent_by", std::string(by)}};
    features::Cause cause;
    cause.candidate = &sent;
    cause.evidence = 1;
    cause.role = features::Cause::Role::kSupport;
    f.causes.push_back(cause);
  }
};

struct Case {
  std::string_view code, type, message, advice;
};
void PrintTo(const Case& of, std::ostream* out) {
  *out << of.code << " " << of.message;
}

class Advice : public ::testing::TestWithParam<Case> {};

TEST_P(Advice, FollowsTheCause) {
  logs::Incident incident;
  incident.kind = logs::IncidentKind::kException;
  incident.exception_type = GetParam().type;
  incident.message = GetParam().message;
  const Ended run(incident);
  const std::string_view advice = AdviceOf(GetParam().code, run.finding, run.f);
  EXPECT_EQ(advice, GetParam().advice);
  if (advice.empty()) return;
  const engine::RemedyRow& row = engine::FindRemedy(GetParam().code, advice);
  EXPECT_EQ(row.sub, advice) << "it has a row";
  FieldValues values{{FieldId::kWhere, std::string("the node")},
                     {FieldId::kMessage, incident.message}};
  EXPECT_NE(sentences::Render(row.implies, values), "") << "its headline needs nothing else";
}

INSTANTIATE_TEST_SUITE_P(
    Causes, Advice,
    ::testing::Values(
        Case{"A1", "RuntimeError", "CUDA error: system not yet initialized", "fabric_not_ready"},
        Case{"A1", "RuntimeError",
             "Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
             "fabric_not_ready"},
        Case{"A1", "RuntimeError", "the file system is not yet initialized by the plugin", ""},
        Case{"X1", "triton.runtime.errors.OutOfResources",
             "out of resource: shared memory, Required: 147456, Hardware limit: 101376. Reducing "
             "block sizes or `num_stages` may help.",
             "kernel_shared_memory"},
        Case{"X1", "RuntimeError", "cannot map the shared memory of a worker", ""},
        Case{"A1", "ValueError",
             "Free memory on device (12.1/79.1 GiB) on startup is less than desired GPU memory "
             "utilization (0.9, 71.2 GiB).",
             "engine_no_room"},
        Case{"A1", "ValueError",
             "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` "
             "when initializing the engine.",
             "engine_cache"},
        Case{"A1", "ValueError", "gpu_memory_utilization must be between 0 and 1", ""},
        Case{"B1", "RuntimeError",
             "CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please "
             "try lowering `max_num_seqs` or `gpu_memory_utilization`",
             "engine_share"},
        Case{"B1", "torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.", ""},
        Case{"A1", "FileExistsError", "[Errno 17] File exists: '/psm_3f21'", "stale_segment"},
        Case{"A1", "FileExistsError", "[Errno 17] File exists: '/dev/shm/job_cache'",
             "stale_segment"},
        Case{"A1", "FileExistsError", "[Errno 17] File exists: '/scratch/out'", ""},
        Case{"X21", "OSError", "[Errno 28] No space left on device: '/dev/shm/nccl-Xy3'",
             "shared_memory_full"},
        Case{"X21", "OSError", "[Errno 28] No space left on device: '/scratch/step_900.pt'", ""},
        Case{"A1", "ConnectionRefusedError", "[Errno 111] Connection refused", "server_absent"},
        Case{"A1", "redis.exceptions.ConnectionError",
             "Error 111 connecting to localhost:6379. Connection refused.", "server_absent"},
        Case{"X1", "grpc._channel._InactiveRpcError",
             "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.7:8500",
             "server_absent"},
        Case{"A1", "requests.exceptions.ConnectionError",
             "HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded: "
             "[Errno 111] Connection refused",
             ""},
        Case{"A1", "wandb.errors.CommError",
             "Failed to reach wandb at http://wandb.local: Connection refused", "tracking_absent"},
        Case{"X1", "wandb.errors.errors.CommError",
             "Run initialization has timed out after 90.0 sec.", "tracking_absent"},
        Case{"A1", "_pickle.UnpicklingError",
             "Weights only load failed. This file can still be loaded, to do so you have two "
             "options",
             "weights_only"},
        Case{"E2", "_pickle.UnpicklingError", "Weights only load failed.", "weights_only"},
        Case{"A1", "_pickle.UnpicklingError", "invalid load key, '<'.", ""},
        Case{"A1", "ImportError", "flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDevice",
             "library_build"},
        Case{"A1", "ImportError",
             "libcudart.so.11.0: cannot open shared object file: No such file or directory",
             "library_build"},
        Case{"A1", "ImportError",
             "libcurl.so.4: cannot open shared object file: No such file or directory", ""},
        Case{"A1", "RuntimeError",
             "CUDA error: no kernel image is available for execution on the device", "gpu_build"},
        Case{"A1", "RuntimeError",
             "The NVIDIA driver on your system is too old (found version 11040).",
             "driver_too_old"},
        Case{"A1", "RuntimeError", "Error 803: system has unsupported display driver / cuda driver",
             "driver_mismatch"},
        Case{"A1", "RuntimeError", "No CUDA GPUs are available", "no_gpu"},
        Case{"A1", "OSError", "[Errno 98] Address already in use", "port_held"},
        Case{"C1", "RuntimeError", "gloo: bind: Address already in use", ""},
        Case{"C1", "XlaRuntimeError",
             "DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0",
             "coordination_barrier"},
        Case{"X2", "", "a text with X21's shared memory in it", ""}));

TEST(Advice, OfASignalThatAProcessSentItself) {
  logs::Incident death;
  death.kind = logs::IncidentKind::kSignalDeath;
  for (const auto& [signal, by, advice] :
       {std::tuple{SIGTERM, "itself", "killed_itself"},
        std::tuple{SIGUSR1, "itself", "killed_itself"}, std::tuple{SIGABRT, "itself", ""},
        std::tuple{SIGTERM, "other_user", ""}}) {
    death.signal = signal;
    Ended run(death);
    run.SentBy(by);
    for (const std::string_view code : {"A2", "X20"})
      EXPECT_EQ(AdviceOf(code, run.finding, run.f), advice) << code << " " << signal << " " << by;
    EXPECT_EQ(AdviceOf("X2", run.finding, run.f), "");
  }
}

TEST(Advice, IsOfWhatBeganTheFindingOnly) {
  logs::Incident incident;
  incident.kind = logs::IncidentKind::kException;
  incident.message = "undefined symbol: x";
  Ended run(incident);
  run.finding.advice = "exec";
  EXPECT_EQ(AdviceOf("A1", run.finding, run.f), "exec") << "a family's own comes first";
  run.finding.advice = {};
  run.finding.root = {1};
  EXPECT_EQ(AdviceOf("A1", run.finding, run.f), "");
}

}  // namespace
}  // namespace rankscope::families
