// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/thread_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace rankscope::http {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "name this architecture's AUDIT_ARCH_*"
#endif

// The most frequent first: the kernel compares one by one (since 5.11 it remembers what is always
// allowed).
constexpr long kAllowed[] = {
    // Sockets, and what wakes a thread.
    SYS_epoll_pwait,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_futex,
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_recvfrom,
    SYS_sendto,
    SYS_accept,
    SYS_accept4,
    SYS_epoll_ctl,
    SYS_close,
    SYS_shutdown,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_getsockname,
    SYS_getpeername,
    SYS_ioctl,
    SYS_fcntl,
    SYS_ppoll,
    SYS_timerfd_settime,
    // Memory.
    SYS_mmap,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_mprotect,
    SYS_brk,
    // Clocks, chance, waiting, and the thread's own end or the process's by abort().
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_restart_syscall,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigaction,
    SYS_sigaltstack,
    SYS_membarrier,
    SYS_rseq,
    SYS_set_robust_list,
    SYS_getpid,
    SYS_gettid,
    SYS_tgkill,
    SYS_exit,
    SYS_exit_group,
#ifdef SYS_epoll_wait  // not on arm64
    SYS_epoll_wait,
    SYS_poll,
#endif
};

std::vector<sock_filter> Program() {
  constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
  const auto load = [](size_t offset) {
    return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
  };
  const auto answer = [](uint32_t what) { return sock_filter BPF_STMT(BPF_RET | BPF_K, what); };
  std::vector<sock_filter> program = {
      load(offsetof(seccomp_data, arch)),
      // Other calling conventions have other numbers; x32's are above all that are listed.
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      answer(kRefuse),
      load(offsetof(seccomp_data, nr)),
  };
  for (const long call : kAllowed) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    program.push_back(answer(SECCOMP_RET_ALLOW));
  }
  program.push_back(answer(kRefuse));
  return program;
}

}  // namespace

Status RestrictThread() {
  std::vector<sock_filter> program = Program();
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  // Of this thread only, as is the filter: what others start stays as it is.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    return Error{"cannot restrict the HTTP threads with seccomp: " +
                 std::string(std::strerror(errno)) + "; needs a kernel with CONFIG_SECCOMP_FILTER"};
  }
  return {};
}

}  // namespace rankscope::http
