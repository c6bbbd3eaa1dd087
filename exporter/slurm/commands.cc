// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/commands.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "exporter/loop/http_client.h"
#include "exporter/loop/small_file.h"
#include "exporter/slurm/text_reader.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr std::string_view kNames[kCalls] = {
    "scontrol show job",        "scontrol show node", "sdiag",           "sacct",
    "scontrol show job of one", "sacct of comments",  "squeue of steps", "squeue"};
constexpr std::string_view kRestNames[kCalls] = {"slurmrestd jobs",
                                                 "slurmrestd nodes",
                                                 "slurmrestd diag",
                                                 "slurmrestd accounting",
                                                 "slurmrestd job",
                                                 "slurmrestd comments",
                                                 {}};
constexpr std::string_view kEnds[] = {"ok", "failed", "timeout", "too_long", "not_started"};

// All of them are columns of 22.05.
constexpr char kAccountingColumns[] =
    "--format=JobIDRaw,JobID,State,Reason,ExitCode,DerivedExitCode,Submit,Eligible,Start,End,"
    "ElapsedRaw,Suspended,TimelimitRaw,NNodes,NodeList,AllocTRES,Partition,Account,User,QOS,"
    "JobName,NTasks,SubmitLine";

// Why a program gives up it says last: before it stand its warnings, of a plugin or an empty file.
std::string LastLine(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  if (const size_t end = text.rfind('\n'); end != std::string_view::npos)
    text.remove_prefix(end + 1);
  std::string line;
  for (const char c : text.substr(0, 160))
    line += static_cast<unsigned char>(c) < 32 || c == 127 ? ' ' : c;
  return line;
}

// The controller's part and that of accounting lie beside each other: /slurm/v*, /slurmdb/v*.
std::string RestUrl(std::string url, Call call, std::string_view job) {
  constexpr std::string_view kPart = "/slurm/";
  constexpr std::string_view kPaths[kCalls] = {"/jobs", "/nodes", "/diag", "/job/",
                                               "/job/", "/job/",  {}};
  while (url.ends_with('/')) url.pop_back();
  if (const size_t at = url.rfind(kPart);
      (call == Call::kAccounting || call == Call::kComment) && at != std::string::npos)
    url.replace(at, kPart.size(), "/slurmdb/");
  return url.append(kPaths[static_cast<size_t>(call)]).append(job);
}

// Tokens are renewed while the daemon runs, so the file is read for each request.
Result<HttpOptions> OptionsIn(const std::string& file) {
  constexpr size_t kMostBytes = 64 << 10;
  if (access(file.c_str(), R_OK) != 0) return Error{file + ": " + std::strerror(errno)};
  auto options = ReadHttpOptions(ReadSmallFile(file, kMostBytes));
  if (!options) return Error{file + ": " + options.error()};
  return options;
}

CommandOutcome::End EndOfRequest(const HttpAnswer& answer) {
  using End = CommandOutcome::End;
  switch (answer.end) {
    case HttpAnswer::End::kAnswered:
      return answer.error.empty() ? End::kDone : End::kFailed;
    case HttpAnswer::End::kLate:
      return End::kLate;
    case HttpAnswer::End::kTooLong:
      return End::kTooLong;
    case HttpAnswer::End::kNotLoaded:
      return End::kNotStarted;
    case HttpAnswer::End::kRefused:
    case HttpAnswer::End::kFailed:
      break;
  }
  return End::kFailed;
}

}  // namespace

std::string_view NameOf(Call call, Asked asked) {
  return (asked == Asked::kRest ? kRestNames : kNames)[static_cast<size_t>(call)];
}

std::string NewSeparator() {
  std::array<uint8_t, 12> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return {};
  std::string text = "~";
  for (const uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text + "~";
}

Commands::Commands(std::vector<std::string> folders, std::vector<std::string> environment,
                   RestService rest)
    : folders_(std::move(folders)), environment_(std::move(environment)), rest_(std::move(rest)) {}

Status Commands::Find() {
  if (asked() == Asked::kRest) return {};
  scontrol_ = FindProgram("scontrol", folders_);
  sdiag_ = FindProgram("sdiag", folders_);
  sacct_ = FindProgram("sacct", folders_);
  // Of the same installation: another one asks another cluster.
  squeue_ = FindProgram("squeue", {scontrol_.substr(0, scontrol_.rfind('/'))});
  if (!scontrol_.empty()) return {};
  std::string where;
  for (const std::string& folder : folders_) where += (where.empty() ? "" : ":") + folder;
  return Error{"no Slurm on this node: scontrol is not in " + where};
}

CommandOutcome Commands::AskRest(Call call, std::string_view job, Duration deadline,
                                 size_t expects) const {
  CommandOutcome outcome;
  HttpRequest request;
  request.url = RestUrl(rest_.url, call, job);
  request.accept = "application/json";
  request.connect_timeout = request.timeout = deadline;
  request.max_bytes = CommandLine().most;
  request.expected_bytes = expects;
  if (!rest_.options_file.empty()) {
    auto options = OptionsIn(rest_.options_file);
    if (!options) {
      outcome.complaint = "slurm.restd_curl_config: " + options.error();
      return outcome;
    }
    request.options = std::move(*options);
  }
  const auto begin = std::chrono::steady_clock::now();
  HttpAnswer answer = HttpGet(request);
  outcome.took = Duration{(std::chrono::steady_clock::now() - begin).count()};
  outcome.end = EndOfRequest(answer);
  outcome.output = std::move(answer.body);
  outcome.complaint = std::move(answer.error);
  return outcome;
}

CommandOutcome Commands::Run(Call call, std::string_view jobs, Duration deadline, size_t expects,
                             std::string_view separator) const {
  if (asked() == Asked::kRest) return AskRest(call, jobs, deadline, expects);
  CommandLine line;
  line.expects = expects;
  line.environment = environment_;
  line.deadline = deadline;
  // Seconds since 1970, whatever zone the controller is in. sacct of 22.05 cannot read its own
  // default time in that format; its local times are read as well.
  if (call != Call::kAccounting && call != Call::kComment)
    line.environment.emplace_back("SLURM_TIME_FORMAT=%s");
  // --local: of this cluster only, or scontrol asks the controller first whether it has others.
  switch (call) {
    case Call::kJobs:
      line.argv = {scontrol_, "--local", "show", "job", "-o"};
      break;
    case Call::kNodes:
      line.argv = {scontrol_, "show", "node", "-o"};
      break;
    case Call::kOneJob:
      line.argv = {scontrol_, "--local", "show", "job", "-o", std::string(jobs)};
      if (!has_queue()) break;
      line.argv = {squeue_, "--local",
                   "-h",    "-a",
                   "-t",    "all",
                   "-j",    std::string(jobs),
                   "-O",    QueueFormat(separator)};
      break;
    case Call::kQueue:
      line.argv = {squeue_, "--local", "-h", "-a", "-t", "all", "-O", QueueFormat(separator)};
      break;
    case Call::kDiagnostics:
      line.argv = {sdiag_};
      break;
    case Call::kAccounting:
      // Requeued jobs have a row for each run only with -D. Their steps come as well.
      line.argv = {sacct_, "-p", "-D", "--delimiter=", "-j", std::string(jobs), kAccountingColumns};
      line.argv[3].append(separator);
      break;
    case Call::kSteps:
      line.argv = {squeue_, "--local", "-h", "-a", "-s", "-o", StepFormat(separator)};
      break;
    case Call::kComment:
      line.argv = {sacct_,
                   "-p",
                   "-X",
                   "--delimiter=",
                   "-j",
                   std::string(jobs),
                   "--format=JobIDRaw,JobID,Comment,AdminComment"};
      line.argv[3].append(separator);
      break;
  }
  if (line.argv[0].empty()) {
    CommandOutcome missing;
    missing.complaint = "not installed";
    return missing;
  }
  return RunCommand(line);
}

CommandOutcome Commands::RunQueueOf(std::string_view jobs, Duration deadline,
                                    std::string_view separator) const {
  CommandLine line;
  line.environment = environment_;
  line.environment.emplace_back("SLURM_TIME_FORMAT=%s");
  line.deadline = deadline;
  line.argv = {squeue_, "--local",
               "-h",    "-a",
               "-t",    "all",
               "-j",    std::string(jobs),
               "-O",    QueueFormat(separator, QueueColumns::kWithOutput)};
  return RunCommand(line);
}

CallBook::CallBook(Asked asked) {
  for (size_t call = 0; call < kCalls && !NameOf(static_cast<Call>(call), asked).empty(); ++call)
    calls_.push_back({NameOf(static_cast<Call>(call), asked), {}, 0, {}});
}

void CallBook::Note(Call call, const CommandOutcome& outcome) {
  LibraryCall& entry = calls_[static_cast<size_t>(call)];
  if (outcome.end == CommandOutcome::End::kDone) {
    const double seconds = outcome.took.seconds();
    const auto* const bound =
        std::lower_bound(kLibraryCallBounds.begin(), kLibraryCallBounds.end(), seconds);
    ++entry.counts[static_cast<size_t>(bound - kLibraryCallBounds.begin())];
    entry.seconds += seconds;
    return;
  }
  const std::string_view end = kEnds[static_cast<size_t>(outcome.end)];
  const auto known = std::find_if(entry.errors.begin(), entry.errors.end(),
                                  [end](const auto& error) { return error.first == end; });
  if (known != entry.errors.end()) {
    ++known->second;
  } else {
    entry.errors.emplace_back(end, 1);
  }
}

std::string Complaint(Call call, const CommandOutcome& outcome, Asked asked) {
  using End = CommandOutcome::End;
  const std::string name(NameOf(call, asked));
  const bool accounting = call == Call::kAccounting || call == Call::kComment;
  const std::string remedy = asked == Asked::kRest ? "; check slurm.restd_url"
                             : accounting          ? "; check with `sacctmgr show cluster`"
                                                   : "; check with `scontrol ping`";
  switch (outcome.end) {
    case End::kDone:
      return {};
    case End::kFailed: {
      const std::string said = LastLine(outcome.complaint);
      return name + ": " +
             (said.empty() ? "exit status " + std::to_string(outcome.exit_code) : said) + remedy;
    }
    case End::kLate:
      return name + ": no answer in time" + remedy;
    case End::kTooLong:
      return name + ": the output is too large";
    case End::kNotStarted:
      break;
  }
  return name + ": " + LastLine(outcome.complaint);
}

bool IsNobodyThere(const CommandOutcome& outcome) {
  return outcome.end == CommandOutcome::End::kFailed &&
         outcome.complaint.find("Unable to contact slurm controller") != std::string::npos;
}

bool IsNoSuchJob(const CommandOutcome& outcome) {
  return outcome.end == CommandOutcome::End::kFailed &&
         outcome.complaint.find("Invalid job id specified") != std::string::npos;
}

std::vector<std::string> CommandFolders() {
  return {"/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/usr/local/slurm/bin"};
}

}  // namespace rankscope::exporter::slurm
