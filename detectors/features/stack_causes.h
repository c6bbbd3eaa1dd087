// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a thread that does not move is about, by its stack: Python frames where they are known, else
// the kernel's functions. A table; pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace rankscope::features {

enum class StackCause : uint8_t {
  kUnknown,
  // It waits for other ranks: a victim.
  kCollective,
  kBarrier,
  kTokenDispatch,
  kLoadCollective,  // ranks gather a checkpoint's parts from each other
  kRendezvous,
  kSynchronize,  // for the GPU
  // It is about something of its own.
  kDataLoader,
  kGarbageCollection,
  kCompile,
  kSave,
  kLoad,
  kFileLock,
  kBuildLock,  // of the cache of compiled extensions
  kDownload,
  kDebugger,
  kSleep,
  kNetworkFile,
  kLocalFile,
  kDriver,
  kChild,
  kPipe,
  kFuse,
  kFifo,
  kPeer,
};
inline constexpr int kStackCauses = static_cast<int>(StackCause::kPeer) + 1;

struct Stack {
  std::string_view python;  // "module:function", innermost first, joined by ';'; empty = not known
  std::string_view kernel;  // functions, innermost first, joined by ';'
  std::string_view wchan;
  std::string_view fd;   // what kind of file the system call is about
  bool foreign = false;  // a socket, whose other end is no process of the job
};

StackCause CauseOf(const Stack& stack);

// "dataloader", and a phrase that goes on from "rank 1": "waits for its data loader".
std::string_view CauseName(StackCause cause);
std::string_view CausePhrase(StackCause cause);

// It waits for other ranks or for the GPU, so that it explains nothing by itself.
bool IsVictim(StackCause cause);

}  // namespace rankscope::features
