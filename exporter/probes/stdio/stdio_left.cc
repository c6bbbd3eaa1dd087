// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What was written to files while nobody heard it, joined to what is heard: each byte is told once.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "exporter/output/past_text.h"
#include "exporter/probes/stdio/standard_files.h"
#include "exporter/probes/stdio/stdio.h"

namespace rankscope::probes {
namespace {

// A write may have changed the file before it was read, and returned, and so been heard, after.
constexpr Duration kOverlap = Seconds(1);

FileId FileIdOf(const collectors::OutputFileId& id) {
  // As the kernel packs a device number, include/linux/kdev_t.h.
  return {id.inode, (gnu_dev_major(id.device) << 20) | gnu_dev_minor(id.device)};
}

}  // namespace

bool Stdio::Awaits(const ProcessKey& key, const Stream& stream) const {
  if (!S_ISREG(stream.file.mode & S_IFMT)) return false;
  if (left_ && !left_read_ && left_->Awaits(PlaceOf(stream.file))) return true;
  const attribution::ProcessInfo* const process = BeganBefore(key) && heard_ ? who_(key) : nullptr;
  if (process == nullptr || heard_before_.contains(process->job_id)) return false;
  const auto unheard = unheard_.find(process->job_id);
  // Of one that has ended before it was met nothing can be found any more.
  return unheard == unheard_.end() ? Lives(key) : unheard->second != Unheard::kRead;
}

LeftOutput::Hooks Stdio::HooksOfLeft() {
  LeftOutput::Hooks hooks;
  hooks.on_text = [this](LeftText text) { OnLeftText(std::move(text)); };
  hooks.on_job = [this](const std::string& job_id) { Tell(collectors::AllTextRead(job_id)); };
  return hooks;
}

// At the first beat: whom the table knows is tracked, so whatever is written from now on is heard.
void Stdio::ReadLeft() {
  if (left_ || !heard_) return;
  LeftOutput::Hooks hooks = HooksOfLeft();
  hooks.on_end = [this] {
    left_read_ = true;
    any_waiting_ = true;
  };
  left_ = std::make_unique<LeftOutput>("/proc", *table_, who_, *heard_, wall_offset_ns_,
                                       std::move(hooks));
  left_->Begin(*loop_);
}

// Jobs whose processes were there before us. One look passes between meeting a job and reading its
// files, for a scan tells of its processes one after the other.
void Stdio::FindUnheard() {
  if (std::exchange(unheard_done_, false)) {
    if (unheard_output_->gave_up()) stuck_.push_back(std::move(unheard_output_));
    unheard_output_.reset();
  }
  std::set<std::string> jobs, ready;
  for (const auto& [pid, tracked] : table_->processes()) {
    const attribution::ProcessInfo* const process = who_(tracked.key);
    if (process == nullptr || process->job_id.empty()) continue;
    jobs.insert(process->job_id);
    if (!BeganBefore(tracked.key) || heard_before_.contains(process->job_id)) continue;
    const auto [found, is_new] = unheard_.try_emplace(process->job_id, Unheard::kMet);
    if (!is_new && found->second == Unheard::kMet) ready.insert(process->job_id);
  }
  std::erase_if(unheard_, [&](const auto& entry) {
    return entry.second != Unheard::kReading && !jobs.contains(entry.first);
  });
  if (ready.empty() || unheard_output_ || !heard_) return;
  for (const std::string& job_id : ready) unheard_[job_id] = Unheard::kReading;
  LeftOutput::Hooks hooks = HooksOfLeft();
  hooks.on_end = [this] {
    for (auto& [job_id, state] : unheard_) {
      if (state == Unheard::kReading) state = Unheard::kRead;
    }
    unheard_done_ = any_waiting_ = true;
  };
  unheard_output_ = std::make_unique<LeftOutput>("/proc", *table_, who_, *heard_, wall_offset_ns_,
                                                 std::move(hooks));
  unheard_output_->Begin(*loop_, ready);
}

void Stdio::OnLeftText(LeftText text) {
  const FileId id = FileIdOf(text.id);
  // What was heard up to now, so that what was read ends where that begins.
  TakeAll();
  WorkOff();
  Timestamp t = loop_->Now();
  int64_t end = text.begin + static_cast<int64_t>(text.bytes.size());
  for (auto& [key, speaker] : speakers_) {
    for (auto& [slot, stream] : speaker.streams) {
      if (slot.second != id) continue;
      for (const Waiting& piece : stream.waiting) {
        if (piece.position < text.begin) continue;
        end = std::min(end, piece.position);
        t = std::min(t, piece.t);
      }
    }
  }
  text.bytes.resize(static_cast<size_t>(end - text.begin));
  const size_t stop = text.bytes.find_last_of("\r\n");
  const size_t whole = stop == std::string::npos ? 0 : stop + 1;
  ReadFile& read = read_[id];
  read = {text.job_id, text.begin - text.skipped, end, loop_->Now(), text.bytes.substr(whole)};
  text.bytes.resize(whole);
  std::vector<Waiting> left;
  if (!text.head.empty()) {
    const auto size = static_cast<int64_t>(text.head.size());
    const int64_t head = text.begin - text.skipped - size;
    left.push_back({std::move(text.head), true, 0, t, head, {}, true});
    read.begin = head;
  }
  if (!text.bytes.empty() || text.skipped > 0) {
    left.push_back(
        {std::move(text.bytes), text.skipped == 0, text.skipped, t, text.begin, {}, true});
  }
  for (auto& [key, speaker] : speakers_) {
    for (auto& [slot, stream] : speaker.streams) {
      if (slot.second != id) continue;
      for (Waiting& piece : stream.waiting) Join(id, piece);
    }
  }
  if (!left.empty()) TellLeft(text, id, left);
  any_waiting_ = true;
}

// Of a rank that has the file for itself it is what its stream begins with; else it is nobody's.
void Stdio::TellLeft(const LeftText& text, const FileId& id, const std::vector<Waiting>& left) {
  const collectors::TrackedProcess* const tracked = table_->Find(text.only.pid);
  if (text.only.pid != 0 && tracked != nullptr && HasRoomFor(tracked->uid)) {
    const auto slot = static_cast<uint32_t>(text.slot);
    Speaker& speaker = speakers_[text.only];
    if (speaker.streams.empty()) speaker.uid = tracked->uid;
    const auto [found, is_new] = speaker.streams.try_emplace({slot, id});
    Stream& stream = found->second;
    if (is_new) {
      ++streams_;
      ++streams_of_[speaker.uid];
      stream.file = {id.inode, id.device, S_IFREG};
      if (const auto standard = StandardOf(text.only.pid)) stream.input = standard->file[0];
      stream.since = loop_->Now();
    }
    stream.waiting.insert(stream.waiting.begin(), left.begin(), left.end());
    return;
  }
  TellAsNobody({text.job_id, {text.id.device, text.id.inode, 0}, text.launcher}, left);
}

void Stdio::TellAsNobody(const Nobody& of, const std::vector<Waiting>& left) {
  StreamLabel label;
  label.number = next_number_++;
  label.name = "output file";
  label.job_id = of.job_id;
  label.file = of.file;
  label.writer = of.launcher;
  Stream stream;
  stream.launcher = of.launcher.pid != 0;
  stream.output = std::make_unique<OutputStream>(std::move(label));
  for (const Waiting& piece : left) Say(stream, piece);
  stream.output->Close(left.back().t, EmitFor(stream));
}

// What of a piece was read already goes, and a line that was read in part is completed.
void Stdio::Join(const FileId& file, Waiting& piece) {
  const auto found = read_.find(file);
  if (found == read_.end() || piece.position < found->second.begin) return;
  ReadFile& read = found->second;
  if (piece.position < read.end && piece.t < read.at + kOverlap) {
    const auto size = static_cast<int64_t>(piece.text.size());
    const int64_t known = std::min(size, read.end - piece.position);
    piece.text.erase(0, static_cast<size_t>(known));
    piece.position += known;
    piece.begins_line = read.open.empty();
  }
  if (piece.position != read.end || read.open.empty() || piece.text.empty()) return;
  piece.position -= static_cast<int64_t>(read.open.size());
  piece.text.insert(0, std::exchange(read.open, {}));
  piece.begins_line = true;
}

// The last line of a file that nobody has completed: of a job whose processes have ended.
void Stdio::TellOpen() {
  if (read_.empty()) return;
  std::set<std::string> jobs;
  for (const auto& [pid, tracked] : table_->processes()) {
    if (const auto* process = who_(tracked.key)) jobs.insert(process->job_id);
  }
  for (auto it = read_.begin(); it != read_.end();) {
    const auto& [id, read] = *it;
    const bool over = !jobs.contains(read.job_id);
    if (over && !read.open.empty()) {
      const collectors::OutputFileId place = PlaceOf({id.inode, id.device, 0});
      const auto begin = read.end - static_cast<int64_t>(read.open.size());
      TellAsNobody({read.job_id, {place.device, place.inode, 0}, {}},
                   {{read.open, true, 0, loop_->Now(), begin, {}}});
    }
    const bool done = over || (read.open.empty() && loop_->Now() > read.at + kOverlap);
    it = done ? read_.erase(it) : std::next(it);
  }
}

}  // namespace rankscope::probes
