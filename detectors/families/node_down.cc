// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// F1: the node went away under the run.
#include <algorithm>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/families/scheduler.h"
#include "detectors/model/subs.h"

namespace rankscope::families::node_down {

using features::JobFeatures;
using features::SchedulerFeatures;

namespace {

// What the record says of the node, and what that leaves open.
void JudgeNode(const JobFeatures& f, Finding& finding) {
  const SchedulerFeatures& s = f.scheduler;
  finding.values.Set(FieldId::kTheNode, s.failed_node);
  if (!s.node_class.empty() && s.node_class != "none" && s.node_class != "other")
    finding.values.Set(FieldId::kNodeClass, s.node_class);
  Show(s.node_evidence, finding);
  Show(s.boot_evidence, finding);
  const bool booted = s.boot == SchedulerFeatures::Boot::kAnother || s.node_class == "rebooted";
  if (booted) {
    finding.sub = "rebooted";
  } else {
    finding.open.push_back(Question::kNodeOrDaemon);
    if (s.boot == SchedulerFeatures::Boot::kSame) {
      finding.open.pop_back();
      // Whoever has given another reason knows better.
      constexpr std::string_view kSilent[] = {"", "none", "other", "not_responding"};
      if (std::find(std::begin(kSilent), std::end(kSilent), s.node_class) != std::end(kSilent))
        finding.advice = "not_booted";
    }
  }
  finding.open.push_back(Question::kWhyNodeFailed);
}

// Nothing that failed of itself comes before it, and text that has times goes on until near it:
// survivors may wait for a lost node as long as the scheduler does before it says so.
bool ProgressedToTheEnd(const JobFeatures& f) {
  constexpr double kNodeTimeout = 300;
  return !f.timed || f.progress == 0 ||
         f.silence_seconds <= std::max(kNodeTimeout, HangTimeout(f)) + 60;
}

// Tasks that srun reports of the very node that it lost. Those on other nodes ended for want of
// them.
void NameTasksOfTheNode(const JobFeatures& f, Finding& finding) {
  const auto node_of = [](const logs::Incident& incident) {
    for (const KeyValue& field : incident.fields) {
      if (field.key == "node") return std::string_view(field.value);
    }
    return std::string_view();
  };
  if (!finding.ranks.empty()) return;
  for (const features::Cause& lost : f.causes) {
    const std::string_view node = node_of(lost.incident());
    if (lost.incident().shape != "srun_node_failure" || node.empty()) continue;
    for (const features::Cause& task : f.causes) {
      const logs::Incident& said = task.incident();
      if (said.shape == "srun_task" && said.rank >= 0 && node_of(said) == node)
        finding.ranks.push_back(said.rank);
    }
  }
  std::sort(finding.ranks.begin(), finding.ranks.end());
  finding.ranks.erase(std::unique(finding.ranks.begin(), finding.ranks.end()), finding.ranks.end());
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  if (PrimarySchedulerEnd(f, subs::kNodeFailure) == nullptr) return {};
  Finding finding = SchedulerFinding(f, subs::kNodeFailure);
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "node";
  // A node's state that met the run's end, without the job's own record.
  if (f.Primary()->incident().shape == "node_record") {
    finding.tier = proto::TIER_C;
    finding.cap = cap::kInferred;
  }
  if (finding.tier != proto::TIER_P) HoldToItsWord(f, finding);
  if (!ProgressedToTheEnd(f)) {
    // It stood long before the node was lost.
    finding.cap = cap::kUnseenSide;
    Show(f.silence_evidence, finding);
  }
  NameTasksOfTheNode(f, finding);
  JudgeNode(f, finding);
  AddHistory(f, finding);
  AddLostWork(f, finding);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  return NoSchedulerText(f, "node_failure");
}

}  // namespace rankscope::families::node_down
