// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/recording_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "exporter/loop/owned_fd.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

// In the time of what is recorded.
constexpr Duration kTryAgain = Seconds(10);
// Below this a recording says nothing.
constexpr int64_t kLeastSegment = 64 << 10;

constexpr std::string_view kOwner = "uid ";

}  // namespace

replay::RecorderBudgets BudgetsOf(int64_t job_bytes) {
  replay::RecorderBudgets budgets;
  budgets.segment_bytes = std::max(job_bytes / 8, kLeastSegment);
  budgets.facts_bytes = budgets.segment_bytes;
  budgets.progress_bytes = 3 * budgets.segment_bytes;
  return budgets;
}

bool SyncRecording(const std::string& directory) {
  const OwnedFd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!folder) return false;
  bool synced = true;
  std::error_code error;
  for (fs::directory_iterator file(directory, error), end; !error && file != end;
       file.increment(error)) {
    const OwnedFd fd(open(file->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    synced = fd && fsync(fd.get()) == 0 && synced;
  }
  return fsync(folder.get()) == 0 && synced && !error;
}

void RecordedFrames::Add(const Observation& observation) {
  const size_t before = bytes.size();
  const bool fact = replay::Recorder::IsFact(observation);
  if (!recording::AppendObservation(observation, bytes)) {
    ++lost;
    return;
  }
  frames.push_back({observation.t, static_cast<uint32_t>(bytes.size() - before), fact});
}

void RecordedFrames::Drop() {
  lost += static_cast<int64_t>(frames.size());
  lost_facts += std::count_if(frames.begin(), frames.end(), [](const Frame& f) { return f.fact; });
  bytes.clear();
  frames.clear();
}

RecordingWriter::RecordingWriter(std::string directory, recording::Header header, int64_t job_bytes,
                                 std::shared_ptr<RecordingTotals> totals)
    : directory_(std::move(directory)),
      header_(std::move(header)),
      totals_(std::move(totals)),
      budgets_(BudgetsOf(job_bytes)) {}

void RecordingWriter::Open(RecordedFrames preamble) {
  preamble_ = std::move(preamble);
  const std::string mark = directory_ + "/finished";
  struct stat info {};
  if (stat(mark.c_str(), &info) == 0) {
    // The id is used again: the earlier life keeps its recording under another name.
    const std::string aside = directory_ + '~' + std::to_string(info.st_mtim.tv_sec);
    bool moved = rename(directory_.c_str(), aside.c_str()) == 0;
    for (int i = 1; !moved && (errno == ENOTEMPTY || errno == EEXIST) && i < 1000; ++i)
      moved = rename(directory_.c_str(), (aside + '.' + std::to_string(i)).c_str()) == 0;
    if (!moved) Fail("cannot rename " + directory_);
  }
  TryOpen(preamble_.frames.empty() ? Timestamp{} : preamble_.frames.back().t);
  Note();
}

bool RecordingWriter::TryOpen(Timestamp now) {
  tried_ = now;
  const bool is_new = mkdir(directory_.c_str(), 0700) == 0;
  const OwnedFd fd(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) {
    Fail("cannot open " + directory_);
    return false;
  }
  recorder_ =
      std::make_unique<replay::Recorder>(fd.get(), header_, replay::RecorderHooks{}, budgets_);
  noted_ = {};
  // It tries again by itself.
  static_cast<void>(recorder_->Open());
  if (is_new) {
    const RecordedFrames preamble = std::move(preamble_);
    Append(preamble);
  }
  if (lost_before_ > 0) {
    recorder_->Skip(lost_before_, 0);
    noted_.lost += std::exchange(lost_before_, 0);  // counted then
  }
  return true;
}

bool RecordingWriter::Wake() {
  if (!recorder_->resting()) return true;
  const OwnedFd fd(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) {
    Fail("cannot open " + directory_);
    return false;
  }
  recorder_->Wake(fd.get());
  return true;
}

void RecordingWriter::Rest() {
  rests_ = true;
  if (recorder_) recorder_->Rest();
  Note();
}

void RecordingWriter::Append(const RecordedFrames& frames) {
  if (!recorder_ || !Wake()) {
    const bool due = !recorder_ && !frames.frames.empty() &&
                     (!tried_ || frames.frames.back().t - *tried_ >= kTryAgain);
    if (!due || !TryOpen(frames.frames.back().t)) {
      const auto lost = static_cast<int64_t>(frames.frames.size());
      totals_->lost += lost;
      lost_before_ += lost + frames.lost;
      const std::lock_guard lock(mutex_);
      exact_ = false;
      return;
    }
  }
  if (frames.lost > 0) {
    recorder_->Skip(frames.lost, frames.lost_facts);
    noted_.lost += frames.lost;  // counted where they were lost
  }
  size_t at = 0;
  for (const RecordedFrames::Frame& frame : frames.frames) {
    recorder_->AcceptFrame(frame.t, std::string_view(frames.bytes).substr(at, frame.bytes),
                           frame.fact);
    at += frame.bytes;
  }
  if (rests_) {
    recorder_->Rest();
  } else {
    recorder_->Flush();
  }
  Note();
}

void RecordingWriter::SetBudget(int64_t job_bytes) {
  budgets_ = BudgetsOf(job_bytes);
  if (recorder_ && Wake()) recorder_->SetBudgets(budgets_);
  if (rests_ && recorder_) recorder_->Rest();
}

void RecordingWriter::MarkFinished(std::optional<uint32_t> uid) {
  const std::string mark = directory_ + "/finished";
  const OwnedFd fd(open(mark.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  const std::string text = MarkOf(uid);
  // It need not be on the disk before anything else is: without it the job is judged once more.
  if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    Fail("cannot write " + mark);
}

void RecordingWriter::GoOn() {
  rests_ = false;
  if (unlink((directory_ + "/finished").c_str()) != 0 && errno != ENOENT)
    Fail("cannot remove " + directory_ + "/finished");
}

std::string RecordingWriter::MarkOf(std::optional<uint32_t> uid) {
  return uid ? std::string(kOwner) + std::to_string(*uid) + '\n' : std::string();
}

std::optional<uint32_t> RecordingWriter::OwnerIn(const std::string& mark) {
  if (!mark.starts_with(kOwner) || !mark.ends_with('\n')) return std::nullopt;
  uint32_t uid = 0;
  const char* const end = mark.data() + mark.size() - 1;
  const auto parsed = std::from_chars(mark.data() + kOwner.size(), end, uid);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return uid;
}

void RecordingWriter::Fail(const std::string& what) {
  ++totals_->errors;
  const std::lock_guard lock(mutex_);
  trouble_ = what + ": " + std::strerror(errno);
}

void RecordingWriter::Note() {
  if (!recorder_) return;
  const replay::Recorder::Counters now = recorder_->counters();
  totals_->bytes += now.bytes - noted_.bytes;
  totals_->errors += now.errors - noted_.errors;
  totals_->lost += now.lost - noted_.lost;
  noted_ = now;
  const std::lock_guard lock(mutex_);
  exact_ = exact_ && recorder_->exact();
  trouble_ = now.broken ? std::strerror(now.last_error) : "";
}

bool RecordingWriter::exact() const {
  const std::lock_guard lock(mutex_);
  return exact_;
}

std::string RecordingWriter::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

}  // namespace rankscope::exporter
