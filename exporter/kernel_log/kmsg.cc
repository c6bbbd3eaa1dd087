// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/kernel_log/kmsg.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rankscope::collectors {
namespace {

constexpr size_t kRecordBytes = 8192;  // the kernel's own limit, kernel/printk: PRINTKRB_RECORD_MAX
// 2,000 records take some milliseconds; the rest waits for the loop's other work.
constexpr int kRecordsPerWake = 2000;
constexpr Duration kTellAgain = Seconds(1);
constexpr size_t kMaxSubjects = 1024;
// The driver's message of three records comes at once; others may write between.
constexpr int64_t kLongLoss = 8;

}  // namespace

Kmsg::Kmsg(std::shared_ptr<ProcessTable> table, std::shared_ptr<XidLedger> xids, std::string path,
           std::string driver)
    : table_(std::move(table)),
      xids_(std::move(xids)),
      path_(std::move(path)),
      driver_(std::move(driver)) {}

Kmsg::~Kmsg() {
  Stop();
}

Status Kmsg::Start(exporter::EventLoop& loop, Sink& sink) {
  sink_ = &sink;
  OwnedFd fd(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    const bool denied = errno == EPERM || errno == EACCES;
    std::string reason =
        path_ + ": " + std::strerror(errno) + (denied ? "; needs CAP_SYSLOG (root)" : "");
    TellState(denied ? Availability::kDenied : Availability::kUnsupported, reason);
    return Error{std::move(reason)};
  }
  if (Status status = loop.Watch(fd.get(), EPOLLIN, [this](uint32_t) { Read(); }); !status.ok()) {
    return status;
  }
  fd_ = std::move(fd);
  loop_ = &loop;
  xids_->SetHeard(XidLedger::Teller::kKernelLog, true);
  xids_->set_on_library([this] { AskLibraryAgain(); });
  Read();  // what is there now, or its beginning
  TellState(Availability::kUp);
  return {};
}

void Kmsg::Stop() {
  if (loop_ == nullptr) return;
  loop_->Unwatch(fd_.get());
  fd_.Reset();
  told_.clear();
  held_.clear();
  xids_->set_on_library({});
  xids_->SetHeard(XidLedger::Teller::kKernelLog, false);
  loop_ = nullptr;
}

void Kmsg::Read() {
  char record[kRecordBytes];
  for (int i = 0; i < kRecordsPerWake; ++i) {
    const ssize_t n = read(fd_.get(), record, sizeof record);
    // EPIPE: overwritten before we looked; the next one's number says how many.
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) {
      old_ = false;  // what comes from now on is new
      return;
    }
    Take({record, static_cast<size_t>(n)});
  }
}

void Kmsg::Take(std::string_view record) {
  const std::optional<int64_t> sequence = SequenceOf(record);
  // Begun anew, the log is read from its beginning again.
  if (!sequence || *sequence <= sequence_) return;
  if (sequence_ >= 0) lost_ += *sequence - sequence_ - 1;
  sequence_ = *sequence;
  if (std::string card = CardOfLongLoss(record); !card.empty()) {
    long_loss_ = std::move(card);
    long_loss_sequence_ = *sequence;
  }
  std::optional<KernelLine> line = ParseKernelRecord(record);
  if (!line) return;
  if (line->kind == KernelEventType::kGpuLost && line->bus_id.empty() &&
      *sequence - long_loss_sequence_ <= kLongLoss) {
    line->bus_id = long_loss_;
  }
  const Timestamp now = loop_->Now();
  // The library may not be open yet when the old lines are read: of them only what is of a GPU
  // that it then knows is shown.
  if (!old_ && !IsConfirmed(*line, now)) {
    ++unconfirmed_;
    return;
  }
  if (!old_ && line->continues && !IsWitnessed(*line, now)) return Hold(*std::move(line), now);
  Believe(*line, now);
}

bool Kmsg::IsWitnessed(const KernelLine& line, Timestamp now) const {
  constexpr int32_t kOffTheBus = 79;  // what the library says of a loss
  const int32_t code = line.kind == KernelEventType::kGpuLost ? kOffTheBus : line.code;
  return !xids_->heard(XidLedger::Teller::kLibrary) || xids_->OnlyLibrary(line.bus_id, code, now);
}

void Kmsg::Hold(KernelLine line, Timestamp now) {
  constexpr size_t kMaxHeld = 64;
  while (!held_.empty() && (held_.size() >= kMaxHeld || now - held_.front().t > XidLedger::kSame)) {
    held_.pop_front();
    ++unconfirmed_;
  }
  held_.push_back({std::move(line), now});
}

void Kmsg::AskLibraryAgain() {
  const Timestamp now = loop_->Now();
  std::erase_if(held_, [this, now](const Held& held) {
    if (now - held.t > XidLedger::kSame || !IsWitnessed(held.line, now)) return false;
    Believe(held.line, now);
    return true;
  });
}

void Kmsg::Believe(const KernelLine& line, Timestamp now) {
  TakeXid(line, now);
  if (old_) return;
  ++lines_[static_cast<size_t>(line.kind) - 1];
  if (told_.size() >= kMaxSubjects) {
    std::erase_if(told_, [now](const auto& entry) { return now - entry.second >= kTellAgain; });
    if (told_.size() >= kMaxSubjects) {
      ++lost_;
      return;
    }
  }
  const auto [told, first] =
      told_.try_emplace(Subject{line.kind, line.code, line.bus_id, line.pid}, now);
  if (!first && now - told->second < kTellAgain) return;
  told->second = now;
  Tell(line);
}

// nv-procfs.c: the driver's module has a folder of its own, and in it one for each GPU, which
// stays when the GPU is lost.
bool Kmsg::AsksDriver(const std::string& card) const {
  if (card.empty() || access((driver_ + "/gpus").c_str(), F_OK) != 0)
    return access((driver_ + "/version").c_str(), F_OK) == 0;
  return access((driver_ + "/gpus/" + card + ".0").c_str(), F_OK) == 0;
}

// The second witness of what only the NVIDIA driver writes: that driver, or its library.
bool Kmsg::IsConfirmed(const KernelLine& line, Timestamp now) {
  const bool of_card = line.kind == KernelEventType::kXid || line.kind == KernelEventType::kGpuLost;
  if (!of_card && line.kind != KernelEventType::kSxid) return true;
  // A switch is no GPU of the library's.
  const std::string card = of_card ? line.bus_id : std::string();
  if (card.empty() ? xids_->any_card() : xids_->IsCard(card)) return true;
  if (answers_.size() >= kMaxSubjects) answers_.clear();
  const auto [answer, first] = answers_.try_emplace(card);
  if (first || now - answer->second.asked >= kTellAgain) answer->second = {AsksDriver(card), now};
  return answer->second.its;
}

void Kmsg::TakeXid(const KernelLine& line, Timestamp now) {
  if (line.kind == KernelEventType::kSxid && !old_ && !line.detail)
    xids_->AddSxid(line.code, !line.nonfatal);
  const bool xid = line.kind == KernelEventType::kXid;
  if (!xid && line.kind != KernelEventType::kGpuLost) return;
  // The log's clock is the machine's own, as good as ours.
  const Timestamp t = old_ ? std::min(Timestamp{line.microseconds * 1000}, now) : now;
  const XidTold told{line.bus_id, line.code, line.recovery, line.nonfatal};
  if (!xid) {
    xids_->AddLoss(line.bus_id, t, old_);
  } else if (old_) {
    xids_->AddOld(told, t);
  } else {
    xids_->Add(XidLedger::Teller::kKernelLog, told, t);
  }
}

void Kmsg::Tell(const KernelLine& line) {
  KernelEvent event;
  event.kmsg_seq = line.sequence;
  event.type = line.kind;
  event.text = line.text;
  event.gpu_bus_id = line.bus_id;
  event.code = line.code;
  if (const TrackedProcess* const process = line.pid > 0 ? table_->Find(line.pid) : nullptr)
    event.victim = process->key;
  Source::Tell(std::move(event), loop_->Now());
}

std::vector<exporter::Source::Count> Kmsg::counts() const {
  std::vector<Count> counts;
  for (size_t i = 0; i < lines_.size(); ++i)
    counts.push_back({kKernelEventNames[i + 1], lines_[i]});
  counts.push_back({"unconfirmed", unconfirmed_});
  return counts;
}

}  // namespace rankscope::collectors
