// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What was written to files while nobody heard it, joined to what is heard: each byte is told once.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "detectors/model/event_types.h"
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

bool Stdio::Awaits(const Stream& stream) const {
  return left_ && !left_read_ && S_ISREG(stream.file.mode & S_IFMT) &&
         left_->Awaits(PlaceOf(stream.file));
}

// At the first beat: whom the table knows is tracked, so whatever is written from now on is heard.
void Stdio::ReadLeft() {
  if (left_ || !heard_) return;
  LeftOutput::Hooks hooks;
  hooks.on_text = [this](LeftText text) { OnLeftText(std::move(text)); };
  hooks.on_job = [this](const std::string& job_id) {
    Event told;
    told.rank.job_id = job_id;
    told.rank.rank = -1;
    told.type = WireType(EventType::kOutputRead);
    Tell(std::move(told));
  };
  hooks.on_end = [this] {
    left_read_ = true;
    any_waiting_ = true;
  };
  left_ = std::make_unique<LeftOutput>("/proc", *table_, who_, *heard_, wall_offset_ns_,
                                       std::move(hooks));
  left_->Begin(*loop_);
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
  const Waiting left{std::move(text.bytes), text.skipped == 0, text.skipped, t, text.begin, {}};
  for (auto& [key, speaker] : speakers_) {
    for (auto& [slot, stream] : speaker.streams) {
      if (slot.second != id) continue;
      for (Waiting& piece : stream.waiting) Join(id, piece);
    }
  }
  if (!left.text.empty() || left.lost_before > 0) TellLeft(text, id, left);
  any_waiting_ = true;
}

// Of a rank that has the file for itself it is what its stream begins with; else it is nobody's.
void Stdio::TellLeft(const LeftText& text, const FileId& id, const Waiting& left) {
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
    stream.waiting.insert(stream.waiting.begin(), left);
    return;
  }
  TellAsNobody(text.job_id, {text.id.device, text.id.inode, 0}, left);
}

void Stdio::TellAsNobody(const std::string& job_id, const FilePlace& file, const Waiting& left) {
  StreamLabel label;
  label.number = next_number_++;
  label.name = "output file";
  label.job_id = job_id;
  label.file = file;
  Stream stream;
  stream.output = std::make_unique<OutputStream>(std::move(label));
  Say(stream, left);
  stream.output->Close(left.t, EmitFor(stream));
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
      TellAsNobody(read.job_id, {place.device, place.inode, 0},
                   {read.open, true, 0, loop_->Now(), begin, {}});
    }
    const bool done = over || (read.open.empty() && loop_->Now() > read.at + kOverlap);
    it = done ? read_.erase(it) : std::next(it);
  }
}

}  // namespace rankscope::probes
