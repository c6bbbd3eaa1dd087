// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/suspect_node.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "detectors/model/host_list.h"

namespace rankscope::features {
namespace {

using windows::SchedulerHistory;
using windows::SchedulerRun;
using Nodes = std::set<std::string>;

constexpr double kSoon = 600;  // seconds
constexpr int64_t kFewest = 3;

// Empty: not known, as of a list that was too long to be kept.
Nodes NodesOf(const SchedulerRun& run) {
  if (run.nodes.size() >= SchedulerHistory::kTextCap) return {};
  HostNames hosts = ExpandHostList(run.nodes);
  if (!hosts.whole) return {};
  return {hosts.names.begin(), hosts.names.end()};
}

// Slurm's accounting says PREEMPTED of a run that it has preempted, and REQUEUED of one that was
// put back by hand, by its script or because it could not be started.
bool Failed(const SchedulerRun& run) {
  constexpr std::string_view kStates[] = {"FAILED",        "NODE_FAIL",     "BOOT_FAIL",
                                          "LAUNCH_FAILED", "OUT_OF_MEMORY", "REQUEUED"};
  if (std::find(std::begin(kStates), std::end(kStates), run.state) == std::end(kStates))
    return false;
  return run.by.empty() && run.reason.find("reempt") == std::string::npos;
}

}  // namespace

void DescribeSuspectNode(const SchedulerHistory& history, Citer& citer, SuspectNode& suspect) {
  Nodes in_all, well, named;
  int64_t runs = 0, failures_named = 0;
  const SchedulerRun* first = nullptr;
  const SchedulerRun* last = nullptr;
  for (const SchedulerRun& run : history.runs()) {
    const double seconds = run.seconds();
    const Nodes nodes = NodesOf(run);
    // What runs now may still fail.
    const bool lasted = seconds >= kSoon || run.state == "COMPLETED";
    if (lasted) well.insert(nodes.begin(), nodes.end());
    if (lasted || !run.ended() || !Failed(run) || !std::isfinite(seconds)) continue;
    if (nodes.size() < 2) return;
    if (runs++ == 0) {
      in_all = nodes;
      first = &run;
    } else {
      std::erase_if(in_all, [&nodes](const std::string& node) { return !nodes.contains(node); });
    }
    last = &run;
    if (run.failed_node.empty()) continue;
    named.insert(run.failed_node);
    ++failures_named;
  }
  if (runs < kFewest || named.size() > 1) return;
  const bool named_each = failures_named == runs && in_all.contains(*named.begin());
  if (in_all.size() != 1 && !named_each) return;
  const std::string node = named_each ? *named.begin() : *in_all.begin();
  if (well.contains(node) || (!named.empty() && *named.begin() != node)) return;
  suspect.node = node;
  suspect.runs = runs;
  suspect.failed = failures_named;
  Evidence evidence;
  evidence.kind = EvidenceKind::kSuspectNode;
  evidence.store = proto::STORE_SCHEDULER;
  evidence.begin = first->start_t;
  evidence.end = last->end_t;
  evidence.observed = static_cast<double>(runs);
  evidence.values = {
      {FieldId::kField, "nodes"},       {FieldId::kValue, last->nodes},
      {FieldId::kOrigin, last->origin}, {FieldId::kNode, node},
      {FieldId::kWithin, kSoon},        {FieldId::kOthersChange, in_all.size() == 1 ? "yes" : ""}};
  if (failures_named > 0)
    evidence.values.Set(FieldId::kFailed, static_cast<int64_t>(failures_named));
  suspect.evidence = citer.Add(std::move(evidence));
}

}  // namespace rankscope::features
