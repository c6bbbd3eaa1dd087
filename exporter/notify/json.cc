// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/json.h"

#include <algorithm>
#include <cmath>

#include "detectors/document/json_writer.h"

namespace rankscope::exporter::notify {
namespace {

// An alert that nobody ends is over after this: of a job that hangs while its daemon is away, and
// of an end, which is seen by whoever looks within the hour.
constexpr int64_t kLiveNs = int64_t{12} * 3600 * 1'000'000'000;
constexpr int64_t kEndedNs = int64_t{3600} * 1'000'000'000;

bool IsBad(Notification::Status status) {
  return status != Notification::COMPLETED && status != Notification::RECOVERED &&
         status != Notification::STATUS_UNSPECIFIED;
}

struct AlertIdentity {
  std::string_view code, severity, domain;
  bool operator==(const AlertIdentity&) const = default;
};

// As the alerts of alerts/ have it: broken infrastructure, and a job that stands still and can be
// saved, page somebody; what only the owner can mend waits for the morning.
AlertIdentity IdentityOf(Notification::Status status, std::string_view code,
                         std::string_view severity, std::string_view domain) {
  if (status == Notification::HUNG) return {code, "critical", domain};
  const bool pages = domain == "infrastructure";
  return {code, severity == "critical" && !pages ? "warning" : severity, domain};
}

// What makes it the same alert again stands in the labels; everything that changes does not.
void WriteAlert(const Notification& n, const AlertIdentity& identity, int64_t begin_ns,
                int64_t end_ns, const ReportOptions& options, JsonWriter& w) {
  w.Open('{');
  w.Key("labels");
  w.Open('{');
  w.Text("alertname", "RankscopeJobVerdict");
  w.Text("job_id", n.job_id());
  w.Text("code", identity.code);
  w.TextIfAny("severity", identity.severity);
  w.TextIfAny("domain", identity.domain);
  w.TextIfAny("user", n.user());
  w.TextIfAny("partition", n.partition());
  w.TextIfAny("node", n.node());
  w.Close('}');
  const Report report = MakeReport({&n}, options);
  w.Key("annotations");
  w.Open('{');
  w.Text("summary", report.headline);
  w.TextIfAny("family", FamilyWords(n));
  w.TextIfAny("culprit", CulpritWords(n));
  if (n.causes_size() > 0) w.Text("cause", n.causes(0));
  if (n.remedies_size() > 0) w.Text("remedy", n.remedies(0));
  w.TextIfAny("confidence", n.confidence());
  w.Close('}');
  w.Text("startsAt", Rfc3339(begin_ns));
  w.Text("endsAt", Rfc3339(end_ns));
  w.TextIfAny("generatorURL", report.link);
  w.Close('}');
}

void WriteNotification(const Notification& n, const ReportOptions& options, JsonWriter& w) {
  w.Open('{');
  w.Text("id", n.id());
  w.Text("thread", n.thread());
  w.Text("headline", MakeReport({&n}, options).headline);
  const std::string status = Notification::Status_Name(n.status());
  std::string small;
  for (const char c : status) small += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  w.Text("status", small);
  w.Bool("corrects", n.corrects());
  w.Bool("running", n.end_ns() == 0);
  w.Time("at", n.at_ns());
  w.Text("job_id", n.job_id());
  w.TextOrNull("job_name", n.job_name());
  w.TextOrNull("user", n.user());
  w.TextOrNull("partition", n.partition());
  w.TextOrNull("array_job_id", n.array_job_id());
  w.TextOrNull("array_task", n.array_task());
  if (!n.array_job_id().empty()) {
    w.IntegerOrNull("array_tasks", n.array_tasks() > 0, n.array_tasks());
    w.Integer("array_completed", n.array_completed());
    w.Integer("array_running", n.array_running());
  }
  w.Integer("attempt", n.attempt());
  w.TextOrNull("command", n.command());
  w.TextOrNull("node", n.node());
  w.TextIfAny("reported_by", n.reported_by());
  w.Text("code", n.code());
  w.Text("family", n.family());
  w.TextOrNull("sub", n.sub());
  w.TextOrNull("what", n.what());
  w.TextOrNull("domain", n.domain());
  w.TextOrNull("severity", n.severity());
  w.TextOrNull("confidence", n.confidence());
  w.Integers("ranks", n.ranks());
  w.Texts("gpus", n.gpus());
  w.Texts("nodes", n.nodes());
  w.TextOrNull("ended", n.ended());
  w.IntegerOrNull("exit_code", n.exit_known(), n.exit_code());
  const auto known = [](double value) { return value < 0 ? std::nan("") : value; };
  w.RealOrNull("seconds", known(n.seconds()));
  w.RealOrNull("step", known(n.step()));
  w.RealOrNull("steps", known(n.steps()));
  w.RealOrNull("loss", n.loss());
  w.TextOrNull("checkpoint", n.checkpoint());
  if (!n.archive().empty() || !n.left_files().empty()) {
    w.TextOrNull("archive", n.archive());
    w.Texts("kept_files", n.kept_files());
    w.Texts("left_files", n.left_files());
  }
  w.Texts("shows", n.shows());
  w.Texts("causes", n.causes());
  w.Texts("remedies", n.remedies());
  w.Texts("open", n.open());
  if (options.log && !n.log().empty()) {
    w.Text("log_of", n.log_of());
    w.Texts("log", n.log());
  }
  w.TextOrNull("link", LinkOf(n, options.link));
  w.Close('}');
}

// Slack cuts nothing: it refuses what is too long.
std::string CutTo(std::string text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most - 3;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

// The three letters by which Slack's own markup begins.
std::string EscapeSlack(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

// What a chat shows below the headline.
std::vector<std::string> Paragraphs(const Report& report) {
  std::vector<std::string> paragraphs;
  std::string facts;
  for (const auto& [label, value] : report.facts) facts += label + ": " + value + '\n';
  paragraphs.push_back(facts);
  const auto add = [&paragraphs](const std::string& title, const std::vector<std::string>& points) {
    if (points.empty()) return;
    std::string text = title + '\n';
    for (const std::string& point : points) text += "\u2022 " + point + '\n';
    paragraphs.push_back(std::move(text));
  };
  add("Jobs", report.jobs);
  for (const Report::Section& section : report.sections) add(section.title, section.points);
  add(report.log_title, report.log);
  for (std::string& paragraph : paragraphs) {
    if (paragraph.ends_with('\n')) paragraph.pop_back();
  }
  return paragraphs;
}

void WriteRun(std::string_view text, bool bold, JsonWriter& w) {
  w.Open('{');
  w.Text("type", "RichTextBlock");
  w.Key("inlines");
  w.Open('[');
  w.Open('{');
  w.Text("type", "TextRun");
  w.Text("text", text);
  if (bold) {
    w.Text("weight", "Bolder");
    w.Text("size", "Medium");
  }
  w.Close('}');
  w.Close(']');
  w.Close('}');
}

}  // namespace

std::string RenderAlerts(const Batch& batch, const ReportOptions& options) {
  JsonWriter w;
  w.Open('[');
  for (const Notification* n : batch) {
    const bool was_bad = IsBad(n->told());
    const AlertIdentity before =
        IdentityOf(n->told(), n->told_code(), n->told_severity(), n->told_domain());
    const AlertIdentity now = IdentityOf(n->status(), n->code(), n->severity(), n->domain());
    const bool same = was_bad && before == now;
    const int64_t begin = std::min(n->begin_ns() > 0 ? n->begin_ns() : n->at_ns(), n->at_ns());
    if (was_bad && (!same || !IsBad(n->status())))
      WriteAlert(*n, before, begin, n->at_ns(), options, w);
    if (IsBad(n->status()))
      WriteAlert(*n, now, begin, n->at_ns() + (n->end_ns() == 0 ? kLiveNs : kEndedNs), options, w);
  }
  w.Close(']');
  return w.Take();
}

std::string RenderWebhook(const Batch& batch, const ReportOptions& options) {
  JsonWriter w;
  w.Open('{');
  w.Integer("schema", 1);
  w.Key("notifications");
  w.Open('[');
  for (const Notification* n : batch) WriteNotification(*n, options, w);
  w.Close(']');
  w.Close('}');
  return w.Take();
}

std::string RenderSlack(const Report& report) {
  constexpr size_t kMostHeader = 150, kMostSection = 3000, kMostBlocks = 45;
  JsonWriter w;
  const auto block = [&w](std::string_view type, std::string_view text_type, std::string text) {
    w.Open('{');
    w.Text("type", type);
    w.Key("text");
    w.Open('{');
    w.Text("type", text_type);
    w.Text("text", text);
    if (text_type == "plain_text") w.Bool("emoji", false);
    w.Close('}');
    w.Close('}');
  };
  w.Open('{');
  w.Text("text", EscapeSlack(CutTo(report.headline, kMostSection)));
  w.Key("blocks");
  w.Open('[');
  block("header", "plain_text", CutTo(report.headline, kMostHeader));
  const std::vector<std::string> paragraphs = Paragraphs(report);
  for (size_t i = 0; i < std::min(kMostBlocks, paragraphs.size()); ++i)
    block("section", "plain_text", CutTo(paragraphs[i], kMostSection));
  if (!report.link.empty()) block("section", "mrkdwn", '<' + EscapeSlack(report.link) + '>');
  w.Close(']');
  w.Close('}');
  return w.Take();
}

std::string RenderTeams(const Report& report) {
  constexpr size_t kMostText = 4000;
  JsonWriter w;
  w.Open('{');
  w.Text("type", "message");
  w.Key("attachments");
  w.Open('[');
  w.Open('{');
  w.Text("contentType", "application/vnd.microsoft.card.adaptive");
  w.Key("content");
  w.Open('{');
  w.Text("$schema", "http://adaptivecards.io/schemas/adaptive-card.json");
  w.Text("type", "AdaptiveCard");
  w.Text("version", "1.4");
  w.Key("body");
  w.Open('[');
  WriteRun(CutTo(report.headline, kMostText), true, w);
  for (const std::string& paragraph : Paragraphs(report))
    WriteRun(CutTo(paragraph, kMostText), false, w);
  w.Close(']');
  if (!report.link.empty()) {
    w.Key("actions");
    w.Open('[');
    w.Open('{');
    w.Text("type", "Action.OpenUrl");
    w.Text("title", "Open the job's page");
    w.Text("url", report.link);
    w.Close('}');
    w.Close(']');
  }
  w.Close('}');
  w.Close('}');
  w.Close(']');
  w.Close('}');
  return w.Take();
}

}  // namespace rankscope::exporter::notify
