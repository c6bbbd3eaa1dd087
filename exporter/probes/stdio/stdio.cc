// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/stdio.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <utility>

#include "detectors/attribution/launchers.h"
#include "exporter/loop/boot_clock.h"
#include "exporter/output/past_text.h"
#include "exporter/probes/stdio/standard_files.h"

namespace rankscope::probes {
namespace {

using Answer = OutputRules::Answer;
using attribution::ProcessRole;

// The ring holds some 30,000 records at most.
constexpr int kMostTakes = 8;
constexpr std::array<std::string_view, 3> kStreamNames = {"", "stdout", "stderr"};

// Nothing of what is no regular file.
FilePlace PlaceIn(const rs_file& file) {
  if (!S_ISREG(file.mode & S_IFMT)) return {};
  const collectors::OutputFileId id = PlaceOf(file);
  return {id.device, id.inode, 0};
}

Timestamp TimeOf(const rs_said& said) {
  return {static_cast<int64_t>(said.time_ns)};
}

uint64_t UnheardOf(const rs_stream& counts) {
  return std::accumulate(std::begin(counts.unheard), std::end(counts.unheard), uint64_t{0});
}

// "rank 3 stdout", "rank 3 stderr, python3 (pid 77)", "stderr of torchrun (pid 70)".
std::string NameOf(const attribution::ProcessInfo& process, uint32_t slot) {
  const std::string stream(kStreamNames[slot]);
  const std::string who = process.comm + " (pid " + std::to_string(process.key.pid) + ")";
  if (process.role == ProcessRole::kRank) {
    return "rank " + std::to_string(process.rank) + " " + stream;
  }
  if (process.role == ProcessRole::kWorker) {
    return "rank " + std::to_string(process.rank) + " " + stream + ", " + who;
  }
  return stream + " of " + who;
}

}  // namespace

Stdio::Stdio(std::shared_ptr<collectors::ProcessTable> table, std::shared_ptr<TrackedMap> tracked,
             OutputRules::Who who, SpeechBudget budget, bool force)
    : ProbeSource("stdio", std::move(table), std::move(tracked), force),
      who_(std::move(who)),
      rules_(who_, [this](int32_t pid) { return StandardOf(pid); }),
      budget_(budget) {}

Stdio::~Stdio() {
  Stop();
}

Status Stdio::Start(exporter::EventLoop& loop, Sink& sink) {
  const Result<int> tracked = Admit(sink, ObstacleForTracepoints(LookAtKernel()));
  if (!tracked) return Error{tracked.error()};
  auto loaded = StdioPrograms::Load(
      *tracked, budget_, [this](const rs_said& said, std::string_view data, size_t room) {
        OnSaid(said, data, room);
      });
  if (Status adopted = Adopt(loop, std::move(loaded), programs_, [this] { CatchUp(); }); !adopted)
    return adopted;
  began_ticks_ = exporter::TicksSinceBoot();
  if (heard_) heard_before_ = heard_->Jobs();
  timer_ = loop.Every(kBeat, [this] {
    left_of_beat_ = {std::min(kShareOfBeat.ns, left_of_beat_.ns + kShareOfBeat.ns)};
    CatchUp();
  });
  return {};
}

void Stdio::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(std::exchange(timer_, 0));
  loop_->Unwatch(programs_->fd());
  left_.reset();
  left_read_ = false;
  read_.clear();
  unheard_output_.reset();
  stuck_.clear();
  unheard_done_ = false;
  unheard_.clear();
  for (auto& [key, speaker] : speakers_) Close(key, speaker, false);
  speakers_.clear();
  turns_.Clear();
  streams_ = 0;
  streams_of_.clear();
  lost_ += programs_->no_room() + programs_->malformed();
  programs_.reset();
  loop_ = nullptr;
}

int64_t Stdio::lost() const {
  return lost_ + (programs_ ? programs_->no_room() + programs_->malformed() : 0);
}

std::optional<rs_standard> Stdio::StandardOf(int32_t pid) const {
  if (programs_) {
    if (const auto known = programs_->StartedWith(static_cast<uint32_t>(pid))) return known;
  }
  return ReadStandardFiles(pid);  // it was there before us, and has written nothing since
}

void Stdio::CatchUp() {
  if (loop_ == nullptr) return;
  NoteWrapped();
  tracked_->CatchUp();
  ReadLeft();
  const bool all = TakeAll();
  WorkOff();
  if (std::exchange(any_waiting_, false)) SettleWaiting();
  if (all) CloseEnded();
  if (++beats_ % kSweepBeats == 0) {
    Sweep();
    FindUnheard();
  }
}

// A new command at once; of those whose files are not known yet, each second.
void Stdio::NoteWrapped() {
  const auto& roots = table_->wrapped();
  if (roots.empty() || (beats_ % kSweepBeats != 0 && rules_.KnowsWrapped(roots.back()))) return;
  for (const ProcessKey& root : roots) {
    // Once it has ended, its number may be another's.
    if (!rules_.KnowsWrapped(root) || Lives(root)) rules_.NoteWrapped(root);
  }
}

void Stdio::OnSaid(const rs_said& said, std::string_view data, size_t room) {
  // The address is of no use but to be no null pointer.
  std::shared_ptr<const void> held(this, [programs = programs_.get(), share = said.share,
                                          room](const void*) { programs->WorkedOff(share, room); });
  // In slices, for 32 kB may be as many lines: a third of a second.
  rs_said slice = said;
  do {
    turns_.Add({slice, std::string(data.substr(0, kSlice)), held});
    const char last = data.empty() ? ' ' : data[std::min(kSlice, data.size()) - 1];
    slice.begins_line = last == '\n' || last == '\r' ? 1 : 0;
    data.remove_prefix(std::min(kSlice, data.size()));
  } while (!data.empty());
}

// From the ring to each user's own; true when nothing is left in it.
bool Stdio::TakeAll() {
  for (int i = 0; i < kMostTakes; ++i) {
    if (programs_->Consume()) return true;
  }
  return false;
}

void Stdio::WorkOff() {
  using Clock = std::chrono::steady_clock;
  while (left_of_beat_ > Duration{}) {
    std::optional<SaidPiece> piece = turns_.Take();
    if (!piece) return;
    const auto began = Clock::now();
    WorkOff(std::move(*piece));
    left_of_beat_.ns -= std::chrono::nanoseconds(Clock::now() - began).count();
  }
}

bool Stdio::HasRoomFor(uint32_t uid) const {
  const auto own = streams_of_.find(uid);
  return (own == streams_of_.end() ? 0 : own->second) < kMaxStreams - streams_;
}

void Stdio::WorkOff(SaidPiece piece) {
  const rs_said& said = piece.said;
  const ProcessKey key = KeyOf(said.pid, said.start_ns);
  if (said.stream < 1 || said.stream > 2) return;
  if (!IsOurs(key)) return programs_->Forget(said.pid, said.start_ns);
  Speaker& speaker = speakers_[key];
  if (speaker.start_ns == 0 && speaker.streams.empty()) speaker.uid = said.uid;
  speaker.start_ns = said.start_ns;
  uint64_t& seen = speaker.unheard[said.stream];
  const int64_t lost_before =
      said.unheard > seen ? static_cast<int64_t>(said.unheard - seen) : int64_t{0};
  seen = std::max<uint64_t>(seen, said.unheard);
  const FileId id = IdOf(said.file);
  if (!speaker.streams.contains({said.stream, id}) && !HasRoomFor(speaker.uid)) {
    lost_ += lost_before + static_cast<int64_t>(piece.text.size());
    return;
  }
  const auto [found, is_new] = speaker.streams.try_emplace({said.stream, id});
  Stream& stream = found->second;
  if (is_new) {
    ++streams_;
    ++streams_of_[speaker.uid];
    stream.file = said.file;
    stream.input = said.input;
    stream.since = loop_->Now();
  }
  Waiting heard{std::move(piece.text), said.begins_line != 0, lost_before,
                TimeOf(said),          said.position,         std::move(piece.room)};
  if (!read_.empty()) Join(id, heard);
  Hear(key, speaker, stream, said.stream, std::move(heard));
}

void Stdio::Refuse(const ProcessKey& key, Speaker& speaker, Stream& stream, uint32_t slot) {
  stream.answer = Answer::kNot;
  for (const Waiting& piece : stream.waiting) refused_ += piece.text.size();
  stream.waiting.clear();
  stream.waiting_bytes = 0;
  stream.lost_waiting = 0;
  const auto pid = static_cast<uint32_t>(key.pid);
  programs_->Ignore(pid, slot, stream.file);
  // What of it could not be told so far is no loss either.
  const auto counts = programs_->Counts(pid, slot);
  if (counts && counts->start_ns == speaker.start_ns && IdOf(counts->file) == IdOf(stream.file)) {
    speaker.unheard[slot] = std::max<uint64_t>(speaker.unheard[slot], UnheardOf(*counts));
  }
}

// False: there is no room.
bool Stdio::Open(const ProcessKey& key, Stream& stream, uint32_t slot) {
  const attribution::ProcessInfo& process = *who_(key);
  if (process.role != ProcessRole::kRank && ++helpers_[process.job_id] > kMaxHelpers) return false;
  StreamLabel label;
  label.number = next_number_++;
  label.file = PlaceIn(stream.file);
  label.name = NameOf(process, slot);
  label.job_id = process.job_id;
  label.writer = key;
  if (process.role == ProcessRole::kRank || process.role == ProcessRole::kWorker) {
    label.rank = process.rank;
    label.local_rank = process.local_rank;
    label.restart = process.elastic_restart;
  } else {
    stream.launcher = true;
    stream.met_late = process.job_by.starts_with(attribution::kByItsRanks);
    if (OutputRules::IsRelay(process.comm)) stream.own_prefix = process.comm;
  }
  stream.output = std::make_unique<OutputStream>(std::move(label));
  return true;
}

void Stdio::Say(Stream& stream, const Waiting& piece) {
  const int64_t before = stream.output->lost();
  stream.output->Lose(piece.lost_before);
  if (piece.past) {
    const StreamLabel& label = stream.output->label();
    const int64_t end = stream.output->offset() + static_cast<int64_t>(piece.text.size());
    Tell(collectors::PastText(label.job_id, label.number, end), piece.t);
  }
  stream.output->Hear(piece.text, piece.begins_line, piece.t, EmitFor(stream), piece.position);
  lost_ += stream.output->lost() - before;
  lost_told_ += stream.output->lost() - before;
}

OutputStream::Emit Stdio::EmitFor(Stream& stream) {
  return [this, &stream](const LogLine& line, Timestamp t) {
    if (!stream.launcher) {
      recent_.Note(line.job_id, line.text);
    } else if (std::exchange(stream.begins_inside, false) ||
               !OutputRules::IsOwnWord(stream.own_prefix, line.text) ||
               recent_.Holds(line.job_id, line.text)) {
      return false;
    }
    Tell(line, t);
    return true;
  };
}

void Stdio::Lose(Stream& stream, int64_t bytes) {
  if (bytes <= 0) return;
  const int64_t before = stream.output->lost();
  stream.output->Lose(bytes);
  lost_ += stream.output->lost() - before;
  lost_told_ += stream.output->lost() - before;
}

// All that was written is heard when a process has ended before the ring was emptied.
void Stdio::CloseEnded() {
  for (auto it = speakers_.begin(); it != speakers_.end();) {
    auto& [key, speaker] = *it;
    const bool waits = std::any_of(speaker.streams.begin(), speaker.streams.end(),
                                   [](const auto& entry) { return !entry.second.waiting.empty(); });
    if (Lives(key) || waits || turns_.Holds(static_cast<uint32_t>(key.pid), speaker.start_ns)) {
      ++it;
      continue;
    }
    Close(key, speaker, true);
    streams_ -= speaker.streams.size();
    if ((streams_of_[speaker.uid] -= speaker.streams.size()) == 0) streams_of_.erase(speaker.uid);
    it = speakers_.erase(it);
  }
}

void Stdio::Close(const ProcessKey& key, Speaker& speaker, bool over) {
  const auto pid = static_cast<uint32_t>(key.pid);
  for (const uint32_t slot : {1u, 2u}) {
    const auto counts = programs_->Counts(pid, slot);
    if (!counts || counts->start_ns != speaker.start_ns) continue;
    closed_.Add(*counts);
    if (UnheardOf(*counts) <= speaker.unheard[slot]) continue;
    const auto unheard = static_cast<int64_t>(UnheardOf(*counts) - speaker.unheard[slot]);
    const auto newest = speaker.streams.find({slot, IdOf(counts->file)});
    if (newest == speaker.streams.end()) {
      TellUnheard(key, slot, *counts, unheard);
    } else if (newest->second.output) {
      Lose(newest->second, unheard);
    }
  }
  for (auto& [id, stream] : speaker.streams) {
    if (!stream.output) continue;
    if (over) {
      stream.output->Close(loop_->Now(), EmitFor(stream));
    } else {
      stream.output->Leave(loop_->Now(), EmitFor(stream));
    }
  }
  programs_->Forget(pid, speaker.start_ns);
}

// Who wrote only what cannot be heard, and has ended; and what is remembered of jobs that are over.
void Stdio::Sweep() {
  std::set<std::string> jobs;
  for (const auto& [key, speaker] : speakers_) {
    for (const auto& [id, stream] : speaker.streams) {
      if (stream.output) jobs.insert(stream.output->label().job_id);
    }
  }
  rules_.KeepJobs(jobs);
  TellOpen();
  std::erase_if(helpers_, [&jobs](const auto& entry) { return !jobs.contains(entry.first); });
  programs_->Sweep([this](const rs_stream_key& stream, const rs_stream& counts) {
    const ProcessKey key = KeyOf(stream.pid, counts.start_ns);
    const bool waits = turns_.Holds(stream.pid, counts.start_ns);
    if (speakers_.contains(key) || Lives(key) || waits) return false;
    if (!IsOurs(key)) return true;
    if (!TellUnheard(key, stream.stream, counts, static_cast<int64_t>(UnheardOf(counts))))
      return false;
    closed_.Add(counts);
    return true;
  });
}

// What a process wrote of which nothing was told: its loss is the job's. False: whose it is is not
// known yet.
bool Stdio::TellUnheard(const ProcessKey& key, uint32_t slot, const rs_stream& counts,
                        int64_t unheard) {
  Written written;
  written.writer = key;
  written.file = counts.file;
  if (const auto standard = StandardOf(key.pid)) written.input = standard->file[0];
  written.first_look = false;
  const Answer answer = rules_.Decide(written);
  if (answer == Answer::kLater) return false;
  Stream stream;
  if (answer == Answer::kNot || unheard == 0) return true;
  if (!Open(key, stream, slot)) {
    lost_ += unheard;
    return true;
  }
  Lose(stream, unheard);
  stream.output->Close(loop_->Now(), EmitFor(stream));
  return true;
}

void Stdio::Totals::Add(const rs_stream& counts) {
  told += counts.told;
  ignored += counts.ignored;
  for (size_t kind = 0; kind < unheard.size(); ++kind) unheard[kind] += counts.unheard[kind];
}

std::vector<exporter::Source::Count> Stdio::counts() const {
  Totals totals = closed_;
  if (programs_) {
    for (const auto& [key, speaker] : speakers_) {
      for (const uint32_t slot : {1u, 2u}) {
        const auto counts = programs_->Counts(static_cast<uint32_t>(key.pid), slot);
        if (counts && counts->start_ns == speaker.start_ns) totals.Add(*counts);
      }
    }
  }
  const auto number = [](uint64_t bytes) { return static_cast<int64_t>(bytes); };
  std::vector<Count> all = {
      {"captured", number(totals.told - std::min(totals.told, refused_))},
      {"over_budget", number(totals.unheard[RS_UNHEARD_BUDGET])},
      {"ring_full", number(totals.unheard[RS_UNHEARD_RING])},
      {"over_share", number(totals.unheard[RS_UNHEARD_SHARE])},
      {"over_long", number(totals.unheard[RS_UNHEARD_LONG])},
      {"unreadable", number(totals.unheard[RS_UNHEARD_FAULT])},
      {"spliced", number(totals.unheard[RS_UNHEARD_SPLICED])},
      {"not_output", number(totals.ignored + refused_)},
      {"no_room", programs_ ? programs_->no_room() : 0},
  };
  constexpr std::array<std::string_view, 3> kHookNames = {"hook_fexit", "hook_tracepoint",
                                                          "hook_raw"};
  for (size_t i = 0; i < kHookNames.size(); ++i) {
    const bool used = programs_ && programs_->attached_by() == StdioPrograms::kHooks[i];
    all.push_back({kHookNames[i], used ? 1 : 0});
  }
  return all;
}

}  // namespace rankscope::probes
