// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/sources.h"

#include <array>

#include "detectors/attribution/environment_keys.h"
#include "exporter/collectors/proc_connector.h"
#include "exporter/collectors/procfs.h"
#include "exporter/collectors/stdout_tail.h"
#include "exporter/probes/process.h"
#include "exporter/probes/stdio.h"
#include "exporter/run/run_listener.h"

namespace rankscope::exporter {
namespace {

collectors::ProcReader MakeReader() {
  return {"/proc", "/sys/fs/cgroup", attribution::IsAllowedEnvironmentKey};
}

std::unique_ptr<Source> MakeRun(const SourceContext& context) {
  return std::make_unique<run::RunListener>(
      context.config.run.socket,
      run::RunListener::Hooks{context.on_wrapper_end, context.resume_after});
}

std::unique_ptr<Source> MakeProcfs(const SourceContext& context) {
  return std::make_unique<collectors::Procfs>(MakeReader(), context.processes,
                                              context.config.FindSource("procfs")->interval);
}

std::unique_ptr<Source> MakeProcConnector(const SourceContext& context) {
  return std::make_unique<collectors::ProcConnector>(MakeReader(), context.processes);
}

std::unique_ptr<Source> MakeProcess(const SourceContext& context) {
  return std::make_unique<probes::Process>(MakeReader(), attribution::IsAllowedEnvironmentKey,
                                           context.processes, context.tracked,
                                           context.config.ebpf.mode == "force");
}

std::unique_ptr<Source> MakeStdio(const SourceContext& context) {
  const Config::Stdio& settings = context.config.stdio;
  auto source = std::make_unique<probes::Stdio>(context.processes, context.tracked, context.who,
                                                probes::SpeechBudget{settings.rate, settings.burst},
                                                context.config.ebpf.mode == "force");
  // `list` and `check` build sources without an agent.
  if (context.before_judging) {
    context.before_judging([stdio = source.get()] { stdio->CatchUp(); });
  }
  return source;
}

std::unique_ptr<Source> MakeStdoutTail(const SourceContext& context) {
  auto source = std::make_unique<collectors::StdoutTail>(
      "/proc", context.processes, context.who, context.config.FindSource("stdout_tail")->interval);
  if (context.before_judging) {
    context.before_judging([tail = source.get()] { tail->CatchUp(); });
  }
  return source;
}

constexpr std::array kSources = {
    SourceRow{"run",
              "output, exit and recording of commands under `rankscope run`",
              "a socket that the jobs' users may reach",
              Duration{},
              false,
              {},
              MakeRun},
    SourceRow{"procfs",
              "training processes, their use of CPU, memory and I/O, memory cgroups",
              "root to see other users' environment and I/O",
              Seconds(1),
              false,
              {},
              MakeProcfs,
              "dac_read_search,sys_ptrace"},
    SourceRow{"proc_connector", "forks, execs and exit statuses as they happen",
              "CAP_NET_ADMIN, the machine's own pid namespace, CONFIG_PROC_EVENTS", Duration{},
              false, "process", MakeProcConnector, "net_admin"},
    SourceRow{"process",
              "every exec with its environment, forks, exit statuses, senders of fatal signals, "
              "out-of-memory kills, counted in the kernel",
              "CAP_BPF and CAP_PERFMON, the machine's own pid namespace, a kernel with BTF, 5.8 or "
              "later",
              Duration{},
              true,
              {},
              MakeProcess,
              "bpf,perfmon,syslog,dac_read_search,sys_ptrace"},
    SourceRow{
        "stdio",
        "what ranks and launchers write to their standard output and error, heard in the "
        "kernel as they write it",
        "as `process`; costs others least where tracefs is mounted or functions can be traced",
        Duration{},
        true,
        {},
        MakeStdio,
        "bpf,perfmon,dac_read_search"},
    SourceRow{
        "stdout_tail",
        "the files that a job's processes have as standard output and error, read as they grow",
        "root to read other users' files", Milliseconds(250), false, "stdio", MakeStdoutTail,
        "dac_read_search,sys_ptrace"},
};

}  // namespace

std::span<const SourceRow> SourceTable() {
  return kSources;
}

std::vector<SourceSettings> SourceDefaults() {
  std::vector<SourceSettings> settings;
  for (const SourceRow& row : kSources) {
    settings.push_back({std::string(row.name), true, row.default_interval});
  }
  return settings;
}

}  // namespace rankscope::exporter
