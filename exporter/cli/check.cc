// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope check`: is the configuration right, and what can be observed on this machine, and if
// not, why.
#include <linux/connector.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "detectors/document/json_writer.h"
#include "exporter/cli/check_finding.h"
#include "exporter/cli/commands.h"
#include "exporter/cli/config_options.h"
#include "exporter/daemon/privileges.h"
#include "exporter/daemon/sources.h"
#include "exporter/http/web_files.h"
#include "exporter/probes/attach/kernel_gate.h"
#include "exporter/probes/attach/syscall_tracepoints.h"
#include "exporter/processes/pressure.h"

namespace rankscope::cli {
namespace {

namespace fs = std::filesystem;

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

// A device on the bus that no driver serves is a gap; a node without one has nothing to observe.
bool HasNvidiaDevice() {
  std::error_code error;
  for (const fs::directory_entry& device : fs::directory_iterator("/sys/bus/pci/devices", error)) {
    std::ifstream vendor(device.path() / "vendor"), kind(device.path() / "class");
    std::string number, code;
    // 0x03: display controllers.
    if (vendor >> number && number == "0x10de" && kind >> code && code.starts_with("0x03"))
      return true;
  }
  return false;
}

Finding CheckGpu() {
  constexpr char kDriver[] = "/proc/driver/nvidia/version";
  Finding finding{"gpu", "yes", "an NVIDIA driver is loaded; nvml reads its GPUs", "nvml"};
  if (Readable(kDriver)) return finding;
  finding.text = std::string(kDriver) + ": " + std::strerror(errno) + "; ";
  const bool there = HasNvidiaDevice();
  finding.state = there ? "no" : "n/a";
  finding.text += there ? "an NVIDIA device is on the PCI bus, and no driver is loaded"
                        : "no NVIDIA driver; GPU evidence is not applicable";
  return finding;
}

Finding CheckInfiniband() {
  std::error_code error;
  const bool any =
      fs::directory_iterator("/sys/class/infiniband", error) != fs::directory_iterator();
  return {"infiniband", any ? "yes" : "n/a",
          any ? "counters of the node's ports" : "no InfiniBand, RoCE or EFA device on this node"};
}

Finding CheckMapping(const exporter::Config& config) {
  const std::string& folder = config.slurm.mapping_dir;
  if (folder.empty()) return {"job_mapping", "off", "slurm.mapping_dir is empty"};
  if (access(folder.c_str(), R_OK | X_OK) == 0)
    return {"job_mapping", "yes", "GPUs of jobs from " + folder};
  return {"job_mapping", "no", folder + ": " + std::strerror(errno)};
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
  std::optional<probes::Capability> system_calls = tracepoints;
  if (!system_calls && config.ebpf.mode != "off" && probes::SyscallTracepoints().empty()) {
    system_calls = {"ebpf.tracefs", "no",
                    "the tracepoints of system calls are not readable; mount tracefs at "
                    "/sys/kernel/tracing"};
  }
  add("network", system_calls, "programs in the kernel observe connections and name lookups", "");
  add("io", system_calls, "programs in the kernel observe file operations: bytes, time, errors",
      "");
  const auto calls = probes::ObstacleForUprobes(rows);
  add("cuda", calls, "programs at the CUDA calls of ranks, within ebpf.budget", "");
  add("nccl", calls, "programs at the NCCL calls of ranks", "");
  for (const probes::Capability& row : rows) findings.push_back({row.name, row.state, row.text});
}

// "TLS, client certificates, 3 users".
std::string AccessOf(const http::WebConfig& web) {
  const bool certificates = web.tls && web.tls->client_auth != http::ClientAuth::kNone;
  std::string text = web.tls ? "TLS" : "no TLS";
  if (certificates) text += ", client certificates";
  if (!web.users.empty()) text += ", " + std::to_string(web.users.size()) + " users";
  return certificates || !web.users.empty() ? text : text + ", no authentication";
}

Finding CheckWeb(const exporter::Config& config) {
  if (!config.web.config_file.empty()) {
    const auto web = http::ReadWebFiles(config.web.config_file);
    if (!web) return {"web", "no", "serve would not start: " + web.error()};
    return {"web", "yes", AccessOf((*web)->config) + ", by " + config.web.config_file};
  }
  std::string beyond;
  for (const std::string& address : exporter::BeyondLoopback(config)) {
    beyond += (beyond.empty() ? "" : ", ") + address;
  }
  if (beyond.empty()) return {"web", "yes", "reachable by the users of this machine only"};
  return {"web", "partly",
          "reachable from the network at " + beyond +
              " without authentication, so no text of logs is served there; to change that, name "
              "users or certificates in a web.config_file"};
}

// Of a gap in a source: what the source would have told, and what it needs, from its table.
void Complete(const exporter::Config& config, Finding& finding) {
  if (finding.source.empty()) finding.source = finding.name;
  const exporter::SourceSettings* settings = config.FindSource(finding.source);
  if (settings == nullptr) return;
  if (!settings->enabled) {
    finding = {finding.name, "off", "sources." + finding.source + ".enabled is false"};
    return;
  }
  finding.wanted = true;
  for (const exporter::SourceRow& row : exporter::SourceTable()) {
    if (row.name != finding.source) continue;
    if (finding.lost.empty()) finding.lost = row.what;
    if (finding.needs.empty()) finding.needs = row.needs;
  }
}

// Where another source reports all that this one would, a gap in this one is none.
void ForgiveSuperseded(std::vector<Finding>& findings) {
  for (const exporter::SourceRow& row : exporter::SourceTable()) {
    const auto works = [&](const Finding& other) {
      return other.source == row.superseded_by && other.state == "yes";
    };
    if (row.superseded_by.empty() || std::ranges::none_of(findings, works)) continue;
    for (Finding& finding : findings) {
      if (finding.source == row.name) finding.wanted = false;
    }
  }
}

Finding CheckCapabilities(const exporter::Config& config) {
  std::string kept;
  const bool old_kernel = !probes::HasMultiAttach(probes::ReadKernel());
  for (const std::string& name : exporter::NeededCapabilities(config, old_kernel)) {
    kept += ' ' + name;
  }
  return {"capabilities", "yes",
          (kept.empty() ? "serve keeps none" : "serve keeps" + kept + " and gives up the rest") +
              "; one thread keeps setuid and setgid, to start readers with their users' rights"};
}

std::vector<Finding> Look(const exporter::Config& config) {
  std::vector<Finding> findings = {
      CheckSocket(config.run.socket),
      CheckProcfs(),
      CheckConnector(),
  };
  AddKernel(config, findings);
  findings.push_back(CheckCapabilities(config));
  findings.push_back(CheckWeb(config));
  findings.back().wanted = !config.web.config_file.empty();
  findings.push_back(
      CheckDirectory("state", config.state.dir, "recordings and verdicts",
                     "nothing would survive a restart; choose another with --state.dir"));
  findings.back().wanted = true;
  findings.push_back(CheckCgroup());
  findings.push_back(CheckKmsg());
  findings.push_back(CheckPressure());
  findings.push_back(CheckGpu());
  findings.push_back(CheckDcgm(config));
  findings.push_back(CheckDcgmNames(config));
  findings.push_back(CheckKubelet(config));
  findings.push_back(CheckInfiniband());
  findings.push_back(CheckMapping(config));
  findings.push_back(CheckSlurm(config));
  findings.push_back(CheckFleet(config));
  findings.push_back(CheckClock());
  for (Finding& finding : findings) Complete(config, finding);
  ForgiveSuperseded(findings);
  return findings;
}

bool IsGap(const Finding& finding) {
  return finding.state == "no" || finding.state == "partly";
}

void PrintText(const std::vector<Finding>& findings) {
  std::puts("configuration: ok");
  for (const Finding& finding : findings) {
    std::printf("%-16s %-7s %s\n", finding.name.c_str(), finding.state.c_str(),
                finding.text.c_str());
    if (!IsGap(finding)) continue;
    if (!finding.lost.empty()) std::printf("%24s lost: %s\n", "", finding.lost.c_str());
    if (!finding.needs.empty()) std::printf("%24s needs: %s\n", "", finding.needs.c_str());
  }
}

void PrintJson(const std::vector<Finding>& findings) {
  JsonWriter out;
  out.Open('{');
  out.Text("configuration", "ok");
  out.Key("checks");
  out.Open('[');
  for (const Finding& finding : findings) {
    out.Open('{');
    out.Text("name", finding.name);
    out.Text("state", finding.state);
    out.Bool("wanted", finding.wanted);
    out.Text("text", finding.text);
    out.TextOrNull("lost", IsGap(finding) ? finding.lost : "");
    out.TextOrNull("needs", IsGap(finding) ? finding.needs : "");
    out.Close('}');
  }
  out.Close(']');
  out.Close('}');
  std::puts(out.Take().c_str());
}

}  // namespace

int CheckCommand(int argc, char** argv) {
  CLI::App app(
      "Validate the configuration and report what can be observed on this machine; for each gap, "
      "what is lost and what it needs. Exit status: 0; 1 with --strict, if something that the "
      "configuration asks for does not work; 2 for an error in the configuration or usage.",
      "rankscope check");
  ConfigOptions options(app);
  bool strict = false;
  std::string format = "text";
  app.add_flag("--strict", strict,
               "Exit with 1 if a source that is enabled does not work or works in part");
  app.add_option("--format", format, "Output format: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  const std::variant<exporter::Config, int> settled = options.Settle(argc, argv);
  if (const int* status = std::get_if<int>(&settled)) return *status;
  const exporter::Config& config = std::get<exporter::Config>(settled);
  const std::vector<Finding> findings = Look(config);
  if (format == "json") {
    PrintJson(findings);
  } else {
    PrintText(findings);
  }
  int status = 0;
  for (const Finding& finding : findings) {
    if (!strict || !finding.wanted || !IsGap(finding)) continue;
    std::fprintf(stderr, "rankscope check: %s: %s\n", finding.name.c_str(), finding.text.c_str());
    status = 1;
  }
  return status;
}

}  // namespace rankscope::cli
