// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What Slurm's daemons and commands, kernels and file systems say of an end, each group beside
// lines that read alike and tell of none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

using K = IncidentKind;

struct Case {
  const char* line;
  IncidentKind kind;
  const char* sub;
  const char* key;  // of a field; empty: none
  const char* value;
};

class SchedulerText : public ::testing::TestWithParam<Case> {};

TEST_P(SchedulerText, IsRead) {
  const Case& c = GetParam();
  const auto got = RunShapes(c.line);
  ASSERT_EQ(got.size(), 1u) << c.line;
  EXPECT_EQ(got[0].kind, c.kind) << c.line;
  EXPECT_EQ(got[0].sub, c.sub) << c.line;
  EXPECT_EQ(got[0].role, Role::kInitiating) << c.line;
  if (*c.key != '\0') {
    EXPECT_EQ(Field(got[0], c.key), c.value) << c.line;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sacct, SchedulerText,
    ::testing::Values(
        Case{"71           fit       gpu        lab         64  NODE_FAIL      1:0",
             K::kSchedulerEnd, "node_failure", "job", "71"},
        Case{"71|fit|gpu|lab|64|CANCELLED by 1001|0:15", K::kSchedulerEnd, "cancelled", "job",
             "71"},
        Case{"71_4         fit       gpu        lab         64 CANCELLED+      0:0",
             K::kSchedulerEnd, "cancelled", "job", "71_4"},
        Case{"71           fit       gpu        lab         64 OUT_OF_ME+    0:125", K::kHostOom,
             "cgroup", "job", "71"},
        Case{"71|fit|gpu|lab|64|PREEMPTED|0:0", K::kSchedulerEnd, "preemption", "job", "71"},
        Case{"71|fit|gpu|lab|64|TIMEOUT|0:0", K::kSchedulerEnd, "time_limit", "job", "71"},
        Case{"   JobState=NODE_FAIL Reason=NodeDown Dependency=(null)", K::kSchedulerEnd,
             "node_failure", "", ""},
        Case{"   State=DOWN*+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A", K::kSchedulerEnd,
             "node_failure", "", ""}));

INSTANTIATE_TEST_SUITE_P(
    Daemon, SchedulerText,
    ::testing::Values(
        Case{"[2026-01-02T03:04:05.678] error: Nodes gpu-[3-4] not responding, setting DOWN",
             K::kSchedulerEnd, "node_failure", "node", "gpu-[3-4]"},
        Case{"[2026-01-02T03:04:05.678] Killing JobId=71 on failed node gpu-3", K::kSchedulerEnd,
             "node_failure", "node", "gpu-3"},
        Case{"[2026-01-02T03:04:05.678] requeue JobId=71 due to failure of node gpu-3",
             K::kSchedulerEnd, "node_failure", "job", "71"},
        Case{"[2026-01-02T03:04:05.678] Batch JobId=71 missing from batch node gpu-3 (not found "
             "BatchStartTime after startup)",
             K::kSchedulerEnd, "node_failure", "node", "gpu-3"},
        Case{"[2026-01-02T03:04:05.678] Node gpu-3 unexpectedly rebooted boot_time=1767000000 last "
             "response=1766999000",
             K::kSchedulerEnd, "node_failure", "node", "gpu-3"},
        Case{"[2026-01-02T03:04:05.678] Time limit exhausted for JobId=71", K::kSchedulerEnd,
             "time_limit", "job", "71"},
        Case{"[2026-01-02T03:04:05.678] preempted JobId=71 has been requeued to reclaim resources "
             "for JobId=72",
             K::kSchedulerEnd, "preemption", "job", "71"},
        Case{"[2026-01-02T03:04:05.678] _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=71 uid 1001",
             K::kSchedulerEnd, "cancelled", "job", "71"}));

INSTANTIATE_TEST_SUITE_P(
    Kernel, SchedulerText,
    ::testing::Values(
        Case{"[1.5] EXT4-fs (nvme0n1p1): Remounting filesystem read-only", K::kStorage, "", "errno",
             "EROFS"},
        Case{"[1.5] XFS (dm-3): Filesystem has been shut down due to log error (0x2).", K::kStorage,
             "", "device", "dm-3"},
        Case{"[1.5] LustreError: 167-0: w-OST0001-osc-ff: This client was evicted by w-OST0001; in "
             "progress operations using this service will fail.",
             K::kStorage, "", "errno", "EIO"},
        Case{"[1.5] Lustre: w-OST0001-osc-ff: Connection to w-OST0001 (at 10.0.0.4@o2ib) was lost; "
             "in progress operations using this service will wait for recovery to complete",
             K::kStorage, "hang", "", ""},
        Case{"[1.5] Memory failure: 0x3a1c2: Sending SIGBUS to python3:812 due to hardware memory "
             "corruption",
             K::kSignalDeath, "machine_check", "comm", "python3"},
        Case{"[1.5] Memory failure: 0x3a1c2: forcibly killing python3:812 because of failure to "
             "unmap "
             "corrupted page",
             K::kSignalDeath, "machine_check", "comm", "python3"},
        Case{"[1.5] mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: "
             "be00000000800400",
             K::kSignalDeath, "machine_check", "", ""},
        Case{"[1.5] EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0",
             K::kSignalDeath, "machine_check", "", ""}));

class NoEnd : public ::testing::TestWithParam<const char*> {};

TEST_P(NoEnd, TellsOfNone) {
  for (const Incident& incident : RunShapes(GetParam()))
    EXPECT_NE(incident.role, Role::kInitiating) << incident.shape << " read " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(
    Texts, NoEnd,
    ::testing::Values(
        "71           fit       gpu        lab         64  COMPLETED      0:0",
        "71.0         fit                  lab         64  CANCELLED      0:15",
        "71 requests ended in TIMEOUT after 30 s", "71|TIMEOUT|00:30:00", "NODE_FAIL 71 1:0",
        "   JobState=RUNNING Reason=None Dependency=(null)",
        "   State=IDLE+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A",
        "[2026-01-02T03:04:05.678] error: Nodes gpu-3 not responding",
        "[2026-01-02T03:04:05.678] Node gpu-3 now responding",
        "a job that runs on failed node is killed",
        "[2026-01-02T03:04:05.678] _job_complete: JobId=71 WEXITSTATUS 0",
        "the scheduler may want to reclaim resources for others",
        "[1.5] EXT4-fs (nvme0n1p1): mounted filesystem with ordered data mode",
        "[1.5] Lustre: w-OST0001-osc-ff: Connection restored to w-OST0001 (at 10.0.0.4@o2ib)",
        "[1.5] Memory failure: 0x3a1c2: recovery action for clean LRU page: Recovered",
        "[1.5] mce: [Hardware Error]: Machine check events logged",
        "[1.5] {1}[Hardware Error]: event severity: corrected",
        "[1.5] EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0",
        "docs: XFS says 'Filesystem has been shut down due to' and an error"));

}  // namespace
}  // namespace rankscope::logs
