// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope check`: is the configuration right, and what can be observed on this machine, and if
// not, why.
#include <linux/connector.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "exporter/cli/commands.h"
#include "exporter/cli/config_options.h"
#include "exporter/daemon/privileges.h"
#include "exporter/daemon/sources.h"
#include "exporter/probes/attach/kernel_gate.h"
#include "exporter/processes/pressure.h"
#include "exporter/slurm/commands.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

struct Finding {
  std::string name;
  std::string state;  // yes | partly | no | off
  std::string text;
};

bool Readable(const char* path) {
  return access(path, R_OK) == 0;
}

std::string ParentOf(const std::string& path) {
  fs::path at = fs::path(path);
  std::error_code error;
  while (!at.empty() && at != at.root_path() && !fs::exists(at, error)) at = at.parent_path();
  return at.string();
}

Finding CheckDirectory(const std::string& name, const std::string& path, const std::string& what,
                       const std::string& remedy) {
  const std::string there = ParentOf(path);
  if (access(there.c_str(), W_OK | X_OK) == 0) return {name, "yes", what + " in " + path};
  return {name, "no", there + " is not writable: " + std::strerror(errno) + "; " + remedy};
}

// Connecting needs the right to write to the socket, and of its folder only the right to pass.
Finding CheckSocket(const std::string& path) {
  std::error_code error;
  if (!fs::is_socket(path, error)) {
    return CheckDirectory("run", path, "socket of `rankscope run`",
                          "create its directory, or choose another socket with --run.socket");
  }
  if (access(path.c_str(), W_OK) == 0)
    return {"run", "yes", "socket of `rankscope run` in " + path + ", which exists"};
  return {
      "run", "no",
      path + " is not writable: " + std::strerror(errno) + "; a daemon of another user created it"};
}

Finding CheckProcfs() {
  if (!Readable("/proc/self/stat")) {
    return {"procfs", "no", "/proc is not mounted; no process can be seen"};
  }
  if (!Readable("/proc/1/stat")) {
    return {"procfs", "partly",
            "/proc hides the processes of other users (hidepid); run as root, or remount it "
            "without hidepid"};
  }
  if (!Readable("/proc/1/environ")) {
    return {"procfs", "partly",
            "environment and I/O are readable only for this user's processes; run as root, or with "
            "CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"};
  }
  return {"procfs", "yes", "processes of all users, with environment and I/O"};
}

Finding CheckConnector() {
  const int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
  if (fd < 0) {
    return {"proc_connector", "no",
            "this kernel has no process connector (CONFIG_PROC_EVENTS); exit statuses come from "
            "the output of launchers"};
  }
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = CN_IDX_PROC;
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  if (!bound) {
    return {"proc_connector", "no",
            "needs CAP_NET_ADMIN (root); exit statuses come from the output of launchers"};
  }
  std::error_code error;
  // The numbers of the first namespaces are fixed in the kernel (PROC_PID_INIT_INO).
  const std::string ns = fs::read_symlink("/proc/self/ns/pid", error).string();
  if (ns != "pid:[4026531836]") {
    return {"proc_connector", "no",
            "this is not the machine's own pid namespace; run rankscope on the host or with "
            "hostPID"};
  }
  return {"proc_connector", "yes", "every fork, exec and exit status"};
}

Finding CheckCgroup() {
  const std::string kind = Readable("/sys/fs/cgroup/memory/memory.usage_in_bytes") ? "v1" : "";
  if (kind == "v1") return {"memory_cgroup", "yes", "cgroup v1: job memory, limit and OOM kills"};
  std::FILE* const file = std::fopen("/sys/fs/cgroup/cgroup.controllers", "re");
  char controllers[512] = {};
  if (file != nullptr) {
    if (std::fgets(controllers, sizeof controllers, file) == nullptr) controllers[0] = '\0';
    std::fclose(file);
  }
  if (std::strstr(controllers, "memory") != nullptr) {
    return {"memory_cgroup", "yes", "cgroup v2: job memory, limit and OOM kills"};
  }
  return {"memory_cgroup", "no",
          "no memory controller below /sys/fs/cgroup; OOM kills are visible only in the counter of "
          "the host"};
}

// Where PSI is compiled in and switched off the files exist and cannot be read.
Finding CheckPressure() {
  const collectors::StallTime host = collectors::ReadPressure("/proc/pressure/memory");
  if (host.some)
    return {"pressure", "yes", "PSI of the host; of jobs where their cgroups are of version 2"};
  return {"pressure", "no",
          "/proc/pressure/memory is absent or cannot be read; boot with psi=1 where the kernel "
          "has PSI"};
}

Finding CheckKmsg() {
  if (Readable("/dev/kmsg")) {
    return {"kmsg", "yes",
            "the kernel log is readable: Xids, machine checks, hung tasks, failing disks, the "
            "memory limit behind an out-of-memory kill"};
  }
  return {"kmsg", "no",
          std::string("/dev/kmsg: ") + std::strerror(errno) +
              "; needs root; without it only Xids are known, from the NVIDIA library"};
}

Finding CheckGpu() {
  constexpr char kDriver[] = "/proc/driver/nvidia/version";
  if (Readable(kDriver)) return {"gpu", "yes", "an NVIDIA driver is loaded; nvml reads its GPUs"};
  return {"gpu", "no",
          std::string(kDriver) + ": " + std::strerror(errno) +
              "; no NVIDIA driver; GPU evidence is not applicable"};
}

Finding CheckSlurm(const exporter::Config& config) {
  const exporter::Config::Slurm& slurm = config.slurm;
  if (slurm.role == "off") return {"slurm", "off", "slurm.role is off"};
  exporter::slurm::RestService rest;
  if (slurm.role == "controller") rest.url = slurm.restd_url;
  exporter::slurm::Commands commands(exporter::slurm::CommandFolders(), {}, rest);
  const Status found = commands.Find();
  if (slurm.role == "controller") {
    if (!found) return {"slurm", "no", found.error()};
    return {"slurm", "yes",
            "role controller: polls all jobs and nodes every 30 s or more; serves /events"};
  }
  if (!slurm.controller_url.empty())
    return {"slurm", "yes", "events of the node's jobs from " + slurm.controller_url};
  if (!found)
    return {"slurm", "no", found.error() + "; jobs and ranks come from cgroups and SLURM_*"};
  return {"slurm", "yes", "asked once when a job begins and once when a job ends badly"};
}

// What the kernel allows of eBPF, and what `ebpf.mode` makes of it.
void AddKernel(const exporter::Config& config, std::vector<Finding>& findings) {
  const std::vector<probes::Capability> rows = probes::LookAtKernel();
  const auto add = [&](const char* source, const std::optional<probes::Capability>& obstacle,
                       const char* text, const char* otherwise) {
    if (config.ebpf.mode == "off") {
      findings.push_back({source, "off", "ebpf.mode is off"});
    } else if (!obstacle) {
      findings.push_back({source, "yes", text});
    } else if (config.ebpf.mode == "force") {
      findings.push_back(
          {source, "partly", "tried anyway (ebpf.mode is force): " + obstacle->text});
    } else {
      findings.push_back({source, "no", obstacle->text + otherwise});
    }
  };
  const auto tracepoints = probes::ObstacleForTracepoints(rows);
  add("process", tracepoints, "programs in the kernel; they replace proc_connector",
      "; proc_connector and procfs are used");
  add("stdio", tracepoints, "programs in the kernel capture what ranks print",
      "; stdout_tail reads the job's output files");
  add("wait", tracepoints, "programs in the kernel count why threads do not run",
      "; /proc is sampled every second");
  add("network", tracepoints, "programs in the kernel observe connections and name lookups", "");
  add("io", tracepoints, "programs in the kernel observe file operations: bytes, time, errors", "");
  const auto calls = probes::ObstacleForUprobes(rows);
  add("cuda", calls, "programs at the CUDA calls of ranks, within ebpf.budget", "");
  add("nccl", calls, "programs at the NCCL calls of ranks", "");
  for (const probes::Capability& row : rows) findings.push_back({row.name, row.state, row.text});
}

Finding CheckWeb(const exporter::Config& config) {
  std::string beyond;
  for (const std::string& address : exporter::BeyondLoopback(config)) {
    beyond += (beyond.empty() ? "" : ", ") + address;
  }
  if (beyond.empty()) return {"web", "yes", "reachable by the users of this machine only"};
  return {"web", "partly",
          "reachable from the network at " + beyond +
              " without authentication, so no text of logs is served there; to change that, listen "
              "on 127.0.0.1 behind a proxy that authenticates"};
}

std::vector<Finding> Look(const exporter::Config& config) {
  std::vector<Finding> findings = {
      CheckSocket(config.run.socket),
      CheckProcfs(),
      CheckConnector(),
  };
  AddKernel(config, findings);
  for (Finding& finding : findings) {
    const exporter::SourceSettings* settings = config.FindSource(finding.name);
    if (settings != nullptr && !settings->enabled) {
      finding = {finding.name, "off", "sources." + finding.name + ".enabled is false"};
    }
  }
  std::string kept;
  const bool old_kernel = !probes::HasMultiAttach(probes::ReadKernel());
  for (const std::string& name : exporter::NeededCapabilities(config, old_kernel)) {
    kept += ' ' + name;
  }
  findings.push_back(
      {"capabilities", "yes",
       (kept.empty() ? "serve keeps none" : "serve keeps" + kept + " and gives up the rest") +
           "; one thread keeps setuid and setgid, to start readers with their users' rights"});
  findings.push_back(CheckWeb(config));
  findings.push_back(
      CheckDirectory("state", config.state.dir, "recordings and verdicts",
                     "nothing would survive a restart; choose another with --state.dir"));
  findings.push_back(CheckCgroup());
  findings.push_back(CheckKmsg());
  findings.push_back(CheckPressure());
  findings.push_back(CheckGpu());
  findings.push_back(CheckSlurm(config));
  findings.push_back({"fleet", config.fleet.prometheus.empty() ? "off" : "no",
                      "this build queries no Prometheus; verdicts cover this node only"});
  return findings;
}

}  // namespace

int CheckCommand(int argc, char** argv) {
  CLI::App app(
      "Validate the configuration and report what can be observed on this machine. Exit status: 0, "
      "or 2 for an error in the configuration or usage.",
      "rankscope check");
  ConfigOptions options(app);
  const std::variant<exporter::Config, int> settled = options.Settle(argc, argv);
  if (const int* status = std::get_if<int>(&settled)) return *status;
  const exporter::Config& config = std::get<exporter::Config>(settled);
  std::puts("configuration: ok");
  for (const Finding& finding : Look(config)) {
    std::printf("%-16s %-7s %s\n", finding.name.c_str(), finding.state.c_str(),
                finding.text.c_str());
  }
  return 0;
}

}  // namespace rankscope::cli
