// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope deliver`: sends the notifications that a user's `rankscope run` has left. Started by
// each run that leaves one; of a user's only one works at a time.
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "exporter/cli/commands.h"
#include "exporter/cli/notice.h"
#include "exporter/config/config.h"
#include "exporter/config/notify_config.h"
#include "exporter/notify/left_sender.h"
#include "exporter/run/clock.h"

namespace rankscope::cli {
namespace {

namespace notify = exporter::notify;

// How often the folder is looked at while something waits: what comes together goes as one message.
constexpr Duration kLook = Milliseconds(500);

int Fail(const std::string& what) {
  std::fprintf(stderr, "rankscope deliver: %s\n", what.c_str());
  return 1;
}

notify::LeftSender::Now ReadNow() {
  return {run::MonotonicNow(), run::WallNowNs()};
}

// Root becomes the user, for good, with no group but his own.
bool Become(const passwd& user) {
  return getuid() == user.pw_uid ||
         (setgroups(0, nullptr) == 0 && setgid(user.pw_gid) == 0 && setuid(user.pw_uid) == 0);
}

void Sleep(Duration duration) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(duration.ns));
}

// Until nothing waits any more, or the time is over.
void Serve(notify::LeftSender& sender, Timestamp until) {
  while (true) {
    sender.Look(ReadNow());
    const notify::LeftSender::Now now = ReadNow();
    if (sender.pending() == 0 || now.t >= until) return;
    if (sender.SendOne(now)) continue;
    const std::optional<Timestamp> due = sender.NextDue(now.t);
    const Duration wait = due ? *due - now.t : kLook;
    Sleep(std::max(Milliseconds(1), std::min({wait, kLook, until - now.t})));
  }
}

int Report(const notify::LeftSender& sender) {
  std::printf("sent %zu, waiting %zu, left for the daemon %zu\n", sender.sent(), sender.pending(),
              sender.kept_back());
  if (sender.pending() + sender.kept_back() == 0) return 0;
  return Fail(sender.trouble().empty() ? "some wait for their limits" : sender.trouble());
}

int Deliver(uint32_t uid, const std::string& name, const notify::UserPlaces& places,
            Duration patience) {
  const std::string folder = notify::FindLeftFolder(places);
  const std::string file = notify::FindNotifyConfig(places);
  if (folder.empty() || file.empty()) return 0;  // then nothing was left either
  exporter::NotifyOutcome outcome = exporter::LoadNotifyConfig(file);
  if (const Status trusted = exporter::CheckOwner(file, uid); !trusted.ok())
    return Fail(trusted.error());
  if (!outcome.problems.empty()) return Fail(outcome.problems.front());
  const notify::LeftMessages messages(folder);
  notify::LeftSender sender(
      std::make_shared<const exporter::NotifyConfig>(std::move(outcome.config)), messages,
      {uid, name});
  const Timestamp until = run::MonotonicNow() + patience;
  do {
    const OwnedFd lock = messages.Lock(uid);
    if (!lock) return 0;  // whoever holds it looks once more after he has let go
    Serve(sender, until);
  } while (sender.HasNew() && run::MonotonicNow() < until);
  return Report(sender);
}

}  // namespace

int DeliverCommand(int argc, char** argv) {
  CLI::App app(
      "Send the notifications that `rankscope run` has left because no daemon watched it. Each "
      "such "
      "run starts this by itself. Exit status: 0; 1 if some could not be sent; 2 for wrong usage.",
      "rankscope deliver");
  uint32_t uid = getuid();
  std::string patience_text = "1h";
  app.add_option("--user", uid,
                 "Number of the user whose notifications are sent; another one's needs root");
  app.add_option("--for", patience_text, "How long to try, such as 10s, 5m or 1h")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto patience = exporter::ParseDuration(patience_text);
  if (!patience) {
    std::fprintf(stderr, "rankscope deliver: --for: expected a duration such as 10s, 5m or 1h\n");
    return 2;
  }
  const passwd* const user = getpwuid(uid);
  std::string name = user != nullptr ? user->pw_name : "";
  notify::UserPlaces places = PlacesOf(environ);
  if (uid != getuid()) {
    if (user == nullptr) return Fail("there is no user " + std::to_string(uid));
    places = {user->pw_dir, "", ""};
    if (!Become(*user)) return Fail("--user " + std::to_string(uid) + " needs root");
  }
  umask(077);
  // What computes on this machine comes first.
  setpriority(PRIO_PROCESS, 0, 10);
  return Deliver(uid, name, places, *patience);
}

}  // namespace rankscope::cli
