// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Launchers, allocators, transports and daemons, each beside a line that reads alike and is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Case {
  const char* line;
  const char* shape;
  IncidentKind kind;
  Role role;
  int32_t rank;
  int32_t pid;
  int32_t signal;
  int32_t exit_code;
};

class LibraryLine : public ::testing::TestWithParam<Case> {};

TEST_P(LibraryLine, IsRead) {
  const Case& c = GetParam();
  const auto got = RunShapes(c.line);
  ASSERT_THAT(got, SizeIs(1)) << c.line;
  EXPECT_EQ(got[0].shape, c.shape) << c.line;
  EXPECT_EQ(got[0].kind, c.kind) << c.line;
  EXPECT_EQ(got[0].role, c.role) << c.line;
  EXPECT_EQ(got[0].rank, c.rank) << c.line;
  EXPECT_EQ(got[0].pid, c.pid) << c.line;
  EXPECT_EQ(got[0].signal, c.signal) << c.line;
  EXPECT_EQ(got[0].exit_code, c.exit_code) << c.line;
}

using K = IncidentKind;
using R = Role;

INSTANTIATE_TEST_SUITE_P(
    Launchers, LibraryLine,
    ::testing::Values(
        Case{"ERROR:composer.cli.launcher:Rank 6 crashed with exit code 3.", "plain_exit",
             K::kNonZeroExit, R::kWrapper, 6, 0, 0, 3},
        Case{"Global rank 2 (PID 7731) exited with code -11", "plain_exit", K::kSignalDeath,
             R::kWrapper, 2, 7731, 11, -11},
        Case{"Killing global rank 1 (PID 7730) with SIGTERM", "launcher_stops", K::kSignalDeath,
             R::kCascade, -1, 7730, 15, 0},
        Case{"Process 5 exit with status code 134.", "plain_exit", K::kNonZeroExit, R::kWrapper, 5,
             0, 0, 134},
        Case{"pdsh@head: gpu-04: ssh exited with exit code 255", "plain_exit", K::kNonZeroExit,
             R::kWrapper, -1, 0, 0, 255},
        Case{"[2024-03-04 05:06:07,011] [INFO] [launch.py:316:sigkill_handler] Killing subprocess "
             "51734",
             "launcher_stops", K::kSignalDeath, R::kCascade, -1, 51734, 15, 0},
        Case{"W0304 05:06:07.120000 900 torch/multiprocessing/spawn.py:169] Terminating process "
             "981 via signal SIGTERM",
             "launcher_stops", K::kSignalDeath, R::kCascade, -1, 981, 15, 0},
        Case{"=   KILLED BY SIGNAL: 9 (KILLED)", "hydra_exit", K::kSignalDeath, R::kWrapper, -1, 0,
             9, 0},
        Case{"=   RANK 6 PID 33190 RUNNING AT r25u09n02", "mpi_process", K::kNonZeroExit,
             R::kAdvice, 6, 33190, 0, 0},
        Case{"prterun noticed that process rank 3 with PID 4112 on node c4 exited on",
             "mpi_process", K::kNonZeroExit, R::kAdvice, 3, 4112, 0, 0},
        Case{"=   EXIT CODE: 1", "hydra_exit", K::kNonZeroExit, R::kWrapper, -1, 0, 0, 1},
        Case{"MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD", "mpi_abort",
             K::kNonZeroExit, R::kWrapper, 2, 0, 0, 1},
        Case{"Abort(7) on node 4 (rank 4 in comm 0): application called "
             "MPI_Abort(MPI_COMM_WORLD, 7) - process 4",
             "mpi_abort", K::kNonZeroExit, R::kWrapper, 4, 0, 0, 7},
        Case{"[n2:411] *** MPI_ERR_TRUNCATE: message truncated", "mpi_error", K::kException,
             R::kInitiating, -1, 0, 0, 0},
        Case{"[n2:00411] *** MPI_ERR_PROC_FAILED: Process Failure", "mpi_error", K::kPeerLost,
             R::kInitiating, -1, 0, 0, 0},
        Case{"[n7:00041] *** MPI_ERR_OTHER: known error not in list", "mpi_error", K::kException,
             R::kWrapper, -1, 0, 0, 0},
        Case{"[n7:00041] pml_ucx.c:775  Error: ucx send failed: Input/output error", "ucx_ib",
             K::kPeerLost, R::kInitiating, -1, 0, 0, 0},
        Case{"Abort(403264271) on node 3 (rank 3 in comm 0): Fatal error in PMPI_Bcast: Message "
             "truncated, error stack:",
             "mpi_error", K::kException, R::kInitiating, 3, 0, 0, 0},
        Case{"There are not enough slots available in the system to satisfy the 12", "mpi_slots",
             K::kUsageError, R::kInitiating, -1, 0, 0, 0},
        Case{"command terminated with exit code 137", "kubectl", K::kSignalDeath, R::kWrapper, -1,
             0, 9, 0},
        Case{"command terminated with exit code 2", "kubectl", K::kNonZeroExit, R::kWrapper, -1, 0,
             0, 2},
        Case{"Intel MKL FATAL ERROR: Cannot load libmkl_core.so.1.", "cannot_start", K::kUsageError,
             R::kInitiating, -1, 0, 0, 0},
        Case{"Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: "
             "cannot open shared object file: No such file or directory",
             "cannot_start", K::kUsageError, R::kInitiating, -1, 0, 0, 0},
        Case{"EnvironmentNameNotFound: Could not find conda environment: fit311", "lone_exception",
             K::kException, R::kInitiating, -1, 0, 0, 0},
        Case{"slurmstepd: error: *** STEP 77.0 ON n2 CANCELLED AT 2025-03-04T05:06:07 DUE TO TASK "
             "FAILURE ***",
             "slurmstepd", K::kSchedulerEnd, R::kWrapper, -1, 0, 0, 0},
        Case{"srun: error: Unable to create step for job 77: More processors requested than "
             "permitted",
             "slurm_refusal", K::kUsageError, R::kInitiating, -1, 0, 0, 0},
        Case{"slurmstepd-gpu-17: error: execve(): /usr/bin/python4: No such file or directory",
             "slurm_refusal", K::kUsageError, R::kInitiating, -1, 0, 0, 0},
        Case{"srun: First task exited 60s ago", "srun_wait", K::kNonZeroExit, R::kAdvice, -1, 0, 0,
             0},
        Case{"srun: StepId=812.3 task 5: exited", "srun_state", K::kNonZeroExit, R::kAdvice, 5, 0,
             0, 0},
        Case{"bash: ./launch.sh: /opt/py39/bin/python: bad interpreter: No such file or directory",
             "cannot_start", K::kUsageError, R::kInitiating, -1, 0, 0, 0}));

INSTANTIATE_TEST_SUITE_P(
    Memory, LibraryLine,
    ::testing::Values(
        Case{"XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
             "17179869184 bytes.",
             "lone_exception", K::kCudaOom, R::kInitiating, -1, 0, 0, 0},
        Case{"ggml_cuda: cudaMalloc failed: out of memory", "device_memory", K::kCudaOom,
             R::kInitiating, -1, 0, 0, 0},
        Case{"Error out of memory at line 84 in file /b/ops.cu", "device_memory", K::kCudaOom,
             R::kInitiating, -1, 0, 0, 0},
        Case{"ValueError: No available memory for the cache blocks. Try increasing "
             "`gpu_memory_utilization` when initializing the engine.",
             "lone_exception", K::kCudaOom, R::kInitiating, -1, 0, 0, 0},
        Case{"memory allocation of 6442450944 bytes failed", "host_memory", K::kHostOom,
             R::kInitiating, -1, 0, 0, 0},
        Case{"[ 812.5] Killed process 6120 (python3), UID 1000, total-vm:90112kB, "
             "anon-rss:81920kB, file-rss:0kB",
             "kernel_oom", K::kHostOom, R::kInitiating, -1, 6120, 0, 0},
        Case{"[ 812.4] Task in /slurm/uid_1000/job_77/step_0 killed as a result of limit of "
             "/slurm/uid_1000/job_77",
             "kernel_oom", K::kHostOom, R::kInitiating, -1, 0, 0, 0},
        Case{"earlyoom: sending SIGTERM to process 6120 uid 1000 \"python3\": badness 911, VmRSS "
             "88000 MiB",
             "oom_daemon", K::kHostOom, R::kInitiating, -1, 6120, 0, 0},
        Case{"Warning  Evicted  kubelet  The node was low on resource: memory. Container trainer "
             "was using 90Gi",
             "oom_daemon", K::kHostOom, R::kInitiating, -1, 0, 0, 0}));

INSTANTIATE_TEST_SUITE_P(
    Collectives, LibraryLine,
    ::testing::Values(
        Case{"jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: "
             "[Init]Wait_for_all_tasks_to_register::0.",
             "lone_exception", K::kRendezvous, R::kInitiating, -1, 0, 0, 0},
        Case{"jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: "
             "save_step_400::1.",
             "lone_exception", K::kCollectiveTimeout, R::kInitiating, -1, 0, 0, 0},
        Case{"W stall_inspector.cc:107] One or more tensors were submitted to be reduced, gathered "
             "or broadcasted by subset of ranks and are waiting for remainder of ranks for more "
             "than 60 seconds.",
             "horovod_stall", K::kCollectiveTimeout, R::kInitiating, -1, 0, 0, 0},
        Case{"11: [Adam_Allreduce/cond_14/HorovodAllreduce_grads_14_0 ...]", "horovod_stall",
             K::kCollectiveTimeout, R::kCascade, -1, 0, 0, 0},
        Case{"5: [allreduce.DistributedAdam_grad_3, allreduce.DistributedAdam_grad_4 ...]",
             "horovod_stall", K::kCollectiveTimeout, R::kCascade, -1, 0, 0, 0},
        Case{"One or more rank (rank 1) is stalled for longer than "
             "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS seconds. Will shutdown.",
             "horovod_stall", K::kCollectiveTimeout, R::kInitiating, -1, 0, 0, 0},
        Case{"[rank5]:[E614 07:08:09.100 ProcessGroupNCCL.cpp:632] [Rank 5] Watchdog caught "
             "collective operation timeout: WorkNCCL(SeqNum=91, OpType=BROADCAST, NumelIn=8, "
             "NumelOut=8, Timeout(ms)=600000) ran for 600011 milliseconds before timing out.",
             "nccl_watchdog", K::kCollectiveTimeout, R::kInitiating, 5, 0, 0, 0},
        Case{"[Rank 1] Caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, "
             "TensorShape=[64], Timeout(ms)=1800000) ran for 1800321 milliseconds before timing "
             "out.",
             "nccl_watchdog", K::kCollectiveTimeout, R::kInitiating, 1, 0, 0, 0},
        Case{"[PG ID 0 PG GUID 0(default_pg) Rank 3] Timeout at NCCL work: 44, last enqueued NCCL "
             "work: 46, last completed NCCL work: 43.",
             "nccl_watchdog", K::kCollectiveTimeout, R::kInitiating, 3, 0, 0, 0},
        Case{"   - [7] joined but didn't finish collective #90 (count from 1)", "desync_report",
             K::kCollectiveTimeout, R::kCascade, -1, 0, 0, 0},
        Case{"n8:70:91 [4] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer "
             "10.7.0.2<41002> with error 12, opcode 0, len 0, vendor err 129",
             "nccl_ib", K::kPeerLost, R::kInitiating, -1, 0, 0, 0},
        Case{
            "n8:70:91 [4] transport/net_ib.cc:95 NCCL WARN NET/IB : mlx5_2:1 Got async event : GID "
            "table change",
            "nccl_ib", K::kPeerLost, R::kCascade, -1, 0, 0, 0},
        Case{"p5-3:70:91 [4] ofi_process_cq:196 NCCL WARN NET/OFI Request 0x7f21 completed with "
             "error. RC: 113. Error: 4104 (Receiver not ready). Completed length: 0",
             "nccl_ofi", K::kPeerLost, R::kInitiating, -1, 0, 0, 0},
        Case{"n8:70:91 [4] misc/socket.cc:58 NCCL WARN socketProgressOpt: Call to recv from "
             "10.7.0.2<41002> failed : Connection timed out",
             "peer_lost", K::kPeerLost, R::kCascade, -1, 0, 0, 0},
        Case{"RuntimeError: Timed out initializing process group in store based barrier on rank: "
             "3, for key: store_based_barrier_key:1 (world_size=4, worker_count=3, "
             "timeout=0:30:00)",
             "lone_exception", K::kRendezvous, R::kInitiating, -1, 0, 0, 0}));

TEST(LibraryShapes, ValuesOfTheirLines) {
  const auto ib = RunShapes(
      "n8:70:91 [4] NCCL WARN NET/IB : Got completion from peer 10.7.0.2<41002> with error 12, "
      "opcode 0");
  ASSERT_THAT(ib, SizeIs(1));
  EXPECT_EQ(Field(ib[0], "status"), "12");
  EXPECT_EQ(Field(ib[0], "status_name"), "RETRY_EXC_ERR");
  EXPECT_EQ(Field(ib[0], "peer"), "10.7.0.2");
  const auto barrier = RunShapes(
      "RuntimeError: Timed out initializing process group in store based barrier on rank: 3, for "
      "key: store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)");
  ASSERT_THAT(barrier, SizeIs(1));
  EXPECT_EQ(barrier[0].sub, "join");
  EXPECT_EQ(Field(barrier[0], "expected"), "4");
  EXPECT_EQ(Field(barrier[0], "joined"), "3");
  const auto jax = RunShapes("RESOURCE_EXHAUSTED: Out of memory allocating 4096 bytes");
  ASSERT_THAT(jax, SizeIs(1));
  EXPECT_EQ(Field(jax[0], "requested"), "4096");
}

// TensorFlow prints the same sentence for a tensor of the host's.
TEST(LibraryShapes, AnAllocatorOfTheHostIsNotTheGpus) {
  const auto host = RunShapes(
      "ResourceExhaustedError: OOM when allocating tensor with shape[9,9] and type float on "
      "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu");
  ASSERT_THAT(host, SizeIs(1));
  EXPECT_EQ(host[0].kind, IncidentKind::kHostOom);
  const auto gpu = RunShapes(
      "ResourceExhaustedError: OOM when allocating tensor with shape[9,9] and type float on "
      "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc");
  ASSERT_THAT(gpu, SizeIs(1));
  EXPECT_EQ(gpu[0].kind, IncidentKind::kCudaOom);
}

TEST(LibraryShapes, ARayActorsOwnErrorStandsBelowItsDeath) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/w/drive.py\", line 3, in <module>\n"
      "    ray.get(worker.fit.remote())\n"
      "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation "
      "task, ray::Worker.__init__() (pid=811, ip=10.1.1.4)\n"
      "  File \"/w/worker.py\", line 20, in __init__\n"
      "    self.net = Net(**settings)\n"
      "TypeError: Net() got an unexpected keyword argument 'depht'\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "TypeError");
  EXPECT_EQ(got[0].role, Role::kInitiating);
  EXPECT_EQ(got[0].file, "/w/worker.py:20");
}

TEST(LibraryShapes, ARayTasksExceptionIsItsInnerOne) {
  const auto got = RunAll(
      "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Worker.fit() (pid=811, ip=10.1.1.4)\n"
      "  File \"/w/worker.py\", line 20, in fit\n"
      "    loss.backward()\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "
      "capacity of 15.50 GiB of which 1.25 GiB is free.\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].kind, IncidentKind::kCudaOom);
  EXPECT_EQ(Field(got[0], "requested"), "2147483648");
  // Cut short behind its first line it is still said once.
  EXPECT_THAT(RunAll("ray.exceptions.RayTaskError(KeyError): ray::f() (pid=811, ip=10.1.1.4)\n"),
              SizeIs(1));
}

// In a pid namespace torch does not know its own entry.
TEST(LibraryShapes, TheOnlyProcessOnTheDeviceIsOnesOwn) {
  const std::string head =
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "
      "capacity of 39.50 GiB of which 1.25 GiB is free. ";
  const std::string tail =
      "Of the allocated memory 33.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by "
      "PyTorch but unallocated.";
  const auto alone = RunShapes(head + "Process 4410 has 38.00 GiB memory in use. " + tail);
  ASSERT_THAT(alone, SizeIs(1));
  EXPECT_EQ(Field(alone[0], "this_process"), "40802189312");
  EXPECT_EQ(Field(alone[0], "other_pid"), "");
  EXPECT_EQ(Field(alone[0], "tenant"), "");
  const auto two = RunShapes(head +
                             "Process 4410 has 20.00 GiB memory in use. Process 4500 has 18.00 GiB "
                             "memory in use. " +
                             tail);
  ASSERT_THAT(two, SizeIs(1));
  EXPECT_EQ(Field(two[0], "this_process"), "");
  EXPECT_EQ(Field(two[0], "other_pid"), "4410");
  const auto tenant =
      RunShapes(head +
                "Process 99 has 9.00 GiB memory in use. Including non-PyTorch memory, this process "
                "has 29.00 GiB memory in use. " +
                tail);
  ASSERT_THAT(tenant, SizeIs(1));
  EXPECT_EQ(Field(tenant[0], "other_pid"), "99");
}

TEST(LibraryShapes, TheCLibrarysLastWords) {
  for (const char* text :
       {"double free or corruption (!prev)", "malloc(): corrupted top size",
        "*** stack smashing detected ***: terminated",
        "*** Error in `python3': munmap_chunk(): invalid pointer: 0x00007f21c0000b20 ***"}) {
    const auto got = RunShapes(text);
    ASSERT_THAT(got, SizeIs(1)) << text;
    EXPECT_EQ(got[0].kind, IncidentKind::kSignalDeath) << text;
    EXPECT_EQ(got[0].signal, 6) << text;
  }
  EXPECT_THAT(RunShapes("parse(): invalid date in row 7, skipped"), IsEmpty());
  EXPECT_THAT(RunShapes("we fixed a free(): invalid pointer in release 3"), IsEmpty());
}

TEST(LibraryShapes, ThreadsThatAssertTheSameAreOneSaying) {
  const auto got = RunShapes(
      "/b/Loss.cu:242: nll_loss: block: [0,0,0], thread: [5,0,0] Assertion `t < classes` failed.\n"
      "/b/Loss.cu:242: nll_loss: block: [0,0,0], thread: [6,0,0] Assertion `t < classes` "
      "failed.\n");
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[0].message, got[1].message);
  EXPECT_THAT(RunShapes("python: fit.c:80: main: Assertion `n > 0' failed."), IsEmpty());
}

TEST(LibraryShapes, ExceptionsInSmallLettersEndATracebackToo) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/w/a.py\", line 1, in f\n"
      "    connect()\n"
      "socket.gaierror: [Errno -2] Name or service not known\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "socket.gaierror");
  EXPECT_THAT(RunShapes("train.error: 0.25"), IsEmpty());
}

TEST(LibraryShapes, HorovodsDriverReportsAndDoesNotInitiate) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/v/bin/horovodrun\", line 8, in <module>\n"
      "    sys.exit(run_commandline())\n"
      "RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus "
      "causing the job to be terminated. The first process to do so was:\n"
      "Process name: 2\n"
      "Exit code: 7\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].role, Role::kWrapper);
  EXPECT_EQ(got[0].kind, IncidentKind::kNonZeroExit);
  EXPECT_EQ(got[0].rank, 2);
  EXPECT_EQ(got[0].exit_code, 7);
}

// NCCL raises to Python while it makes a communicator; the watchdog speaks of those that stood.
TEST(LibraryShapes, NcclsErrorsAtCreationAreMarked) {
  const auto made = RunShapes(
      "torch.distributed.DistBackendError: NCCL error in: /b/NCCLUtils.cpp:93, unhandled system "
      "error, NCCL version 2.20.5");
  ASSERT_THAT(made, SizeIs(1));
  EXPECT_EQ(made[0].sub, "init");
  const auto stood = RunShapes(
      "[Rank 2] Process group watchdog thread terminated with exception: NCCL error: unhandled "
      "system error, NCCL version 2.20.5");
  ASSERT_THAT(stood, SizeIs(1));
  EXPECT_EQ(stood[0].sub, "");
}

class NoSuchLine : public ::testing::TestWithParam<const char*> {};

TEST_P(NoSuchLine, InitiatesNothing) {
  for (const Incident& incident : RunAll(GetParam())) {
    EXPECT_NE(incident.role, Role::kInitiating) << incident.shape << " read " << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(
    NearMisses, NoSuchLine,
    ::testing::Values(
        "Rank 3 finished successfully.", "the build container exited with code 2",
        "data server crashed with exit code 1, a new one starts",
        "Process 3 exit with status code 0", "=   EXIT CODE: 9",
        "signal 9 (Killed) is what the guide calls it", "Killed process pool, 4 workers left",
        "Task in queue killed as a result of limit of time",
        "memory allocation of the optimizer done", "out of resource: shared memory is not this",
        "earlyoom v1.7 started", "systemd-oomd[9]: Started Userspace Out-Of-Memory (OOM) Killer.",
        "the cache holds tokens that can be stored in a KV cache of 3 GiB",
        "n8:70:91 [4] NCCL INFO NET/IB : mlx5_2:1 Got async event : port active",
        "n8:70:91 [4] NCCL INFO Call to ibv_reg_mr_iova2 skipped",
        "upload completed with error. RC: 5 (retried)",
        "srun: Job step creation temporarily "
        "disabled, retrying (Requested nodes are busy)",
        "strace: execve(): 3 calls", "In 'train' we say what could not find 'its' place",
        "Failed to fetch: is required only for docs", "flags: Flags parsing took 3 ms",
        "kernel: python invoked by cron, no oom-killer needed",
        "Received 3 requests, call to recv from queue took 2 ms"));

}  // namespace
}  // namespace rankscope::logs
