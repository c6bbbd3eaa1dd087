// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_event.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace rankscope::collectors {
namespace {

// proc_event::what; the header declares these inside the struct or outside of it, by its version.
constexpr uint32_t kNone = 0;
constexpr uint32_t kFork = 1;
constexpr uint32_t kExec = 2;
constexpr uint32_t kExit = 0x80000000;

constexpr size_t kHeaders = NLMSG_HDRLEN + sizeof(cn_msg);
// The part of proc_event that every kernel sends; the exit arm grew over time.
constexpr size_t kShortestEvent = offsetof(proc_event, event_data) + 4 * sizeof(int32_t);

ProcEvent Convert(const proc_event& raw) {
  ProcEvent event;
  switch (static_cast<uint32_t>(raw.what)) {
    case kNone:
      event.what = ProcEvent::What::kAck;
      event.error = raw.event_data.ack.err;
      break;
    case kFork:
      event.what = ProcEvent::What::kFork;
      event.pid = raw.event_data.fork.child_pid;
      event.process = raw.event_data.fork.child_tgid;
      event.parent = raw.event_data.fork.parent_tgid;
      break;
    case kExec:
      event.what = ProcEvent::What::kExec;
      event.pid = raw.event_data.exec.process_pid;
      event.process = raw.event_data.exec.process_tgid;
      break;
    case kExit:
      event.what = ProcEvent::What::kExit;
      event.pid = raw.event_data.exit.process_pid;
      event.process = raw.event_data.exit.process_tgid;
      event.wait_status = static_cast<int32_t>(raw.event_data.exit.exit_code);
      break;
    default:
      break;
  }
  return event;
}

}  // namespace

std::vector<ProcEvent> ParseProcEvents(std::string_view datagram) {
  std::vector<ProcEvent> events;
  while (datagram.size() >= kHeaders) {
    nlmsghdr header;
    std::memcpy(&header, datagram.data(), sizeof header);
    if (header.nlmsg_len < kHeaders || header.nlmsg_len > datagram.size()) break;
    cn_msg message;
    std::memcpy(&message, datagram.data() + NLMSG_HDRLEN, sizeof message);
    const size_t payload = std::min<size_t>(message.len, header.nlmsg_len - kHeaders);
    if (message.id.idx == CN_IDX_PROC && message.id.val == CN_VAL_PROC &&
        payload >= kShortestEvent) {
      proc_event raw{};
      std::memcpy(&raw, datagram.data() + kHeaders, std::min(payload, sizeof raw));
      events.push_back(Convert(raw));
      events.back().reply = message.ack;
    }
    const size_t step = NLMSG_ALIGN(header.nlmsg_len);
    datagram.remove_prefix(std::min<size_t>(step, datagram.size()));
  }
  return events;
}

bool Answers(const ProcEvent& event, uint32_t request) {
  return event.what == ProcEvent::What::kAck && event.reply == request + 1;
}

std::optional<bool> IsFirstPidNamespace(std::string_view link) {
  // PROC_PID_INIT_INO of include/linux/proc_ns.h: the same since Linux 3.8.
  constexpr std::string_view kFirst = "pid:[4026531836]";
  if (!link.starts_with("pid:[")) return std::nullopt;
  return link == kFirst;
}

std::string ProcSubscription(bool listen, uint32_t request) {
  const uint32_t operation = listen ? PROC_CN_MCAST_LISTEN : PROC_CN_MCAST_IGNORE;
  nlmsghdr header{};
  header.nlmsg_len = kHeaders + sizeof operation;
  header.nlmsg_type = NLMSG_DONE;
  cn_msg message{};
  message.id = {CN_IDX_PROC, CN_VAL_PROC};
  message.ack = request;
  message.len = sizeof operation;
  std::string bytes(kHeaders + sizeof operation, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + NLMSG_HDRLEN, &message, sizeof message);
  std::memcpy(bytes.data() + kHeaders, &operation, sizeof operation);
  return bytes;
}

}  // namespace rankscope::collectors
