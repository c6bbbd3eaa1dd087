// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/user_threads.h"

#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

namespace rankscope::exporter {
namespace {

// The sets of the calling thread, each as one number. libcap's types allocate, and its library is
// the agent's alone.
struct Capabilities {
  uint64_t effective = 0;
  uint64_t permitted = 0;
};

constexpr uint64_t Bit(int capability) {
  return uint64_t{1} << capability;
}

Capabilities Current() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (syscall(SYS_capget, &header, data) != 0) return {};
  return {data[0].effective | uint64_t{data[1].effective} << 32,
          data[0].permitted | uint64_t{data[1].permitted} << 32};
}

// Empties the inheritable set, and with it the ambient one.
bool Apply(const Capabilities& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i) {
    data[i].effective = static_cast<uint32_t>(sets.effective >> (32 * i));
    data[i].permitted = static_cast<uint32_t>(sets.permitted >> (32 * i));
  }
  return syscall(SYS_capset, &header, data) == 0;
}

// The calls below are the kernel's own, for this thread alone: glibc's setgroups() would change all
// threads of the process.
bool Become(const UserIdentity& who) {
  const int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  const bool grouped =
      syscall(SYS_setgroups, who.groups.size(), who.groups.data()) == 0 || who.uid == geteuid();
  setfsgid(who.gid);
  setfsuid(who.uid);
  // An id that is none tells the present one.
  const bool switched = grouped && static_cast<uint32_t>(setfsuid(~0u)) == who.uid &&
                        (static_cast<uint32_t>(setfsgid(~0u)) == who.gid || who.uid == geteuid());
  // The kernel marks the process as one that has changed its user (commit_creds()); who may trace
  // it goes by the ids that have stayed.
  if (dumpable == 1) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  return Apply({0, Current().permitted & Bit(CAP_SYS_PTRACE)}) && switched;
}

class Spawner {
 public:
  Spawner() {
    // It lives as long as the process, and nothing of it outlives a request.
    std::thread([this] { Serve(); }).detach();
  }

  std::thread Start(const UserIdentity& who, std::function<void()> body) {
    std::packaged_task<std::thread()> request(
        [&who, body = std::move(body)] { return Spawn(who, body); });
    std::future<std::thread> answer = request.get_future();
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(std::move(request));
    }
    wake_.notify_one();
    return answer.get();
  }

 private:
  void Serve() {
    constexpr uint64_t kKept = Bit(CAP_SETUID) | Bit(CAP_SETGID) | Bit(CAP_SYS_PTRACE);
    const uint64_t kept = Current().permitted & kKept;
    Apply({kept, kept});
    for (;;) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !requests_.empty(); });
      std::packaged_task<std::thread()> request = std::move(requests_.front());
      requests_.pop_front();
      lock.unlock();
      request();
    }
  }

  // A thread has the credentials of the one that makes it.
  static std::thread Spawn(const UserIdentity& who, const std::function<void()>& body) {
    std::promise<bool> told;
    std::future<bool> is_user = told.get_future();
    std::thread thread;
    try {
      thread = std::thread([who, body, told = std::move(told)]() mutable {
        const bool is = Become(who);
        told.set_value(is);
        if (is) body();
      });
    } catch (const std::system_error&) {
      return {};  // no more threads
    }
    if (is_user.get()) return thread;
    thread.join();
    return {};
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::packaged_task<std::thread()>> requests_;
};

Spawner& OfProcess() {
  static Spawner* const spawner = new Spawner;
  return *spawner;
}

}  // namespace

void PrepareUserThreads() {
  if (geteuid() == 0) OfProcess();
}

std::thread StartAs(const UserIdentity& who, std::function<void()> body) {
  if (geteuid() == 0) return OfProcess().Start(who, std::move(body));
  if (who.uid != geteuid()) return {};
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error&) {
    return {};
  }
}

ProcessAccess::ProcessAccess() {
  Capabilities sets = Current();
  if ((sets.effective & Bit(CAP_SYS_PTRACE)) != 0) return;
  if ((sets.permitted & Bit(CAP_SYS_PTRACE)) == 0) return;
  sets.effective |= Bit(CAP_SYS_PTRACE);
  raised_ = Apply(sets);
}

ProcessAccess::~ProcessAccess() {
  if (!raised_) return;
  Capabilities sets = Current();
  sets.effective &= ~Bit(CAP_SYS_PTRACE);
  Apply(sets);
}

}  // namespace rankscope::exporter
