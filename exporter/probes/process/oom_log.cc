// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/process/oom_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "detectors/model/kmsg_record.h"
#include "detectors/model/line_cursor.h"

namespace rankscope::probes {
namespace {

// The value of ",key=" or of a leading "key=", up to the next comma. The last two fields are
// written by the victim: its name may hold commas, so `pid` is looked for from the end.
std::string_view Field(std::string_view text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + key.size());
  return text.substr(0, text.find(','));
}

std::string Scope(std::string_view constraint) {
  if (constraint == "CONSTRAINT_MEMCG") return "cgroup";
  if (constraint == "CONSTRAINT_NONE") return "host";
  if (constraint == "CONSTRAINT_CPUSET") return "cpuset";
  if (constraint == "CONSTRAINT_MEMORY_POLICY") return "mempolicy";
  return {};
}

}  // namespace

std::optional<OomLine> ParseOomRecord(std::string_view record) {
  const std::optional<KmsgRecord> read = ReadKmsgRecord(record);
  if (!read || read->continues) return std::nullopt;
  const std::string_view text = read->text;
  if (!text.starts_with("oom-kill:constraint=")) return std::nullopt;
  OomLine line;
  line.text = text;
  line.sequence = read->sequence;
  line.scope = Scope(Field(text, "constraint="));
  const size_t task = text.find(",task=");
  const std::string_view head = text.substr(0, task);
  line.limit_owner = Field(head, ",oom_memcg=");
  line.task_cgroup = Field(head, ",task_memcg=");
  // Whoever may make cgroups names them; the limit that was hit is one above the task.
  if (!line.task_cgroup.starts_with(line.limit_owner)) line.limit_owner.clear();
  const size_t pid = text.rfind(",pid=");
  if (pid == std::string_view::npos) return std::nullopt;
  LineCursor end(text.substr(pid + 5));
  const std::optional<int64_t> number = end.TakeNumber();
  if (!number || *number > INT32_MAX || !end.Take(",uid=") || !end.TakeNumber() || !end.at_end())
    return std::nullopt;
  line.pid = static_cast<int32_t>(*number);
  if (line.pid <= 0 || line.scope.empty()) return std::nullopt;
  return line;
}

OomLog::~OomLog() {
  Close();
}

bool OomLog::Open(const char* path) {
  Close();
  fd_ = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd_ < 0) return false;
  lseek(fd_, 0, SEEK_END);
  return true;
}

void OomLog::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  lines_.clear();
}

void OomLog::Read() {
  char record[8192];  // the kernel's own limit of a record
  for (int i = 0; i < kRecordsPerLook; ++i) {
    const ssize_t n = read(fd_, record, sizeof record);
    if (n < 0 && errno == EPIPE) continue;  // overwritten before we looked; the next one is there
    if (n <= 0) return;
    auto line = ParseOomRecord({record, static_cast<size_t>(n)});
    if (!line) continue;
    lines_.push_back(std::move(*line));
    if (lines_.size() > kKept) lines_.pop_front();
  }
}

std::optional<OomLine> OomLog::Find(int32_t pid) {
  if (fd_ < 0) return std::nullopt;
  Read();
  for (auto it = lines_.rbegin(); it != lines_.rend(); ++it) {
    if (it->pid == pid) return *it;
  }
  return std::nullopt;
}

}  // namespace rankscope::probes
