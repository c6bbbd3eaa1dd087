// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "detectors/document/text_layout.h"
#include "detectors/model/percent_encode.h"

namespace rankscope::exporter::notify {
namespace {

constexpr size_t kMostListed = 100;
constexpr size_t kRanges = 6;

std::string Number(double value) {
  char digits[32];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 6);
  return {digits, end.ptr};
}

std::string JobWords(const Notification& notification) {
  std::string words = "job " + notification.job_id();
  if (!notification.array_task().empty())
    words +=
        " (task " + notification.array_task() + " of array " + notification.array_job_id() + ")";
  return words;
}

bool IsGood(const Notification& notification) {
  return notification.status() == Notification::COMPLETED ||
         notification.status() == Notification::RECOVERED;
}

std::string HeadlineOf(const Notification& notification) {
  std::string words = JobWords(notification) + ": " + StatusWords(notification);
  if (notification.status() == Notification::RECOVERED) return words;
  if (notification.code() == "U0") {
    words += notification.status() == Notification::COMPLETED ? "" : ", cause not determined";
  } else {
    words += ", " + FamilyWords(notification);
  }
  const std::string culprit = CulpritWords(notification);
  return culprit.empty() || notification.code() == "G1" ? words : words + " on " + culprit;
}

// "8 tasks; 6 completed and 1 still runs on this node"
std::string ArrayWords(const Notification& n) {
  std::string words = n.array_tasks() > 0 ? std::to_string(n.array_tasks()) + " tasks; " : "";
  words += std::to_string(n.array_completed()) + " completed";
  if (n.array_running() > 0) words += ", " + std::to_string(n.array_running()) + " still running";
  return words + " on this node";
}

bool CountsArray(const Notification& n) {
  return n.array_tasks() > 1 || n.array_completed() > 0 || n.array_running() > 0;
}

void AddFacts(const Notification& n, Report& report) {
  const auto add = [&report](std::string label, std::string value) {
    if (!value.empty()) report.facts.emplace_back(std::move(label), std::move(value));
  };
  std::string status = StatusWords(n);
  if (n.corrects()) status += "; this corrects the message before";
  if (n.told() != Notification::STATUS_UNSPECIFIED && n.end_ns() != 0 && !n.corrects())
    status += "; this is the end of what was told before";
  add("Status", status);
  add("Verdict", FamilyWords(n) + (n.what().empty() ? "" : ": " + n.what()));
  add("Confidence", n.confidence());
  if (n.code() != "G1") add("Where", CulpritWords(n));
  add(n.end_ns() == 0 ? "Running for" : "Ran for",
      n.seconds() < 0 ? "" : DurationWords(n.seconds()));
  if (n.exit_known()) add("Exit code", std::to_string(n.exit_code()));
  if (n.step() >= 0)
    add("Last step", Number(n.step()) + (n.steps() > 0 ? " of " + Number(n.steps()) : ""));
  if (!std::isnan(n.loss())) add("Loss", Number(n.loss()));
  add("Checkpoint", n.checkpoint() + (n.checkpoint_step() >= 0 && !n.checkpoint().empty()
                                          ? " (step " + Number(n.checkpoint_step()) + ")"
                                          : ""));
  if (CountsArray(n)) add("Array", ArrayWords(n));
  add("Job name", n.job_name());
  add("User", n.user());
  add("Partition", n.partition());
  if (n.attempt() > 1) add("Attempt", std::to_string(n.attempt()));
  add("Command", n.command());
  add("Archive", n.archive());
  add("Reported by", n.reported_by());
}

template <class Points>
void AddSection(std::string title, const Points& points, Report& report) {
  if (points.empty()) return;
  report.sections.push_back({std::move(title), {points.begin(), points.end()}});
}

Report OfOne(const Notification& n, const ReportOptions& options) {
  Report report;
  report.headline = HeadlineOf(n);
  report.subject = "[rankscope] " + report.headline;
  report.good = IsGood(n);
  AddFacts(n, report);
  AddSection("What it shows", n.shows(), report);
  AddSection("Cause", n.causes(), report);
  AddSection("Do now", n.remedies(), report);
  AddSection("Not decided", n.open(), report);
  AddSection("Files kept", n.kept_files(), report);
  AddSection("Files left out", n.left_files(), report);
  report.link = LinkOf(n, options.link);
  if (options.log && !n.log().empty() && !report.good) {
    report.log_title = "Last lines of " + n.log_of();
    report.log.assign(n.log().begin(), n.log().end());
  }
  return report;
}

// "198 failed, 2 stopped", the most first.
std::string Counted(const std::map<std::string, size_t>& counts, size_t most) {
  std::vector<std::pair<std::string, size_t>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string words;
  for (size_t i = 0; i < std::min(most, rows.size()); ++i)
    words += (i == 0 ? "" : ", ") + std::to_string(rows[i].second) + " " + rows[i].first;
  if (rows.size() > most) words += " and others";
  return words;
}

Notification Completed() {
  Notification n;
  n.set_status(Notification::COMPLETED);
  return n;
}

std::string CommonArray(const Batch& batch) {
  const std::string& first = batch.front()->array_job_id();
  const bool all = std::all_of(batch.begin(), batch.end(), [&first](const Notification* n) {
    return n->array_job_id() == first && !n->array_task().empty();
  });
  return all ? first : std::string();
}

Report OfMany(const Batch& batch, const ReportOptions& options) {
  Report report;
  report.good = std::all_of(batch.begin(), batch.end(), [](const auto* n) { return IsGood(*n); });
  std::map<std::string, size_t> statuses, families, nodes;
  for (const Notification* n : batch) {
    ++statuses[n->status() == Notification::STOPPED ? "stopped" : StatusWords(*n)];
    ++families[FamilyWords(*n)];
    for (const std::string& node : n->nodes()) ++nodes[node];
  }
  const std::string array = CommonArray(batch);
  if (!array.empty()) {
    // Those that are not told one by one.
    const auto untold = static_cast<size_t>(batch.back()->array_completed());
    size_t& completed = statuses[StatusWords(Completed())];
    completed = std::max(completed, untold);
    if (completed == 0) statuses.erase(StatusWords(Completed()));
  }
  report.headline =
      (array.empty() ? std::to_string(batch.size()) + " jobs: " : "array " + array + ": ") +
      Counted(statuses, 3) + "; " + Counted(families, 2);
  if (nodes.size() == 1) report.headline += "; node " + nodes.begin()->first;
  report.subject = "[rankscope] " + report.headline;
  report.facts = {{array.empty() ? "Jobs" : "Tasks told", std::to_string(batch.size())},
                  {"Status", Counted(statuses, 8)},
                  {"Verdicts", Counted(families, 8)}};
  if (!array.empty() && CountsArray(*batch.back()))
    report.facts.emplace_back("Array", ArrayWords(*batch.back()));
  if (!nodes.empty())
    report.facts.emplace_back(nodes.size() == 1 ? "Node" : "Jobs by node",
                              nodes.size() == 1 ? nodes.begin()->first : Counted(nodes, 8));
  for (size_t i = 0; i < std::min(kMostListed, batch.size()); ++i) {
    std::string line = HeadlineOf(*batch[i]);
    if (!batch[i]->user().empty()) line += "; user " + batch[i]->user();
    report.jobs.push_back(std::move(line));
  }
  if (batch.size() > kMostListed)
    report.jobs.push_back("and " + std::to_string(batch.size() - kMostListed) + " more");
  report.link = options.link.empty() ? "" : options.link + '/';
  return report;
}

}  // namespace

Report MakeReport(const Batch& batch, const ReportOptions& options) {
  return batch.size() == 1 ? OfOne(*batch.front(), options) : OfMany(batch, options);
}

std::string StatusWords(const Notification& notification) {
  switch (notification.status()) {
    case Notification::HUNG:
      return "hangs";
    case Notification::DIVERGED:
      return notification.end_ns() == 0 ? "is not learning as it should"
                                        : "did not learn as it should";
    case Notification::FAILED:
      return "failed";
    case Notification::STOPPED:
      return notification.ended().empty() ? "was stopped" : notification.ended();
    case Notification::COMPLETED:
      return "completed";
    case Notification::RECOVERED:
      return "makes progress again";
    default:
      return "changed";
  }
}

std::string CulpritWords(const Notification& notification) {
  std::string words = RankWords(notification.ranks(), kRanges);
  if (notification.gpus_size() == 1)
    words += (words.empty() ? "GPU " : ", GPU ") + notification.gpus(0);
  if (notification.nodes_size() == 1)
    words += (words.empty() ? "node " : ", node ") + notification.nodes(0);
  if (notification.nodes_size() > 1)
    words += (words.empty() ? "" : ", ") + std::to_string(notification.nodes_size()) + " nodes";
  return words;
}

std::string FamilyWords(const Notification& notification) {
  std::string words = notification.code() + " " + notification.family();
  if (!notification.sub().empty() && notification.sub() != notification.family())
    words += " (" + notification.sub() + ")";
  return words;
}

std::string LinkOf(const Notification& notification, const std::string& base) {
  return base.empty() ? "" : base + "/job/" + PercentEncode(notification.job_id());
}

std::string DurationWords(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::min(std::max(seconds, 0.0), 1e10)));
  if (whole < 60) return std::to_string(whole) + " s";
  if (whole < 3600) return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole % 3600 / 60) + " min";
}

}  // namespace rankscope::exporter::notify
