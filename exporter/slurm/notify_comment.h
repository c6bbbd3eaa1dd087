// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whom a job's owner wants to be told, as `sbatch --comment="rankscope:notify=chat,me@example.org"`
// says it. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace rankscope::exporter::slurm {

// The text behind "rankscope:notify=" up to a blank, a semicolon or a quote, as RANKSCOPE_NOTIFY
// has it; empty: the comment says nothing of it, or what it says is no list of names and addresses.
std::string WishInComment(std::string_view comment);

}  // namespace rankscope::exporter::slurm
