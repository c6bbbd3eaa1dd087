// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/logs/text/stamp.h"
#include "detectors/model/nvlink_error.h"
#include "detectors/model/pci_card.h"
#include "detectors/model/xids.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kXidAnchors[] = {"NVRM: Xid ("};
constexpr std::string_view kBusAnchors[] = {"fallen off the bus"};
constexpr std::string_view kOomAnchors[] = {"oom-kill:constraint=",
                                            "Out of memory: Killed process ",
                                            "Memory cgroup out of memory: ",
                                            "Out of memory: Kill process ",
                                            "Killed process ",
                                            "killed as a result of limit of "};
// Daemons that kill before the kernel must; the kubelet evicts.
constexpr std::string_view kDaemonAnchors[] = {
    "systemd-oomd", "earlyoom", "low on resource: memory", "low on resource: ephemeral-storage",
    "sending SIGTERM to process "};
constexpr std::string_view kFaultAnchors[] = {": segfault at ", "general protection fault",
                                              "trap invalid opcode", "trap divide error"};
constexpr std::string_view kMceAnchors[] = {
    "Hardware Error",      "Memory failure: ",          " UE memory ",
    "Fatal machine check", "Fatal local machine check", "Fatal hardware error"};

void AddNvlink(std::string_view text, Incident& incident) {
  const std::optional<NvlinkError> error = ReadNvlinkError(text);
  if (!error) return;
  AddField(incident, "unit", error->unit);
  AddField(incident, "severity", error->fatal ? "Fatal" : "Nonfatal");
  if (error->link >= 0) AddField(incident, "link", int64_t{error->link});
  if (error->subcode >= 0) AddField(incident, "subcode", int64_t{error->subcode});
  if (error->status >= 0) AddField(incident, "status", error->status);
  if (error->of_peer()) AddField(incident, "made_by", "peer");
}

// Old: "NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=x, text". NVLink 5: "..., RLW_RXPIPE
// Nonfatal XC0 i0 Link 13 (0x..".
void ParseXid(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const std::string_view bus = Between(text, "NVRM: Xid (", ")");
  std::string_view rest = After(After(text, "NVRM: Xid ("), ")");
  // The code is the first number that a comma follows: newer drivers put words before it.
  std::optional<int64_t> code;
  for (std::string_view part = After(rest, ": "); !part.empty(); part = After(part, ": ")) {
    const std::string_view digits = NumberText(part);
    if (!digits.empty() && part.substr(digits.size()).starts_with(",")) {
      code = LeadingInt(digits);
      rest = part.substr(digits.size() + 1);
      break;
    }
  }
  if (!code || *code < 0 || *code > 9999) return;
  Incident incident = MakeIncident(IncidentKind::kXid, line, "xid");
  AddField(incident, "code", *code);
  AddField(incident, "bus_id", PciCard(bus));
  // The node's log names it: "Jun 12 10:00:01 node7 kernel: NVRM: Xid".
  if (const size_t date = EndOfSyslogDate(text); date != 0)
    AddField(incident, "node", Capped(LeadingWord(text.substr(date)), 255));
  const auto pid = IntAfter(rest, "pid=");
  if (pid && *pid > 0 && *pid < (int64_t{1} << 31)) incident.pid = static_cast<int32_t>(*pid);
  AddField(incident, "name", Capped(LeadingWord(After(rest, "name=")), 64));
  // What follows something else, or ends nothing, never comes first.
  const Xid xid = FindXid(*code);
  if (xid.kind == XidClass::kFollows || xid.kind == XidClass::kLatent ||
      xid.kind == XidClass::kInforms) {
    incident.role = Role::kCascade;
  }
  AddField(incident, "meaning", xid.meaning);
  AddField(incident, "do", XidActionPhrase(xid.action));
  if (*code >= kFirstNvlinkXid && *code <= kLastNvlinkXid) AddNvlink(rest, incident);
  if (*code == 154)
    AddField(incident, "action", Capped(Between(After(rest, " to "), "(", ")"), 64));
  out.push_back(std::move(incident));
}

// Without an Xid, and the line that comes with Xid 79: "NVRM: GPU 0000:18:00.0: GPU has fallen off
// the bus."
void ParseBus(const CleanLine& line, RecordList& out) {
  if (!Contains(line.text, "NVRM") || Contains(line.text, "Xid (")) return;
  Incident incident = MakeIncident(IncidentKind::kXid, line, "fallen_off_bus");
  AddField(incident, "code", int64_t{79});
  AddField(incident, "bus_id", PciCard(LeadingWord(After(line.text, "NVRM: GPU "))));
  out.push_back(std::move(incident));
}

void ParseOom(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  // Kernels before 4.19 print the victim without saying why; the sizes tell it from prose.
  const bool named = ContainsAny(text, {"ut of memory: ", "oom-kill:constraint="});
  const bool by_limit =
      Contains(text, "Task in /") && Contains(text, "killed as a result of limit of");
  // Somebody tells of it: a text that a model has written, a document.
  if (ContainsAny(Before(text, "ut of memory: "), {"\"", "`", "'"}) && named) return;
  if (!named && !by_limit && !(Contains(text, "Killed process ") && Contains(text, "total-vm:")))
    return;
  Incident incident = MakeIncident(IncidentKind::kHostOom, line, "kernel_oom");
  std::string_view constraint = LeadingWord(After(text, "oom-kill:constraint="));
  AddField(incident, "constraint", constraint);
  incident.sub = constraint == "CONSTRAINT_MEMCG" || Contains(text, "Memory cgroup") || by_limit
                     ? "cgroup"
                     : "host";
  if (by_limit) AddField(incident, "oom_memcg", Capped(LeadingWord(After(text, "limit of ")), 255));
  AddField(incident, "oom_memcg", Capped(LeadingWord(After(text, "oom_memcg=")), 255));
  AddField(incident, "comm", Capped(LeadingWord(After(text, ",task=")), 64));
  auto pid = IntAfter(text, ",pid=");
  if (!pid) pid = IntAfter(text, "Killed process ");
  if (!pid) pid = IntAfter(text, "Kill process ");
  if (pid && *pid > 0 && *pid < (int64_t{1} << 31)) incident.pid = static_cast<int32_t>(*pid);
  out.push_back(std::move(incident));
}

// systemd-oomd: "Killed /user.slice/.. due to memory pressure for .."; earlyoom: "sending SIGTERM
// to process 71 uid 1000 "python3": badness 900, VmRSS 90112 MiB"; kubelet: "The node was low on
// resource: memory."
void ParseDaemon(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const bool oomd = Contains(text, "systemd-oomd") &&
                    (Contains(text, " killed ") ||
                     (Contains(text, "Killed /") && Contains(text, "due to memory")));
  const bool early = Contains(text, "to process ") && Contains(text, ": badness ");
  const bool evicted = Contains(text, "The node was low on resource: memory");
  if (Contains(text, "The node was low on resource: ephemeral-storage")) {
    Incident full = MakeIncident(IncidentKind::kStorage, line, "evicted");
    full.message = Capped(Trim(text), kMessageCap);
    AddField(full, "errno", "ENOSPC");
    out.push_back(std::move(full));
    return;
  }
  if (!oomd && !early && !evicted) return;
  Incident incident = MakeIncident(IncidentKind::kHostOom, line, "oom_daemon");
  incident.sub = "host";
  if (early) {
    const auto pid = IntAfter(text, "to process ");
    if (pid && *pid > 0 && *pid < (int64_t{1} << 31)) incident.pid = static_cast<int32_t>(*pid);
    AddField(incident, "comm", Capped(Between(text, "\"", "\""), 64));
  }
  out.push_back(std::move(incident));
}

// "python3[4711]: segfault at 10 ip 00007f.. sp 00007f.. error 4 in libnccl.so.2[7f..+1000]"
void ParseFault(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const bool kernel = Contains(text, " ip ") || Contains(text, " ip:") || Contains(text, "rip");
  if (!kernel) return;
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "kernel_fault");
  SetSignal(incident, Contains(text, "invalid opcode") ? 4
                      : Contains(text, "divide error") ? 8
                                                       : 11);
  const auto pid =
      LeadingInt(Between(text.substr(text.find('[') == 0 ? 1 + text.find(']') : 0), "[", "]"));
  if (pid && *pid > 0 && *pid < (int64_t{1} << 31)) incident.pid = static_cast<int32_t>(*pid);
  AddField(incident, "library",
           Capped(Before(LeadingWord(After(After(text, " ip"), " in ")), "["), 128));
  out.push_back(std::move(incident));
}

// A page that held data is gone (mm/memory-failure.c kills who used it), a bank of the CPU's
// reports an uncorrected error (arch/x86/kernel/cpu/mce, drivers/edac, firmware's records), or the
// kernel panics over it. A page that was clean is read again, and corrected errors end nothing.
void ParseMce(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const bool kills =
      Contains(text, "Memory failure: 0x") && ContainsAny(text, {"illing ", "Sending SIGBUS to "});
  const bool fatal =
      Contains(text, "[Hardware Error]") &&
      ContainsAny(text, {"Uncorrected", "Machine Check Exception: ", "event severity: fatal"});
  const bool edac = Contains(text, "EDAC ") && Contains(text, " UE memory ");
  const bool panic = Contains(text, "Kernel panic - not syncing: Fatal ") &&
                     ContainsAny(text, {"machine check", "hardware error"});
  if (!kills && !fatal && !edac && !panic) return;
  Incident incident = MakeIncident(IncidentKind::kSignalDeath, line, "machine_check");
  if (kills) {
    std::string_view victim = After(text, "Sending SIGBUS to ");
    if (victim.empty()) victim = After(text, "illing ");
    victim = Before(victim, " ");
    const auto pid = LeadingInt(After(victim, ":"));
    if (pid && *pid > 0 && *pid < (int64_t{1} << 31)) incident.pid = static_cast<int32_t>(*pid);
    AddField(incident, "comm", Capped(Before(victim, ":"), 64));
  }
  // The kernel's record of the error; whom it kills for that is another line.
  if (!kills) AddField(incident, "how", "record");
  SetSignal(incident, 7);
  incident.sub = "machine_check";
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"xid", "the NVIDIA driver reports an Xid", kXidAnchors, ParseXid,
     "[18812.004511] NVRM: Xid (PCI:0000:4F:00): 94, pid=33120, name=python3, Contained: SM (0x1)"},
    {"fallen_off_bus", "the NVIDIA driver lost a GPU", kBusAnchors, ParseBus,
     "NVRM: GPU 0000:b1:00.0: GPU has fallen off the bus."},
    {"kernel_oom", "the kernel's out-of-memory killer chose a victim", kOomAnchors, ParseOom,
     "[901.22] Memory cgroup out of memory: Killed process 5521 (python3) total-vm:90112kB, "
     "anon-rss:65536kB"},
    {"oom_daemon", "a daemon kills before the kernel must", kDaemonAnchors, ParseDaemon,
     "systemd-oomd[812]: Killed /system.slice/train.service due to memory pressure for "
     "/system.slice "
     "being 71.30% > 60.00% for > 20s"},
    {"kernel_fault", "the kernel logs a fatal fault of a process", kFaultAnchors, ParseFault,
     "[77.1] python3[6100]: segfault at 20 ip 00007f10aa01 sp 00007ffc1200 error 4 in "
     "libtorch_cpu.so[7f10a000+99000]"},
    {"machine_check", "the kernel logs an uncorrected memory error", kMceAnchors, ParseMce,
     "[50.5] Memory failure: 0x3a1c2: Killing python3:812 due to hardware memory corruption"},
};

}  // namespace

std::span<const ShapeRow> KernelShapes() {
  return kRows;
}

}  // namespace rankscope::logs
