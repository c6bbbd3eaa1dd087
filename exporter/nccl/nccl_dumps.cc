// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/nccl/nccl_dumps.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace rankscope::collectors {
namespace {

constexpr Duration kLookDeadline = Seconds(20);
// 300 bytes each; a job's facts have 8 MiB in its recording.
constexpr int64_t kMaxEventsPerJob = 8192;

}  // namespace

// What the first worker keeps from look to look, and what it tells.
struct NcclDumps::Scout {
  explicit Scout(std::string proc_root) : roster(std::move(proc_root)) {}
  RankRoster roster;
};
struct NcclDumps::Seen {
  std::vector<RankProcess> alive;
  std::vector<RankProcess> departed;
};
struct NcclDumps::Round {
  std::vector<DumpLook> looks;
};

NcclDumps::NcclDumps(std::shared_ptr<ProcessTable> table, Duration interval, std::string proc_root)
    : table_(std::move(table)), interval_(interval), proc_root_(std::move(proc_root)) {}

NcclDumps::~NcclDumps() {
  Stop();
}

Status NcclDumps::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  scout_ = std::make_shared<Scout>(proc_root_);
  worker_ = std::make_unique<exporter::Worker>(loop);
  users_ = std::make_unique<exporter::UserWorkers>(loop);
  timer_ = loop.Every(interval_, [this] { Look(); });
  return {};
}

void NcclDumps::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(timer_);
  worker_->BeginStop();
  users_.reset();
  worker_.reset();
  ranks_.clear();
  late_.clear();
  loop_ = nullptr;
}

// Which ranks there are, by their environment, which may hang with its process.
void NcclDumps::Look() {
  if (worker_->pending() > 0) return;  // the last look is still under way
  std::vector<TrackedProcess> tracked;
  tracked.reserve(table_->processes().size());
  for (const auto& [pid, process] : table_->processes()) tracked.push_back(process);
  const bool submitted = worker_->Submit(
      [this, scout = scout_, tracked = std::move(tracked)]() -> std::function<void()> {
        scout->roster.Update(tracked);
        auto seen = std::make_shared<Seen>();
        for (const auto& [pid, process] : scout->roster.ranks()) seen->alive.push_back(process);
        seen->departed = scout->roster.departed();
        return [this, seen] {
          stuck_ = false;
          OnSeen(*seen);
        };
      },
      kLookDeadline,
      [this] {
        stuck_ = true;
        TellTroubles();
      });
  if (!submitted) return;  // cannot be: nothing was pending
}

void NcclDumps::OnSeen(const Seen& seen) {
  std::map<exporter::UserIdentity, Round> rounds;
  for (const RankProcess& process : seen.departed) PlanLook(process, true, rounds);
  for (const RankProcess& process : seen.alive) PlanLook(process, false, rounds);
  std::set<ProcessKey> alive;
  std::set<std::string> groups;
  for (const RankProcess& process : seen.alive) {
    alive.insert(process.tracked.key);
    groups.insert(process.group);
  }
  // A rank whose user's thread hangs is kept for the time when it returns.
  std::erase_if(ranks_, [&](const auto& entry) {
    return !alive.contains(entry.first) && !entry.second.busy;
  });
  std::erase_if(budgets_, [&](const auto& entry) { return !groups.contains(entry.first.second); });
  for (auto& [who, round] : rounds) Submit(who, std::move(round));
  TellTroubles();
}

void NcclDumps::PlanLook(const RankProcess& process, bool gone,
                         std::map<exporter::UserIdentity, Round>& rounds) {
  const ProcessKey& key = process.tracked.key;
  auto known = ranks_.find(key);
  if (gone && known == ranks_.end()) return;
  Rank& rank = gone ? known->second : ranks_[key];
  if (!rank.who && !gone) rank.who = exporter::ReadIdentity(proc_root_, key);
  if (!rank.who) return;  // it acts for two users, or has ended
  if (rank.busy || users_->pending(rank.who->uid) > 0) {
    if (gone) ++lost_;  // what it may have written at its end
    return;
  }
  DumpLook look;
  look.who = *rank.who;
  look.process = process;
  look.gone = gone;
  look.dumps = std::move(rank.dumps);
  rank.dumps = {};
  rounds[*rank.who].looks.push_back(std::move(look));
}

void NcclDumps::Submit(const exporter::UserIdentity& who, Round planned) {
  auto round = std::make_shared<Round>(std::move(planned));
  const bool submitted = users_->Submit(
      who,
      [this, round, root = proc_root_]() -> std::function<void()> {
        DumpBudget budget;
        for (DumpLook& look : round->looks) LookAtDumps(root, look, budget);
        return [this, round, uid = round->looks.front().who.uid] {
          late_.erase(uid);
          for (DumpLook& look : round->looks) OnLook(look);
        };
      },
      kLookDeadline,
      [this, uid = who.uid] {
        late_.insert(uid);
        TellTroubles();
      });
  for (DumpLook& look : round->looks) {
    const auto rank = ranks_.find(look.process.tracked.key);
    if (rank == ranks_.end()) continue;
    rank->second.busy = submitted;
    if (!submitted) rank->second.dumps = std::move(look.dumps);
  }
}

void NcclDumps::OnLook(DumpLook& look) {
  lost_ += look.lost;
  const auto rank = ranks_.find(look.process.tracked.key);
  if (rank != ranks_.end()) {
    rank->second.busy = false;
    rank->second.dumps = std::move(look.dumps);
    if (look.other_user) rank->second.who.reset();
    if (look.gone) ranks_.erase(rank);
  }
  // Of each user for himself: another's process may name the same job.
  int64_t& spent = budgets_[{look.who.uid, look.process.group}];
  for (Event& event : look.events) {
    if (spent >= kMaxEventsPerJob) {
      ++lost_;
      continue;
    }
    ++spent;
    Tell(std::move(event));
  }
}

void NcclDumps::TellTroubles() {
  std::string reason;
  if (stuck_) {
    reason = "the environment of a process cannot be read: the process is stuck in the kernel";
  } else if (!late_.empty()) {
    reason = "a search for the dumps of user " + std::to_string(*late_.begin()) +
             (late_.size() > 1 ? " and others" : "") +
             " does not return: the file system of the directory that a rank names for them hangs";
  } else {
    reason = users_->obstacle();
  }
  if (told_ == reason) return;
  told_ = reason;
  TellState(stuck_ ? Availability::kDown : Availability::kUp, std::move(reason));
}

}  // namespace rankscope::collectors
