// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Slurm's spellings of single values: durations, times, sizes, exit statuses, counts of GPUs,
// states. Pure but for the time zone, in which Slurm's own commands print; any bytes may come, and
// what is no value is nullopt (a time: 0). Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

// A path, a comment, a host list of 1,000 nodes: PATH_MAX. Command lines are the exception: those
// of training runs carry their configuration.
inline constexpr size_t kMaxField = 4096;
inline constexpr size_t kMaxSubmitLine = 64 * 1024;

// The text without blanks around it; empty where it is one of Slurm's words for nothing.
std::string_view Said(std::string_view text);

// Digits, with a sign or without; nothing else.
std::optional<int64_t> ReadInteger(std::string_view text);

// "12", of a range "4-8" the lower end, "2K" = 2048: counts of nodes, processors, tasks.
std::optional<int64_t> ReadCount(std::string_view text);

// Seconds of "1-02:03:04", "02:03:04", "02:03", "1-02"; nullopt for UNLIMITED, INVALID,
// Partition_Limit. A bare number has no unit and is none.
std::optional<int64_t> ReadDuration(std::string_view text);

// Seconds since 1970 of those (SLURM_TIME_FORMAT=%s) or of "2026-11-23T14:00:00" in the local zone.
int64_t ReadTime(std::string_view text);

// "1:9": code and signal.
std::optional<ExitStatus> ReadExit(std::string_view text);

// What wait(2) would give; nullopt for the value by which Slurm means none.
std::optional<ExitStatus> ExitOfWaitStatus(int64_t status);

// Bytes of "8000M", "1.5G", "8000Mn" (for each node), and of a bare number of MiB.
std::optional<int64_t> ReadMemory(std::string_view text);

// GPUs in "cpu=4,mem=8G,node=2,gres/gpu=2,gres/gpu:a100=2"; 0 where other things are counted and
// no GPUs; nullopt where nothing is.
std::optional<int64_t> GpusOfTres(std::string_view text);

// GPUs in "gpu:2(IDX:0-1)", "gpu:a100:4(S:0-1),nic:1", "gres/gpu:2"; likewise.
std::optional<int64_t> GpusOfGres(std::string_view text);

// What the words of a state say: the base state if they name one, the rest as flags; in capitals.
struct StateWords {
  std::string base;
  std::vector<std::string> flags;
  std::string by;  // of "CANCELLED by 1000"
};
StateWords JobStateOf(const std::vector<std::string>& words);
StateWords NodeStateOf(const std::vector<std::string>& words);
// "RUNNING", "CANCELLED by 1000"; a job that completes is printed as "COMPLETING" alone.
StateWords ReadJobState(std::string_view text);
// "IDLE", "MIXED+DRAIN", "ALLOCATED*": the signs behind a state are flags.
StateWords ReadNodeState(std::string_view text);

// A base state after which a job does not run again under the same start.
bool IsEndState(std::string_view state);

}  // namespace rankscope::exporter::slurm
