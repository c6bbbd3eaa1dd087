// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "detectors/sentences/wording.h"

namespace rankscope::engine {
namespace {

using families::Question;

constexpr std::array kQuestions = {
    QuestionRow{Question::kWhoKilled,
                "who sent the signal: the kernel's OOM killer, a cgroup limit, the scheduler or "
                "somebody else",
                proto::STORE_KERNEL,
                "dmesg -T | grep -iE 'oom-kill|killed process|out of memory' | tail",
                "a line for pid {pid} means an OOM kill, with its cgroup; none means that the "
                "signal was sent by a process"},
    QuestionRow{Question::kNativeCrashSite, "which library crashed", proto::STORE_KERNEL,
                "dmesg -T | grep -E 'segfault|trap' | tail -5",
                "'segfault at ... in <library>' names the mapping; rerun with PYTHONFAULTHANDLER=1 "
                "for the Python frame"},
    QuestionRow{Question::kMemoryKnob,
                "which setting to turn: the configuration behind the allocation is not in the text",
                proto::STORE_GPU, "", ""},
    QuestionRow{Question::kRendezvousTrigger,
                "whether the coordinator is down, filtered or not resolvable", proto::STORE_KERNEL,
                "getent hosts {host}; nc -vz -w 5 {host} {port}",
                "no address: DNS; refused: nothing listens; a timeout: filtered or down; open: "
                "fewer ranks joined than expected"},
    QuestionRow{Question::kHangTrigger, "why the missing rank did not arrive", proto::STORE_KERNEL,
                "py-spy dump --pid <pid of the rank that is not in the collective>",
                "the frame it waits in: data loader, lock, file system, or an exception that never "
                "surfaced"},
    QuestionRow{
        Question::kHangCulprit, "which rank did not enter the collective", proto::STORE_NCCL,
        "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 on the next run",
        "the flight recorder's dump of the rank with the smallest last-completed sequence number"},
    QuestionRow{Question::kDivergenceCause,
                "whether learning rate, precision or data made it diverge: the configuration is "
                "not in the text",
                proto::STORE_LOG, "", ""},
    QuestionRow{Question::kHungOrSlow, "whether it still made progress at the limit: {quiet}",
                proto::STORE_PROCESS, "", ""},
    QuestionRow{Question::kCorrectness,
                "whether the model learned: no readable loss to judge it by", proto::STORE_LOG, "",
                ""},
    QuestionRow{Question::kDidNotFall, "whether the model learned: {curve}, which does not tell",
                proto::STORE_LOG, "", ""},
    QuestionRow{Question::kObjectiveScale,
                "whether its objective gives a loss of this size: the objective is not in the text",
                proto::STORE_LOG, "", ""},
    QuestionRow{Question::kWhoCancelled, "who asked for the end", proto::STORE_SCHEDULER,
                "sacct -j {job_id} --format=JobID,State,ExitCode,DerivedExitCode,End",
                "'CANCELLED by <uid>' names who; other states name the scheduler's own reason"},
    QuestionRow{Question::kWhyExit, "why it ended: no text and no record says so",
                proto::STORE_KERNEL, "", ""},
    QuestionRow{Question::kExitStatusUnknown, "how the command exited: text has no exit status",
                proto::STORE_PROCESS, "rankscope run -- <the command>",
                "the wait status, recorded by the wrapper"},
    QuestionRow{
        Question::kFixSemantics,
        "whether the obvious fix is what was meant: the program's intent is not in the text",
        proto::STORE_LOG, "", ""},
    QuestionRow{Question::kHardwareOrSoftware, "whether the card or the program is at fault",
                proto::STORE_GPU, "nvidia-smi -q -d ECC,ROW_REMAPPER; dmesg -T | grep 'NVRM: Xid'",
                "counters that rose during the run, or an Xid on the same GPU under another job, "
                "mean the card"},
    QuestionRow{Question::kTooEarly, "how it goes: too little has been seen yet", proto::STORE_LOG,
                "", ""},
    QuestionRow{Question::kResumeMeant,
                "which checkpoint was meant and whether it was read: the files are not seen",
                proto::STORE_KERNEL, "", ""},
    QuestionRow{Question::kRewardCause,
                "whether the reward function, the sampling or the policy is at fault: the samples "
                "are not in the text",
                proto::STORE_LOG, "", ""},
    QuestionRow{Question::kCompilerAlive,
                "whether the compiler, or whoever holds its lock, still works",
                proto::STORE_PROCESS, "pgrep -af 'nvcc|cicc|ptxas|ninja|cc1plus'",
                "a compiler that runs means patience; none means a lock that was left behind: "
                "remove it"},
    QuestionRow{Question::kWaitOrSmallKernels,
                "whether the cards wait inside collectives or run kernels too small to fill them",
                proto::STORE_NCCL, "NCCL_DEBUG=INFO on the next run",
                "'Using network' names what moves the bytes; ten steps under a profiler show the "
                "share of NCCL's kernels"},
    QuestionRow{Question::kStragglerCause,
                "why it is slower: the card, its link to the host, its share of the data, its CPUs",
                proto::STORE_KERNEL, "nvidia-smi -q -i {gpu} -d CLOCK,PERFORMANCE,PCI on its node",
                "a clock, a link width or a throttle reason unlike its peers' means the card; none "
                "means its host or its data"},
    QuestionRow{
        Question::kWhyNodeFailed, "why the node failed: what its board saw is not read",
        proto::STORE_KERNEL, "ipmitool sel list; ls /sys/fs/pstore; last -x | head",
        "on the node that failed: a power, fan or temperature event, or the last words of a "
        "kernel that died; "
        "nothing means its network or its Slurm daemon"},
    QuestionRow{Question::kNodeOrDaemon,
                "whether the node itself went down, or only its Slurm daemon or its network",
                proto::STORE_HOST, "uptime -s; systemctl status slurmd",
                "on that node: booted after the end of the run means that it went down, before it "
                "the daemon or the "
                "network"},
    QuestionRow{Question::kWhoRequeued,
                "who put the job back into the queue: its owner, an operator, or its own script",
                proto::STORE_SCHEDULER, "grep -i requeue slurmctld.log | grep -w {job_id}",
                "slurmctld writes down each requeue, and at its debug levels whose it was"},
    QuestionRow{Question::kLastCheckpoint,
                "whether the save that the end came into is complete: its files are not seen",
                proto::STORE_KERNEL,
                "ls -lt --time-style=full-iso in the folder of the checkpoints",
                "as many files, and as large, as in the one before: complete; fewer, smaller or a "
                "temporary name: not"},
    QuestionRow{Question::kRerun, "whether the job has run again, and how that ended",
                proto::STORE_SCHEDULER,
                "sacct -D -X -j {job_id} --format=JobID,State,Start,End,NodeList",
                "a row for each run; COMPLETED in the last of them means that it has recovered"},
    QuestionRow{Question::kFollowMeant,
                "whether this run was to go on from job {parent}: a job may wait for another for "
                "other reasons",
                proto::STORE_SCHEDULER,
                "sacct -X -j {parent},{job_id} --format=JobID,JobName%40,SubmitLine%200",
                "the same program with the same settings means a rerun; other settings mean "
                "another run of a series"},
};

}  // namespace

const QuestionRow& FindQuestion(Question question) {
  for (const QuestionRow& row : kQuestions) {
    if (row.question == question) return row;
  }
  return kQuestions.back();
}

}  // namespace rankscope::engine
