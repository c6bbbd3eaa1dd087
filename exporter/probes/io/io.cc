// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/io/io.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "exporter/loop/user_path.h"
#include "exporter/probes/io/io_facts.h"

namespace rankscope::probes {
namespace {

constexpr Duration kInterval = Milliseconds(500);
constexpr int64_t kLooksPerSecond = 2;
constexpr int64_t kLooksPerSpace = 20;  // the room left, every ten seconds
// A disk that is busy takes some seconds; a file server that is gone does not come back.
constexpr Duration kHang = Seconds(30);
constexpr Duration kSpaceDeadline = Seconds(5);

SampleBatch Batch(const ProcessKey& key) {
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kProcess;
  batch.subject.process = key;
  return batch;
}

SampleBatch Numbers(const ProcessKey& key, const rs_io_process& now) {
  SampleBatch batch = Batch(key);
  const auto add = [&batch](SignalId signal, double value) {
    batch.samples.push_back({signal, static_cast<double>(value)});
  };
  const auto seconds = [](uint64_t ns) { return static_cast<double>(ns) / 1e9; };
  add(SignalId::kCheckpointWrittenBytes, static_cast<double>(now.checkpoint_written));
  add(SignalId::kCheckpointReadBytes, static_cast<double>(now.checkpoint_read));
  add(SignalId::kDataReadBytes, static_cast<double>(now.data_read));
  add(SignalId::kDataReadSeconds, seconds(now.data_ns));
  add(SignalId::kFileWriteSeconds, seconds(now.write_ns));
  add(SignalId::kSyncFileSeconds, seconds(now.sync_ns));
  add(SignalId::kFileErrors, static_cast<double>(now.failures));
  return batch;
}

struct Space {
  int64_t free = -1;  // for who is not root
  int64_t total = 0;
};
// On the process's user's thread: he chose the directory, and may have mounted what it is on.
Space SpaceOf(const ProcessKey& process, const std::string& directory) {
  exporter::UserMounts mounts("/proc", process.pid);
  const OwnedFd root = exporter::OpenProcessLink("/proc", process.pid, "root");
  if (!root) return {};
  const auto place = exporter::WalkUserPath(root.get(), root.get(), directory + "/.", mounts);
  struct statvfs found {};
  if (!place || fstatvfs(place->get(), &found) != 0) return {};
  const auto unit = static_cast<int64_t>(found.f_frsize);
  return {static_cast<int64_t>(found.f_bavail) * unit, static_cast<int64_t>(found.f_blocks) * unit};
}

}  // namespace

bool Io::KeyOrder::operator()(const rs_io_failure_key& a, const rs_io_failure_key& b) const {
  return std::memcmp(&a, &b, sizeof a) < 0;
}

Io::Io(std::shared_ptr<collectors::ProcessTable> table, std::shared_ptr<TrackedMap> tracked,
       bool force)
    : ProbeSource("io", std::move(table), std::move(tracked), force) {}

Io::~Io() {
  Stop();
}

Status Io::Start(exporter::EventLoop& loop, Sink& sink) {
  const Result<int> tracked = Admit(sink, ObstacleForTracepoints(LookAtKernel()));
  if (!tracked) return Error{tracked.error()};
  auto loaded = IoPrograms::Load(*tracked, [this](const rs_io_event& event) { OnEvent(event); });
  if (Status adopted = Adopt(loop, std::move(loaded), programs_, [this] { programs_->Consume(); });
      !adopted)
    return adopted;
  worker_ = std::make_unique<exporter::Worker>(loop);
  users_ = std::make_unique<exporter::UserWorkers>(loop);
  timer_ = loop.Every(kInterval, [this] { Look(); });
  if (!programs_->missing().empty())
    TellState(Availability::kUp, "io: cannot attach " + programs_->missing());
  return {};
}

void Io::Stop() {
  if (loop_ == nullptr) return;
  loop_->Cancel(timer_);
  loop_->Unwatch(programs_->fd());
  worker_->BeginStop();
  users_.reset();
  worker_.reset();
  lost_before_ = lost() - dropped_;
  programs_.reset();
  known_.clear();
  told_.clear();
  loop_ = nullptr;
}

int64_t Io::lost() const {
  return lost_before_ + dropped_ + (programs_ ? programs_->lost() : 0);
}

void Io::Look() {
  tracked_->CatchUp();
  ++looks_;
  for (const auto& [pid, process] : programs_->Processes()) Resolve(pid, process.start_ns);
  TellFailures();
  if (looks_ % kLooksPerSecond == 0) TellNumbers();
  TellHangs();
  if (looks_ % kLooksPerSpace == 0) LookForSpace();
  ForgetEnded();
}

std::optional<ProcessKey> Io::Resolve(uint32_t pid, uint64_t start_ns) {
  const ProcessKey key = KeyOf(pid, start_ns);
  if (!IsOurs(key)) return std::nullopt;
  Known& known = known_[pid];
  if (known.key != key) {
    known = {};
    known.key = key;
  }
  return key;
}

void Io::TellFailures() {
  for (const auto& [key, failure] : programs_->Failures()) {
    const auto known = known_.find(key.pid);
    if (known == known_.end()) continue;
    const bool ended = table_->HasEnded(known->second.key);
    if (!told_[key].TakeNews(failure.times, loop_->Now(), ended)) continue;
    Tell(FailureEvent(key, failure, known->second.key),
         Timestamp{static_cast<int64_t>(failure.last_ns)});
  }
}

void Io::TellNumbers() {
  for (const auto& [pid, process] : programs_->Processes()) {
    const auto known = known_.find(pid);
    if (known == known_.end()) continue;
    if (std::memcmp(&known->second.last, &process, sizeof process) == 0) continue;
    known->second.last = process;
    Tell(Numbers(known->second.key, process));
  }
}

void Io::TellHangs() {
  const Timestamp now = loop_->Now();
  for (const auto& [thread, begin_ns] : programs_->Syncs()) {
    const auto known = known_.find(static_cast<uint32_t>(thread >> 32));
    if (known == known_.end()) continue;
    const Duration waited = now - Timestamp{static_cast<int64_t>(begin_ns)};
    if (waited < kHang || now - known->second.hang_told < Told::kAgainAfter) continue;
    known->second.hang_told = now;
    Tell(HangEvent(known->second.key, "fsync", waited.seconds()));
    SampleBatch batch = Batch(known->second.key);
    batch.samples.push_back({SignalId::kOldestFileCallSeconds, waited.seconds()});
    Tell(std::move(batch));
  }
}

void Io::ForgetEnded() {
  std::set<uint32_t> gone;
  for (const auto& [pid, process] : programs_->Processes()) {
    if (table_->Find(static_cast<int32_t>(pid)) == nullptr) gone.insert(pid);
  }
  if (gone.empty()) return;
  const auto now_ns = static_cast<uint64_t>(loop_->Now().ns);
  for (const auto& [key, file] : programs_->Files()) {
    if (!gone.contains(key.pid)) continue;
    const auto known = known_.find(key.pid);
    if (known != known_.end() && file.class_ == RS_IO_CHECKPOINT &&
        (file.flags & RS_IO_WRITES) != 0)
      Tell(AbandonedEvent(file, known->second.key, now_ns));
    programs_->Forget(key);
  }
  for (const auto& [key, failure] : programs_->Failures()) {
    if (gone.contains(key.pid)) programs_->Forget(key);
  }
  for (const uint32_t pid : gone) {
    programs_->ForgetProcess(pid);
    known_.erase(pid);
  }
  std::erase_if(told_, [&gone](const auto& entry) { return gone.contains(entry.first.pid); });
}

void Io::OnEvent(const rs_io_event& event) {
  tracked_->CatchUp();
  const auto process = Resolve(event.pid, event.file.process_start_ns);
  if (!process) return;
  switch (event.header.kind) {
    case RS_IO_OPENED:
      return FindDirectory(event, *process);
    case RS_IO_CLOSED:
      return OnClosed(event, *process);
    case RS_IO_SPACE: {
      const int64_t page = sysconf(_SC_PAGESIZE);
      const auto used = static_cast<int64_t>(event.bytes), all = static_cast<int64_t>(event.size);
      // The kernel counts per CPU and sums up late; without a limit there is none to reach.
      if (all <= 0) return;
      const int64_t free = std::max<int64_t>(0, all - used) * page;
      Tell(SpaceEvent(*process, "shared_memory", free, all * page, true),
           Timestamp{static_cast<int64_t>(event.header.time_ns)});
      return;
    }
    default:
      ++dropped_;
  }
}

void Io::OnClosed(const rs_io_event& event, const ProcessKey& process) {
  const Timestamp t{static_cast<int64_t>(event.header.time_ns)};
  if (event.file.class_ != RS_IO_CHECKPOINT) return;
  if ((event.file.flags & RS_IO_WRITES) == 0) {
    // Python reads *.pth files of its own, beside its packages.
    const bool pythons = NamesOf(event.file).directory.ends_with("-packages");
    if (event.bytes > 0 && !pythons) Tell(ReadEvent(event, process), t);
    return;
  }
  const FileNames names = NamesOf(event.file);
  bool complete = true;
  for (const auto& [key, failure] : programs_->Failures()) {
    const bool since = failure.last_ns >= event.file.opened_ns;
    if (key.pid == event.pid && since && NamesOf(failure).name == names.name) complete = false;
  }
  Tell(WrittenEvent(event, process, complete), t);
}

// Where the file lies is asked while it is open; one that is closed by then tells it the next time.
void Io::FindDirectory(const rs_io_event& event, const ProcessKey& process) {
  const std::string link =
      "/proc/" + std::to_string(process.pid) + "/fd/" + std::to_string(event.fd);
  const bool submitted = worker_->Submit(
      [this, link, process]() -> std::function<void()> {
        char path[PATH_MAX];
        const ssize_t bytes = readlink(link.c_str(), path, sizeof path);
        if (bytes <= 0) return {};
        std::string directory(path, static_cast<size_t>(bytes));
        directory.resize(directory.rfind('/') == std::string::npos ? 0 : directory.rfind('/'));
        return [this, process, directory] {
          const auto known = known_.find(static_cast<uint32_t>(process.pid));
          if (known == known_.end() || known->second.key != process) return;
          const bool first = known->second.checkpoints.empty();
          known->second.checkpoints = directory;
          if (first) AskSpace(process, "checkpoint", directory, SignalId::kCheckpointFreeBytes);
        };
      },
      kSpaceDeadline, {});
  if (!submitted) ++dropped_;
}

void Io::LookForSpace() {
  for (const auto& [pid, known] : known_) {
    if (table_->Find(known.key.pid) == nullptr) continue;
    if (!known.checkpoints.empty())
      AskSpace(known.key, "checkpoint", known.checkpoints, SignalId::kCheckpointFreeBytes);
    if (known.last.shared_memory != 0)
      AskSpace(known.key, "shared_memory", "/dev/shm", SignalId::kSharedMemoryFreeBytes);
  }
}

void Io::AskSpace(const ProcessKey& process, const char* file_system, std::string directory,
                  SignalId signal) {
  const auto who = exporter::ReadIdentity("/proc", process);
  // A user's thread that hangs in a file server that is gone takes no more of these.
  if (!who || users_->pending(who->uid) > exporter::Worker::kMaxQueued / 2) return;
  const bool submitted =
      users_->Submit(*who,
                     [this, process, file_system, directory = std::move(directory),
                      signal]() -> std::function<void()> {
                       const Space space = SpaceOf(process, directory);
                       if (space.free < 0) return {};
                       return [this, process, file_system, space, signal] {
                         SampleBatch batch = Batch(process);
                         batch.samples.push_back({signal, static_cast<double>(space.free)});
                         Tell(std::move(batch));
                         Tell(SpaceEvent(process, file_system, space.free, space.total, false));
                       };
                     },
                     kSpaceDeadline, {});
  if (!submitted) ++dropped_;
}

}  // namespace rankscope::probes
