// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/watch/lines.h"

#include <cmath>
#include <ctime>

#include "detectors/document/json_writer.h"
#include "detectors/document/text_layout.h"
#include "detectors/document/verdict_json.h"
#include "detectors/document/verdict_words.h"
#include "exporter/watch/job_choice.h"

namespace rankscope::watch {
namespace {

using exporter::slurm::SlurmJob;

constexpr int64_t kSecond = 1'000'000'000;

std::string LocalTime(int64_t seconds, const char* format = "%Y-%m-%d %H:%M:%S") {
  const auto time = static_cast<time_t>(seconds);
  tm parts{};
  char text[32];
  if (localtime_r(&time, &parts) == nullptr) return "?";
  return std::string(text, std::strftime(text, sizeof text, format, &parts));
}

// The beginning of both forms; `writer` stays open for more.
class Writer {
 public:
  Writer(std::string_view event, int64_t wall_ns) {
    text_ = LocalTime(wall_ns / kSecond) + "  ";
    json_.Open('{');
    json_.Time("time", wall_ns);
    json_.Text("event", event);
  }
  Writer(std::string_view event, const Told& told) : Writer(event, told.wall_ns) {
    const SlurmJob& job = told.course->job();
    const std::string shown = ShownId(job);
    text_ += Printable(shown) + "  ";
    json_.Text("job", shown);
    json_.Text("job_id", job.job_id);
  }

  JsonWriter& json() { return json_; }
  Line Say(std::string_view text) {
    json_.Close('}');
    text_ += Printable(text);
    return {std::move(text_), json_.Take()};
  }

 private:
  std::string text_;
  JsonWriter json_;
};

std::string Number(double value) {
  return JsonNumber(SixDigits(value));
}

std::string Lower(std::string_view word) {
  std::string lower;
  for (const char c : word)
    lower += c == '_' ? ' ' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

std::string WaitText(const SlurmJob& job, int64_t now) {
  std::string text = job.restarts.value_or(0) > 0 ? "waits again" : "waits";
  if (!job.reason.empty()) text += ": " + job.reason;
  if (!job.dependency.empty()) text += " (" + job.dependency.substr(0, 200) + ")";
  if (job.start > now) text += ", expected to start at " + LocalTime(job.start, "%Y-%m-%d %H:%M");
  return text;
}

std::string RunText(const SlurmJob& job, int64_t now) {
  std::string text = job.state == "SUSPENDED" ? "is suspended" : "runs";
  if (!job.nodes.empty()) text += " on " + job.nodes.substr(0, 200);
  if (job.start > 0 && job.start <= now) text += " since " + LocalTime(job.start);
  const int64_t limit = job.time_limit_seconds.value_or(0);
  if (limit > 0 && job.start > 0 && job.start + limit > now)
    text += ", " + Spell(job.start + limit - now) + " to its time limit";
  if (job.restarts.value_or(0) > 0) text += ", restart " + std::to_string(*job.restarts);
  return text;
}

// "failed with exit code 1 after 5 min"
std::string EndText(const JobCourse& course, bool put_back) {
  const SlurmJob& job = course.job();
  if (put_back) return "was put back into the queue";
  if (course.lost())
    return "has left the queue, and how it ended is not known: accounting does not tell, and "
           "slurmctld has forgotten it";
  std::string text = Lower(job.state.empty() ? "ended" : job.state);
  if (job.state == "CANCELLED" && !job.state_by.empty()) text += " by " + job.state_by;
  if (job.nodes.empty()) text += " before it began";
  if (job.exit && job.exit->signal > 0) {
    text += ", signal " + std::to_string(job.exit->signal);
  } else if (job.exit && job.exit->code > 0) {
    text += ", exit code " + std::to_string(job.exit->code);
  }
  const int64_t ran =
      job.elapsed_seconds.value_or(job.start > 0 && job.end > job.start ? job.end - job.start : 0);
  if (ran > 0) text += ", after " + Spell(ran);
  return text;
}

std::string VerdictText(const proto::Verdict& verdict) {
  std::string text = verdict.code() + " " + verdict.family();
  if (!verdict.sub().empty()) text += " (" + verdict.sub() + ")";
  text += ", " + ConfidenceWords(verdict);
  if (verdict.ranks_size() > 0) text += ", " + RankWords(verdict.ranks(), 4);
  if (verdict.implies_size() > 0) text += ": " + verdict.implies(0).text();
  return text;
}

std::string ProgressText(const JobSummary& summary) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (std::isfinite(summary.last_step)) {
    const bool of = std::isfinite(summary.total_steps) && summary.total_steps > 0;
    add("step " + Number(summary.last_step) + (of ? " of " + Number(summary.total_steps) : ""));
  }
  if (std::isfinite(summary.last_loss)) add("loss " + Number(summary.last_loss));
  if (text.empty()) add(std::to_string(summary.records) + " training records");
  return text;
}

void PutState(const SlurmJob& job, Stage stage, JsonWriter& json) {
  json.TextOrNull("state", job.state);
  json.Texts("state_flags", job.state_flags);
  json.TextOrNull("reason", job.reason);
  json.TextOrNull("dependency", job.dependency);
  json.TextOrNull("nodes", job.nodes);
  json.TextIfAny("name", job.name);
  json.TextIfAny("user", job.user);
  const bool waits = stage == Stage::kWaiting;
  json.Time("expected_start", waits ? job.start * kSecond : 0);
  json.Time("start", waits ? 0 : job.start * kSecond);
  json.IntegerOrNull("time_limit_seconds", job.time_limit_seconds.has_value(),
                     job.time_limit_seconds.value_or(0));
  json.Integer("restarts", job.restarts.value_or(0));
}

void PutVerdict(const proto::Verdict& verdict, JsonWriter& json) {
  json.Text("code", verdict.code());
  json.Text("family", verdict.family());
  json.TextOrNull("sub", verdict.sub());
  json.Real("confidence", SixDigits(verdict.confidence()));
  json.Integers("ranks", verdict.ranks());
  json.TextOrNull("implies", verdict.implies_size() > 0 ? verdict.implies(0).text() : "");
}

void PutProgress(const JobSummary& summary, JsonWriter& json) {
  json.RealOrNull("step", summary.last_step);
  json.RealOrNull("total_steps", summary.total_steps);
  json.RealOrNull("loss", summary.last_loss);
  json.Integer("records", summary.records);
}

}  // namespace

std::string Spell(int64_t seconds) {
  constexpr int64_t kMinute = 60, kHour = 3600, kDay = 86'400;
  const auto two = [](int64_t a, const char* of_a, int64_t b, const char* of_b) {
    return std::to_string(a) + of_a + (b > 0 ? " " + std::to_string(b) + of_b : "");
  };
  if (seconds < 2 * kMinute) return std::to_string(seconds) + " s";
  if (seconds < kHour) return std::to_string(seconds / kMinute) + " min";
  if (seconds < kDay) return two(seconds / kHour, " h", seconds % kHour / kMinute, " min");
  return two(seconds / kDay, " d", seconds % kDay / kHour, " h");
}

Line StateLine(const Told& told) {
  const SlurmJob& job = told.course->job();
  const Stage stage = told.course->stage();
  Writer writer("state", told);
  PutState(job, stage, writer.json());
  const int64_t now = told.wall_ns / kSecond;
  if (stage == Stage::kWaiting) return writer.Say(WaitText(job, now));
  if (stage == Stage::kRunning) return writer.Say(RunText(job, now));
  return writer.Say("is " + Lower(!job.state.empty() || job.state_flags.empty()
                                      ? job.state
                                      : job.state_flags[0]));
}

Line OutputLine(const Told& told, const std::vector<std::string>& paths, std::string_view error) {
  Writer writer("output", told);
  writer.json().Texts("paths", paths);
  writer.json().TextOrNull("error", error);
  const std::string all = Join(paths, " and ");
  if (error.empty()) return writer.Say("its output: " + all);
  return writer.Say("its output is not read: " + all + (all.empty() ? "" : ": ") +
                    std::string(error));
}

Line ProgressLine(const Told& told, const JobSummary& summary) {
  Writer writer("progress", told);
  PutProgress(summary, writer.json());
  return writer.Say(ProgressText(summary));
}

Line VerdictLine(const Told& told, const proto::Verdict& verdict) {
  Writer writer("verdict", told);
  PutVerdict(verdict, writer.json());
  return writer.Say("now " + VerdictText(verdict));
}

Line EndLine(const Told& told, const proto::Verdict* verdict, bool put_back) {
  const JobCourse& course = *told.course;
  const SlurmJob& job = course.job();
  Writer writer(put_back ? "put_back" : "ended", told);
  JsonWriter& json = writer.json();
  if (!put_back) {
    json.TextOrNull("state", course.lost() ? "" : job.state);
    json.TextOrNull("by", job.state_by);
    json.IntegerOrNull("exit_code", job.exit.has_value(), job.exit ? job.exit->code : 0);
    json.IntegerOrNull("signal", job.exit.has_value() && job.exit->signal > 0,
                       job.exit ? job.exit->signal : 0);
    json.Time("end", course.lost() ? 0 : job.end * kSecond);
    json.Integer("status", course.lost() ? kUnknownStatus : StatusOf(job));
  }
  json.Key("verdict");
  json.Raw(verdict == nullptr ? "null" : VerdictToJson(*verdict));
  return writer.Say(EndText(course, put_back) +
                    (verdict == nullptr ? "" : "; " + VerdictText(*verdict)));
}

Line StandsLine(const Told& told, const JobSummary* summary, const proto::Verdict* verdict) {
  const SlurmJob& job = told.course->job();
  const Stage stage = told.course->stage();
  Writer writer("stands", told);
  PutState(job, stage, writer.json());
  const int64_t now = told.wall_ns / kSecond;
  std::string text = "still " + (stage == Stage::kWaiting   ? WaitText(job, now)
                                 : stage == Stage::kRunning ? RunText(job, now)
                                                            : Lower(job.state));
  if (summary != nullptr && summary->records > 0) {
    PutProgress(*summary, writer.json());
    text += "; " + ProgressText(*summary);
  }
  if (verdict != nullptr) {
    PutVerdict(*verdict, writer.json());
    text += "; " + VerdictText(*verdict);
  }
  return writer.Say(text);
}

Line SlurmLine(bool answers, std::string_view why, int64_t wall_ns) {
  Writer writer("slurm", wall_ns);
  writer.json().Bool("answers", answers);
  writer.json().TextOrNull("error", why);
  if (answers) return writer.Say("Slurm answers again");
  return writer.Say("Slurm does not answer: " + std::string(why));
}

Line UnknownLine(std::string_view choice, std::string_view why, int64_t wall_ns) {
  Writer writer("unknown", wall_ns);
  writer.json().Text("job", choice);
  writer.json().TextOrNull("error", why);
  return writer.Say(std::string(choice) + "  no such job: " + std::string(why));
}

Line NoteLine(const Told& told, std::string_view note) {
  Writer writer("note", told);
  writer.json().Text("text", note);
  return writer.Say(note);
}

Line TotalsLine(const Totals& totals, int64_t wall_ns) {
  Writer writer("done", wall_ns);
  JsonWriter& json = writer.json();
  json.Integer("jobs", totals.jobs);
  json.Integer("completed", totals.completed);
  json.Integer("not_completed", totals.others);
  json.Integer("unknown", totals.unknown);
  json.Integer("status", totals.status);
  std::string text = std::to_string(totals.jobs) + (totals.jobs == 1 ? " job: " : " jobs: ") +
                     std::to_string(totals.completed) + " completed, " +
                     std::to_string(totals.others) + " did not";
  if (totals.unknown > 0) text += ", " + std::to_string(totals.unknown) + " not known";
  return writer.Say(text);
}

}  // namespace rankscope::watch
