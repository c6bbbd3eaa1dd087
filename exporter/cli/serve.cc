// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope serve`: the daemon, in the foreground.
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "exporter/cli/commands.h"
#include "exporter/cli/config_options.h"
#include "exporter/daemon/agent.h"
#include "exporter/daemon/privileges.h"
#include "exporter/daemon/service_manager.h"
#include "exporter/loop/user_threads.h"
#include "exporter/probes/attach/kernel_gate.h"
#include "exporter/probes/attach/syscall_tracepoints.h"
#include "exporter/version.h"

namespace rankscope::cli {
namespace {

constexpr int kReturned = 4 << 20;  // bytes

// Termination and SIGHUP come as a readable descriptor: blocked here, before any thread exists, and
// so in every thread.
int OpenSignals() {
  sigset_t terminate;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  sigaddset(&terminate, SIGINT);
  sigaddset(&terminate, SIGHUP);  // reads the configuration again
  sigprocmask(SIG_BLOCK, &terminate, nullptr);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);  // clients go away
  sigaction(SIGXFSZ, &ignore, nullptr);  // `ulimit -f` shows as a write error instead
  return signalfd(-1, &terminate, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Each wrapper passes up to six descriptors; the usual soft limit is 1024.
void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Whether all signals that came were SIGHUP.
bool OnlyHangups(int signals) {
  signalfd_siginfo signal{};
  bool only = true;
  while (read(signals, &signal, sizeof signal) == sizeof signal)
    only = only && signal.ssi_signo == SIGHUP;
  return only;
}

int Serve(const exporter::Config& config, exporter::Agent::LoadConfig load) {
  exporter::Logger log(config.log.level, config.log.format);
  const exporter::ServiceManager manager;
  const int signals = OpenSignals();
  RaiseFileLimit();
  if (config.ebpf.mode != "off") probes::SyscallTracepoints();  // while there are rights to read it
  exporter::PrepareUserThreads();                               // keeps what is given up below
  const std::vector<std::string> kept =
      exporter::NeededCapabilities(config, !probes::HasMultiAttach(probes::ReadKernel()));
  if (const Status dropped = exporter::KeepOnly(kept); !dropped.ok()) {
    log.Warn("cannot drop privileges: the daemon keeps more than it needs",
             {{"reason", dropped.error()}});
  }
  exporter::EventLoop loop;
  std::function<void()> reload;  // once the agent runs
  const auto on_signal = [&](uint32_t) {
    if (!OnlyHangups(signals)) return loop.Stop();
    if (reload) reload();
  };
  if (const Status watched = loop.Watch(signals, EPOLLIN, on_signal); !watched.ok()) {
    log.Error("cannot start", {{"reason", watched.error()}});
    return 1;
  }
  int status = 0;
  {
    exporter::Agent agent(config, loop, log, std::move(load));
    log.Info("starting", {{"version", kVersionText}, {"state_dir", config.state.dir}});
    if (const Status started = agent.Start(); started.ok()) {
      const auto ports = agent.ports();
      for (size_t i = 0; i < ports.size(); ++i) {
        const std::string& address = config.web.listen[i];
        log.Info("listening", {{"address", address.substr(0, address.rfind(':') + 1) +
                                               std::to_string(ports[i])}});
      }
      manager.KeepAlive(loop);
      manager.Tell("READY=1\nSTATUS=watching this node");
      reload = [&agent, &manager] {
        manager.Tell("RELOADING=1");
        agent.Reload([&manager](const Status&) { manager.Tell("READY=1"); });
      };
      loop.Run();
      reload = nullptr;
      manager.Tell("STOPPING=1");
      log.Info("stopping");
      // What hangs in the kernel cannot be waited for, and must not be taken apart while it hangs.
      if (!agent.Stop()) _exit(status);
    } else {
      log.Error("cannot start", {{"reason", started.error()}});
      status = 1;
    }
  }
  close(signals);
  return status;
}

}  // namespace

int ServeCommand(int argc, char** argv) {
  CLI::App app(
      "Watch this node and serve /metrics and /verdict until SIGTERM. Exit status: 0; 1 if it "
      "cannot start; 2 for an error in the configuration or usage.",
      "rankscope serve");
  ConfigOptions options(app);
  const std::variant<exporter::Config, int> settled = options.Settle(argc, argv);
  if (const int* status = std::get_if<int>(&settled)) return *status;
  const exporter::Config& config = std::get<exporter::Config>(settled);
  // What is as large as this is as rare as Slurm's answers about all jobs, and goes back to the
  // kernel. glibc raises its own bound to the largest that was ever freed and keeps those. The
  // heap's end stays, as it does where glibc chooses: pages of metrics come and go there.
  mallopt(M_MMAP_THRESHOLD, kReturned);
  mallopt(M_TRIM_THRESHOLD, 2 * kReturned);
  return Serve(config, [&options] { return options.Load(); });
}

}  // namespace rankscope::cli
