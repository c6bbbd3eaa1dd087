// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What Slurm says of a job or of a step of it, as the engine takes it: whoever asks Slurm, the same
// record comes to the same observation. Texts are masked. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"
#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

// Accounting's row of a run whose job goes on.
bool IsRequeued(const SlurmJob& job);

// `origin`: which command or service said it: "squeue", "sacct", "scontrol".
SchedulerRecord RecordOf(const SlurmJob& job, std::string_view origin);

// Masks what the record has from users.
void Redact(SchedulerRecord& record);

// `facts`: as of StepFacts. The state comes last: what is known of the step besides belongs to it.
std::vector<SchedulerFact> StepTold(const std::string& job_id, const std::vector<KeyValue>& facts,
                                    const std::string& state, int64_t end, std::string_view origin);

}  // namespace rankscope::exporter::slurm
