// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The texts that Slurm's commands print, as records. Pure but for the time zone (values.h); any
// bytes may come, a broken record does not take the next one with it; any thread.
//
// A job's name, command line and comment are its owner's words and may hold whatever stands around
// them: " JobState=", a newline and "JobId=", a '|'. A record of which two readings are possible is
// unreadable. A name can still be made that imitates two whole records of 22.05's text; JSON
// (json_reader.h) cannot be imitated, and is what to read where it is there.
#pragma once

#include <string_view>

#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

// `scontrol show job -o`
Read<SlurmJob> ReadJobText(std::string_view text);

// `scontrol show node -o`
Read<SlurmNode> ReadNodeText(std::string_view text);

// `sacct -P -D`: a line of names, then jobs and their steps. Any columns, in any order; JobIDRaw
// tells a task of an array from the array. Where one column may hold anything (JobName, SubmitLine,
// a comment, a path), separators too many are its own; where more than one may, a line with too
// many is unreadable.
Read<SlurmJob> ReadAccountingText(std::string_view text, char separator = '|');

// `sdiag`
SlurmDiag ReadDiagText(std::string_view text);

}  // namespace rankscope::exporter::slurm
