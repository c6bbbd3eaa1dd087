// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/describe.h"

#include <algorithm>
#include <cmath>

#include "detectors/document/text_layout.h"
#include "detectors/document/verdict_words.h"
#include "detectors/families/family_names.h"

namespace rankscope::exporter::notify {
namespace {

constexpr size_t kMostText = 400;  // of one line, in bytes
constexpr size_t kMostName = 120;
constexpr int kMostPoints = 4;  // of each kind: who reads a phone at night reads no more
constexpr int kMostRanks = 4096, kMostNames = 64;
constexpr size_t kMostLogLines = 20;
constexpr size_t kMostFiles = 30;

// One line, cut between characters.
std::string Line(std::string_view text, size_t most = kMostText) {
  std::string line = Printable(text);
  if (line.size() <= most) return line;
  size_t end = most - 3;
  while (end > 0 && (static_cast<uint8_t>(line[end]) & 0xC0) == 0x80) --end;
  line.resize(end);
  return line + "...";
}

template <class From, class Add>
void Copy(const From& from, int most, size_t bytes, Add add) {
  for (int i = 0; i < std::min(most, from.size()); ++i) add(Line(from.Get(i), bytes));
}

// What decided it comes first, then what began it.
void AddShows(const rankscope::proto::Verdict& verdict, Notification& out) {
  std::vector<uint32_t> ids(verdict.isolation().ruled_in_by().begin(),
                            verdict.isolation().ruled_in_by().end());
  for (const auto& cause : verdict.cause_chain()) ids.push_back(cause.evidence());
  for (const auto& evidence : verdict.shows()) ids.push_back(evidence.id());
  for (const uint32_t id : ids) {
    for (const auto& evidence : verdict.shows()) {
      if (evidence.id() != id || out.shows_size() >= kMostPoints) continue;
      std::string line = Line(evidence.text());
      if (std::find(out.shows().begin(), out.shows().end(), line) == out.shows().end())
        out.add_shows(std::move(line));
    }
  }
}

void AddVerdict(const rankscope::proto::Verdict& verdict, Notification& out) {
  out.set_code(verdict.code());
  out.set_family(verdict.family());
  out.set_what(std::string(families::FindFamily(verdict.code()).what));
  out.set_sub(verdict.sub());
  out.set_domain(std::string(Word(verdict.domain())));
  out.set_severity(verdict.triage().severity());
  out.set_confidence(ConfidenceWords(verdict));
  for (int i = 0; i < std::min(kMostRanks, verdict.ranks_size()); ++i)
    out.add_ranks(verdict.ranks(i));
  Copy(verdict.gpus(), kMostNames, kMostName, [&](std::string text) { out.add_gpus(text); });
  Copy(verdict.nodes(), kMostNames, kMostName, [&](std::string text) { out.add_nodes(text); });
  out.set_ended(Line(DispositionWords(verdict)));
  const bool ended = verdict.has_disposition();
  out.set_exit_known(ended && verdict.exit_known());
  out.set_exit_code(verdict.exit_code());
  AddShows(verdict, out);
  for (const auto& implication : verdict.implies()) {
    if (out.causes_size() < kMostPoints) out.add_causes(Line(implication.text()));
  }
  const auto& resolution = verdict.resolution();
  const auto& now = ended && resolution.immediate_ended_size() > 0 ? resolution.immediate_ended()
                                                                   : resolution.immediate();
  Copy(now, kMostPoints, kMostText, [&](std::string text) { out.add_remedies(text); });
  for (const auto& question : verdict.cannot_decide()) {
    if (out.open_size() < kMostPoints) out.add_open(Line(question.question()));
  }
}

void AddTimes(const JobStatus& job, const Occasion& occasion, Notification& out) {
  double begin = kUnknown, end = kUnknown;
  for (const JobSpan& span : job.timeline.spans) {
    if (span.suspended) continue;
    if (std::isnan(begin)) begin = span.from_wall_seconds;
    end = span.until_wall_seconds;
  }
  const bool live = job.verdict.state() == rankscope::proto::LIVE;
  const double now = static_cast<double>(occasion.wall_ns) * 1e-9;
  if (live || std::isnan(end)) end = now;
  const auto ns = [](double seconds) { return static_cast<int64_t>(seconds * 1e9); };
  out.set_at_ns(occasion.wall_ns);
  out.set_seconds(std::isnan(begin) ? -1 : std::max(0.0, end - begin));
  if (!std::isnan(begin)) out.set_begin_ns(ns(begin));
  if (!live) out.set_end_ns(ns(end));
}

void AddTraining(const std::optional<JobSummary>& summary, Notification& out) {
  const auto known = [](double value) { return std::isnan(value) ? -1 : value; };
  out.set_step(summary ? known(summary->last_step) : -1);
  out.set_steps(summary ? known(summary->total_steps) : -1);
  out.set_loss(summary ? summary->last_loss : JobSummary::kNone);
  out.set_checkpoint_step(-1);
  if (!summary || summary->checkpoints.empty()) return;
  out.set_checkpoint(Line(summary->checkpoints.front().path));
  out.set_checkpoint_step(known(summary->checkpoints.front().step));
}

// Of letters that stand in the header of a mail and in a file's name as they are.
std::string PlainId(std::string id) {
  for (char& c : id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_';
    if (!plain) c = '_';
  }
  id.resize(std::min<size_t>(id.size(), 150));
  return id;
}

std::string IdOf(const JobStatus& job, int64_t begin_ns, const std::string& node) {
  return PlainId("rs." + job.job_id + '.' + std::to_string(begin_ns / 1'000'000) + '.' + node);
}

// Every text a line, every list short: Describe writes nothing that this would change.
void BoundTexts(Notification& out) {
  const auto* const reflection = out.GetReflection();
  const auto* const descriptor = out.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* const field = descriptor->field(i);
    if (!field->is_repeated()) {
      if (field->cpp_type() == field->CPPTYPE_STRING)
        reflection->SetString(&out, field, Line(reflection->GetString(out, field)));
      continue;
    }
    const bool text = field->cpp_type() == field->CPPTYPE_STRING;
    while (reflection->FieldSize(out, field) > (text ? kMostNames : kMostRanks))
      reflection->RemoveLast(&out, field);
    for (int at = 0; text && at < reflection->FieldSize(out, field); ++at)
      reflection->SetRepeatedString(&out, field, at,
                                    Line(reflection->GetRepeatedString(out, field, at)));
  }
}

}  // namespace

Notification Describe(const JobStatus& job, const Occasion& occasion) {
  Notification out;
  AddVerdict(job.verdict, out);
  AddTimes(job, occasion, out);
  AddTraining(occasion.summary, out);
  out.set_status(occasion.news.status);
  out.set_corrects(occasion.news.corrects);
  out.set_job_id(Line(job.job_id, kMostName));
  out.set_job_name(Line(job.facts.name, kMostName));
  out.set_user(Line(job.user, kMostName));
  out.set_uid(job.uid);
  out.set_partition(Line(job.facts.partition, kMostName));
  out.set_array_job_id(Line(job.facts.array_job_id, kMostName));
  out.set_array_task(Line(job.facts.array_task, kMostName));
  out.set_command(Line(job.command, 200));
  out.set_node(Line(occasion.node, kMostName));
  out.set_attempt(job.verdict.attempt().ordinal());
  out.set_thread(IdOf(job, out.begin_ns(), occasion.node));
  out.set_id(out.thread());
  out.set_log_of(occasion.tail.of);
  const auto& lines = occasion.tail.lines;
  const size_t first = lines.size() > kMostLogLines ? lines.size() - kMostLogLines : 0;
  for (size_t i = first; i < lines.size(); ++i) out.add_log(Line(lines[i]));
  return out;
}

void AddFiles(const std::string& archive, const std::vector<std::string>& kept,
              const std::vector<std::string>& left, Notification& out) {
  // Of a path the end would be no path.
  out.set_archive(archive.size() <= kMostText ? archive : std::string());
  const auto add = [](const std::vector<std::string>& from, auto add_line) {
    for (size_t i = 0; i < std::min<size_t>(from.size(), kMostFiles); ++i) add_line(Line(from[i]));
    if (from.size() > kMostFiles)
      add_line("and " + std::to_string(from.size() - kMostFiles) + " more, in artifacts.txt");
  };
  add(kept, [&out](std::string line) { out.add_kept_files(std::move(line)); });
  add(left, [&out](std::string line) { out.add_left_files(std::move(line)); });
}

std::optional<Notification> TakeClaim(const Notification& claimed, int64_t uid) {
  Notification out = claimed;
  BoundTexts(out);
  const std::string id = PlainId(claimed.id());
  if (out.job_id().empty() || id != claimed.id() || !id.starts_with("rs." + out.job_id() + '.'))
    return std::nullopt;
  // `run` names what Slurm does not after its user.
  if (out.job_id().starts_with("run-") &&
      !out.job_id().starts_with("run-" + std::to_string(uid) + '-'))
    return std::nullopt;
  out.set_thread(id);
  out.set_corrects(false);
  out.set_told(Notification::STATUS_UNSPECIFIED);
  out.set_uid(uid);
  out.clear_user();
  out.set_reported_by("rankscope run, without a daemon");
  return out;
}

void Follow(const proto::ToldJob& told, Notification& notification) {
  notification.set_thread(told.thread());
  notification.set_id(told.thread() + '.' + std::to_string(told.messages()));
  if (told.attempt() != notification.attempt()) return;
  notification.set_told(told.status());
  notification.set_told_code(told.code());
  notification.set_told_severity(told.severity());
  notification.set_told_domain(told.domain());
}

proto::ToldJob ToldAfter(const Notification& notification, const proto::ToldJob* before) {
  proto::ToldJob told;
  if (before != nullptr) told = *before;
  told.set_job_id(notification.job_id());
  told.set_attempt(notification.attempt());
  told.set_thread(notification.thread());
  told.set_messages(told.messages() + 1);
  told.set_status(notification.status());
  told.set_code(notification.code());
  told.set_sub(notification.sub());
  told.set_severity(notification.severity());
  told.set_domain(notification.domain());
  told.set_final(notification.end_ns() != 0);
  told.set_told_ns(notification.at_ns());
  return told;
}

}  // namespace rankscope::exporter::notify
