// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/commands.h"

#include <algorithm>
#include <utility>

namespace rankscope::exporter::slurm {
namespace {

constexpr std::string_view kNames[kCalls] = {"scontrol show job", "scontrol show node", "sdiag",
                                             "sacct", "scontrol show job of one"};
constexpr std::string_view kEnds[] = {"ok", "failed", "timeout", "too_long", "not_started"};

// All of them are columns of 22.05. A job's name is its owner's words: it stands last but for the
// submit line, so that what is cut or doubtful harms nothing before it.
constexpr char kAccountingColumns[] =
    "--format=JobIDRaw,JobID,State,Reason,ExitCode,DerivedExitCode,Submit,Eligible,Start,End,"
    "ElapsedRaw,Suspended,TimelimitRaw,NNodes,NodeList,AllocTRES,Partition,Account,User,QOS,"
    "SubmitLine";

std::string FirstLine(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  std::string line;
  for (const char c : text.substr(0, 160))
    line += static_cast<unsigned char>(c) < 32 || c == 127 ? ' ' : c;
  return line;
}

}  // namespace

std::string_view NameOf(Call call) {
  return kNames[static_cast<size_t>(call)];
}

Commands::Commands(std::vector<std::string> folders, std::vector<std::string> environment)
    : folders_(std::move(folders)), environment_(std::move(environment)) {}

Status Commands::Find() {
  scontrol_ = FindProgram("scontrol", folders_);
  sdiag_ = FindProgram("sdiag", folders_);
  sacct_ = FindProgram("sacct", folders_);
  if (!scontrol_.empty()) return {};
  std::string where;
  for (const std::string& folder : folders_) where += (where.empty() ? "" : ":") + folder;
  return Error{"no Slurm on this node: scontrol is not in " + where};
}

CommandOutcome Commands::Run(Call call, std::string_view jobs, Duration deadline) const {
  CommandLine line;
  line.environment = environment_;
  line.deadline = deadline;
  // Seconds since 1970, whatever zone the controller is in. sacct of 22.05 cannot read its own
  // default time in that format; its local times are read as well.
  if (call != Call::kAccounting) line.environment.emplace_back("SLURM_TIME_FORMAT=%s");
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
      break;
    case Call::kDiagnostics:
      line.argv = {sdiag_};
      break;
    case Call::kAccounting:
      // Requeued jobs have a row for each run only with -D; without -X their steps come as well.
      line.argv = {sacct_, "-P", "-D", "-X", "-j", std::string(jobs), kAccountingColumns};
      break;
  }
  if (line.argv[0].empty()) {
    CommandOutcome missing;
    missing.complaint = "not installed";
    return missing;
  }
  return RunCommand(line);
}

CallBook::CallBook() {
  for (const std::string_view name : kNames) calls_.push_back({name, {}, 0, {}});
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

std::string Complaint(Call call, const CommandOutcome& outcome) {
  using End = CommandOutcome::End;
  const std::string name(NameOf(call));
  switch (outcome.end) {
    case End::kDone:
      return {};
    case End::kFailed: {
      const std::string said = FirstLine(outcome.complaint);
      return name + ": " +
             (said.empty() ? "exit status " + std::to_string(outcome.exit_code) : said) +
             "; `scontrol ping` says who answers";
    }
    case End::kLate:
      return name + ": no answer in time; `scontrol ping` says who answers";
    case End::kTooLong:
      return name + ": more text than anybody can use";
    case End::kNotStarted:
      break;
  }
  return name + ": " + FirstLine(outcome.complaint);
}

std::vector<std::string> CommandFolders() {
  return {"/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/usr/local/slurm/bin"};
}

}  // namespace rankscope::exporter::slurm
