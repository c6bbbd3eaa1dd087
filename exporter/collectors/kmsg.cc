// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/collectors/kmsg.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

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
// Sixteen cards with as many kinds of errors each.
constexpr size_t kMaxXids = 256;

}  // namespace

Kmsg::Kmsg(std::shared_ptr<ProcessTable> table, std::string path)
    : table_(std::move(table)), path_(std::move(path)) {}

Kmsg::~Kmsg() {
  Stop();
}

Status Kmsg::Start(exporter::EventLoop& loop, Sink& sink) {
  sink_ = &sink;
  OwnedFd fd(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Observation observation;
  SourceState state;
  if (!fd) {
    const bool denied = errno == EPERM || errno == EACCES;
    state.state = denied ? Availability::kDenied : Availability::kUnsupported;
    state.reason =
        path_ + ": " + std::strerror(errno) + (denied ? "; needs CAP_SYSLOG (root)" : "");
    observation.kind = state;
    sink.Accept(observation);
    return Error{state.reason};
  }
  lseek(fd.get(), 0, SEEK_END);
  if (const Status status = loop.Watch(fd.get(), EPOLLIN, [this](uint32_t) { Read(); });
      !status.ok()) {
    return status;
  }
  fd_ = std::move(fd);
  loop_ = &loop;
  sequence_ = -1;
  state.state = Availability::kUp;
  observation.kind = state;
  sink.Accept(observation);
  return {};
}

void Kmsg::Stop() {
  if (loop_ == nullptr) return;
  loop_->Unwatch(fd_.get());
  fd_.Reset();
  told_.clear();
  loop_ = nullptr;
}

void Kmsg::Read() {
  char record[kRecordBytes];
  for (int i = 0; i < kRecordsPerWake; ++i) {
    const ssize_t n = read(fd_.get(), record, sizeof record);
    // EPIPE: overwritten before we looked; the next one's number says how many.
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) return;
    Take({record, static_cast<size_t>(n)});
  }
}

void Kmsg::Take(std::string_view record) {
  const std::optional<int64_t> sequence = SequenceOf(record);
  if (!sequence) return;
  if (sequence_ >= 0 && *sequence > sequence_ + 1) lost_ += *sequence - sequence_ - 1;
  sequence_ = *sequence;
  const std::optional<KernelLine> line = ParseKernelRecord(record);
  if (!line) return;
  ++lines_[static_cast<size_t>(line->kind)];
  const Timestamp now = loop_->Now();
  if (line->kind == KernelLineKind::kXid) CountXid(*line, now);
  if (told_.size() >= kMaxSubjects) {
    std::erase_if(told_, [now](const auto& entry) { return now - entry.second >= kTellAgain; });
    if (told_.size() >= kMaxSubjects) return;
  }
  const auto [told, first] =
      told_.try_emplace(Subject{line->kind, line->code, line->bus_id, line->pid}, now);
  if (!first && now - told->second < kTellAgain) return;
  told->second = now;
  Tell(*line);
}

void Kmsg::CountXid(const KernelLine& line, Timestamp now) {
  const std::pair key{line.bus_id, line.code};
  if (xids_.size() >= kMaxXids && !xids_.contains(key)) return;
  XidCount& xid = xids_[key];
  xid.card = line.bus_id;
  xid.code = line.code;
  ++xid.count;
  xid.last = now;
}

void Kmsg::Tell(const KernelLine& line) {
  KernelEvent event;
  event.kmsg_seq = line.sequence;
  event.type = kKernelLineNames[static_cast<size_t>(line.kind)];
  event.text = line.text;
  event.gpu_bus_id = line.bus_id;
  event.code = line.code;
  if (const TrackedProcess* const process = line.pid > 0 ? table_->Find(line.pid) : nullptr)
    event.victim = process->key;
  Observation observation;
  observation.t = loop_->Now();
  observation.kind = std::move(event);
  sink_->Accept(observation);
}

std::vector<XidCount> Kmsg::xids() const {
  std::vector<XidCount> xids;
  for (const auto& [key, xid] : xids_) xids.push_back(xid);
  return xids;
}

std::vector<exporter::Source::Count> Kmsg::counts() const {
  std::vector<Count> counts;
  for (size_t i = 0; i < lines_.size(); ++i) counts.push_back({kKernelLineNames[i], lines_[i]});
  return counts;
}

}  // namespace rankscope::collectors
