// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope verdict [JOB]`: what the daemon of this node thinks now.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "detectors/document/text_layout.h"
#include "detectors/document/verdict_json.h"
#include "detectors/document/verdict_words.h"
#include "exporter/cli/commands.h"
#include "exporter/cli/daemon_client.h"

namespace rankscope::cli {

namespace {

// What the daemon gives at most at once: a thousand verdicts are some 10 MB.
constexpr char kAll[] = "/verdict?limit=1000";
constexpr int kMostPages = 1000;

// Two pages of {"schema":1,"node":...,"verdicts":[...],"next":...} as one. A quote inside a string
// is escaped, so none of these marks stands in one.
std::string Join(std::string page, const std::string& next) {
  constexpr std::string_view kBegin = "\"verdicts\":[", kNext = "],\"next\":";
  const size_t end = page.rfind(kNext);
  const size_t begin = next.find(kBegin);
  if (end == std::string::npos || begin == std::string::npos) return page + next;
  const std::string_view verdicts = std::string_view(next).substr(begin + kBegin.size());
  page.resize(end);
  if (!verdicts.starts_with(']')) page += ',';
  return page.append(verdicts);
}

// All pages as one. Pages of protobuf are one message when they stand one behind the other.
Result<DaemonAnswer> GetAll(const std::string& address, const std::string& target, bool json) {
  const char* const accept = json ? "application/json" : "application/x-protobuf";
  Result<DaemonAnswer> answer = AskDaemon(address, target, accept);
  for (int page = 1; answer && !answer->next.empty() && page < kMostPages; ++page) {
    Result<DaemonAnswer> next = AskDaemon(address, answer->next, accept);
    if (!next || next->status != 200) return next;
    next->body = json ? Join(std::move(answer->body), next->body) : answer->body + next->body;
    answer = std::move(next);
  }
  return answer;
}

// A line's part in the colour of its severity, where somebody looks at it.
std::string Coloured(const proto::Verdict& verdict, std::string text, bool colours) {
  if (!colours) return text;
  const std::string& severity = verdict.triage().severity();
  const char* const code = severity == "critical"  ? "31"
                           : severity == "warning" ? "33"
                           : severity == "ok"      ? "32"
                                                   : "0";
  return "\033[" + std::string(code) + "m" + text + "\033[0m";
}

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

// "critical  C2 collective_hang / sleep  0.85  job 8841  rank 3 on n1  runs".
void PrintLine(const proto::Verdict& verdict, bool colours) {
  constexpr size_t kRanges = 4;
  const bool known = !verdict.code().empty();
  const std::string severity =
      verdict.triage().severity().empty() ? "-" : Printable(verdict.triage().severity());
  std::string name = known ? verdict.code() + " " + verdict.family() : "no verdict yet";
  if (!verdict.sub().empty()) name += " / " + verdict.sub();
  std::array<char, 16> confidence{};
  if (known) std::snprintf(confidence.data(), confidence.size(), "%.2f", verdict.confidence());
  std::string who = RankWords(verdict.ranks(), kRanges);
  if (verdict.nodes_size() == 1) who += (who.empty() ? "on " : " on ") + verdict.nodes(0);
  const std::string ended = DispositionWords(verdict);
  const std::string how = verdict.triage().running() ? "runs" : ended.empty() ? "ended" : ended;
  std::string line = Coloured(verdict, Padded(severity, 8), colours) + "  " +
                     Padded(Printable(name), 34) + "  " + Padded(confidence.data(), 4) + "  " +
                     Padded(Printable(verdict.job_id()), 18) + "  " + Printable(how);
  if (!who.empty()) line += "  " + Printable(who);
  std::puts(line.c_str());
}

void PrintText(const proto::VerdictDocument& document, bool one, Detail detail, bool colours) {
  if (document.verdicts().empty()) std::puts("no job is known here that is asked for");
  for (int i = 0; i < document.verdicts_size(); ++i) {
    const proto::Verdict& verdict = document.verdicts(i);
    if (!one && detail == Detail::kShort) {
      PrintLine(verdict, colours);
      continue;
    }
    std::printf("%s%s", i == 0 ? "" : "\n", VerdictToText(verdict, detail).c_str());
  }
}

struct Asked {
  std::string job;
  std::string address = kDefaultAddress;
  std::string format = "text";
  bool all = false;
  bool json = false;
  double watch_s = 0;
  // Parameters of /verdict, as the options that give them are called.
  std::array<std::pair<const char*, std::string>, 7> filters = {{{"severity", ""},
                                                                 {"state", ""},
                                                                 {"user", ""},
                                                                 {"partition", ""},
                                                                 {"family", ""},
                                                                 {"node", ""},
                                                                 {"since", ""}}};
};

std::string TargetOf(const Asked& asked) {
  if (!asked.job.empty()) return "/verdict?job_id=" + QueryValue(asked.job);
  std::string target = kAll;
  for (const auto& [name, value] : asked.filters) {
    if (!value.empty()) target.append("&").append(name).append("=").append(QueryValue(value));
  }
  return target;
}

// Asks once and prints; the exit status.
int Print(const Asked& asked, bool colours) {
  const bool json = asked.format == "json";
  const std::string& address = asked.address;
  const auto answer = GetAll(address, TargetOf(asked), json);
  if (!answer) {
    std::fprintf(stderr, "rankscope verdict: %s\n", answer.error().c_str());
    return 1;
  }
  if (answer->status == 404 && !asked.job.empty()) {
    std::fprintf(stderr,
                 "rankscope verdict: the daemon at %s knows no job '%s'; `rankscope verdict` lists "
                 "those it knows\n",
                 address.c_str(), asked.job.c_str());
    return 1;
  }
  if (answer->status != 200) {
    std::fprintf(stderr, "rankscope verdict: %s answers %d: %s\n", address.c_str(), answer->status,
                 answer->body.c_str());
    return 1;
  }
  if (json) {
    std::fwrite(answer->body.data(), 1, answer->body.size(), stdout);
    if (!answer->body.ends_with('\n')) std::fputc('\n', stdout);
    return 0;
  }
  proto::VerdictDocument document;
  if (!document.ParseFromString(answer->body)) {
    std::fprintf(stderr, "rankscope verdict: the answer of %s is no verdict document\n",
                 address.c_str());
    return 1;
  }
  PrintText(document, !asked.job.empty(), asked.all ? Detail::kAll : Detail::kShort, colours);
  return 0;
}

// Until it is interrupted. What the terminal shows is wiped first; a file gets one print after the
// other.
int Watch(const Asked& asked, bool colours) {
  for (;;) {
    if (colours) std::fputs("\033[H\033[2J", stdout);
    const int status = Print(asked, colours);
    if (std::fflush(stdout) != 0) return 1;
    if (status != 0 && !colours) return status;
    std::this_thread::sleep_for(std::chrono::duration<double>(asked.watch_s));
  }
}

}  // namespace

int VerdictCommand(int argc, char** argv) {
  CLI::App app(
      "Print the verdicts of a running rankscope daemon: a line per job, the worst first, or all "
      "of "
      "one job. Exit status: 0; 1 if the job is unknown or no daemon answers; 2 for wrong usage.",
      "rankscope verdict");
  Asked asked;
  app.add_option("JOB", asked.job, "Job id; without it, a line for each known job");
  app.add_flag("--all", asked.all, "In text, print all evidence and each reason");
  app.add_option("--address", asked.address,
                 "Address of the daemon: HOST:PORT, [IPv6]:PORT or a URL with http or https")
      ->capture_default_str();
  auto* const format = app.add_option("--format", asked.format, "Output format: text or json")
                           ->check(CLI::IsMember({"text", "json"}))
                           ->capture_default_str();
  app.add_flag("--json", asked.json, "The same as --format json")->excludes(format);
  app.add_option("--watch", asked.watch_s, "Print again every SECONDS (2) until interrupted")
      ->expected(0, 1)
      ->default_str("2")
      ->check(CLI::Range(0.1, 86400.0));
  constexpr const char* kHelp[] = {"Only jobs of this severity: critical, warning, info or ok",
                                   "Only jobs in this state: live, provisional or final",
                                   "Only jobs of this user",
                                   "Only jobs in this partition",
                                   "Only jobs in this family, by code or name",
                                   "Only jobs on this node",
                                   "Only jobs whose verdict has changed since this time"};
  for (size_t i = 0; i < asked.filters.size(); ++i) {
    auto& [name, value] = asked.filters[i];
    app.add_option("--" + std::string(name), value, kHelp[i]);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (asked.json) asked.format = "json";
  const bool colours = isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  return app.count("--watch") > 0 ? Watch(asked, colours) : Print(asked, colours);
}

}  // namespace rankscope::cli
