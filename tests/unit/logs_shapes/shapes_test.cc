// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

using ::testing::SizeIs;

TEST(Shapes, EveryExampleIsReadByItsOwnRow) {
  for (const ShapeRow& row : Shapes()) {
    EXPECT_TRUE(AnchorOf(row.anchors, row.example)) << row.name;
    RecordList out;
    row.parse(Lines(row.example)[0], out);
    EXPECT_THAT(out, SizeIs(1)) << row.name;
  }
}

TEST(Shapes, NamesAreLabelsAndUnique) {
  std::set<std::string_view> names;
  for (const ShapeRow& row : Shapes()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_"),
              std::string_view::npos)
        << row.name;
    EXPECT_FALSE(row.what.empty()) << row.name;
    for (std::string_view anchor : row.anchors) EXPECT_GE(anchor.size(), 3u) << row.name;
  }
}

struct Case {
  const char* line;
  IncidentKind kind;
  Role role;
  const char* sub;
  int32_t signal;
  int32_t exit_code;
};

class ShapeLine : public ::testing::TestWithParam<Case> {};

TEST_P(ShapeLine, IsRead) {
  const Case& c = GetParam();
  const auto got = RunShapes(c.line);
  ASSERT_THAT(got, SizeIs(1)) << c.line;
  EXPECT_EQ(got[0].kind, c.kind) << c.line;
  EXPECT_EQ(got[0].role, c.role) << c.line;
  EXPECT_EQ(got[0].sub, c.sub) << c.line;
  EXPECT_EQ(got[0].signal, c.signal) << c.line;
  EXPECT_EQ(got[0].exit_code, c.exit_code) << c.line;
  EXPECT_EQ(got[0].line, std::string_view(c.line).substr(0, got[0].line.size()));
}

using K = IncidentKind;
using R = Role;

INSTANTIATE_TEST_SUITE_P(
    Launchers, ShapeLine,
    ::testing::Values(
        Case{"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) "
             "local_rank: 3 (pid: 77) of "
             "binary: /b/python",
             K::kSignalDeath, R::kWrapper, "", 9, -9},
        Case{"[2023-10-13 17:40:02,544] torch.distributed.elastic.multiprocessing.api: [ERROR] "
             "failed (exitcode: 1) "
             "local_rank: 0 (pid: 62) of binary: /b/python",
             K::kNonZeroExit, R::kWrapper, "", 0, 1},
        Case{"[2024-05-08 08:47:31,261] torch.distributed.elastic.multiprocessing.api: [WARNING] "
             "Sending process 59 "
             "closing signal SIGTERM",
             K::kSignalDeath, R::kCascade, "", 15, 0},
        Case{"WARNING:torch.distributed.elastic.agent.server.api:Received Signals.SIGHUP death "
             "signal, shutting down "
             "workers",
             K::kTerminated, R::kInitiating, "", 1, 0},
        Case{"[launch.py:321:sigkill_handler] ['python', 'x.py'] exits with return code = -15",
             K::kSignalDeath, R::kCascade, "", 15, -15},
        Case{"subprocess.CalledProcessError: Command '['/b/python', 'x.py']' returned non-zero "
             "exit status 3.",
             K::kNonZeroExit, R::kWrapper, "", 0, 3},
        Case{"mpirun noticed that process rank 1 with PID 44 on node n2 exited on signal 9 "
             "(Killed).",
             K::kSignalDeath, R::kWrapper, "", 9, 0}));

INSTANTIATE_TEST_SUITE_P(
    Slurm, ShapeLine,
    ::testing::Values(
        Case{"slurmstepd: error: *** JOB 88 ON n1 CANCELLED AT 2025-01-02T03:04:05 DUE TO TIME "
             "LIMIT ***",
             K::kSchedulerEnd, R::kInitiating, "time_limit", 0, 0},
        Case{"slurmstepd: error: *** STEP 88.0 ON n1 CANCELLED AT 2025-01-02T03:04:05 ***",
             K::kSchedulerEnd, R::kInitiating, "cancelled", 0, 0},
        Case{"slurmstepd: error: *** JOB 88 ON n1 CANCELLED AT 2025-01-02T03:04:05 DUE TO JOB "
             "REQUEUE ***",
             K::kSchedulerEnd, R::kInitiating, "requeue", 0, 0},
        Case{"slurmstepd: error: *** JOB 88 ON n1 CANCELLED AT 2025-01-02T03:04:05 DUE TO NODE "
             "FAILURE, SEE SLURMCTLD "
             "LOG FOR DETAILS ***",
             K::kSchedulerEnd, R::kInitiating, "node_failure", 0, 0},
        Case{"slurmstepd: error: Detected 1 oom-kill event(s) in StepId=371.0. Some of your "
             "processes may have been "
             "killed by the cgroup out-of-memory handler.",
             K::kHostOom, R::kInitiating, "cgroup", 0, 0},
        Case{"slurmstepd: error: Detected 2 oom-kill event(s) in step 37.batch cgroup.",
             K::kHostOom, R::kInitiating, "cgroup", 0, 0},
        Case{"srun: error: n4: task 0: Out Of Memory", K::kHostOom, R::kInitiating, "cgroup", 0, 0},
        Case{"srun: error: n4: tasks 0-3: Exited with exit code 1", K::kNonZeroExit, R::kWrapper,
             "", 0, 1},
        Case{"srun: error: n4: task 1: Killed", K::kSignalDeath, R::kWrapper, "", 9, 0},
        Case{"srun: error: n4: task 2: Terminated", K::kSignalDeath, R::kCascade, "", 15, 0}));

INSTANTIATE_TEST_SUITE_P(
    Signals, ShapeLine,
    ::testing::Values(
        Case{"Killed", K::kSignalDeath, R::kInitiating, "bare", 9, 0},
        Case{"Segmentation fault (core dumped)", K::kSignalDeath, R::kInitiating, "bare", 11, 0},
        Case{"Aborted (core dumped)", K::kSignalDeath, R::kInitiating, "bare", 6, 0},
        Case{"/var/spool/slurmd/job9/slurm_script: line 30: 771 Bus error               (core "
             "dumped) "
             "python fit.py",
             K::kSignalDeath, R::kInitiating, "", 7, 0},
        Case{"[1]+  Killed                  nohup python fit.py", K::kSignalDeath, R::kInitiating,
             "", 9, 0},
        Case{"Terminated", K::kSignalDeath, R::kInitiating, "bare", 15, 0},
        Case{"fit.sh: line 3: 771 Terminated              python fit.py", K::kSignalDeath,
             R::kInitiating, "", 15, 0},
        Case{"fit.sh: line 3: 771 Hangup                  python fit.py", K::kSignalDeath,
             R::kInitiating, "", 1, 0},
        Case{"fit.sh: line 3: 771 User defined signal 1   python fit.py", K::kSignalDeath,
             R::kInitiating, "", 10, 0},
        Case{"fit.sh: line 3: 771 File size limit exceeded(core dumped) python fit.py",
             K::kSignalDeath, R::kInitiating, "", 25, 0},
        Case{"./fit.ksh: line 2: 771: Memory fault(coredump)", K::kSignalDeath, R::kInitiating, "",
             11, 0},
        Case{"[1]  + 771 killed     python fit.py", K::kSignalDeath, R::kInitiating, "", 9, 0},
        Case{"fish: Job 1, 'python fit.py' terminated by signal SIGSEGV (Address boundary error)",
             K::kSignalDeath, R::kInitiating, "", 11, 0},
        Case{"Command terminated by signal 9", K::kSignalDeath, R::kInitiating, "", 9, 0},
        Case{"xargs: python: terminated by signal 11", K::kSignalDeath, R::kInitiating, "", 11, 0},
        Case{"make: *** [Makefile:7: fit] Terminated", K::kSignalDeath, R::kInitiating, "", 15, 0},
        Case{"make[1]: *** [fit] Error 137", K::kSignalDeath, R::kWrapper, "", 9, 0},
        Case{"make: *** [fit] Error 2", K::kNonZeroExit, R::kWrapper, "", 0, 2},
        Case{"systemd[1]: fit.service: Main process exited, code=dumped, status=11/SEGV",
             K::kSignalDeath, R::kInitiating, "", 11, 0},
        Case{"fit.service: A process of this unit has been killed by the OOM killer.", K::kHostOom,
             R::kInitiating, "cgroup", 0, 0},
        // A script's monitor, which it stops itself.
        Case{"fit.sh: line 9: 771 Terminated              nvidia-smi dmon > gpu.log",
             K::kSignalDeath, R::kAdvice, "", 15, 0},
        Case{"fit.sh: line 9: 771 Killed                  ( while true; do free; sleep 9; done )",
             K::kSignalDeath, R::kAdvice, "", 9, 0},
        Case{"Fatal Python error: Bus error", K::kSignalDeath, R::kInitiating, "", 7, 0},
        Case{"*** SIGSEGV received at time=1700000000 on cpu 7 ***", K::kSignalDeath,
             R::kInitiating, "", 11, 0},
        Case{"[n1:00042] Signal: Segmentation fault (11)", K::kSignalDeath, R::kInitiating, "", 11,
             0},
        Case{"Received SIGTERM, shutting down", K::kTerminated, R::kInitiating, "", 15, 0},
        Case{"terminate called after throwing an instance of 'std::bad_alloc'", K::kHostOom,
             R::kInitiating, "", 6, 0},
        Case{"terminate called after throwing an instance of 'c10::Error'", K::kException,
             R::kCascade, "", 6, 0}));

INSTANTIATE_TEST_SUITE_P(
    TakenOff, ShapeLine,
    ::testing::Values(
        Case{"Job has timed out. Ran 118 minutes out of requested 120 minutes.", K::kTerminated,
             R::kInitiating, "time_limit", 0, 0},
        Case{"[NeMo I 2026-02-03 04:05:06 preemption:88] Preemption detected, saving checkpoint "
             "and exiting",
             K::kTerminated, R::kInitiating, "preemption", 0, 0},
        Case{"Handling auto-requeue signal: 10", K::kTerminated, R::kInitiating, "requeue", 0, 0},
        Case{"INFO: Requeued SLURM job: 8841", K::kTerminated, R::kInitiating, "requeue", 0, 0},
        Case{"requeing job 8841...", K::kTerminated, R::kInitiating, "requeue", 0, 0},
        Case{"+ scontrol requeue 8841", K::kTerminated, R::kInitiating, "requeue", 0, 0},
        Case{"WARNING: Spot interruption notice received, saving checkpoint", K::kTerminated,
             R::kInitiating, "preemption", 0, 0},
        Case{"PreemptionCheckpointHandler: Starting saving a checkpoint.", K::kTerminated,
             R::kInitiating, "preemption", 0, 0}));

INSTANTIATE_TEST_SUITE_P(
    Network, ShapeLine,
    ::testing::Values(
        Case{"[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: "
             "98 - Address already "
             "in use).",
             K::kRendezvous, R::kCascade, "port_in_use", 0, 0},
        Case{"[E socket.cpp:435] [c10d] The server socket has failed to listen on any local "
             "network address (errno: 98 - "
             "Address already in use).",
             K::kRendezvous, R::kInitiating, "port_in_use", 0, 0},
        Case{"[W108 20:04:34.4 socket.cpp:759] [c10d] The client socket has failed to connect to "
             "[head]:29500 (errno: "
             "111 - Connection refused).",
             K::kRendezvous, R::kCascade, "refused", 0, 0},
        Case{"[W socket.cpp:601] [c10d] The IPv6 network addresses of (nosuch, 1234) cannot be "
             "retrieved (gai error: -2 "
             "- Name or service not known).",
             K::kRendezvous, R::kCascade, "dns", 0, 0},
        Case{"n1:1:9 [0] bootstrap.cc:42 NCCL WARN Bootstrap : no socket interface found",
             K::kRendezvous, R::kInitiating, "no_interface", 0, 0},
        Case{"n1:1:9 [0] misc/socket.cc:52 NCCL WARN socketProgress: Connection closed by remote "
             "peer n2<41000>",
             K::kPeerLost, R::kCascade, "", 0, 0},
        Case{"n1:1:9 [0] ib_plugin.c:1615 NCCL WARN NET/IB : Got completion from peer 1.2.3.4<5> "
             "with status=5 opcode=0 "
             "len=0 vendor err 244",
             K::kPeerLost, R::kCascade, "ib", 0, 0},
        Case{"[rank1]: Received a dump signal due to a collective timeout from  rank 6 and we will "
             "try our best to dump "
             "the debug info. Last enqueued NCCL work: 6, last completed NCCL work: 6.",
             K::kCollectiveTimeout, R::kCascade, "another", 0, 0},
        Case{"To avoid data inconsistency, we are taking the entire process down.",
             K::kCollectiveTimeout, R::kCascade, "", 0, 0}));

INSTANTIATE_TEST_SUITE_P(
    Machine, ShapeLine,
    ::testing::Values(
        Case{"NVRM: Xid (PCI:0000:38:00): 43, pid=2924, name=pt_main_thread, Ch 00000008", K::kXid,
             R::kCascade, "", 0, 0},
        Case{"NVRM: Xid (PCI:0000:38:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off "
             "the bus.",
             K::kXid, R::kInitiating, "", 0, 0},
        Case{"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/"
             ",mems_allowed=0,oom_memcg=/slurm/job_9,"
             "task_memcg=/slurm/job_9/step_0,task=python3,pid=4401,uid=7",
             K::kHostOom, R::kInitiating, "cgroup", 0, 0},
        Case{"Out of memory: Killed process 31 (python3) total-vm:9kB", K::kHostOom, R::kInitiating,
             "host", 0, 0},
        Case{"OSError: [Errno 122] Disk quota exceeded: '/h/u/ckpt'", K::kStorage, R::kInitiating,
             "", 0, 0},
        Case{"ModuleNotFoundError: No module named 'apex'", K::kException, R::kInitiating, "", 0,
             0},
        Case{"Exception: Current loss scale already at minimum - cannot decrease scale anymore. "
             "Exiting run.",
             K::kNonFiniteLoss, R::kInitiating, "scale_minimum", 0, 0},
        Case{"srun: error: n1: task 3: Exited with exit code 137", K::kSignalDeath, R::kInitiating,
             "", 9, 137},
        Case{"srun: error: n1: task 3: Exited with exit code 141", K::kNonZeroExit, R::kWrapper, "",
             0, 141},
        Case{"Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)",
             K::kSignalDeath, R::kWrapper, "", 11, 0},
        Case{"Exited with exit code 140.", K::kNonZeroExit, R::kWrapper, "", 0, 140},
        Case{"usage_demo.py: error: the following arguments are required: --data", K::kUsageError,
             R::kInitiating, "", 0, 0}));

TEST(Shapes, WatchdogCapturesItsNumbers) {
  const auto got = RunShapes(
      "[E ProcessGroupNCCL.cpp:607] [Rank 4] Watchdog caught collective operation timeout: "
      "WorkNCCL(SeqNum=1580, "
      "OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for 600060 milliseconds "
      "before timing out.");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].rank, 4);
  EXPECT_EQ(Field(got[0], "seq"), "1580");
  EXPECT_EQ(Field(got[0], "op"), "ALLREDUCE");
  EXPECT_EQ(Field(got[0], "timeout_ms"), "600000");
  EXPECT_EQ(Field(got[0], "elapsed_ms"), "600060");
}

TEST(Shapes, RankInsideAnotherGroupIsNotGlobal) {
  const auto got = RunShapes(
      "[E ProcessGroupNCCL.cpp:607] [PG ID 2 PG GUID 9(tp) Rank 1] Watchdog caught collective "
      "operation timeout: "
      "WorkNCCL(SeqNum=5, OpType=ALLGATHER, Timeout(ms)=10) ran for 11 milliseconds before timing "
      "out.");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].rank, -1);
  EXPECT_EQ(Field(got[0], "pg_rank"), "1");
}

TEST(Shapes, AllocatorGenerations) {
  struct Oom {
    const char* text;
    const char *requested, *total, *free, *allocated, *reserved;
  };
  const Oom cases[] = {
      {"CUDA out of memory. Tried to allocate 2.00 MiB (GPU 1; 4.00 GiB total capacity; 1.00 GiB "
       "already allocated; "
       "0 bytes free; 512.00 KiB cached)",
       "2097152", "4294967296", "0", "1073741824", "1074266112"},
      {"CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 4.00 GiB total capacity; 1.50 GiB "
       "already allocated; "
       "256.00 MiB free; 2.00 GiB reserved in total by PyTorch) If reserved memory is >> allocated "
       "memory try setting "
       "max_split_size_mb to avoid fragmentation.",
       "1073741824", "4294967296", "268435456", "1610612736", "2147483648"},
      {"CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacty of 4.00 GiB of "
       "which 64.00 MiB is "
       "free. Including non-PyTorch memory, this process has 3.00 GiB memory in use. Of the "
       "allocated memory 2.00 GiB is "
       "allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.",
       "1073741824", "4294967296", "67108864", "2147483648", "3221225472"},
  };
  for (const Oom& c : cases) {
    const auto got = RunShapes(c.text);
    ASSERT_THAT(got, SizeIs(1)) << c.text;
    EXPECT_EQ(Field(got[0], "requested"), c.requested);
    EXPECT_EQ(Field(got[0], "total"), c.total);
    EXPECT_EQ(Field(got[0], "free"), c.free);
    EXPECT_EQ(Field(got[0], "allocated"), c.allocated);
    EXPECT_EQ(Field(got[0], "reserved"), c.reserved);
  }
}

TEST(Shapes, CoTenantOfTheDevice) {
  const auto got = RunShapes(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total "
      "capacity of 8.00 GiB of "
      "which 1.00 MiB is free. Process 41 has 512.00 MiB memory in use. Process 42 has 5.00 GiB "
      "memory in use. Including "
      "non-PyTorch memory, this process has 2.00 GiB memory in use. Of the allocated memory 1.00 "
      "GiB is allocated by "
      "PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(Field(got[0], "other_pid"), "42");
  EXPECT_EQ(Field(got[0], "other_process"), "5368709120");
  EXPECT_EQ(Field(got[0], "this_process"), "2147483648");
}

TEST(Shapes, RendezvousNamesTheAddress) {
  for (const char* line : {"[E socket.cpp:860] [c10d] The client socket has timed out after 60s "
                           "while trying to connect to (10.1.0.4, 1234).",
                           "[E socket.cpp:860] [c10d] The client socket has failed to connect to "
                           "[10.1.0.4]:1234 (errno: 111 - Connection "
                           "refused)."}) {
    const auto got = RunShapes(line);
    ASSERT_THAT(got, SizeIs(1)) << line;
    EXPECT_EQ(Field(got[0], "host"), "10.1.0.4") << line;
    EXPECT_EQ(Field(got[0], "port"), "1234") << line;
  }
  EXPECT_EQ(Field(RunShapes("[E socket.cpp:8] [c10d] The client socket has timed out after 60s "
                            "while trying to connect "
                            "to (h, 1).")[0],
                  "timeout_ms"),
            "60000");
}

TEST(Shapes, XidOfNvlink5) {
  const auto got = RunShapes(
      "NVRM: Xid (PCI:0018:01:00): 145, pid=8767, name=ray::Worker, RLW_RXPIPE Nonfatal XC0 i0 "
      "Link 13 (0x0259a0c2 0x00000008 0x0 0x0)");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(Field(got[0], "code"), "145");
  EXPECT_EQ(Field(got[0], "bus_id"), "0018:01:00");
  EXPECT_EQ(Field(got[0], "severity"), "Nonfatal");
  EXPECT_EQ(Field(got[0], "unit"), "RLW_RXPIPE");
  EXPECT_EQ(Field(got[0], "link"), "13");
  EXPECT_EQ(Field(got[0], "subcode"), "37");
  EXPECT_EQ(Field(got[0], "made_by"), "peer");
  EXPECT_EQ(Field(got[0], "status"), "8");
}

TEST(Shapes, XidOfNvlink5WithAHostileName) {
  const auto got = RunShapes(
      "NVRM: Xid (PCI:0018:01:00): 149, pid=8767, name=A Fatal Link 9 , NETIR_LINK_EVT Nonfatal "
      "XC0 i0 Link -1 (0x00000000 0x00000000)");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(Field(got[0], "unit"), "NETIR_LINK_EVT");
  EXPECT_EQ(Field(got[0], "severity"), "Nonfatal");
  EXPECT_EQ(Field(got[0], "link"), "") << "of no link of its own";
  EXPECT_EQ(Field(got[0], "made_by"), "");
}

TEST(Shapes, XidOfNvlink5Damaged) {
  const std::string head = "NVRM: Xid (PCI:0018:01:00): 147, ";
  for (const std::string& text :
       {head, head + "TREX", head + "trex Fatal XC0 i0 Link 1 (0x0)", head + "TREX Deadly XC0 i0",
        head + std::string(64, 'A') + " Fatal XC0 i0 Link 3 (0x1)", head + std::string(9000, ','),
        head + std::string(9000, ' ')}) {
    const auto got = RunShapes(text);
    ASSERT_THAT(got, SizeIs(1)) << text;
    EXPECT_EQ(Field(got[0], "unit"), "") << text;
  }
  for (const std::string& text :
       {head + "TREX Fatal", head + "TREX Fatal XC0 i0 Link",
        head + "TREX Fatal XC0 i0 Link x (0x1)", head + "TREX Fatal XC0 i0 Link 4711 (",
        head + "TREX Fatal XC0 i0 Link 9999999999 (zz"}) {
    const auto got = RunShapes(text);
    ASSERT_THAT(got, SizeIs(1)) << text;
    EXPECT_EQ(Field(got[0], "severity"), "Fatal") << text;
    EXPECT_EQ(Field(got[0], "link"), "") << text;
    EXPECT_EQ(Field(got[0], "subcode") == "" || Field(got[0], "subcode") == "0", true) << text;
  }
}

TEST(Shapes, KernelFaultNamesTheLibrary) {
  const auto got = RunShapes(
      "[ 77.1] python3[6100]: segfault at 20 ip 00007f sp 00007f error 4 in libnccl.so.2[7f+99]");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].pid, 6100);
  EXPECT_EQ(Field(got[0], "library"), "libnccl.so.2");
}

TEST(Shapes, TaskAndNodeOfSrun) {
  const auto got = RunShapes("srun: error: gpu-03: task 6: Exited with exit code 2");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].rank, 6);
  EXPECT_EQ(Field(got[0], "node"), "gpu-03");
  // Several tasks share the line: no one of them is the speaker.
  EXPECT_EQ(RunShapes("srun: error: n: tasks 4-7: Exited with exit code 2")[0].rank, -1);
}

}  // namespace
}  // namespace rankscope::logs
