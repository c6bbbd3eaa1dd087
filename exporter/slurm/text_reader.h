// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The texts that Slurm's commands print, as records. Pure but for the time zone (values.h); any
// bytes may come, a broken record does not take the next one with it; any thread.
//
// A job's name, command line and comment are its owner's words and may hold whatever stands around
// them: " JobState=", a newline and "JobId=", a '|'. A record of which two readings are possible is
// unreadable. A name can still be made that imitates two whole records: what is read with the help
// of this text is therefore confirmed by a text in columns, or is JSON (json_reader.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

// `scontrol show job -o`
Read<SlurmJob> ReadJobText(std::string_view text);

// `scontrol show node -o`
Read<SlurmNode> ReadNodeText(std::string_view text);

// `sacct -p -D --delimiter=...`: a line of names, then jobs and their steps. Any columns, in any
// order; JobIDRaw tells a task of an array from the array. A separator stands behind each value,
// and is one that no name can hold because nobody could know it (NewSeparator): whatever else a
// name holds is its own.
Read<SlurmJob> ReadAccountingText(std::string_view text, std::string_view separator);

// `squeue -O FORMAT`: the same of jobs, in columns: no name forges one. A separator as above.
enum class QueueColumns : uint8_t { kPlain, kWithOutput };  // the latter: and its output files
std::string QueueFormat(std::string_view separator, QueueColumns columns = QueueColumns::kPlain);
Read<SlurmJob> ReadQueueText(std::string_view text, std::string_view separator,
                             QueueColumns columns = QueueColumns::kPlain);
// The jobs of `sure`, which is squeue's, with what scontrol alone prints of each, where it has one
// record of the job that agrees. What a name imitates is in no such record.
std::vector<SlurmJob> Confirm(const std::vector<SlurmJob>& sure, const std::vector<SlurmJob>& jobs);

// `squeue -s -o FORMAT`: the steps that run. A separator as above.
std::string StepFormat(std::string_view separator);
Read<SlurmJob> ReadStepText(std::string_view text, std::string_view separator);

// `sdiag`
SlurmDiag ReadDiagText(std::string_view text);

}  // namespace rankscope::exporter::slurm
