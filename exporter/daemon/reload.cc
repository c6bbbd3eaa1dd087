// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/reload.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "exporter/config/config_keys.h"
#include "exporter/daemon/agent.h"
#include "exporter/run/clock.h"

namespace rankscope::exporter {
namespace {

struct Row {
  std::string_view key;
  void (*take)(Config& to, const Config& from);
};

#define KEY(name, path)                                               \
  {                                                                   \
    name, [](Config& to, const Config& from) { to.path = from.path; } \
  }
#define ROW(path) KEY(#path, path)
constexpr Row kRows[] = {
    ROW(web.roles),     ROW(state.keep),  ROW(metrics.max_series),
    ROW(slurm.targets), ROW(notify.file), ROW(log.level),
};
#undef ROW
#undef KEY

// Of a client that waits for a disk.
constexpr Duration kReloadTimeout = Milliseconds(500);

std::string Joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

}  // namespace

ConfigChange TakeOver(const Config& now, const Config& read) {
  ConfigChange change;
  change.config = now;
  Config before = now, after = read;
  const std::vector<Key> old_keys = Bind(before), new_keys = Bind(after);
  for (const Key& key : new_keys) {
    const auto old = std::find_if(old_keys.begin(), old_keys.end(),
                                  [&](const Key& one) { return one.path == key.path; });
    if (old != old_keys.end() && old->get() == key.get()) continue;
    const auto* const row = std::find_if(std::begin(kRows), std::end(kRows),
                                         [&](const Row& one) { return one.key == key.path; });
    if (row == std::end(kRows)) {
      change.needs_restart.push_back(key.path);
    } else {
      row->take(change.config, read);
      change.changed.push_back(key.path);
    }
  }
  return change;
}

std::string WithoutSecrets(std::string text) {
  for (size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const size_t end = text.find_first_of(" \"\n", at + 3);  // a password may have a slash
    const size_t sign = text.rfind('@', end);
    if (sign == std::string::npos || sign < at) continue;
    text.replace(at + 3, sign - at - 3, "<secret>");
  }
  return text;
}

void Agent::Reload(std::function<void(const Status&)> done) {
  if (!done) done = [](const Status&) {};
  if (!load_) return done(Error{"this process has no configuration"});
  const bool taken = documents_disk_.Submit([this, load = load_, done]() -> std::function<void()> {
    auto read = std::make_shared<const ConfigOutcome>(load());
    auto notify = std::make_shared<NotifyOutcome>();
    const std::string& file = read->config.notify.file;
    if (read->problems.empty() && !file.empty()) *notify = LoadNotifyConfig(file);
    return [this, read, notify, done] { done(Apply(*read, std::move(*notify))); };
  });
  if (!taken) done(Error{"the disk thread is busy; try again"});
}

Status Agent::ReloadFrom(Duration deadline) {
  const auto answer = std::make_shared<std::promise<Status>>();
  auto future = answer->get_future();
  loop_.Post(
      [this, answer] { Reload([answer](const Status& status) { answer->set_value(status); }); });
  const Duration timeout = std::min(deadline, kReloadTimeout);
  if (future.wait_for(std::chrono::nanoseconds(timeout.ns)) == std::future_status::ready)
    return future.get();
  return Error{"the file is still being read; the log says what comes of it"};
}

void Agent::TakeNotify(bool file_before, NotifyConfig config) {
  if (config_.notify.file.empty()) {
    // What waits stays in the spool for the day on which there is a file again.
    if (file_before) log_.Info("nobody is told any more: notify.file is empty", {});
    if (notifier_) notifier_->Stop();
    notifier_.reset();
  } else if (notifier_ == nullptr) {
    StartNotifier(std::move(config));
  } else {
    notifier_->SetConfig(std::move(config));
  }
}

// All or nothing: a mistake in either file changes nothing.
Status Agent::Apply(const ConfigOutcome& read, NotifyOutcome notify) {
  const Problems& mistakes = read.problems.empty() ? notify.problems : read.problems;
  config_read_.good = mistakes.empty();
  if (!mistakes.empty()) {
    const std::string problems = Joined(mistakes, "; ");
    log_.Error("the configuration has mistakes and stays as it was", {{"reason", problems}});
    return Error{problems};
  }
  ConfigChange change = TakeOver(config_, read.config);
  const bool told_before = !config_.notify.file.empty();
  config_ = std::move(change.config);
  TakeNotify(told_before, std::move(notify.config));
  config_read_.good_wall_seconds = static_cast<double>(run::WallNowNs()) * 1e-9;
  log_.SetLevel(config_.log.level);
  snapshots_.SetMaxSeries(static_cast<int32_t>(config_.metrics.max_series));
  std::vector<http::RoleRow> roles;
  for (const std::string& text : config_.web.roles) {
    if (const auto row = http::ParseRole(text)) roles.push_back(*row);
  }
  listener_->SetRoles(std::move(roles));
  log_.Info("the configuration was read again", {{"changed", Joined(change.changed, " ")}});
  if (!change.needs_restart.empty()) {
    log_.Warn("keys have changed that are in force only after a restart",
              {{"keys", Joined(change.needs_restart, " ")}});
  }
  return {};
}

}  // namespace rankscope::exporter
