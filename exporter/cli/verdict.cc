// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope verdict [JOB]`: what the daemon of this node thinks now.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "detectors/document/verdict_json.h"
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

void PrintText(const proto::VerdictDocument& document, Detail detail) {
  if (document.verdicts().empty()) std::puts("no job has been seen on this node yet");
  for (int i = 0; i < document.verdicts_size(); ++i) {
    std::printf("%s%s", i == 0 ? "" : "\n", VerdictToText(document.verdicts(i), detail).c_str());
  }
}

}  // namespace

int VerdictCommand(int argc, char** argv) {
  CLI::App app(
      "Print the verdicts of a running rankscope daemon. Exit status: 0; 1 if the job is unknown "
      "or no daemon answers; 2 for wrong usage.",
      "rankscope verdict");
  std::string job;
  std::string address = kDefaultAddress;
  std::string format = "text";
  app.add_option("JOB", job, "Job id; without it, all known jobs");
  bool all = false;
  app.add_flag("--all", all, "In text, print all evidence and each reason");
  app.add_option("--address", address, "Address of the daemon, HOST:PORT or https://HOST:PORT")
      ->capture_default_str();
  app.add_option("--format", format, "Output format: text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const std::string target = job.empty() ? kAll : "/verdict?job_id=" + QueryValue(job);
  const auto answer = GetAll(address, target, format == "json");
  if (!answer) {
    std::fprintf(stderr, "rankscope verdict: %s\n", answer.error().c_str());
    return 1;
  }
  if (answer->status == 404 && !job.empty()) {
    std::fprintf(stderr,
                 "rankscope verdict: the daemon at %s knows no job '%s'; `rankscope verdict` lists "
                 "those it knows\n",
                 address.c_str(), job.c_str());
    return 1;
  }
  if (answer->status != 200) {
    std::fprintf(stderr, "rankscope verdict: %s answers %d: %s\n", address.c_str(), answer->status,
                 answer->body.c_str());
    return 1;
  }
  if (format == "json") {
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
  PrintText(document, all ? Detail::kAll : Detail::kShort);
  return 0;
}

}  // namespace rankscope::cli
