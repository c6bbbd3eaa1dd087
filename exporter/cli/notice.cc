// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/cli/notice.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "detectors/status/describe_job.h"
#include "exporter/cli/companion.h"
#include "exporter/notify/describe.h"
#include "exporter/run/process_facts.h"

namespace rankscope::cli {
namespace {

namespace notify = exporter::notify;

// Of Slurm's steps with several tasks: those on other nodes than the first say nothing, since they
// cannot know what it says; of those on one node the first that ends speaks.
bool SpeaksForItsJob(char* const* environment) {
  const std::string_view nodes = run::EnvironmentValue(environment, "SLURM_STEP_NUM_NODES");
  const std::string_view node = run::EnvironmentValue(environment, "SLURM_NODEID");
  return nodes.empty() || nodes == "1" || node.empty() || node == "0";
}

std::string StepOf(char* const* environment) {
  const std::string_view tasks = run::EnvironmentValue(environment, "SLURM_STEP_NUM_TASKS");
  if (tasks.empty() || tasks == "1") return {};
  std::string step;
  for (const char* key : {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"})
    step += std::string(run::EnvironmentValue(environment, key).substr(0, 40)) + '.';
  return step;
}

// A process that nobody waits for: without a terminal, a parent's signals, or any descriptor of
// ours. What the job has in its environment (a library that is loaded first, a proxy) is not the
// sender's.
int SpawnDetached(const std::string& program, const notify::UserPlaces& places) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&files);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
  posix_spawn_file_actions_addchdir_np(&files, "/");
  std::vector<std::string> variables = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"};
  const auto pass = [&variables](const char* key, const std::string& value) {
    if (!value.empty()) variables.push_back(std::string(key) + '=' + value);
  };
  pass("HOME", places.home);
  pass("XDG_CONFIG_HOME", places.config_home);
  pass("XDG_STATE_HOME", places.state_home);
  std::vector<char*> environment;
  for (std::string& variable : variables) environment.push_back(variable.data());
  environment.push_back(nullptr);
  char name[] = "rankscope", command[] = "deliver";
  char* const arguments[] = {name, command, nullptr};
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, program.c_str(), &files, &attributes, arguments, environment.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

notify::UserPlaces PlacesOf(char* const* environment) {
  const auto value = [environment](const char* key) {
    return std::string(run::EnvironmentValue(environment, key));
  };
  return {value("HOME"), value("XDG_CONFIG_HOME"), value("XDG_STATE_HOME")};
}

Notice::Notice(std::string wish, char* const* environment)
    : places_(PlacesOf(environment)), wish_(std::move(wish)) {
  const bool asked = !wish_.empty();
  if (!asked) wish_ = std::string(run::EnvironmentValue(environment, "RANKSCOPE_NOTIFY"));
  const std::string found = notify::FindNotifyConfig(places_);
  if (found.empty()) {
    if (asked)
      complaint_ =
          std::string("--notify: no daemon notifies anybody of this run, and there is no ") +
          notify::kSiteConfig + " that says how";
    return;
  }
  if (!SpeaksForItsJob(environment)) return;
  config_ = found;
  step_ = StepOf(environment);
}

std::optional<Notice::Message> Notice::MessageOf(const engine::Engine& engine,
                                                 std::string_view job_id, const std::string& node,
                                                 Timestamp now, int64_t wall_ns) const {
  const std::optional<engine::JobView> view = engine.Find(job_id);
  if (!view || !view->watched) return std::nullopt;
  const JobStatus job = status::DescribeJob(*view);
  const std::optional<notify::News> news = notify::NewsOf(job.verdict, nullptr, job.uid);
  if (!news) return std::nullopt;
  Message message;
  *message.mutable_notification() =
      notify::Describe(job, {*news, engine.Summarize(job_id, now), tails_.Of(job), node, wall_ns});
  message.mutable_notification()->set_reported_by("rankscope run, without a daemon");
  message.set_spooled_ns(wall_ns);
  message.set_wish(wish_);
  message.set_own(news->own);
  message.set_step(step_);
  return message;
}

std::string Notice::Leave(const Message& message, uint64_t random) const {
  const std::string folder = notify::FindLeftFolder(places_);
  if (folder.empty())
    return std::string("nobody is notified: neither ") + notify::kSharedFolder +
           " nor a folder below XDG_STATE_HOME or HOME can be written";
  if (const Status left =
          notify::LeftMessages(folder).Leave(getuid(), random, message.SerializeAsString());
      !left.ok())
    return "nobody is notified: " + left.error();
  int error = ENOENT;
  for (const std::string& program : CompanionPaths()) {
    error = SpawnDetached(program, places_);
    if (error == 0) return {};
  }
  return std::string("the notification waits for `rankscope deliver`, which cannot be started: ") +
         std::strerror(error);
}

}  // namespace rankscope::cli
