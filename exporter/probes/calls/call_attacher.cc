// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/calls/call_attacher.h"

#include <algorithm>
#include <utility>

namespace rankscope::probes {
namespace {

constexpr Duration kDeadline = Seconds(10);
// A file stays probed while its job restarts; one that was refused is asked again after as long.
constexpr int kRoundsUnused = 120;
constexpr size_t kMaxRefused = 4096;

Names NamesOf(std::span<const CallRow> calls) {
  Names names;
  for (const CallRow& row : calls) names.insert(row.symbol);
  return names;
}

}  // namespace

CallAttacher::Hands::Hands(const std::string& proc_root, std::span<const CallRow> calls,
                           const CallPrograms& programs, AttachVia via)
    : finder(proc_root, NamesOf(calls)), files(calls, programs, via) {}

CallAttacher::CallAttacher(exporter::EventLoop& loop, std::string proc_root,
                           std::span<const CallRow> calls, CallPrograms programs, AttachVia via,
                           std::function<void()> on_change)
    : loop_(loop),
      proc_(std::move(proc_root)),
      calls_(calls),
      programs_(std::move(programs)),
      via_(via),
      on_change_(std::move(on_change)) {}

// What a thread still works on is left to it: the kernel takes the probes away with the process.
CallAttacher::~CallAttacher() {
  for (auto& [uid, user] : users_) {
    if (user.worker) user.worker->BeginStop();
  }
  measurer_.reset();
  for (auto& [uid, user] : users_) user.worker.reset();
  Places all;
  for (auto& [uid, user] : users_) {
    if (user.hands.use_count() == 1) all.Add(user.hands->files.TakePlaces());
  }
}

bool CallAttacher::late() const {
  return std::any_of(users_.begin(), users_.end(),
                     [](const auto& user) { return user.second.late; });
}

CallAttacher::User& CallAttacher::UserOf(uint32_t uid) {
  User& user = users_[uid];
  if (!user.hands) user.hands = std::make_shared<Hands>(proc_, calls_, programs_, via_);
  return user;
}

// An idle thread ends at once, so nothing waits here.
bool CallAttacher::MakeRoom() {
  const auto threads = std::count_if(
      users_.begin(), users_.end(), [](const auto& user) { return user.second.worker != nullptr; });
  if (static_cast<size_t>(threads) < kMaxThreads) return true;
  const auto idle = std::find_if(users_.begin(), users_.end(), [](const auto& user) {
    return user.second.worker != nullptr && user.second.pending() == 0;
  });
  if (idle == users_.end()) return false;
  idle->second.worker.reset();
  return true;
}

// `work` runs on the user's thread; what it returns, here.
bool CallAttacher::Submit(uint32_t uid, std::function<std::function<void()>(Hands&)> work) {
  User& user = UserOf(uid);
  if (!user.worker) {
    if (!MakeRoom()) return false;
    user.worker = std::make_unique<exporter::Worker>(loop_);
  }
  return user.worker->Submit(
      [this, uid, work = std::move(work), hands = user.hands]() -> std::function<void()> {
        return [this, uid, done = work(*hands)] {
          UserOf(uid).late = false;
          if (done) done();
        };
      },
      kDeadline, [this, uid] { OnLate(uid); });
}

void CallAttacher::Look(const std::vector<Process>& processes) {
  ++rounds_;
  DropUnused();
  if (rounds_ % kRoundsUnused == 0) refused_.clear();
  std::map<uint32_t, std::vector<ProcessKey>> of_users;
  std::set<ProcessKey> all;
  for (const Process& process : processes) {
    of_users[process.uid].push_back(process.key);
    all.insert(process.key);
  }
  std::erase_if(seen_, [&all](const auto& seen) { return !all.contains(seen.first); });
  // Whose last process has gone and whose files are no longer probed is forgotten.
  std::set<uint32_t> owners;
  for (const auto& [key, target] : targets_.targets()) owners.insert(target.owner);
  std::erase_if(users_, [&](const auto& user) {
    return !of_users.contains(user.first) && !owners.contains(user.first) &&
           user.second.pending() == 0;
  });
  std::erase_if(troubles_, [this](const auto& each) { return !users_.contains(each.first); });
  for (auto& [uid, keys] : of_users) LookAt(uid, std::move(keys));
  Describe();
}

void CallAttacher::LookAt(uint32_t uid, std::vector<ProcessKey> processes) {
  User& user = UserOf(uid);
  if (user.looking) return;
  auto settled = std::make_shared<LibraryFinder::Settled>(refused_);
  for (const auto& [key, target] : targets_.targets()) (*settled)[key] = target.version;
  user.looking = Submit(uid, [this, uid, processes = std::move(processes), settled](Hands& hands) {
    auto round = std::make_shared<LibraryFinder::Round>(hands.finder.Look(processes, *settled));
    return [this, uid, round] { OnLooked(uid, *round); };
  });
  if (!user.looking)
    troubles_[uid] = "more users run jobs than the daemon has threads to read their files";
}

void CallAttacher::OnLooked(uint32_t uid, LibraryFinder::Round& round) {
  UserOf(uid).looking = false;
  troubles_[uid] = round.trouble;
  std::erase_if(seen_, [&](const auto& seen) {
    return seen.second.uid == uid && !round.seen.contains(seen.first);
  });
  for (auto& [process, seen] : round.seen) seen_[process] = {std::move(seen), uid};
  for (FoundLibrary& library : round.fresh)
    Offer(uid, std::make_shared<FoundLibrary>(std::move(library)));
  Describe();
  on_change_();
}

void CallAttacher::OnLate(uint32_t uid) {
  UserOf(uid).late = true;
  std::vector<FileKey> files;
  for (const auto& [key, pending] : pending_) {
    const TargetTable::Target* const target = targets_.Find(key);
    if (target != nullptr && target->owner == uid) files.push_back(key);
  }
  for (const FileKey& file : files) TakeOver(file);
  // Nobody waits for who hangs.
  for (auto& [number, change] : changes_) change.waits_for.erase(uid);
  SettleChanges();
  Describe();
  on_change_();
}

// Somebody else's thread places the probes of a file whose owner's thread does not come back.
void CallAttacher::TakeOver(const FileKey& file) {
  Pending& pending = pending_[file];
  TargetTable::Target* const target = targets_.Find(file);
  const auto spare = std::find_if(pending.spares.begin(), pending.spares.end(),
                                  [this](const auto& each) { return !UserOf(each.first).late; });
  if (target == nullptr || spare == pending.spares.end()) return;
  const auto [uid, found] = *spare;
  pending.spares.erase(spare);
  // Should it come back, it leaves them again.
  static_cast<void>(Submit(target->owner, [file](Hands& hands) -> std::function<void()> {
    hands.files.Detach(file);
    return {};
  }));
  target->owner = uid;
  Attach(uid, found);
}

void CallAttacher::Offer(uint32_t uid, const Found& found) {
  const FileKey file = KeyOf(found->version);
  TargetTable::Target* const known = targets_.Find(file);
  if (known != nullptr && known->version == found->version) {
    if (known->attached || known->owner == uid) return;
    pending_[file].spares[uid] = found;
    if (UserOf(known->owner).late) TakeOver(file);
    return;
  }
  User& user = UserOf(uid);
  if (!user.new_files.Left(loop_.Now().ns)) {
    Refuse(found->version, "a user loads new libraries faster than they can be probed");
    return;
  }
  user.new_files.Spend(1);
  if (known != nullptr) {  // it has been written since
    known->version = found->version;
    known->attached = false;
    Attach(known->owner, found);
    return;
  }
  const TargetTable::Admission admission = targets_.Admit(found->version, uid);
  if (!admission.admitted) {
    Refuse(found->version, "more than " + std::to_string(TargetTable::kMost) +
                               " files with such functions are in use");
    return;
  }
  if (admission.evicted) Drop(admission.evicted->file, admission.evicted->owner);
  Attach(uid, found);
}

void CallAttacher::Refuse(const FileVersion& version, std::string why) {
  if (refused_.size() < kMaxRefused) refused_[KeyOf(version)] = version;
  ++state_.refused_files;
  refusal_ = std::move(why);
}

void CallAttacher::Attach(uint32_t uid, const Found& found) {
  const FileKey file = KeyOf(found->version);
  const int64_t attempt = ++attempts_;
  pending_[file].attempt = attempt;
  const bool submitted = Submit(uid, [this, file, attempt, found,
                                      launches = wanted_](Hands& hands) {
    auto report = hands.files.Attach(std::move(*found), launches);
    return [this, file, attempt, report = std::move(report)] { OnAttached(file, attempt, report); };
  });
  if (!submitted) {
    targets_.Erase(file);
    pending_.erase(file);
    Refuse(found->version, "more users run jobs than the daemon has threads to read their files");
  }
}

void CallAttacher::OnAttached(const FileKey& file, int64_t attempt,
                              const AttachedFiles::Report& report) {
  Note(report);
  const auto pending = pending_.find(file);
  TargetTable::Target* const target = targets_.Find(file);
  if (pending != pending_.end() && pending->second.attempt == attempt && target != nullptr) {
    target->attached = true;
    pending_.erase(pending);
  }
  if (programs_.launch >= 0 && !std::exchange(measuring_, true)) Measure();
  Describe();
  on_change_();
}

void CallAttacher::Drop(const FileKey& file, uint32_t owner) {
  pending_.erase(file);
  // With a full queue the thread hangs, and so would this.
  static_cast<void>(Submit(owner, [file](Hands& hands) -> std::function<void()> {
    hands.files.Detach(file);
    return {};
  }));
}

void CallAttacher::DropUnused() {
  for (const FileKey& file : targets_.Unused(kRoundsUnused)) {
    const uint32_t owner = targets_.Find(file)->owner;
    targets_.Erase(file);
    Drop(file, owner);
    refused_.clear();  // there is room now
  }
}

void CallAttacher::Note(const AttachedFiles::Report& report) {
  state_.placed.insert(report.placed.begin(), report.placed.end());
  state_.points += report.points;
  state_.refused += report.refused;
}

// On functions of the daemon's own, so nobody else can keep this thread waiting.
void CallAttacher::Measure() {
  measurer_ = std::make_unique<exporter::Worker>(loop_);
  static_cast<void>(measurer_->Submit(
      [this, programs = programs_, via = via_]() -> std::function<void()> {
        if (programs.track_self) programs.track_self(true);
        const CallRow launch{"", RS_CUDA_LAUNCH};
        auto costs = MeasureSites(via, programs.launch, programs.launch_end, CookieOf(launch, 0));
        if (programs.track_self) programs.track_self(false);
        return [this, costs] {
          state_.costs = costs;
          on_change_();
        };
      },
      kDeadline, {}));
}

void CallAttacher::Want(LaunchProbes launches) {
  if (launches == wanted_) return;
  const bool more =
      (launches.calls && !wanted_.calls) || (launches.stepped_calls && !wanted_.stepped_calls);
  if (more && programs_.timing_begins) programs_.timing_begins();
  if (launches.driver && !wanted_.driver && programs_.launches_begin) programs_.launches_begin();
  wanted_ = launches;
  const int64_t number = next_change_++;
  Change& change = changes_[number];
  change.launches = launches;
  std::set<uint32_t> owners;
  for (const auto& [key, target] : targets_.targets()) owners.insert(target.owner);
  for (const uint32_t uid : owners) {
    const bool submitted = Submit(uid, [this, launches, number, uid](Hands& hands) {
      auto report = hands.files.Want(launches);
      return [this, report = std::move(report), number, uid] {
        Note(report);
        OnChanged(number, uid);
      };
    });
    // Whoever hangs learns it when he is back.
    if (submitted && !UserOf(uid).late) change.waits_for.insert(uid);
  }
  SettleChanges();
}

void CallAttacher::OnChanged(int64_t number, uint32_t uid) {
  const auto change = changes_.find(number);
  if (change == changes_.end()) return;
  change->second.waits_for.erase(uid);
  SettleChanges();
}

void CallAttacher::SettleChanges() {
  bool any = false;
  for (auto change = changes_.begin(); change != changes_.end() && change->second.waits_for.empty();
       change = changes_.erase(change)) {
    state_.launches = change->second.launches;
    any = true;
  }
  if (!any) return;
  state_.launches_since = loop_.Now();
  on_change_();
}

// Of every process that was looked at, whether all that it calls is seen.
void CallAttacher::Describe() {
  state_.looked.clear();
  state_.users.clear();
  state_.unprobed.clear();
  targets_.BeginUsers();
  for (const auto& [process, seen] : seen_) {
    bool all = seen.complete;
    bool waiting = false;
    for (const FileKey& file : seen.mapped) {
      targets_.AddUser(file, seen.uid);
      const TargetTable::Target* const target = targets_.Find(file);
      all = all && target != nullptr;
      waiting = waiting || (target != nullptr && !target->attached);
    }
    if (!all) {
      state_.unprobed.insert(process);
    } else if (!waiting) {
      state_.looked.push_back(process);
      if (!seen.mapped.empty()) state_.users.insert(process);
    }
  }
  state_.files = static_cast<int>(targets_.targets().size());
  state_.trouble = Trouble();
}

std::string CallAttacher::Trouble() const {
  if (state_.unprobed.empty()) return {};
  std::string why = refusal_;
  for (const auto& [uid, trouble] : troubles_) {
    if (!trouble.empty()) why = trouble;
  }
  return "not all calls of " + std::to_string(state_.unprobed.size()) + " processes are seen" +
         (why.empty() ? "" : ": " + why);
}

}  // namespace rankscope::probes
