// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as what Slurm's commands print, as a list of nodes, as a value, and as a reason: each
// record has an id, each field is bounded, and no more records come out than lines went in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "detectors/model/host_list.h"
#include "exporter/slurm/node_reason.h"
#include "exporter/slurm/text_reader.h"
#include "exporter/slurm/values.h"

using namespace rankscope;
using namespace rankscope::exporter::slurm;

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void CheckJobs(const Read<SlurmJob>& read, std::string_view text) {
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  Require(read.records.size() + static_cast<size_t>(read.unreadable) <= lines);
  for (const SlurmJob& job : read.records) {
    Require(!job.job_id.empty() || !job.array_job_id.empty() || !job.het_job_id.empty());
    Require(job.name.size() <= kMaxField && job.command.size() <= kMaxField);
    Require(job.submit_line.size() <= kMaxSubmitLine && job.state_flags.size() <= 32);
    Require(job.submit >= 0 && job.start >= 0 && job.end >= 0);
    Require(job.gpus.value_or(0) >= 0 && job.node_count.value_or(0) >= 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto jobs = ReadJobText(text);
  CheckJobs(jobs, text);
  for (const SlurmJob& job : jobs.records) Require(!job.job_id.empty());
  CheckJobs(ReadAccountingText(text, "|"), text);
  for (const SlurmJob& step : ReadStepText(text, "|").records)
    Require(!step.job_id.empty() && !step.step_id.empty() && step.name.size() <= kMaxField);
  for (const SlurmNode& node : ReadNodeText(text).records) {
    Require(!node.name.empty() && node.reason.size() <= kMaxField);
    NodeReasonName(ClassifyReason(node.reason));
    NodeConditionName(ConditionOf(node));
  }
  const SlurmDiag diag = ReadDiagText(text);
  Require(diag.rpcs.size() <= 4096 && diag.users.size() <= 4096);
  const HostNames hosts = ExpandHostList(text);
  Require(hosts.names.size() <= kMaxHosts);
  for (const std::string& name : hosts.names) Require(!name.empty() && name.size() <= kMaxHostName);
  Require(ReadDuration(text).value_or(0) >= 0 && ReadTime(text) >= 0);
  Require(ReadMemory(text).value_or(0) >= 0 && ReadCount(text).value_or(0) >= 0);
  Require(GpusOfTres(text).value_or(0) >= 0 && GpusOfGres(text).value_or(0) >= 0);
  ReadExit(text);
  ReadJobState(text);
  ReadNodeState(text);
  ClassifyReason(text);
  return 0;
}
