// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope watch JOBID...`: follows Slurm's jobs to their ends, without a daemon.
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "exporter/cli/commands.h"
#include "exporter/config/config.h"
#include "exporter/loop/event_loop.h"
#include "exporter/loop/user_threads.h"
#include "exporter/slurm/commands.h"
#include "exporter/watch/watcher.h"

namespace rankscope::cli {

namespace {

// Where this user's shell finds Slurm's commands, then where they usually are.
std::vector<std::string> FoldersOfSlurm() {
  std::vector<std::string> folders;
  const char* const path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "" : path;
  while (!left.empty()) {
    const size_t colon = std::min(left.find(':'), left.size());
    if (left.starts_with('/')) folders.emplace_back(left.substr(0, colon));
    left.remove_prefix(std::min(colon + 1, left.size()));
  }
  for (std::string& folder : exporter::slurm::CommandFolders())
    folders.push_back(std::move(folder));
  return folders;
}

// What tells Slurm's commands which cluster to ask, and as whom.
std::vector<std::string> EnvironmentOfSlurm() {
  std::vector<std::string> environment;
  for (const char* const name : {"SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr) environment.push_back(std::string(name) + "=" + value);
  }
  return environment;
}

int OpenSignals() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

void PrintLine(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

int Watch(watch::WatchOptions options, exporter::slurm::Commands commands) {
  const int signals = OpenSignals();
  exporter::PrepareUserThreads();
  exporter::EventLoop loop;
  watch::Watcher watcher(loop, std::move(commands), std::move(options), PrintLine);
  int ended_by = 0;
  const auto on_signal = [&](uint32_t) {
    signalfd_siginfo signal{};
    if (read(signals, &signal, sizeof signal) != sizeof signal) return;
    ended_by = static_cast<int>(signal.ssi_signo);
    watcher.PrintStands();
    loop.Stop();
  };
  if (const Status watched = loop.Watch(signals, EPOLLIN, on_signal); !watched) {
    std::fprintf(stderr, "rankscope watch: %s\n", watched.error().c_str());
    return watch::kUnknownStatus;
  }
  watcher.Start();
  loop.Run();
  const int status = ended_by != 0 ? 128 + ended_by : watcher.status();
  std::fflush(stdout);
  // A thread that reads from a file system that hangs must not keep us.
  _exit(status);
}

constexpr char kDescription[] =
    "Follow jobs of Slurm, submitted by whomever, until they have ended: what they wait for, how "
    "far they are, what is wrong with them, and at the end the verdict. Slurm is asked about all "
    "jobs with one call; their output files are read as they grow. No daemon is needed on the "
    "nodes; run it where the output files can be read. One line for each change.\n\n"
    "Exit status: of one job that of its script, 128 and the number of the signal that ended it, "
    "or 1 where Slurm ended it and reports neither; of several jobs the largest. 125 if a job is "
    "not known, or how it ended, or if Slurm cannot be asked; 2 for wrong usage; 128 and its "
    "number if a signal ends the watch, which prints what stands then.";

}  // namespace

int WatchCommand(int argc, char** argv) {
  CLI::App app(kDescription, "rankscope watch");
  std::vector<std::string> jobs;
  std::string interval = "30s";
  std::string format = "text";
  bool all = false;
  app.add_option("JOBID", jobs,
                 "Jobs (8841), arrays and tasks of arrays (8841, 8841_3, 8841_[0-9]), parts of "
                 "heterogeneous jobs (8841+1)")
      ->required();
  app.add_option("--interval", interval,
                 "Time between two calls of Slurm, and between two lines of progress; at least 30s")
      ->capture_default_str();
  app.add_option("--format", format, "Output format: text or json, one object per line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_flag("--all", all, "In text, print all evidence and each reason of the verdicts");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto refuse = [](const std::string& why, int status) {
    std::fprintf(stderr, "rankscope watch: %s\n", why.c_str());
    return status;
  };
  watch::WatchOptions options;
  options.json = format == "json";
  options.detail = all ? Detail::kAll : Detail::kShort;
  for (const std::string& job : jobs) {
    Result<watch::JobChoice> choice = watch::ReadJobChoice(job);
    if (!choice) return refuse(choice.error(), 2);
    options.choices.push_back(std::move(*choice));
  }
  const Result<Duration> duration = exporter::ParseDuration(interval);
  if (!duration) return refuse("--interval: " + duration.error(), 2);
  if (*duration < watch::Watcher::kMinInterval)
    return refuse("--interval: " + interval + " is below 30s, which spares slurmctld", 2);
  options.interval = *duration;
  exporter::slurm::Commands commands(FoldersOfSlurm(), EnvironmentOfSlurm());
  if (const Status found = commands.Find(); !found)
    return refuse(found.error(), watch::kUnknownStatus);
  if (!commands.has_queue())
    return refuse("squeue is not beside scontrol; install Slurm's client commands",
                  watch::kUnknownStatus);
  return Watch(std::move(options), std::move(commands));
}

}  // namespace rankscope::cli
