// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/signal_sender.h"

#include "detectors/attribution/launchers.h"

namespace rankscope::windows {
namespace {

struct CommRow {
  std::string_view comm;  // of /proc/PID/comm: cut at 15 bytes
  std::string_view kind;
};
constexpr CommRow kComms[] = {
    {"slurmstepd", "scheduler"},    {"slurmd", "scheduler"},       {"srun", "scheduler"},
    {"pbs_mom", "scheduler"},       {"sge_shepherd", "scheduler"}, {"systemd-oomd", "oom_daemon"},
    {"earlyoom", "oom_daemon"},     {"nohang", "oom_daemon"},      {"oomd", "oom_daemon"},
    {"containerd-shim", "runtime"}, {"runc", "runtime"},           {"crun", "runtime"},
    {"conmon", "runtime"},          {"dockerd", "runtime"},        {"enroot", "runtime"}};

}  // namespace

std::string_view SenderKind(const SignalSent& signal, const attribution::ProcessInfo& target,
                            const attribution::ProcessInfo* sender) {
  if (signal.sender.pid == 0) return "kernel";
  if (signal.sender == signal.target) return "itself";
  // slurmstepd runs as root: a program of a user's that has its name is none.
  for (const CommRow& row : kComms) {
    const bool same = signal.sender_comm == row.comm ||
                      (signal.sender_comm.size() == 15 && row.comm.starts_with(signal.sender_comm));
    if (same && (signal.sender_uid == 0 || signal.sender_uid != target.uid)) return row.kind;
  }
  // A launcher cleans up. Another program that shoots what it has started does something of its
  // own.
  const bool of_job = sender != nullptr && sender->job_id == target.job_id;
  if (of_job || signal.sender == target.parent) {
    const std::string_view command = sender == nullptr ? std::string_view() : sender->command;
    return attribution::LauncherIn(signal.sender_comm, command).empty() ? "job" : "launcher";
  }
  return signal.sender_uid != target.uid ? "other_user" : "same_user";
}

}  // namespace rankscope::windows
