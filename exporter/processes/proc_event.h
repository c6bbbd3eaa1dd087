// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The messages of the kernel's process connector (Documentation/driver-api/connector.rst,
// linux/cn_proc.h) as values. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::collectors {

struct ProcEvent {
  enum class What { kAck, kFork, kExec, kExit, kOther };
  What what = What::kOther;
  int32_t pid = 0;  // the thread; equal to process for a process's leader
  int32_t process = 0;
  int32_t parent = 0;       // kFork: the parent process
  int32_t wait_status = 0;  // kExit: as waitpid gives it
  uint32_t error = 0;       // kAck: errno
  uint32_t reply = 0;       // kAck: the number of the request that it answers, plus one
};

// Whether the kernel answers the request of this number: acknowledgements go to all who listen, and
// carry back nothing else of what was sent (drivers/connector/cn_proc.c, cn_proc_ack()).
bool Answers(const ProcEvent& event, uint32_t request);

// All events of one datagram; stops at the first damaged message.
std::vector<ProcEvent> ParseProcEvents(std::string_view datagram);

// The message that subscribes to all events, or ends the subscription.
std::string ProcSubscription(bool listen, uint32_t request);

// Of what /proc/self/ns/pid leads to: whether it is the machine's first pid namespace. The kernel
// tells of processes by their ids in that one, and answers to nobody in another. nullopt: not
// known.
std::optional<bool> IsFirstPidNamespace(std::string_view link);

}  // namespace rankscope::collectors
