// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel's log says of an out-of-memory kill: which kind of limit, and whose. The line is
// written before the victim is marked, so it is there when the kill's event is. Loop thread only;
// never waits.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace rankscope::probes {

struct OomLine {
  int32_t pid = 0;
  std::string scope;        // cgroup | host | cpuset | mempolicy
  std::string limit_owner;  // the cgroup whose limit was hit, where it is one
  std::string task_cgroup;
  std::string text;  // the line as the log has it
  int64_t sequence = 0;
};

// One record of /dev/kmsg ("6,1234,99999,-;oom-kill:constraint=...") as an OomLine; nullopt for any
// other record. Layout: mm/oom_kill.c, dump_oom_summary.
std::optional<OomLine> ParseOomRecord(std::string_view record);

class OomLog {
 public:
  OomLog() = default;
  ~OomLog();
  OomLog(const OomLog&) = delete;
  OomLog& operator=(const OomLog&) = delete;

  // From here on; false where the log cannot be read.
  bool Open(const char* path = "/dev/kmsg");
  void Close();
  // The newest line about this process.
  std::optional<OomLine> Find(int32_t pid);

 private:
  static constexpr size_t kKept = 64;           // lines about others, whose events may follow
  static constexpr int kRecordsPerLook = 4096;  // a full log of a noisy machine

  void Read();

  int fd_ = -1;
  std::deque<OomLine> lines_;
};

}  // namespace rankscope::probes
