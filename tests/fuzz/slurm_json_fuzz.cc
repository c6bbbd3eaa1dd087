// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as Slurm's JSON: nothing is thrown, each record has what it is known by, each field is
// bounded.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "detectors/model/host_list.h"
#include "exporter/slurm/json_reader.h"
#include "exporter/slurm/values.h"

using namespace rankscope::exporter::slurm;

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckJob(const SlurmJob& job) {
  Require(!job.job_id.empty() && job.job_id.size() <= 10);
  Require(job.name.size() <= kMaxField && job.array_task.size() <= kMaxField);
  Require(job.submit_line.size() <= kMaxSubmitLine && job.state_flags.size() <= 32);
  Require(job.submit >= 0 && job.start >= 0 && job.end >= 0);
  Require(job.gpus.value_or(0) >= 0 && job.time_limit_seconds.value_or(0) >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const SlurmJob& job : ReadJobJson(text).records) CheckJob(job);
  for (const SlurmJob& job : ReadAccountingJson(text).records) CheckJob(job);
  const auto nodes = ReadNodeJson(text);
  for (const SlurmNode& node : nodes.records) {
    Require(!node.name.empty() && node.partitions.size() <= 2 * kMaxField);
    Require(node.memory_bytes.value_or(0) >= 0 && node.cpu_load.value_or(0) >= 0);
  }
  const SlurmDiag diag = ReadDiagJson(text);
  Require(diag.rpcs.size() <= 4096 && diag.since >= 0);
  return 0;
}
