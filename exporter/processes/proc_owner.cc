// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_owner.h"

namespace rankscope::collectors {

bool BelongsToAJob(const ProcessFacts& facts) {
  if (facts.environment.slurm_script || facts.start.comm == "slurmstepd") return false;
  if (facts.environment.ranked) return true;
  const attribution::CgroupFacts& owner = facts.owner;
  return !owner.job_id.empty() && !owner.slurm_process && owner.step_id != "extern";
}

std::string JobKnown(const TrackedProcess& before, const ProcessFacts& facts) {
  return before.wrapped || facts.owner.job_id.empty() ? before.job_id : facts.owner.job_id;
}

TrackedProcess WithFacts(TrackedProcess tracked, const ProcessFacts& facts) {
  tracked.key = facts.start.key;
  if (facts.start.parent.pid != 0) tracked.parent = facts.start.parent;
  tracked.uid = facts.start.uid;
  tracked.missing = false;
  tracked.job_id = JobKnown(tracked, facts);
  tracked.by_cgroup = !tracked.job_id.empty() && tracked.job_id == facts.owner.job_id;
  if (tracked.job_id.empty()) tracked.job_id = facts.environment.slurm_job_id;
  tracked.unranked = !facts.environment.ranked && !tracked.wrapped && tracked.by_cgroup;
  tracked.from_launcher = facts.environment.from_launcher;
  tracked.memory_is_v1 = !facts.cgroup.memory.empty();
  tracked.memory_cgroup = tracked.memory_is_v1 ? facts.cgroup.memory : facts.cgroup.unified;
  return tracked;
}

}  // namespace rankscope::collectors
