// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/output/stdout_tail.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "detectors/logs/text/masked_line.h"
#include "exporter/loop/boot_clock.h"
#include "exporter/output/past_text.h"

namespace rankscope::collectors {
namespace {

using attribution::ProcessInfo;
using attribution::ProcessRole;

constexpr Duration kDeadline = Seconds(5);
// What may wait for a job to be known, of one user; the rest stays in the file.
constexpr size_t kMaxWaiting = 2 << 20;
// Whose file has been cut short waits so long before it is another text again: who rewrites a file
// all the time does not make a thousand texts of it.
constexpr Duration kTextLives = Seconds(1);
// New processes whose ids are read in one round: 20 us each, on the loop.
constexpr size_t kMaxIdentified = 128;
constexpr const char* kTooMany = "too many output files";
constexpr size_t kMaxTold = 3;  // users whose trouble is told by name
// After passing over what was too much, this much of the end is read.
constexpr int64_t kKeptOfEnd = 256 << 10;

Duration SinceWritten(int64_t written_ns) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return {now.tv_sec * 1'000'000'000 + now.tv_nsec - written_ns};
}

}  // namespace

StdoutTail::StdoutTail(std::string proc_root, std::shared_ptr<ProcessTable> table, Who who,
                       Duration interval)
    : proc_root_(std::move(proc_root)),
      table_(std::move(table)),
      who_(std::move(who)),
      interval_(interval) {}

StdoutTail::~StdoutTail() {
  Stop();
}

Status StdoutTail::Start(exporter::EventLoop& loop, Sink& sink) {
  loop_ = &loop;
  sink_ = &sink;
  workers_ = std::make_unique<exporter::UserWorkers>(loop);
  began_ticks_ = exporter::TicksSinceBoot();
  if (heard_) heard_before_ = heard_->Jobs();
  timer_ = loop.Every(interval_, [this] { Poll(); });
  return {};
}

void StdoutTail::Stop() {
  if (loop_ == nullptr) return;
  while (!followed_.empty()) EndFollowed(*followed_.begin());  // nobody reads what is left
  loop_->Cancel(std::exchange(timer_, 0));
  workers_.reset();
  files_.clear();
  processes_.clear();
  busy_.clear();
  late_.clear();
  unread_.clear();
  told_.clear();
  read_.clear();
  loop_ = nullptr;
}

void StdoutTail::CatchUp() {
  if (loop_ == nullptr) return;
  for (auto& [id, file] : files_) Tell(file);
}

void StdoutTail::Poll() {
  CatchUp();
  TellRead();
  CloseAbandoned();
  unread_.clear();
  for (auto& [who, round] : Plan()) Submit(std::move(round));
  TellFollowed();
  TellTroubles();
}

StdoutTail::Rounds StdoutTail::Plan() {
  Rounds rounds;
  PlanLooks(rounds);
  PlanReads(rounds);
  for (auto& [who, round] : rounds) {
    round.who = who;
    for (const auto& [key, file] : files_) {
      if (key.uid == who.uid) round.known.push_back(key.id);
    }
  }
  return rounds;
}

void StdoutTail::PlanLooks(Rounds& rounds) {
  const Timestamp now = loop_->Now();
  std::erase_if(processes_, [&](const auto& entry) {
    const auto& [key, process] = entry;
    const TrackedProcess* const tracked = table_->Find(key.pid);
    if (tracked != nullptr && tracked->key == key) return false;
    // It may have been found to write to a file just before it ended.
    if (process.looking && now - process.lived <= kAfterEnd) return false;
    if (process.looking && followed_.contains(process.job_id)) given_up_.insert(process.job_id);
    return true;
  });
  size_t identified = 0;
  for (const auto& [pid, tracked] : table_->processes()) {
    const auto known = processes_.find(tracked.key);
    if (known != processes_.end()) known->second.lived = now;
    if (known != processes_.end() && now - known->second.looked < kLookAgain) continue;
    Process& process = processes_[tracked.key];
    process.lived = now;
    if (process.job_id.empty()) LearnJob(tracked.key, process);
    if (!process.who) {
      if (++identified > kMaxIdentified) continue;
      process.who = exporter::ReadIdentity(proc_root_, tracked.key);
    }
    if (process.looking || (process.who && busy_.contains(*process.who))) continue;
    process.looked = now;
    if (!process.who) {
      process.refusal = "a process runs with the ids of two users";  // or has ended
      continue;
    }
    Look look;
    look.key = tracked.key;
    look.all_roots = process.who->uid == 0 && AllRoots(tracked);
    rounds[*process.who].looks.push_back(std::move(look));
  }
}

// By the kernel's word: the job is that of the cgroup, and nobody else is in it.
bool StdoutTail::AllRoots(const TrackedProcess& process) const {
  if (!process.by_cgroup) return false;
  const auto& all = table_->processes();
  return std::all_of(all.begin(), all.end(), [&](const auto& entry) {
    return entry.second.job_id != process.job_id || entry.second.uid == 0;
  });
}

// Each user's budget, shared among his files in turn.
void StdoutTail::PlanReads(Rounds& rounds) {
  std::map<UserIdentity, std::vector<std::pair<FileKey, File*>>> files;
  std::map<uint32_t, size_t> waiting;
  for (auto& [key, file] : files_) {
    waiting[key.uid] += file.waiting.size();
    if (!busy_.contains(file.who)) files[file.who].emplace_back(key, &file);
  }
  ++turn_;
  for (auto& [who, own] : files) {
    Round& round = rounds[who];
    round.budget = std::min(kMaxRoundOfUser, kMaxRound / files.size());
    size_t room = kMaxWaiting - std::min(kMaxWaiting, waiting[who.uid]);
    for (size_t i = 0; i < own.size(); ++i) {
      auto& [key, file] = own[(turn_ + i) % own.size()];
      const bool waits = file->job_id.empty();
      const size_t most = waits ? std::min(kBlock, room) : kBlock;
      if (most == 0) continue;
      if (waits) room -= most;
      round.reads.push_back(
          {key, file->file, file->offset, 0, most, file->head_end, !IsHeld(*file), false, {}});
    }
  }
}

void StdoutTail::Submit(Round planned) {
  if (planned.looks.empty() && planned.reads.empty()) return;
  const UserIdentity who = planned.who;
  std::vector<ProcessKey> looks;
  for (const Look& look : planned.looks) looks.push_back(look.key);
  auto round = std::make_shared<Round>(std::move(planned));
  const bool submitted = workers_->Submit(
      who,
      [this, round, root = proc_root_]() -> std::function<void()> {
        Run(root, *round);
        return [this, round] { OnRound(std::move(*round)); };
      },
      kDeadline, [this, uid = who.uid] { late_.insert(uid); });
  if (submitted) {
    busy_.insert(who);
    for (const ProcessKey& key : looks) processes_[key].looking = true;
  } else {
    unread_[who.uid] = workers_->obstacle().empty() ? "all threads that read users' files are busy"
                                                    : workers_->obstacle();
  }
}

// On the user's thread.
void StdoutTail::Run(const std::string& proc_root, Round& round) {
  const auto has_changed = [&](const Look& look) {
    return exporter::ReadIdentity(proc_root, look.key) != round.who;
  };
  for (Look& look : round.looks) {
    // What another user has open is closed to this one; to root it is not.
    look.other_user = round.who.uid == 0 && has_changed(look);
    if (look.other_user) continue;
    look.files = FindOutputFiles(proc_root, look.key, {round.who, look.all_roots}, round.known);
    look.other_user = look.files.closed && has_changed(look);
    if (look.files.closed) look.files.refusal = "a process's open files cannot be listed";
  }
  for (Read& read : round.reads) {
    if (round.budget == 0) break;
    read.done = true;
    read.size = read.file->size();
    // Cut short since: from its start again.
    if (read.size < read.offset) read.offset = 0;
    size_t most = std::min(read.most, round.budget);
    if (read.size - read.offset > kMaxBehind) {
      if (read.offset < read.head_end) {
        most = std::min(most, static_cast<size_t>(read.head_end - read.offset));
      } else {
        read.offset = read.size - kKeptOfEnd;
      }
    }
    if (read.size > read.offset) read.bytes = read.file->Read(read.offset, most);
    round.budget -= read.bytes.size();
  }
}

void StdoutTail::OnRound(Round round) {
  if (loop_ == nullptr) return;
  busy_.erase(round.who);
  late_.erase(round.who.uid);
  for (Read& read : round.reads) {
    if (read.done) OnRead(read);
  }
  for (Look& look : round.looks) OnLook(round.who, look);
}

void StdoutTail::OnLook(const UserIdentity& who, Look& look) {
  const auto process = processes_.find(look.key);
  if (process == processes_.end()) return;
  process->second.looking = false;
  if (look.other_user) {
    process->second.who.reset();
    return;
  }
  process->second.refusal = look.files.refusal;
  process->second.looked_at = true;
  process->second.elsewhere = look.files.piped || look.files.elsewhere || look.files.closed;
  for (FoundOutput& output : look.files.found) {
    const FileKey key{who.uid, output.id};
    auto known = files_.find(key);
    if (known == files_.end()) {
      if (!output.file) continue;
      if (!MakeRoom(who.uid)) {
        process->second.refusal = kTooMany;
        continue;
      }
      known = files_.try_emplace(key).first;
      known->second.file = std::move(output.file);
      known->second.id = output.id;
      known->second.who = who;
      BeginFound(known->second, output, look.key.start_ticks < began_ticks_);
    }
    File& file = known->second;
    if (file.job_id.empty()) file.job_id = process->second.job_id;
    file.writers.insert(look.key);
    file.slot.try_emplace(look.key, output.descriptor);
    file.last_writer = loop_->Now();
  }
}

bool StdoutTail::MakeRoom(uint32_t uid) {
  std::map<uint32_t, size_t> held;
  for (const auto& [key, file] : files_) ++held[key.uid];
  if (held[uid] >= kMaxFilesOfUser) return false;
  if (files_.size() < kMaxFiles) return true;
  const auto most = std::max_element(
      held.begin(), held.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most->first == uid || most->second <= held[uid] + 1) return false;
  // The one that was found last: the streams of old are known.
  auto last = files_.end();
  for (auto it = files_.begin(); it != files_.end(); ++it) {
    if (it->first.uid != most->first) continue;
    if (last == files_.end() || it->second.stream > last->second.stream) last = it;
  }
  for (const ProcessKey& writer : last->second.writers) {
    const auto process = processes_.find(writer);
    if (process != processes_.end()) process->second.refusal = kTooMany;
  }
  lost_ += std::max<int64_t>(0, last->second.size - last->second.offset);
  files_.erase(last);
  return true;
}

void StdoutTail::Begin(File& file, int64_t offset) {
  file.stream = next_stream_++;
  file.offset = offset;
  file.begun = loop_->Now();
  file.lines = logs::LineAssembler(offset);
  file.past_end = file.head_end = 0;
  file.written = {};
  file.past_told = false;
}

// Where an earlier daemon has stopped, if it is the same file.
void StdoutTail::BeginFound(File& file, const FoundOutput& output, bool earlier) {
  const HeardFile* const heard = heard_ ? heard_->Find(output.id) : nullptr;
  if (heard == nullptr || output.born_ns > heard->last.ns + wall_offset_ns_) {
    Begin(file, output.begin);
    file.past_end = earlier ? output.size : 0;
    file.written = loop_->Now() - std::max(Duration{}, SinceWritten(output.written_ns));
    file.head_end = output.begin + kKeptOfBegin;
    file.torn = output.begin > 0 || output.position > output.size;
    return;
  }
  // What is shorter now was cut short, and is another text.
  Begin(file, output.size >= heard->end ? heard->end : 0);
  file.past_end = output.size;
  if (output.size >= heard->end && heard->stream >= kFirstStream) file.stream = heard->stream;
}

void StdoutTail::GoOnAfter(std::shared_ptr<const HeardFiles> heard, int64_t wall_offset_ns) {
  heard_ = std::move(heard);
  wall_offset_ns_ = wall_offset_ns;
  for (const HeardFile& file : heard_->All())
    next_stream_ = std::max(next_stream_, file.stream + 1);
}

void StdoutTail::OnRead(Read& read) {
  const auto found = files_.find(read.key);
  if (found == files_.end()) return;
  File& file = found->second;
  if (read.offset < file.offset && loop_->Now() - file.begun < kTextLives) return;
  file.size = read.size;
  file.over = read.after && read.offset + static_cast<int64_t>(read.bytes.size()) >= read.size;
  if (read.offset < file.offset) {
    Tell(file);
    Begin(file, 0);  // it was cut short: what comes now is another text
  }
  if (read.offset > file.offset) {
    Tell(file);
    // The lines that the gap begins and ends in are lost with it: half a number is another number.
    const size_t end = read.bytes.find('\n');
    const size_t spoilt = end == std::string::npos ? read.bytes.size() : end + 1;
    read.bytes.erase(0, spoilt);
    read.offset += static_cast<int64_t>(spoilt);
    const int64_t passed = read.offset - file.offset;
    lost_ += passed;
    file.lines.Lose(passed, [](const logs::AssembledLine&) {});
    file.offset = read.offset;
  }
  file.offset += static_cast<int64_t>(read.bytes.size());
  file.waiting += read.bytes;
  Tell(file);
}

// Whose the file is: of one rank alone, or of the job.
bool StdoutTail::LearnJob(File& file) {
  if (!file.job_id.empty()) return true;
  for (const ProcessKey& writer : file.writers) {
    const ProcessInfo* const process = who_(writer);
    if (process != nullptr && !process->job_id.empty()) file.job_id = process->job_id;
  }
  return !file.job_id.empty();
}

void StdoutTail::Tell(File& file) {
  if (file.waiting.empty() || !LearnJob(file)) return;
  if (file.past_end > 0 && !std::exchange(file.past_told, true))
    Source::Tell(PastText(file.job_id, file.stream, file.past_end, file.written), loop_->Now());
  const std::string bytes = std::exchange(file.waiting, {});
  file.lines.Feed(bytes, [&](const logs::AssembledLine& line) { Emit(file, line); });
}

void StdoutTail::Emit(const File& file, const logs::AssembledLine& assembled) {
  LogLine line;
  line.stream = file.stream;
  line.job_id = file.job_id;
  line.file = {file.id.device, file.id.inode, file.lines.offset()};
  const ProcessInfo* only = nullptr;
  int slot = 0;
  bool shared = false;
  for (const ProcessKey& writer : file.writers) {
    const ProcessInfo* const process = who_(writer);
    if (process == nullptr || process->role == ProcessRole::kWorker) continue;
    shared = shared || only != nullptr || process->role != ProcessRole::kRank;
    only = process;
    slot = file.slot.at(writer);
  }
  std::string name = "output file";
  if (only != nullptr && !shared) {
    line.rank = only->rank;
    line.local_rank = only->local_rank;
    line.restart = only->elastic_restart;
    line.writer = only->key;
    name = "rank " + std::to_string(only->rank) + (slot == 2 ? " stderr file" : " stdout file");
  }
  line.stream_name = name;
  logs::FillLine(assembled, line, masked_);
  Source::Tell(line, loop_->Now());
}

std::map<uint32_t, std::set<std::string>> StdoutTail::Troubles() const {
  std::map<uint32_t, std::set<std::string>> troubles;
  for (const auto& [uid, trouble] : unread_) troubles[uid].insert(trouble);
  for (const auto& [key, process] : processes_) {
    if (process.refusal.empty()) continue;
    const TrackedProcess* const tracked = table_->Find(key.pid);
    if (tracked != nullptr) troubles[tracked->uid].insert(process.refusal);
  }
  for (const uint32_t uid : late_) troubles[uid] = {"a read does not return"};
  return troubles;
}

void StdoutTail::TellTroubles() {
  const auto troubles = Troubles();
  std::string reason;
  size_t told = 0;
  for (const auto& [uid, reasons] : troubles) {
    if (++told > kMaxTold) {
      reason += "; and the same for " + std::to_string(troubles.size() - kMaxTold) + " others";
      break;
    }
    reason += (reason.empty() ? "not all output files of user " : "; of user ") +
              std::to_string(uid) + " are read";
    for (const std::string& trouble : reasons)
      reason += (trouble == *reasons.begin() ? ": " : ", ") + trouble;
  }
  if (std::exchange(told_, reason) == reason) return;
  TellState(Availability::kUp, std::move(reason));
}

}  // namespace rankscope::collectors
