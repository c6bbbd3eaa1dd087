// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/thread_snapshot.h"

#include <algorithm>

#include "detectors/model/event_types.h"
#include "exporter/probes/wait/python_stack.h"
#include "exporter/probes/wait/socket_peer.h"

namespace rankscope::probes {
namespace {

constexpr size_t kMostThreads = 256;
constexpr size_t kKernelFrames = 12;
constexpr size_t kTextCap = 1024;
constexpr Duration kPythonDeadline = Seconds(5);

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    if (text.size() + part.size() + 1 > kTextCap) break;
    if (!text.empty()) text += ';';
    text += part;
  }
  return text;
}

// The thread that tells most: one that a device or a server holds, else the main thread.
const ThreadLook* Telling(const std::vector<ThreadLook>& looks) {
  for (const ThreadLook& look : looks) {
    if (look.state == 'D') return &look;
  }
  return looks.empty() ? nullptr : &looks.front();
}

// A receive needs no look at its descriptor to be classed, and is about one all the same.
std::string FileOf(const ThreadReader& reader, int32_t pid, const ThreadLook& look) {
  if (!look.call || !look.file_kind.empty()) return look.file_kind;
  const std::string_view call = CallName(look.call->number);
  const bool receives = call == "recvfrom" || call == "recvmsg";
  return receives ? reader.KindOfFile(pid, look.call->first) : std::string();
}

}  // namespace

std::optional<Event> TakeSnapshot(const ThreadReader& reader, const std::string& py_spy,
                                  const ProcessKey& process, std::span<const int32_t> own) {
  std::vector<ThreadLook> looks;
  for (const int32_t tid : reader.Threads(process.pid, kMostThreads)) {
    if (auto look = reader.Look(process.pid, tid)) looks.push_back(std::move(*look));
  }
  const ThreadLook* const look = Telling(looks);
  if (look == nullptr) return std::nullopt;
  Event event;
  event.process = process;
  event.type = WireType(EventType::kThreadSnapshot);
  const auto tell = [&event](const char* key, std::string value) {
    if (!value.empty()) event.str.push_back({key, std::move(value)});
  };
  std::string call(look->call ? CallName(look->call->number) : std::string_view());
  if (call.empty() && look->call && look->call->number >= 0)
    call = "system call " + std::to_string(look->call->number);
  tell("class", std::string(kWaitClassNames[static_cast<size_t>(look->wait_class())]));
  tell("wchan", reader.WaitChannel(process.pid, look->tid));
  tell("syscall", std::move(call));
  const std::string file = FileOf(reader, process.pid, *look);
  tell("fd", file);
  tell("stack", Joined(reader.KernelStack(process.pid, look->tid, kKernelFrames)));
  if (look->wait_class() == WaitClass::kFileLock) tell("holder", reader.LockHolder(process.pid));
  if (file == "socket" && look->call)
    tell("peer", ForeignPeer(reader.root(), process.pid, look->call->first, own));
  if (!py_spy.empty())
    tell("python", Joined(MainFrames(DumpPython(py_spy, process.pid, kPythonDeadline))));
  const auto count = [&looks](char state) {
    return std::count_if(looks.begin(), looks.end(),
                         [state](const ThreadLook& of) { return of.state == state; });
  };
  event.num = {{"threads", static_cast<int64_t>(looks.size())},
               {"tid", look->tid},
               {"uninterruptible", count('D')},
               {"running", count('R')}};
  return event;
}

}  // namespace rankscope::probes
