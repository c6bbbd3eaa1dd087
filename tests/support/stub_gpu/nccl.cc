// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The stub libnccl.so.2: communicators with a real meeting of the ranks, collectives that are
// queued on a stream and are through when all ranks have reached them. Each queues one kernel
// through a pointer from cuGetProcAddress, as the real one does. Counts its calls and bytes.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/stub_gpu/abi.h"
#include "tests/support/stub_gpu/communicator.h"
#include "tests/support/stub_gpu/counts.h"

namespace stub_gpu {
namespace {

constexpr int64_t kBytesPerNanosecond = 100;  // of a collective

// Sizes of ncclDataType_t, by its values: int8 uint8 int32 uint32 int64 uint64 half float double
// bf16.
constexpr size_t kTypeBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

struct Driver {
  Result (*launch)(const LaunchConfig*, Handle, void**, void**) = nullptr;
  int64_t (*enqueue)(Handle, int64_t) = nullptr;
  void (*enqueue_wait)(Handle, Done, void*, uint64_t) = nullptr;

  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      std::fprintf(stderr, "stub libnccl: %s\n", dlerror());
      std::abort();
    }
    using GetProcAddress = Result (*)(const char*, void**, int, uint64_t, int*);
    const auto get = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
    void* address = nullptr;
    get("cuLaunchKernelEx", &address, 11060, 0, nullptr);
    launch = reinterpret_cast<decltype(launch)>(address);
    enqueue = reinterpret_cast<decltype(enqueue)>(dlsym(library, "stubGpuEnqueue"));
    enqueue_wait = reinterpret_cast<decltype(enqueue_wait)>(dlsym(library, "stubGpuEnqueueWait"));
  }
};

const Driver& TheDriver() {
  static const Driver& driver = *new Driver;
  return driver;
}

// Says at the right moment that this rank's card has come to a collective: when what was queued on
// the stream before it is through. In order of time, since one stream is usual for one
// communicator.
class Proxy {
 public:
  Proxy() {
    std::thread([this] { Run(); }).detach();
  }

  void Block() { blocked_ = true; }
  void Add(Communicator* communicator, uint64_t sequence, int64_t at_ns) {
    const std::lock_guard lock(mutex_);
    queue_.push_back({communicator, sequence, at_ns});
    changed_.notify_one();
  }

 private:
  struct Arrival {
    Communicator* communicator;
    uint64_t sequence;
    int64_t at_ns;
  };

  void Run() {
    pthread_setname_np(pthread_self(), "NCCL Progress");
    while (true) {
      Arrival arrival{};
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !queue_.empty(); });
        arrival = queue_.front();
        queue_.pop_front();
      }
      const timespec at{arrival.at_ns / 1'000'000'000, arrival.at_ns % 1'000'000'000};
      clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
      // A stream works in order: what came before on this communicator must be through.
      while (!arrival.communicator->Complete(arrival.sequence - 1)) {
        const timespec pause{0, 200'000};
        nanosleep(&pause, nullptr);
      }
      while (blocked_) pause();
      arrival.communicator->Reach(arrival.sequence);
    }
  }

  std::atomic<bool> blocked_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Arrival> queue_;
};

Proxy& TheProxy() {
  static Proxy& proxy = *new Proxy;
  return proxy;
}

struct Operation {
  Communicator* communicator;
  uint64_t bytes;
  Handle stream;
  bool collective;
};

thread_local int group_depth = 0;
thread_local std::vector<Operation> group;

bool IsComplete(void* communicator, uint64_t sequence) {
  return static_cast<Communicator*>(communicator)->Complete(sequence);
}

void Start(const Operation& operation) {
  const Driver& driver = TheDriver();
  const LaunchConfig config{1, 1, 1, 256, 1, 1, 0, operation.stream, nullptr, 0};
  driver.launch(&config, nullptr, nullptr, nullptr);
  const int64_t through =
      driver.enqueue(operation.stream, static_cast<int64_t>(operation.bytes) / kBytesPerNanosecond);
  if (!operation.collective) return;  // to a peer: time passes, nobody is waited for
  const uint64_t sequence = operation.communicator->Next();
  TheProxy().Add(operation.communicator, sequence, through);
  driver.enqueue_wait(operation.stream, IsComplete, operation.communicator, sequence);
}

Result Enqueue(const char* call, const char* bytes_name, size_t count, int type,
               Communicator* communicator, Handle stream, bool collective = true) {
  Count(call);
  if (communicator == nullptr || type < 0 || type >= static_cast<int>(std::size(kTypeBytes)))
    return kNcclInvalidArgument;
  const uint64_t bytes = count * kTypeBytes[type];
  Count(bytes_name, bytes);
  const Operation operation{communicator, bytes, stream, collective};
  if (group_depth > 0) {
    group.push_back(operation);
  } else {
    Start(operation);
  }
  return kSuccess;
}

Result Init(const char* call, Communicator** out, int ranks, const UniqueId& id, int rank) {
  Count(call);
  *out = nullptr;
  if (ranks < 1 || ranks > kMaxRanks || rank < 0 || rank >= ranks) return kNcclInvalidArgument;
  auto* communicator = new Communicator(id.internal, rank, ranks);
  if (!communicator->Valid()) return kNcclSystemError;
  *out = communicator;
  return kSuccess;
}

}  // namespace

extern "C" {

void stubNcclBlock() {
  TheProxy().Block();
}

Result ncclGetVersion_impl(int* version) {
  *version = 22005;
  return kSuccess;
}
Result ncclGetUniqueId_impl(UniqueId* id) {
  Count("ncclGetUniqueId");
  std::random_device random;
  std::memset(id->internal, 0, sizeof(id->internal));
  std::snprintf(id->internal, sizeof(id->internal), "/stub_nccl_%08x%08x", random(), random());
  return kSuccess;
}
const char* ncclGetErrorString_impl(Result result) {
  return result == kSuccess ? "no error" : "stub error";
}

Result ncclCommInitRank_impl(Communicator** out, int ranks, UniqueId id, int rank) {
  return Init("ncclCommInitRank", out, ranks, id, rank);
}
Result ncclCommInitRankConfig_impl(Communicator** out, int ranks, UniqueId id, int rank, void*) {
  return Init("ncclCommInitRankConfig", out, ranks, id, rank);
}
Result ncclCommSplit_impl(Communicator* communicator, int colour, int key, Communicator** out,
                          void*) {
  Count("ncclCommSplit");
  *out = communicator->Split(colour, key);
  return kSuccess;
}
Result ncclCommFinalize_impl(Communicator*) {
  Count("ncclCommFinalize");
  return kSuccess;
}
Result ncclCommDestroy_impl(Communicator*) {
  Count("ncclCommDestroy");
  return kSuccess;
}
Result ncclCommAbort_impl(Communicator*) {
  Count("ncclCommAbort");
  return kSuccess;
}
Result ncclCommGetAsyncError_impl(Communicator*, Result* error) {
  Count("ncclCommGetAsyncError");
  *error = kSuccess;
  return kSuccess;
}
Result ncclCommCount_impl(Communicator* communicator, int* count) {
  *count = communicator->ranks();
  return kSuccess;
}
Result ncclCommUserRank_impl(Communicator* communicator, int* rank) {
  *rank = communicator->rank();
  return kSuccess;
}

Result ncclGroupStart_impl() {
  Count("ncclGroupStart");
  ++group_depth;
  return kSuccess;
}
Result ncclGroupEnd_impl() {
  Count("ncclGroupEnd");
  if (group_depth == 0) return kNcclInvalidArgument;
  if (--group_depth > 0) return kSuccess;
  for (const Operation& operation : group) Start(operation);
  group.clear();
  return kSuccess;
}

Result ncclAllReduce_impl(const void*, void*, size_t count, int type, int, Communicator* comm,
                          Handle stream) {
  return Enqueue("ncclAllReduce", "ncclAllReduce.bytes", count, type, comm, stream);
}
Result ncclAllGather_impl(const void*, void*, size_t count, int type, Communicator* comm,
                          Handle stream) {
  return Enqueue("ncclAllGather", "ncclAllGather.bytes", count, type, comm, stream);
}
Result ncclReduceScatter_impl(const void*, void*, size_t count, int type, int, Communicator* comm,
                              Handle stream) {
  return Enqueue("ncclReduceScatter", "ncclReduceScatter.bytes", count, type, comm, stream);
}
Result ncclBroadcast_impl(const void*, void*, size_t count, int type, int, Communicator* comm,
                          Handle stream) {
  return Enqueue("ncclBroadcast", "ncclBroadcast.bytes", count, type, comm, stream);
}
Result ncclBcast_impl(void*, size_t count, int type, int, Communicator* comm, Handle stream) {
  return Enqueue("ncclBcast", "ncclBcast.bytes", count, type, comm, stream);
}
Result ncclReduce_impl(const void*, void*, size_t count, int type, int, int, Communicator* comm,
                       Handle stream) {
  return Enqueue("ncclReduce", "ncclReduce.bytes", count, type, comm, stream);
}
Result ncclAlltoAll_impl(const void*, void*, size_t count, int type, Communicator* comm,
                         Handle stream) {
  return Enqueue("ncclAlltoAll", "ncclAlltoAll.bytes", count, type, comm, stream);
}
Result ncclSend_impl(const void*, size_t count, int type, int, Communicator* comm, Handle stream) {
  return Enqueue("ncclSend", "ncclSend.bytes", count, type, comm, stream, false);
}
Result ncclRecv_impl(void*, size_t count, int type, int, Communicator* comm, Handle stream) {
  return Enqueue("ncclRecv", "ncclRecv.bytes", count, type, comm, stream, false);
}

}  // extern "C"

}  // namespace stub_gpu
