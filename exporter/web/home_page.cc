// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/home_page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "detectors/document/text_layout.h"
#include "detectors/document/verdict_words.h"
#include "detectors/families/family_names.h"
#include "detectors/model/percent_encode.h"
#include "exporter/web/html.h"
#include "exporter/web/job_times.h"
#include "exporter/web/shell.h"

namespace rankscope::web {
namespace {

std::string Wanted(const JobListing& listing, std::string_view parameter) {
  for (const auto& [name, value] : listing.filters) {
    if (name == parameter) return value;
  }
  return {};
}

void AppendOption(std::string_view value, std::string_view label, const std::string& wanted,
                  std::string& out) {
  out.append("<option value=\"");
  AppendEscaped(value, out);
  out.append(value == wanted ? "\" selected>" : "\">");
  AppendEscaped(label, out);
  out.append("</option>");
}

template <typename Values>
void AppendChoice(std::string_view parameter, std::string_view label, const Values& values,
                  const JobListing& listing, std::string& out) {
  const std::string wanted = Wanted(listing, parameter);
  out.append("<label>").append(label).append(" <select name=\"").append(parameter).append("\">");
  AppendOption("", "any", wanted, out);
  bool known = wanted.empty();
  for (const auto& value : values) {
    AppendOption(value, value, wanted, out);
    known = known || value == wanted;
  }
  if (!known) AppendOption(wanted, wanted, wanted, out);
  out.append("</select></label>\n");
}

// What may be chosen is what there is.
struct Choices {
  std::set<std::string, std::less<>> users, partitions, families, nodes;
};

Choices ChoicesOf(const metrics::JobList& jobs) {
  constexpr size_t kMost = 200;
  Choices choices;
  const auto take = [](std::set<std::string, std::less<>>& values, std::string_view value) {
    if (!value.empty() && values.size() < kMost) values.emplace(value);
  };
  for (const auto& job : jobs) {
    take(choices.users, job->user);
    take(choices.partitions, job->facts.partition);
    take(choices.families, job->verdict.code());
    for (const std::string& node : job->verdict.nodes()) take(choices.nodes, node);
    for (const RankStatus& rank : job->ranks) take(choices.nodes, rank.place.node);
  }
  return choices;
}

void AppendFilters(const JobListing& listing, const metrics::Published& published,
                   std::string& out) {
  constexpr std::array<std::string_view, 4> kSeverities = {"critical", "warning", "info", "ok"};
  constexpr std::array<std::string_view, 3> kStates = {"live", "provisional", "final"};
  const Choices choices = ChoicesOf(published.jobs);
  out.append("<form id=\"filters\" method=\"get\" action=\"/\">\n");
  AppendChoice("severity", "Severity", kSeverities, listing, out);
  AppendChoice("state", "State", kStates, listing, out);
  AppendChoice("family", "Family", choices.families, listing, out);
  AppendChoice("user", "User", choices.users, listing, out);
  AppendChoice("partition", "Partition", choices.partitions, listing, out);
  AppendChoice("node", "Node", choices.nodes, listing, out);
  out.append("<button>Filter</button>");
  if (!listing.filters.empty()) out.append(" <a href=\"/\">all jobs</a>");
  out.append("</form>\n");
}

// Who is at fault, as far as the verdict names anybody but the node that it is seen from.
std::string Culprit(const JobStatus& job) {
  const proto::Verdict& verdict = job.verdict;
  constexpr size_t kRanges = 3;
  if (verdict.code() == "G1" || verdict.code() == "U0") return {};
  std::string who = RankWords(verdict.ranks(), kRanges);
  const bool node = !who.empty() || verdict.localization().scope() == "node";
  if (node && verdict.nodes_size() == 1) who += (who.empty() ? "node " : " on ") + verdict.nodes(0);
  return who;
}

void AppendRow(const JobStatus& job, double now, std::string& out) {
  constexpr std::string_view kNumber = " class=\"number\"";
  const proto::Verdict& verdict = job.verdict;
  const double began = BeganAt(job);
  const double ended = EndedAt(job);
  const double until = job.running ? now : ended;
  std::string step = NumberText(job.signals[SignalId::kStep]);
  if (!std::isnan(job.signals[SignalId::kMaxSteps]))
    step.append(" / ").append(NumberText(job.signals[SignalId::kMaxSteps]));
  out.append("<tr id=\"j-").append(PercentEncode(job.job_id)).append(job.running ? "" : "-ended");
  out.append("\"><th scope=\"row\"><a href=\"/job/").append(PercentEncode(job.job_id));
  out.append("\">").append(Escaped(job.job_id)).append("</a></th><td>");
  AppendChip(verdict, out);
  out.append("</td>");
  AppendCell(kNumber, verdict.code().empty() ? "\u2013" : NumberText(verdict.confidence()), out);
  AppendCell("", Escaped(Culprit(job)), out);
  const std::string disposition = DispositionWords(verdict);
  AppendCell(" class=\"wraps\"",
             job.running           ? "runs"
             : disposition.empty() ? "ended"
                                   : Escaped(disposition),
             out);
  out.append("<td>");
  AppendTime(began, now, out);
  out.append("</td>");
  AppendCell(kNumber, until >= began ? LengthText(until - began) : "\u2013", out);
  AppendCell("", Escaped(job.user), out);
  AppendCell("", Escaped(job.facts.partition), out);
  AppendCell("", Escaped(job.facts.nodes.empty() ? verdict.node() : job.facts.nodes), out);
  AppendCell(kNumber, job.world_size > 0 ? std::to_string(job.world_size) : "\u2013", out);
  AppendCell(kNumber, step, out);
  out.append("</tr>\n");
}

}  // namespace

std::string HomePage(const JobListing& listing, const metrics::Published& published) {
  std::string out;
  out.reserve(StyleSheet().size() + Script().size() + 4096 + 512 * listing.jobs.size());
  BeginPage("Jobs on " + published.agent.node + " \u2013 rankscope", published, out);
  out.append("<h1>Jobs</h1>\n");
  if (published.jobs.empty()) {
    out.append(
        "<div class=\"card soft\">No job has been seen on this node yet. "
        "<code>rankscope run -- CMD</code> watches one.</div>\n");
    EndPage(published, out);
    return out;
  }
  AppendFilters(listing, published, out);
  out.append("<p class=\"soft\">").append(std::to_string(listing.matching));
  out.append(listing.matching == 1 ? " job" : " jobs").append(", the worst first");
  if (listing.matching > listing.jobs.size())
    out.append("; ").append(std::to_string(listing.jobs.size())).append(" on this page");
  out.append("</p>\n<div class=\"card wide\" tabindex=\"0\" role=\"region\" aria-label=\"Jobs\">");
  out.append(
      "<table><thead><tr><th>Job</th><th>Verdict</th><th class=\"number\">Confidence</th>"
      "<th>Culprit</th><th>State</th><th>Began (UTC)</th><th class=\"number\">Duration</th>"
      "<th>User</th><th>Partition</th><th>Nodes</th><th class=\"number\">Ranks</th>"
      "<th class=\"number\">Step</th></tr></thead><tbody>\n");
  for (const JobStatus* job : listing.jobs) AppendRow(*job, published.wall_seconds, out);
  out.append("</tbody></table></div>\n");
  if (!listing.next.empty()) {
    out.append("<p><a rel=\"next\" href=\"/");
    AppendEscaped(listing.next, out);
    out.append("\">the next page</a></p>\n");
  }
  EndPage(published, out);
  return out;
}

}  // namespace rankscope::web
