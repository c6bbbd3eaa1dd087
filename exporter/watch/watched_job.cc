// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/watch/watched_job.h"

#include <algorithm>
#include <limits>

#include "exporter/watch/output_path.h"

namespace rankscope::watch {
namespace {

// Of a file that is larger when it is found, the beginning and the end are read: seconds of work.
constexpr int64_t kMaxPast = int64_t{512} << 20;
constexpr int64_t kHeadOfPast = int64_t{4} << 20;

// A file system of the network shows what another machine wrote within this; then one poll that
// brings nothing says that nothing is left.
constexpr Duration kShownWithin = Seconds(30);
// Of a file that does not come to rest, or whose file system hangs, nobody waits for the end
// longer.
constexpr Duration kMaxDrain = Seconds(120);
// The batch host makes the file a moment after the job has begun.
constexpr Duration kFileAppears = Seconds(45);

// What its script ended with; nothing where Slurm ended it, whose record says so.
std::optional<int32_t> WaitStatusOf(const exporter::slurm::SlurmJob& job) {
  constexpr int32_t kMaxSignal = 64;
  if (job.state != "COMPLETED" && job.state != "FAILED") return std::nullopt;
  if (!job.exit || job.exit->signal > kMaxSignal) return std::nullopt;
  return job.exit->signal > 0 ? job.exit->signal : (job.exit->code & 0xff) << 8;
}

}  // namespace

Timestamp Clocks::At(int64_t wall_seconds) const {
  constexpr int64_t kMaxSecond = int64_t{1} << 32;
  if (wall_seconds <= 0 || wall_seconds >= kMaxSecond) return now;
  return std::min(now, Timestamp{wall_seconds * 1'000'000'000 - wall_offset_ns});
}

void WatchedJob::AddFile(const std::string& printed) {
  FollowedFile file;
  file.request.paths = OutputPaths(printed, run_);
  if (file.request.paths.empty()) return;
  const bool known = std::any_of(files_.begin(), files_.end(), [&file](const FollowedFile& other) {
    return other.request.paths == file.request.paths;
  });
  if (!known) files_.push_back(std::move(file));
}

void WatchedJob::BeginRun(JobJudge& judge, const Clocks& clocks) {
  run_ = course_.job();
  begun_ = true;
  over_ = put_back_ = concluded_ = false;
  begin_ = clocks.At(run_.start);
  if (!run_.nodes.empty()) {
    AddFile(run_.std_out);
    AddFile(run_.std_err);
  }
  for (FollowedFile& file : files_) file.quiet = 0;
  std::optional<uint32_t> uid;
  if (run_.uid && *run_.uid >= 0 && *run_.uid < std::numeric_limits<uint32_t>::max())
    uid = static_cast<uint32_t>(*run_.uid);
  judge.Begin(id_, run_.std_out, uid, static_cast<int32_t>(run_.restarts.value_or(0)), begin_);
}

Timestamp WatchedJob::EndOf(const Clocks& clocks) const {
  if (!over_) return clocks.now;
  const bool told = !put_back_ && !course_.lost() && run_.end > 0;
  return std::max(begin_, told ? clocks.At(run_.end) : over_since_);
}

void WatchedJob::OnPiece(size_t index, const OutputPiece& piece, JobJudge& judge,
                         const Clocks& clocks) {
  if (index >= files_.size()) return;
  FollowedFile& file = files_[index];
  file.reading = false;
  if (!begun_ || concluded_) return;
  file.error = piece.error;
  if (!piece.error.empty()) {
    if (over_) ++file.quiet;
    return;
  }
  // What is read after the end was written before it.
  const Timestamp t = EndOf(clocks);
  const bool first = !file.seen;
  if (first || piece.anew) {
    if (file.seen) judge.Close(id_, file.stream, t);
    file.stream = {++streams_, piece.path, logs::LineAssembler(0)};
    file.request.offset = 0;
    file.past_end = first ? piece.size : 0;
    file.seen = true;
    if (file.past_end > 0)
      judge.TellPast(id_, file.stream, file.past_end, {piece.written_ns - clocks.wall_offset_ns},
                     t);
  }
  file.request.device = piece.device;
  file.request.inode = piece.inode;
  judge.Feed(id_, file.stream, piece.bytes, t);
  file.request.offset += static_cast<int64_t>(piece.bytes.size());
  const int64_t too_much = file.past_end - kMaxPast - file.request.offset;
  if (!file.skipped && file.request.offset >= kHeadOfPast && too_much > 0) {
    judge.Skip(id_, file.stream, too_much, t);
    file.request.offset += too_much;
    file.skipped = true;
  }
  file.past_read = file.request.offset >= file.past_end;
  const bool rests = piece.bytes.empty() && file.request.offset >= piece.size;
  if (over_) file.quiet = rests ? file.quiet + 1 : 0;
}

void WatchedJob::EndRun(bool put_back, const Clocks& clocks) {
  if (over_) return;
  over_ = true;
  put_back_ = put_back;
  over_since_ = clocks.now;
  if (!put_back) {
    // What it wrote to is known from the run; how it ended, from the newest word.
    exporter::slurm::SlurmJob ended = course_.job();
    ended.std_out = run_.std_out;
    ended.std_err = run_.std_err;
    run_ = std::move(ended);
  }
  for (FollowedFile& file : files_) file.quiet = 0;
}

bool WatchedJob::IsDrained(const Clocks& clocks) const {
  if (clocks.now - over_since_ >= kMaxDrain) return true;
  const bool long_ago = clocks.now - EndOf(clocks) >= kShownWithin;
  return std::all_of(files_.begin(), files_.end(), [long_ago](const FollowedFile& file) {
    return !file.reading && file.quiet >= (long_ago ? 1 : 2);
  });
}

void WatchedJob::Conclude(JobJudge& judge, const Clocks& clocks) {
  const Timestamp end = EndOf(clocks);
  for (FollowedFile& file : files_) {
    if (file.seen) judge.Close(id_, file.stream, end);
  }
  const bool own_end = !put_back_ && !course_.lost();
  judge.End(id_, own_end ? WaitStatusOf(course_.job()) : std::nullopt, end);
  for (SchedulerRecord& record : records_) judge.Tell(std::move(record), clocks.now);
  for (SchedulerFact& fact : facts_) judge.Tell(std::move(fact), clocks.now);
  records_.clear();
  facts_.clear();
  concluded_ = true;
  concluded_at_ = clocks.now;
}

void WatchedJob::Leave() {
  begun_ = over_ = put_back_ = concluded_ = false;
  told_verdict.clear();
  told_records = 0;
}

void WatchedJob::Finish(int its_status) {
  done = true;
  held = false;
  status = its_status;
  files_ = {};
}

bool WatchedJob::HasCaughtUp() const {
  return std::all_of(files_.begin(), files_.end(), [](const FollowedFile& file) {
    return file.past_read || (!file.seen && !file.error.empty());
  });
}

WatchedJob::Output WatchedJob::OutputNow(const Clocks& clocks) const {
  if (!begun_ || run_.nodes.empty()) return {};
  if (files_.empty())
    return {{}, "accounting does not tell where it lies; `rankscope classify FILE` judges it"};
  Output read, not_read;
  for (const FollowedFile& file : files_) {
    if (file.seen && file.error.empty()) read.paths.push_back(file.stream.path);
    if (file.error.empty() || !not_read.error.empty()) continue;
    not_read.error = file.error;
    // As it was expanded.
    const std::vector<std::string>& paths = file.request.paths;
    not_read.paths = {paths[std::min<size_t>(1, paths.size() - 1)]};
  }
  if (!read.paths.empty()) return read;
  // It may appear yet.
  if (not_read.error.empty() || (!over_ && clocks.now - begin_ < kFileAppears)) return {};
  const bool batch = !run_.std_err.empty();  // which squeue prints of these alone
  not_read.error += batch ? "; watch it where that lies and you may read it"
                          : "; jobs of srun and salloc have no file of their own";
  return not_read;
}

}  // namespace rankscope::watch
