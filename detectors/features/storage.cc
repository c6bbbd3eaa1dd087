// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What of the files matters. An error of the file system counts when the process that met it ended
// right after: programs outlive a log that cannot be written and a cache that is full. A bus error
// counts with shared memory that was full at that moment. A checkpoint that was read is one that
// this run, or an earlier attempt of it, may have left: the weights of a base model are read by
// runs that begin anew.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <string_view>

#include "detectors/features/landmarks.h"
#include "detectors/model/subs.h"

namespace rankscope::features {
namespace {

using logs::IncidentKind;
using windows::CheckpointFile;
using windows::FileFailure;

// From the error to the end of the process that it stops: a traceback, an interpreter's end.
constexpr Duration kFarewell = Seconds(10);
// Errors that have been met for as long as this were outlived.
constexpr Duration kOutlived = Seconds(60);
constexpr Duration kOutlivedOther = Seconds(12);
// Of shared memory. The kernel counts pages per CPU and sums up every 32 of a CPU, and a page that
// cannot be had may be a large one.
constexpr int64_t kAlmostNone = 4 << 20;
constexpr double kAlmostNoneShare = 0.02;
// A saved checkpoint that a program looks for again is called so.
constexpr std::string_view kOwnNames[] = {"checkpoint", "ckpt",       "last", "latest",
                                          "epoch",      "step",       "iter", "global_step",
                                          "mp_rank",    "model_state"};

struct ErrorRow {
  int64_t error;
  std::string_view sub;
  std::string_view name;
};
constexpr std::array kErrors = {
    ErrorRow{ENOSPC, "full", "ENOSPC"}, ErrorRow{EDQUOT, "full", "EDQUOT"},
    ErrorRow{EIO, "io_error", "EIO"},   ErrorRow{EROFS, "io_error", "EROFS"},
    ErrorRow{ESTALE, "hang", "ESTALE"},
};

const ErrorRow* RowOf(int64_t error) {
  for (const ErrorRow& row : kErrors) {
    if (row.error == error) return &row;
  }
  return nullptr;
}

class Reader {
 public:
  Reader(const windows::JobWindow& job, const windows::AttemptWindow& window, Citer& citer,
         JobFeatures& f)
      : job_(job), tracker_(window.kernel.storage), citer_(citer), f_(f) {}

  void Run() {
    f_.storage.seen = tracker_.seen();
    DescribeFailure();
    DescribeSharedMemory();
    DescribeHang();
    DescribeRead();
    DescribeMissing();
    DescribeSaves();
  }

 private:
  // When the process ended, if it did so otherwise than well; the job's end for one whose own
  // nobody tells.
  const windows::Candidate* EndOf(const ProcessKey& process) const {
    for (const windows::Candidate& candidate : job_.incidents().all()) {
      if (candidate.process == process && candidate.store == proto::STORE_PROCESS)
        return &candidate;
    }
    return nullptr;
  }

  bool EndedOn(const FileFailure& failure) const {
    Timestamp end;
    if (const windows::Candidate* const candidate = EndOf(failure.process)) {
      end = candidate->incident.t;
    } else if (f_.ended && (f_.exit_known ? f_.exit_code != 0 : failure.rank < 0)) {
      end = job_.end().ended ? job_.end().t : f_.now;
    } else {
      return false;
    }
    const Duration outlived = failure.kind == "other" ? kOutlivedOther : kOutlived;
    return end - failure.last <= kFarewell && end - failure.first <= outlived;
  }

  void DescribeFailure() {
    const FileFailure* found = nullptr;
    StorageFeatures& storage = f_.storage;
    for (const FileFailure& failure : tracker_.failures()) {
      if (RowOf(failure.error) == nullptr || !EndedOn(failure)) continue;
      if (failure.rank >= 0) storage.ranks.push_back(failure.rank);
      if (found == nullptr || failure.first < found->first) found = &failure;
    }
    if (found == nullptr) return;
    std::sort(storage.ranks.begin(), storage.ranks.end());
    storage.ranks.erase(std::unique(storage.ranks.begin(), storage.ranks.end()),
                        storage.ranks.end());
    const ErrorRow& row = *RowOf(found->error);
    storage.failure = row.sub;
    storage.error = found->error;
    storage.name = found->name;
    storage.kind = found->kind;
    Evidence evidence = EvidenceOf(*found);
    storage.failure_evidence = citer_.Add(evidence);
    InferStorage(*found, evidence.values);
  }

  Evidence EvidenceOf(const FileFailure& failure) const {
    Evidence evidence;
    evidence.kind = EvidenceKind::kFileError;
    evidence.store = proto::STORE_KERNEL;
    evidence.times = failure.times;
    if (failure.rank >= 0) evidence.ranks = {failure.rank};
    evidence.process = failure.process;
    evidence.begin = failure.first;
    evidence.end = failure.last;
    const ErrorRow* const row = RowOf(failure.error);
    evidence.values = {
        {FieldId::kShape, "file_call"},
        {FieldId::kErrno, row != nullptr ? std::string(row->name) : std::to_string(failure.error)},
        {FieldId::kCall, failure.call},
        {FieldId::kClass, failure.kind},
        {FieldId::kFile, failure.name},
        {FieldId::kDirectory, failure.directory},
        {FieldId::kFilesystem, failure.filesystem}};
    return evidence;
  }

  void InferStorage(const FileFailure& failure, const FieldValues& values) {
    auto candidate = std::make_shared<windows::Candidate>();
    logs::Incident& incident = candidate->incident;
    incident.kind = IncidentKind::kStorage;
    incident.sub = f_.storage.failure == "hang" ? subs::kHang : "";
    incident.shape = "file_call";
    incident.rank = f_.storage.ranks.size() == 1 ? f_.storage.ranks.front() : -1;
    incident.pid = failure.process.pid;
    incident.t = failure.first;
    incident.fields = ToCaptured(values);
    candidate->store = proto::STORE_KERNEL;
    candidate->order = -1;
    candidate->ranks = f_.storage.ranks;
    candidate->process = failure.process;
    candidate->times = failure.times;
    candidate->progress_before = f_.progress;
    f_.inferred.push_back({std::move(candidate), f_.storage.failure_evidence});
  }

  void DescribeSharedMemory() {
    for (const windows::FileSpace& space : tracker_.spaces()) {
      if (space.filesystem != "shared_memory" || !space.bus_error) continue;
      const auto total = static_cast<double>(space.total_bytes);
      const bool full = space.free_bytes <= kAlmostNone ||
                        static_cast<double>(space.free_bytes) <= kAlmostNoneShare * total;
      if (!full || f_.storage.shared_memory_full) continue;
      f_.storage.shared_memory_full = true;
      Evidence evidence = EvidenceOf(space);
      f_.storage.shared_memory_evidence = citer_.Add(evidence);
      auto candidate = std::make_shared<windows::Candidate>();
      logs::Incident& incident = candidate->incident;
      incident.kind = IncidentKind::kSignalDeath;
      incident.signal = SIGBUS;
      // A worker's death may be outlived; whose it is shows in what its parent does.
      incident.sub = space.rank < 0 ? subs::kDataloaderWorker : "";
      incident.shape = "shared_memory";
      incident.rank = space.rank;
      incident.pid = space.process.pid;
      incident.t = space.t;
      incident.fields = ToCaptured(evidence.values);
      candidate->store = proto::STORE_KERNEL;
      candidate->order = -1;
      if (space.rank >= 0) candidate->ranks = {space.rank};
      candidate->process = space.process;
      candidate->progress_before = f_.progress;
      f_.inferred.push_back({std::move(candidate), f_.storage.shared_memory_evidence});
    }
  }

  static Evidence EvidenceOf(const windows::FileSpace& space) {
    Evidence evidence;
    evidence.kind = EvidenceKind::kFileSpace;
    evidence.store = proto::STORE_KERNEL;
    evidence.observed = static_cast<double>(space.free_bytes);
    evidence.unit = "By";
    if (space.rank >= 0) evidence.ranks = {space.rank};
    evidence.process = space.process;
    evidence.begin = evidence.end = space.t;
    evidence.values = {{FieldId::kShape, "shared_memory"},
                       {FieldId::kFilesystem, space.filesystem},
                       {FieldId::kFree, space.free_bytes},
                       {FieldId::kTotal, space.total_bytes},
                       {FieldId::kBusError, space.bus_error ? "yes" : ""}};
    return evidence;
  }

  void DescribeHang() {
    constexpr Duration kFresh = Seconds(12);  // told every five seconds while it lasts
    for (const windows::FileHang& hang : tracker_.hangs()) {
      if (f_.ended || f_.now - hang.t > kFresh || hang.seconds <= f_.storage.hang_seconds) continue;
      f_.storage.hang_seconds = hang.seconds + (f_.now - hang.t).seconds();
      f_.storage.hang_call = hang.call;
      Evidence evidence;
      evidence.kind = EvidenceKind::kFileError;
      evidence.store = proto::STORE_KERNEL;
      evidence.observed = hang.seconds;
      evidence.unit = "s";
      if (hang.rank >= 0) evidence.ranks = {hang.rank};
      evidence.process = hang.process;
      evidence.begin = evidence.end = hang.t;
      evidence.values = {
          {FieldId::kShape, "file_call"}, {FieldId::kCall, hang.call}, {FieldId::kHangs, "yes"}};
      f_.storage.hang_evidence = citer_.Add(std::move(evidence));
    }
  }

  bool IsOwn(const CheckpointFile& file) const {
    const auto begins = [](std::string_view text) {
      return std::any_of(std::begin(kOwnNames), std::end(kOwnNames),
                         [text](std::string_view name) { return text.starts_with(name); });
    };
    if (begins(file.name) || begins(file.directory)) return true;
    return std::any_of(
        tracker_.written().begin(), tracker_.written().end(),
        [&file](const CheckpointFile& written) { return written.name == file.name; });
  }

  static Evidence EvidenceOf(const CheckpointFile& file, bool written) {
    Evidence evidence;
    evidence.kind = EvidenceKind::kCheckpointFile;
    evidence.store = proto::STORE_KERNEL;
    evidence.observed = static_cast<double>(file.bytes);
    evidence.unit = "By";
    if (file.rank >= 0) evidence.ranks = {file.rank};
    evidence.process = file.process;
    evidence.begin = file.begin;
    evidence.end = file.end;
    evidence.values = {{FieldId::kShape, "file"},
                       {FieldId::kWhat, written ? "written" : "read"},
                       {FieldId::kFile, file.name},
                       {FieldId::kDirectory, file.directory},
                       {FieldId::kComplete, !written || file.complete ? "yes" : ""}};
    return evidence;
  }

  void DescribeRead() {
    const CheckpointFile* largest = nullptr;
    for (const CheckpointFile& file : tracker_.read()) {
      // What a rank writes and reads back is no resume.
      const bool before = tracker_.saves() == 0 || file.end <= tracker_.first_save();
      if (!before || !IsOwn(file)) continue;
      f_.storage.checkpoint_bytes_read += file.bytes;
      if (largest == nullptr || file.bytes > largest->bytes) largest = &file;
    }
    if (largest != nullptr) f_.storage.read_evidence = citer_.Add(EvidenceOf(*largest, false));
  }

  void DescribeMissing() {
    for (const FileFailure& failure : tracker_.failures()) {
      if (failure.error != ENOENT || failure.kind != "checkpoint") continue;
      if (tracker_.saves() > 0 && failure.first > tracker_.first_save()) continue;
      Evidence evidence = EvidenceOf(failure);
      evidence.kind = EvidenceKind::kCheckpointFile;
      evidence.values.Set(FieldId::kWhat, "missing");
      f_.storage.missing_evidence = citer_.Add(std::move(evidence));
      return;
    }
  }

  void DescribeSaves() {
    StorageFeatures& storage = f_.storage;
    storage.saves = tracker_.saves();
    if (storage.saves == 0 || tracker_.written().empty()) return;  // empty: damaged bytes
    const Timestamp until = f_.ended && job_.end().ended ? job_.end().t : f_.now;
    storage.save_seconds = tracker_.save_seconds();
    storage.save_window_seconds = (until - tracker_.first_save()).seconds();
    if (storage.save_window_seconds > 0)
      storage.save_share = storage.save_seconds / storage.save_window_seconds;
    Evidence evidence = EvidenceOf(tracker_.written().back(), true);
    evidence.times = storage.saves;
    evidence.observed = storage.save_share;
    evidence.unit = "ratio";
    evidence.begin = tracker_.first_save();
    evidence.end = tracker_.last_save();
    evidence.values.Set(FieldId::kOfSaves, "yes")
        .Set(FieldId::kSeconds, static_cast<int64_t>(storage.save_seconds));
    storage.save_evidence = citer_.Add(std::move(evidence));
  }

  const windows::JobWindow& job_;
  const windows::StorageTracker& tracker_;
  Citer& citer_;
  JobFeatures& f_;
};

}  // namespace

void DescribeStorage(const windows::JobWindow& job, const windows::AttemptWindow& window,
                     Citer& citer, JobFeatures& f) {
  Reader(job, window, citer, f).Run();
}

}  // namespace rankscope::features
