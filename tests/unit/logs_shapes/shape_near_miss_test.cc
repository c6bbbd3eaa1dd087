// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

// Lines that hold a failure's words and tell of none. None may become an incident that competes for
// the verdict.
class NearMiss : public ::testing::TestWithParam<const char*> {};

TEST_P(NearMiss, InitiatesNothing) {
  for (const Incident& incident : RunAll(GetParam())) {
    EXPECT_NE(incident.role, Role::kInitiating) << incident.shape << " read " << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Numbers, NearMiss,
    ::testing::Values("{'loss': 1.25, 'val_error': 0.03, 'error': 0.1, 'epoch': 2.0}",
                      "{'train_error': 0.5, 'killed': 0, 'epoch': 1.0}",
                      "step 40: killed 3 slow requests, loss 2.25",
                      "Build finished: 0 errors, 2 warnings", "0 errors", "error rate: 0.02",
                      "eval/error: 0.125 | eval/loss: 2.5",
                      "Epoch 3/10 [Killed experts: 0] loss=2.1",
                      "iteration 20/100 | number of errors: 0 |", "Task 3: Killed zombies found: 0",
                      "dead workers: 0, terminated: 0", "epoch 5: [allreduce.bucket 3] 2.25 ms",
                      "files: [broadcast.cc, main.cc]", "the command terminated with exit code 0",
                      "|  GPU   PID   Type   Process name      |  No running processes found  |"));

INSTANTIATE_TEST_SUITE_P(
    Advice, NearMiss,
    ::testing::Values("CUDA kernel errors might be asynchronously reported at some other API call, "
                      "so the stacktrace below might be "
                      "incorrect.",
                      "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.",
                      "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
                      "If you see CUDA out of memory, lower --batch-size.",
                      "Tip: CUDA out of memory errors can be avoided with gradient checkpointing",
                      "Setting OMP_NUM_THREADS environment variable for each process to be 1 in "
                      "default, to avoid your system being "
                      "overloaded",
                      "UserWarning: This DataLoader will create 8 worker processes in total, which "
                      "may slow down or even freeze",
                      "[W ProcessGroupNCCL.cpp:1569] Rank 0 using GPU 0 to perform barrier as "
                      "devices used by this process are "
                      "currently unknown. This can potentially cause a hang if this rank to GPU "
                      "mapping is incorrect.",
                      "if loss is nan the trainer will be stopping training",
                      "FutureWarning: use torch.load with weights_only=True",
                      "/e/x.py:4: UserWarning: segmentation fault possible on this platform",
                      "Warning: Killed processes are not restarted"));

INSTANTIATE_TEST_SUITE_P(
    Handled, NearMiss,
    ::testing::Values(
        "Retrying (Retry(total=4)) after connection broken by 'MaxRetryError: timed out': "
        "/api/models",
        "WARNING: ran out of memory with exception: CUDA out of memory. Tried to allocate 2.00 "
        "GiB; skipping batch",
        "'(MaxRetryError(\"HTTPSConnectionPool(host='hub.example', port=443): Max retries "
        "exceeded\"))' thrown while "
        "requesting HEAD https://hub.example/x",
        "Retry 2/5: ConnectionError: Connection reset by peer", "caught ValueError, using default",
        "bfc_allocator.cc:290] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.00GiB. "
        "The caller indicates "
        "that this is not a failure",
        "signal handler for SIGTERM installed", "register SIGTERM handler",
        "SLURM auto-requeueing enabled. Setting signal handlers.",
        "INFO: attempt 2, previous attempt: DataLoader worker (pid 3) exited normally"));

INSTANTIATE_TEST_SUITE_P(
    Prose, NearMiss,
    ::testing::Values(
        "Traceback (most recent call last) is printed above", "the word Traceback in a sentence",
        "{\"event\": \"Traceback (most recent call last):\\n  File \\\"a.py\\\"\", \"level\": "
        "\"info\"}",
        "preemption_timeout: 300", "save_on_preemption ......... True", "requeue: true",
        "Preemption handler installed for SIGUSR1", "will requeue when preempted",
        "If the job was preempted, it resumes from the newest checkpoint",
        "Resuming: the previous job was preempted at step 400",
        "Job not requeued because: "
        "timed-out too many times.",
        "Requeuing SLURM job 8841 failed with error code 1",
        "SLURM auto-requeueing enabled. Setting signal handlers.",
        "Job has not timed out. Ran 3 minutes out of requested 120 minutes.",
        "spot instance pricing: 0.91 per hour", "kv cache: 14 sequences preempted",
        "3 blocks evicted from the cache",
        "Request 17 was preempted by the scheduler of the engine",
        "{\"py_callstack\": \"none\", \"note\": \"fine\"}",
        "see \"py_callstack\": \"Traceback (most recent call last):\\n\" in the manual",
        "Terminated.", "Worker pool: Terminated", "Terminated by the scheduler's grace",
        "[1] killed 3 stale workers", "[12] segmentation of images", "Hangup", "Quit",
        "the old run was terminated by signal 9", "fish: 300 images, 20 classes",
        "make: *** [clean] Error 1 (ignored)", "make: nothing to be done for fit",
        "fit.service: Main process exited, code=exited, status=0/SUCCESS",
        "Killed by the user's patience", "The job was Killed", "Aborted saving of step 4",
        "Aborted: user pressed q twice but training goes on",
        "srun: job 44 queued and waiting for resources",
        "srun: job 44 has been allocated resources", "clang: error: no input files",
        "kernels.cu(12): error: identifier undefined", "ld: error: cannot find -lfoo",
        "rsync: error: some files could not be transferred",
        "loading dataset SignalError: a corpus of radio signals",
        "Loss: nan-safe reduction enabled", "loss is nan-masked",
        "model.py:3: note: Error: see docs", "Errors: none", "Exception handling enabled",
        "What(): a function that returns its argument",
        "Writing 3 files, No errors, Input/output shapes checked", "TimeoutHandler: disabled",
        "SystemError rate 0", "KeyError", "module: command not found",
        "activate.sh: line 3: conda: command not found",
        "nvidia-smi: error while loading shared libraries: libnvidia-ml.so.1: cannot open",
        "checking python: libfoo.so: version `1.2' not found (required by setup)",
        "env: PATH is /usr/bin", "env: 'module': No such file or directory",
        "env: No such file or directory",
        "Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot "
        "open",
        "Pod status: restarts 0, previously OOM-checked", "zsh: no matches found: *.pt",
        "Workers (tasks / actors) killed due to memory pressure (OOM): see the docs",
        "0 Workers (tasks / actors) killed due to memory pressure (OOM)",
        "srun: Node failure on purpose is tested elsewhere", "processing task 4: Outlook good",
        "tasks 3: done"));

INSTANTIATE_TEST_SUITE_P(
    Containers, NearMiss,
    ::testing::Values("pyxis: imported docker image: lab/trainer",
                      "slurmstepd: error: pyxis:     [INFO] Extracting squashfs filesystem",
                      "slurmstepd: error: pyxis: printing enroot log file:",
                      "FATAL:   the database system is starting up", "FATAL: a test of the logger",
                      "retrying the pull: Error response from daemon: no such image",
                      "nvidia-container-cli: loading the driver's libraries",
                      "mpirun has lost communication with a daemon of its own, once"));

INSTANTIATE_TEST_SUITE_P(
    Fatal, NearMiss,
    ::testing::Values(
        "E0305 11:12:13.141592 20331 ring_buffer.cc:88] Check failed: head_ <= tail_ (9 vs. 7)",
        "W0305 11:12:13.141592 20331 pjrt.cc:12] fatal errors may follow",
        "F0305 is the format, see logging.h:12] for more",
        "2026-01-02 03:04:05.678901: E tensorflow/core/util/port.cc:113] cannot register factory",
        "2026-01-02 03:04:05.678901: I xla/service/service.cc:173] F is for fast",
        "Fine-tuning F0305 11:12:13 run.cc:9] is a name", "F0305: reads rows.h:12] of the table",
        "I0305 11:12:13.141592 20331 place.cc:117] Invalid CUDAPlace(5), must inside [0, 4)",
        "Cannot use GPU because you have installed the CPU version, so the CPU is used"));

INSTANTIATE_TEST_SUITE_P(
    Transports, NearMiss,
    ::testing::Values(
        "[1767000000.1] [n7:41:1]  ucp_mm.c:110  UCX  ERROR failed to register address 0x2a length "
        "64 on md[3]=ib/mlx5_1: Input/output error",
        "[n7:41:1:77] rndv.c:943  Fatal: failed to unpack remote key: Input/output error",
        "stty: 'standard input': Input/output error",
        "bash: cannot set terminal process group (-1): Input/output error"));

INSTANTIATE_TEST_SUITE_P(
    NotFinite, NearMiss,
    ::testing::Values("EarlyStopping counter: 3 out of 5, stopping when loss is nan or rises",
                      "Non-finite gradients detected, skipping step 12",
                      "training will be stopped on nan loss",
                      "Stopping criteria: loss, patience 5, nan handling on",
                      "check_finite: stopping enabled",
                      "Financial training set: stopping words removed, infrastructure ready",
                      "grad_norm inf, ignoring this step and not aborting"));

TEST(NonFiniteText, ProgramsGiveUpInTheirOwnWords) {
  for (const char* text : {
           "Non-finite loss at iteration 812: aborting.",
           "ERROR: loss = nan, terminating the run",
           "Batch 41: Invalid loss, terminating training",
           "Monitored metric val_loss = nan is not finite. Previous best value was 0.412. "
           "Signaling Trainer to stop.",
           "Training has diverged (loss inf). Exiting",
           "gradient norm is not finite at step 9, training stopped",
       }) {
    const auto got = RunShapes(text);
    ASSERT_EQ(got.size(), 1u) << text;
    EXPECT_EQ(got[0].kind, IncidentKind::kNonFiniteLoss) << text;
  }
}

TEST(NonFiniteText, ExceptionsOfLoopsAndOfChecks) {
  const auto kind = [](std::string last) {
    const auto got = RunAll(
        "Traceback (most recent call last):\n  File \"fit.py\", line 9, in step\n"
        "    go()\n" +
        last + "\n");
    return got.empty() ? IncidentKind::kUsageError : got[0].kind;
  };
  for (const char* last : {
           "RuntimeError: Non-finite loss",
           "ValueError: nan loss encountered",
           "FloatingPointError: Loss became infinite or NaN at iteration=7!",
           "RuntimeError: The total norm of order 2.0 for gradients from `parameters` is "
           "non-finite, so it cannot be clipped.",
           "AssertionError: loss diverged to inf",
           "FloatingPointError: invalid value (nan) encountered in jit(train_step)",
           "RuntimeError: Detected nan and/or inf values in `layer1.weight`.",
       }) {
    EXPECT_EQ(kind(last), IncidentKind::kNonFiniteLoss) << last;
  }
  for (const char* last : {
           "ValueError: Input contains NaN, infinity or a value too large for dtype('float64').",
           "ValueError: loss_weight must not be nan",
           "ValueError: expected a finite loss scale",
           "RuntimeError: element 0 of tensors does not require grad and has no grad_fn",
           "KeyError: 'loss'",
           "ValueError: column inf of the training table is empty",
       }) {
    EXPECT_EQ(kind(last), IncidentKind::kException) << last;
  }
}

TEST(ToldToStop, ATerminalsCopyKeepsTheBarBelow) {
  const auto got =
      RunShapes("KeyboardInterrupt, loss=0.42, lr=1e-4]  31%|###  | 31/100 [00:12<00:27, 2.5it/s]");
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].kind, IncidentKind::kTerminated);
  EXPECT_EQ(got[0].signal, 2);
  EXPECT_TRUE(RunShapes("KeyboardInterruptHandler is active for 31 steps").empty());
  EXPECT_TRUE(RunShapes("on KeyboardInterrupt save and leave [00:12<00:27, 2.5it/s]").empty());
}

TEST(FatalLogs, TheFatalLevelEndsTheProcess) {
  const struct {
    const char* line;
    IncidentKind kind;
  } cases[] = {
      {"F0305 11:12:13.141592 20331 ring_buffer.cc:88] Check failed: head_ <= tail_ (9 vs. 7)",
       IncidentKind::kException},
      {"F0000 00:00:1767000000.123456 20331 gpu_timer.h:41] Non-OK-status: event->Record()",
       IncidentKind::kException},
      {"2026-01-02 03:04:05.678901: F external/xla/xla/pjrt/distributed/client.h:80] Terminating "
       "process because the JAX distributed service detected fatal errors. This most likely "
       "indicates that another task died; see the other task logs for more details.",
       IncidentKind::kPeerLost},
      {"2026-01-02 03:04:05.678901: F tensorflow/core/kernels/gather.cu:27] Non-OK-status: "
       "GpuLaunchKernel status: Internal: no kernel image is available. CUDA_ERROR_OUT_OF_MEMORY",
       IncidentKind::kCudaOom},
      {"E0305 11:12:13.141592 20331 place.cc:117] Invalid CUDAPlace(5), must inside [0, 4), "
       "because GPU number on your machine is 4",
       IncidentKind::kException},
      {"E0305 11:12:13.141592 20331 place.cc:140] Cannot use GPU because there is no GPU detected "
       "on your machine.",
       IncidentKind::kException},
  };
  for (const auto& c : cases) {
    const auto got = RunShapes(c.line);
    ASSERT_FALSE(got.empty()) << c.line;
    EXPECT_EQ(got[0].kind, c.kind) << c.line;
  }
}

TEST(CannotStart, TheLoaderTheKernelAndEnvSaySo) {
  for (const char* text : {
           "python: error while loading shared libraries: libpython3.10.so.1.0: cannot open shared "
           "object file: No such file or directory",
           "/opt/env/bin/python3: symbol lookup error: /opt/x/libc10_cuda.so: undefined symbol: "
           "cuFoo",
           "python: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by "
           "/opt/x/flash_attn.so)",
           "./train: relocation error: ./train: symbol foo version V_2 not defined in file "
           "libc.so.6",
           "bash: ./train: cannot execute binary file: Exec format error",
           "/usr/bin/env: 'python': No such file or directory",
           "/usr/bin/env: ‘python3’: No such file or directory",
       }) {
    const auto got = RunShapes(text);
    ASSERT_EQ(got.size(), 1u) << text;
    EXPECT_EQ(got[0].kind, IncidentKind::kUsageError) << text;
    EXPECT_EQ(got[0].sub, "no_library") << text;
  }
}

TEST(NearMisses, ClosingSignalIsACascade) {
  const auto got = RunShapes("Sending process 42 closing signal SIGTERM");
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].role, Role::kCascade);
}

// The row of lone exceptions leaves a line to the traceback machine where one is open, and reads it
// once otherwise.
TEST(NearMisses, AnExceptionIsReadOnce) {
  EXPECT_EQ(RunAll("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n")
                .size(),
            1u);
  EXPECT_EQ(RunAll("  what():  CUDA error: unspecified launch failure\n").size(), 1u);
  EXPECT_EQ(RunAll("Traceback (most recent call last):\n"
                   "  File \"a.py\", line 2, in f\n"
                   "    g()\n"
                   "RuntimeError: CUDA error: an illegal memory access was encountered\n"
                   "CUDA kernel errors might be asynchronously reported at some other API call\n"
                   "For debugging consider passing CUDA_LAUNCH_BLOCKING=1.\n")
                .size(),
            1u);
}

}  // namespace
}  // namespace rankscope::logs
