// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/sources.h"

#include <array>

#include "detectors/attribution/environment_keys.h"
#include "exporter/gpu/dcgm.h"
#include "exporter/gpu/job_mapping.h"
#include "exporter/gpu/kubelet.h"
#include "exporter/gpu/nvml.h"
#include "exporter/infiniband/infiniband.h"
#include "exporter/kernel_log/kmsg.h"
#include "exporter/nccl/nccl_dumps.h"
#include "exporter/nccl/nccl_ras.h"
#include "exporter/output/stdout_tail.h"
#include "exporter/probes/calls/cuda.h"
#include "exporter/probes/calls/nccl.h"
#include "exporter/probes/io/io.h"
#include "exporter/probes/network/network.h"
#include "exporter/probes/process/process.h"
#include "exporter/probes/stdio/stdio.h"
#include "exporter/probes/wait/wait.h"
#include "exporter/processes/pressure.h"
#include "exporter/processes/proc_connector.h"
#include "exporter/processes/procfs.h"
#include "exporter/run/clock.h"
#include "exporter/run/run_listener.h"
#include "exporter/slurm/controller.h"
#include "exporter/slurm/node_agent.h"

namespace rankscope::exporter {
namespace {

collectors::ProcReader MakeReader() {
  return {"/proc", "/sys/fs/cgroup", attribution::IsAllowedEnvironmentKey};
}

std::unique_ptr<Source> MakeRun(const SourceContext& context) {
  return std::make_unique<run::RunListener>(
      context.config.run.socket,
      run::RunListener::Hooks{context.on_wrapper_end, context.resume_after, context.owner_of,
                              context.knows_job, context.ask_owner});
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
  source->NumberFrom(context.streams_heard + 1);
  source->GoOnAfter(context.files_heard, context.wall_offset_ns);
  // `list` and `check` build sources without an agent.
  if (context.before_judging) {
    context.before_judging([stdio = source.get()] { stdio->CatchUp(); });
  }
  return source;
}

std::unique_ptr<Source> MakeCuda(const SourceContext& context) {
  return std::make_unique<probes::Cuda>(context.processes, context.tracked,
                                        context.config.ebpf.mode == "force",
                                        context.config.ebpf.budget);
}

std::unique_ptr<Source> MakeNccl(const SourceContext& context) {
  return std::make_unique<probes::Nccl>(context.processes, context.tracked,
                                        context.config.ebpf.mode == "force");
}

// Programs, the libraries that processes have mapped.
constexpr std::string_view kCallCapabilities =
    "bpf,perfmon,dac_read_search,sys_ptrace,checkpoint_restore";

std::unique_ptr<Source> MakeWait(const SourceContext& context) {
  using Kernel = probes::Wait::Kernel;
  const std::string& mode = context.config.ebpf.mode;
  return std::make_unique<probes::Wait>(context.processes, context.tracked,
                                        mode == "off"     ? Kernel::kOff
                                        : mode == "force" ? Kernel::kForce
                                                          : Kernel::kAuto,
                                        context.config.FindSource("wait")->interval);
}

std::unique_ptr<Source> MakeNetwork(const SourceContext& context) {
  return std::make_unique<probes::Network>(context.processes, context.tracked,
                                           context.config.ebpf.mode == "force");
}

std::unique_ptr<Source> MakeIo(const SourceContext& context) {
  return std::make_unique<probes::Io>(context.processes, context.tracked,
                                      context.config.ebpf.mode == "force");
}

std::unique_ptr<Source> MakeNcclRas(const SourceContext& context) {
  return std::make_unique<collectors::NcclRas>(context.processes,
                                               context.config.FindSource("nccl_ras")->interval);
}

std::unique_ptr<Source> MakeNcclDumps(const SourceContext& context) {
  return std::make_unique<collectors::NcclDumps>(context.processes,
                                                 context.config.FindSource("nccl_dumps")->interval);
}

std::unique_ptr<Source> MakeInfiniband(const SourceContext& context) {
  return std::make_unique<collectors::Infiniband>(
      context.processes, context.config.FindSource("infiniband")->interval);
}

std::unique_ptr<Source> MakePressure(const SourceContext& context) {
  return std::make_unique<collectors::Pressure>(context.processes,
                                                context.config.FindSource("pressure")->interval);
}

std::unique_ptr<Source> MakeKmsg(const SourceContext& context) {
  return std::make_unique<collectors::Kmsg>(context.processes, context.xids);
}

std::unique_ptr<Source> MakeNvml(const SourceContext& context) {
  return std::make_unique<collectors::Nvml>(
      context.config.FindSource("nvml")->interval, collectors::nvml::kLibraryName,
      collectors::NvmlPatience{}, context.processes, context.xids);
}

std::unique_ptr<Source> MakeDcgm(const SourceContext& context) {
  return std::make_unique<collectors::Dcgm>(context.config.gpu.dcgm_url,
                                            context.config.FindSource("dcgm")->interval);
}

std::unique_ptr<Source> MakeKubelet(const SourceContext& context) {
  return std::make_unique<collectors::Kubelet>(context.config.gpu.pod_resources,
                                               context.config.FindSource("kubelet")->interval);
}

std::unique_ptr<Source> MakeJobMapping(const SourceContext& context) {
  return std::make_unique<collectors::JobMapping>(
      context.config.slurm.mapping_dir, context.config.FindSource("job_mapping")->interval,
      context.processes);
}

std::unique_ptr<Source> MakeStdoutTail(const SourceContext& context) {
  auto source = std::make_unique<collectors::StdoutTail>(
      "/proc", context.processes, context.who, context.config.FindSource("stdout_tail")->interval);
  if (context.files_heard) source->GoOnAfter(context.files_heard, context.wall_offset_ns);
  if (context.before_judging) {
    context.before_judging([tail = source.get()] { tail->CatchUp(); });
  }
  return source;
}

// Slurm's own daemons are not asked of by anybody here.
class NoSlurm final : public Source {
 public:
  Status Start(EventLoop&, Sink& sink) override {
    sink_ = &sink;
    TellState(Availability::kNotApplicable, "switched off: slurm.role is off");
    return {};
  }
  void Stop() override {}
};

std::unique_ptr<Source> MakeSlurm(const SourceContext& context) {
  const Config::Slurm& settings = context.config.slurm;
  if (settings.role == "off") return std::make_unique<NoSlurm>();
  std::vector<std::string> environment;
  if (!settings.conf.empty()) environment.push_back("SLURM_CONF=" + settings.conf);
  if (settings.role == "controller") {
    slurm::Commands commands(slurm::CommandFolders(), std::move(environment),
                             {settings.restd_url, settings.restd_curl_config});
    return std::make_unique<slurm::Controller>(
        std::move(commands), context.config.FindSource("slurm")->interval,
        context.config.state.dir + "/slurm-events.jsonl", run::WallNowNs, context.on_summary);
  }
  slurm::Commands commands(slurm::CommandFolders(), std::move(environment));
  return std::make_unique<slurm::NodeAgent>(std::move(commands), settings.controller_url,
                                            context.slurm_questions, slurm::NodeAgent::Patience{},
                                            context.on_owner, context.on_wish);
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
    SourceRow{"stdio",
              "what ranks and launchers write to their standard output and error, captured in the "
              "kernel as they write it",
              "as `process`; costs other processes least where tracefs is mounted or functions can "
              "be traced",
              Duration{},
              true,
              {},
              MakeStdio,
              "bpf,perfmon,dac_read_search"},
    SourceRow{
        "stdout_tail",
        "the files that a job's processes have as standard output and error, read as they grow",
        "root with CAP_SETUID and CAP_SETGID, to read users' files with their own rights",
        Milliseconds(250), false, "stdio", MakeStdoutTail},
    SourceRow{"wait",
              "what the threads of ranks wait for, which are stopped or get no CPU, and their "
              "stacks when they make no progress",
              "root to see other users' threads; counted in the kernel where programs can run "
              "there, otherwise sampled from /proc every second",
              Seconds(1),
              false,
              {},
              MakeWait,
              "bpf,perfmon,dac_read_search,sys_ptrace"},
    SourceRow{
        "network",
        "connections refused, unanswered, unreachable or made, listeners and ports in use, "
        "names that do not resolve, retransmits, resets, bytes, counted in the kernel",
        "as `process`; tracefs for what fails before a packet is sent; for names uprobes: 6.6 "
        "or later, or CAP_SYS_ADMIN",
        Duration{},
        true,
        {},
        MakeNetwork,
        "bpf,perfmon,dac_read_search,sys_ptrace"},
    SourceRow{"io",
              "checkpoints written, read, and looked for but not found; file errors, syncs, free "
              "space; counted in the kernel",
              "as `process`; 5.15 or later; tracefs, mounted or with CAP_SYS_ADMIN at the start to "
              "mount it privately",
              Duration{},
              true,
              {},
              MakeIo,
              "bpf,perfmon,dac_read_search,sys_ptrace"},
    SourceRow{"cuda",
              "kernel and graph launches, synchronisation, copies and allocations of each rank, "
              "counted in the kernel",
              "CAP_BPF and CAP_PERFMON, a kernel with BTF, 5.15 or later; before 6.6 CAP_SYS_ADMIN",
              Duration{},
              true,
              {},
              MakeCuda,
              kCallCapabilities,
              true},
    SourceRow{"nccl",
              "collectives that each rank enters, communicators, work in flight, counted in the "
              "kernel",
              "as cuda",
              Duration{},
              true,
              {},
              MakeNccl,
              kCallCapabilities,
              true},
    SourceRow{"nccl_ras",
              "what NCCL's RAS service reports about all ranks of each job: which have launched "
              "fewer collectives, are dead or do not answer, and, from 2.28.7 on, whether its "
              "numbering of ranks agrees with their environment",
              "NCCL 2.24 or later in the job; CAP_SYS_ADMIN if the job has a network namespace of "
              "its own",
              Seconds(30),
              false,
              {},
              MakeNcclRas,
              "dac_read_search,sys_ptrace"},
    SourceRow{
        "nccl_dumps",
        "dumps of PyTorch's Flight Recorder and logs of the NCCL Inspector, if a job writes them",
        "as `stdout_tail`; root to see other users' environment",
        Seconds(2),
        false,
        {},
        MakeNcclDumps,
        "dac_read_search,sys_ptrace"},
    SourceRow{"infiniband",
              "bytes and errors of the node's InfiniBand, RoCE and EFA ports under each run",
              "/sys/class/infiniband",
              Seconds(5),
              false,
              {},
              MakeInfiniband},
    SourceRow{"pressure",
              "time for which tasks of the host and of each job waited for CPU, memory or I/O",
              "a kernel with PSI; for jobs, cgroups of version 2",
              Seconds(5),
              false,
              {},
              MakePressure},
    SourceRow{"kmsg",
              "Xids and other messages of the kernel about GPUs, memory, buses, disks, file "
              "servers and hung tasks",
              "CAP_SYSLOG (root) and the machine's own /dev/kmsg",
              Duration{},
              false,
              {},
              MakeKmsg,
              "syslog"},
    SourceRow{"nvml",
              "activity and health of each NVIDIA GPU: memory, processes, power, temperature, "
              "clocks, throttling, links, errors, Xids",
              "libnvidia-ml.so.1 of the driver, access to /dev/nvidia*",
              Seconds(1),
              false,
              {},
              MakeNvml},
    SourceRow{"dcgm",
              "activity of the units of GPUs before Hopper, as counted by the node's "
              "dcgm-exporter; for /metrics only",
              "dcgm-exporter at gpu.dcgm_url with DCGM_FI_PROF_* among its counters; nvml",
              Seconds(10),
              false,
              {},
              MakeDcgm},
    SourceRow{"kubelet",
              "which pod has which GPU, on a node of Kubernetes; for /metrics only",
              "the kubelet's socket gpu.pod_resources, as root",
              Seconds(10),
              false,
              {},
              MakeKubelet},
    SourceRow{"slurm",
              "Slurm's records of the node's jobs when they begin and when they end badly; with "
              "the role controller, of all jobs and nodes",
              "slurm.controller_url, or scontrol and sacct on the node",
              Seconds(30),
              false,
              {},
              MakeSlurm},
    SourceRow{
        "job_mapping",
        "which job was given which GPU, from the files that a prolog writes for dcgm-exporter",
        "slurm.mapping_dir",
        Seconds(5),
        false,
        {},
        MakeJobMapping},
};

}  // namespace

std::span<const SourceRow> SourceTable() {
  return kSources;
}

std::vector<SourceSettings> SourceDefaults() {
  std::vector<SourceSettings> settings;
  settings.reserve(std::size(kSources));
  for (const SourceRow& row : kSources) {
    settings.push_back({std::string(row.name), true, row.default_interval});
  }
  return settings;
}

}  // namespace rankscope::exporter
