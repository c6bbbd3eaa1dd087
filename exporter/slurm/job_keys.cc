// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/job_keys.h"

#include <algorithm>
#include <iterator>

#include "exporter/slurm/fields.h"

namespace rankscope::exporter::slurm {
namespace {

void SetHetOffset(std::string_view value, SlurmJob& job) {
  const auto offset = ReadCount(Said(value));
  if (offset && *offset <= 0xffff) job.het_offset = static_cast<int32_t>(*offset);
}

// A job may be called "None".
void SetName(std::string_view value, SlurmJob& job) {
  if (value != "(null)") job.name = Bounded(value);
}

// "alice(1000)"; the number alone where nobody knows a name.
void SetUser(std::string_view value, SlurmJob& job) {
  const size_t bracket = value.find('(');
  if (const size_t last = value.rfind('('); last != std::string_view::npos && value.ends_with(')'))
    job.uid = ReadInteger(value.substr(last + 1, value.size() - last - 2));
  std::string_view name = value.substr(0, bracket);
  if (name.empty() && bracket != std::string_view::npos) {
    name = value.substr(1, value.find(')') - 1);
  }
  job.user = Bounded(Said(name));
}

void SetRequeue(std::string_view value, SlurmJob& job) {
  job.requeue = value == "1";
}

// Somebody may open it. A name that is not known yet stands behind it, or it is a path with such a
// word in it: it cannot be told, and is not said.
template <auto kMember>
void SetPath(std::string_view value, SlurmJob& job) {
  for (size_t blank = value.find(' '); blank != std::string_view::npos;
       blank = value.find(' ', blank + 1)) {
    const std::string_view word = value.substr(blank + 1, value.find(' ', blank + 1) - blank - 1);
    const bool capital = !word.empty() && word.front() >= 'A' && word.front() <= 'Z';
    if (capital && word.find('=') != std::string_view::npos) return;
  }
  SetText<kMember>(value, job);
}

void SetSubmitLine(std::string_view value, SlurmJob& job) {
  job.submit_line = Bounded(Said(value), kMaxSubmitLine);
}

// What scontrol has printed since 22.05, in the order of the search. The names that are not kept
// stand here as well: where the next one begins, a value ends.
constexpr Key<SlurmJob> kKeys[] = {
    {"Account", Zone::kFact, SetText<&SlurmJob::account>},
    {"AccrueTime", Zone::kFact, nullptr},
    {"AdminComment", Zone::kText, SetText<&SlurmJob::admin_comment>},
    {"AllocNode:Sid", Zone::kFact, nullptr},
    {"AllocTRES", Zone::kFact, nullptr},
    {"ArrayJobId", Zone::kFact, SetId<&SlurmJob::array_job_id>},
    {"ArrayTaskId", Zone::kFact, SetText<&SlurmJob::array_task>},
    {"ArrayTaskThrottle", Zone::kFact, nullptr},
    {"BatchFeatures", Zone::kFact, nullptr},
    {"BatchFlag", Zone::kFact, nullptr},
    {"BatchHost", Zone::kFact, SetText<&SlurmJob::batch_host>},
    {"BurstBuffer", Zone::kText, nullptr},
    {"BurstBufferState", Zone::kText, nullptr},
    {"CPU_Governor", Zone::kEither, nullptr},
    {"CPU_IDs", Zone::kPart, nullptr},
    {"CPU_max_freq", Zone::kEither, nullptr},
    {"CPU_min_freq", Zone::kEither, nullptr},
    {"CPUs/Task", Zone::kFact, nullptr},
    {"ClusterFeatures", Zone::kFact, nullptr},
    {"Command", Zone::kText, SetText<&SlurmJob::command>},
    {"Comment", Zone::kText, SetText<&SlurmJob::comment>},
    {"Container", Zone::kText, nullptr},
    {"ContainerID", Zone::kText, nullptr},
    {"Contiguous", Zone::kFact, nullptr},
    {"CoreSpec", Zone::kFact, nullptr},
    {"CpusPerTres", Zone::kText, nullptr},
    {"CronJob", Zone::kFact, nullptr},
    {"CrontabSpec", Zone::kFact, nullptr},
    {"Deadline", Zone::kFact, nullptr},
    {"DelayBoot", Zone::kFact, nullptr},
    {"Dependency", Zone::kFact, SetText<&SlurmJob::dependency>},
    {"DerivedExitCode", Zone::kFact, SetExit<&SlurmJob::derived_exit>},
    {"EligibleTime", Zone::kFact, SetTime<&SlurmJob::eligible>},
    {"EndTime", Zone::kFact, SetTime<&SlurmJob::end>},
    {"ExcNodeList", Zone::kFact, nullptr},
    {"ExitCode", Zone::kFact, SetExit<&SlurmJob::exit>},
    {"Extra", Zone::kText, nullptr},
    {"FailedNode", Zone::kFact, SetText<&SlurmJob::failed_node>},
    {"Features", Zone::kFact, nullptr},
    {"FedActiveSiblings", Zone::kFact, nullptr},
    {"FedOrigin", Zone::kFact, nullptr},
    {"FedViableSiblings", Zone::kFact, nullptr},
    {"GRES", Zone::kPart, nullptr},
    {"GresAllowTaskSharing", Zone::kEither, nullptr},
    {"GresEnforceBind", Zone::kEither, nullptr},
    {"GresOneTaskPerSharing", Zone::kEither, nullptr},
    {"GroupId", Zone::kFact, nullptr},
    {"HetJobId", Zone::kFact, SetId<&SlurmJob::het_job_id>},
    {"HetJobIdSet", Zone::kFact, nullptr},
    {"HetJobOffset", Zone::kFact, SetHetOffset},
    {"JOB_GRES", Zone::kFact, nullptr},
    {"JobId", Zone::kFact, SetId<&SlurmJob::job_id>},
    {"JobName", Zone::kName, SetName},
    {"JobState", Zone::kFact, SetJobState},
    {"KillOInInvalidDependent", Zone::kEither, nullptr},
    {"LastSchedEval", Zone::kFact, nullptr},
    {"Licenses", Zone::kFact, nullptr},
    {"LicensesAlloc", Zone::kFact, nullptr},
    {"MCS_label", Zone::kFact, nullptr},
    {"MailType", Zone::kText, nullptr},
    {"MailUser", Zone::kText, nullptr},
    {"Mem", Zone::kPart, nullptr},
    {"MemPerTres", Zone::kText, nullptr},
    {"MinCPUsNode", Zone::kFact, nullptr},
    {"MinMemoryCPU", Zone::kFact, nullptr},
    {"MinMemoryNode", Zone::kFact, nullptr},
    {"MinMemoryTRES", Zone::kFact, nullptr},
    {"MinTmpDiskNode", Zone::kFact, nullptr},
    {"Network", Zone::kFact, nullptr},
    {"Nice", Zone::kFact, nullptr},
    {"NodeList", Zone::kFact, SetText<&SlurmJob::nodes>},
    {"Nodes", Zone::kPart, nullptr},
    {"NtasksPerN:B:S:C", Zone::kFact, nullptr},
    {"NtasksPerTRES", Zone::kText, nullptr},
    {"NumCPUs", Zone::kFact, SetCount<&SlurmJob::cpus>},
    {"NumNodes", Zone::kFact, SetCount<&SlurmJob::node_count>},
    {"NumTasks", Zone::kFact, SetCount<&SlurmJob::tasks>},
    {"OOMKillStep", Zone::kText, nullptr},
    {"OverSubscribe", Zone::kFact, nullptr},
    {"Partition", Zone::kFact, SetText<&SlurmJob::partition>},
    {"Power", Zone::kText, nullptr},
    {"PreemptEligibleTime", Zone::kFact, nullptr},
    {"PreemptTime", Zone::kFact, SetTime<&SlurmJob::preempt>},
    {"Prefer", Zone::kFact, nullptr},
    {"Priority", Zone::kFact, SetCount<&SlurmJob::priority>},
    {"QOS", Zone::kFact, SetText<&SlurmJob::qos>},
    {"Reason", Zone::kFact, SetText<&SlurmJob::reason>},
    {"Reboot", Zone::kFact, nullptr},
    {"ReqB:S:C:T", Zone::kFact, nullptr},
    {"ReqNodeList", Zone::kFact, nullptr},
    {"ReqTRES", Zone::kFact, nullptr},
    {"Requeue", Zone::kFact, SetRequeue},
    {"Reservation", Zone::kFact, nullptr},
    {"ResizeTime", Zone::kFact, nullptr},
    {"Restarts", Zone::kFact, SetCount<&SlurmJob::restarts>},
    {"ResvPorts", Zone::kEither, nullptr},
    {"RunTime", Zone::kFact, SetDuration<&SlurmJob::elapsed_seconds>},
    {"SELinuxContext", Zone::kText, nullptr},
    {"SLUID", Zone::kFact, nullptr},
    {"SchedNodeList", Zone::kFact, nullptr},
    {"Scheduler", Zone::kFact, nullptr},
    {"SecsPreSuspend", Zone::kFact, nullptr},
    {"SegmentSize", Zone::kFact, nullptr},
    {"Socks/Node", Zone::kFact, nullptr},
    {"SpreadJob", Zone::kEither, nullptr},
    {"StartTime", Zone::kFact, SetTime<&SlurmJob::start>},
    {"StdErr", Zone::kText, SetPath<&SlurmJob::std_err>},
    {"StdIn", Zone::kText, nullptr},
    {"StdOut", Zone::kText, SetPath<&SlurmJob::std_out>},
    {"StepMgrEnabled", Zone::kFact, nullptr},
    {"SubmitLine", Zone::kText, SetSubmitLine},
    {"SubmitTime", Zone::kFact, SetTime<&SlurmJob::submit>},
    {"SuspendTime", Zone::kFact, SetTime<&SlurmJob::suspend>},
    {"Switches", Zone::kText, nullptr},
    {"SystemComment", Zone::kText, nullptr},
    {"TRES", Zone::kFact, nullptr},
    {"ThreadSpec", Zone::kFact, nullptr},
    {"TimeLimit", Zone::kFact, SetDuration<&SlurmJob::time_limit_seconds>},
    {"TimeMin", Zone::kFact, nullptr},
    {"TresBind", Zone::kText, nullptr},
    {"TresFreq", Zone::kText, nullptr},
    {"TresPerJob", Zone::kText, nullptr},
    {"TresPerNode", Zone::kText, nullptr},
    {"TresPerSocket", Zone::kText, nullptr},
    {"TresPerTask", Zone::kText, nullptr},
    {"UserId", Zone::kName, SetUser},
    {"WCKey", Zone::kFact, nullptr},
    {"WorkDir", Zone::kText, SetPath<&SlurmJob::work_dir>},
};
static_assert(std::is_sorted(std::begin(kKeys), std::end(kKeys),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));

}  // namespace

std::span<const Key<SlurmJob>> JobKeys() {
  return kKeys;
}

}  // namespace rankscope::exporter::slurm
