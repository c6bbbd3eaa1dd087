// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/collectors/kernel_line.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>

#include "detectors/model/nvlink_error.h"
#include "detectors/model/pci_card.h"

namespace rankscope::collectors {
namespace {

template <class T>
std::optional<T> Leading(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// What stands behind the first `mark`; empty where there is none.
std::string_view After(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool HasAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](std::string_view part) { return Has(text, part); });
}

// Behind the card's ")": the code is the first number that a comma follows, for some drivers put
// words before it.
int32_t CodeOf(std::string_view text) {
  for (std::string_view part = After(text, ": "); !part.empty(); part = After(part, ": ")) {
    const size_t digits = std::min(part.find_first_not_of("0123456789"), part.size());
    if (digits == 0 || digits > 5 || !part.substr(digits).starts_with(',')) continue;
    return Leading<int32_t>(part).value_or(-1);
  }
  return -1;
}

int32_t PidAfter(std::string_view text, std::string_view mark) {
  const int32_t pid = Leading<int32_t>(After(text, mark)).value_or(0);
  return std::max(pid, 0);
}

void ReadDetails(std::string_view behind, KernelLine& line) {
  // "154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
  if (const std::string_view to = After(After(behind, "recovery action changed from"), " to 0x");
      line.code == 154 && !to.empty() && to.front() >= '0' && to.front() <= '4') {
    line.recovery = static_cast<RecoveryAction>(to.front() - '0');
  }
  if (line.code < kFirstNvlinkXid || line.code > kLastNvlinkXid) return;
  const std::optional<NvlinkError> error = ReadNvlinkError(After(behind, ")"));
  line.nonfatal = error && !error->fatal;
}

bool ReadCard(KernelLineKind kind, std::string_view behind, KernelLine& line) {
  line.kind = kind;
  line.bus_id = PciCard(behind);
  line.code = CodeOf(After(behind, ")"));
  line.pid = PidAfter(behind, "pid=");
  if (kind == KernelLineKind::kXid) ReadDetails(behind, line);
  return line.code >= 0;
}

// "24007, Fatal, Link 28 sourcing buffer", and then lines of the same code with "Severity 1 Engine
// instance 28 .." and "Data {..}".
bool ReadSwitch(std::string_view behind, KernelLine& line) {
  if (!ReadCard(KernelLineKind::kSxid, behind, line)) return false;
  line.nonfatal = Has(behind, ", Non-fatal");
  line.detail = !line.nonfatal && !Has(behind, ", Fatal");
  return true;
}

bool ReadNvidia(std::string_view text, KernelLine& line) {
  if (const std::string_view xid = After(text, "NVRM: Xid ("); !xid.empty())
    return ReadCard(KernelLineKind::kXid, xid, line);
  if (const std::string_view sxid = After(text, "SXid ("); !sxid.empty())
    return text.starts_with("nvidia-nvswitch") && ReadSwitch(sxid, line);
  if (!Has(text, "NVRM: ") || !Has(text, "fallen off the bus")) return false;
  line.kind = KernelLineKind::kGpuLost;
  line.bus_id = PciCard(After(text, "NVRM: GPU "));
  return true;
}

// kernel/hung_task.c: "INFO: task python3:4711 blocked for more than 122 seconds." The name may
// hold colons; the number is the last before " blocked".
bool ReadHungTask(std::string_view text, KernelLine& line) {
  const std::string_view task = After(text, "INFO: task ");
  const size_t end = task.find(" blocked for more than ");
  if (end == std::string_view::npos) return false;
  const size_t colon = task.substr(0, end).rfind(':');
  if (colon == std::string_view::npos) return false;
  line.kind = KernelLineKind::kHungTask;
  line.pid = Leading<int32_t>(task.substr(colon + 1)).value_or(0);
  return line.pid > 0;
}

// drivers/pci/pcie/aer.c. "PCIe Bus Error: severity=Uncorrected (Fatal)" names the device that the
// line begins with; a message received names it behind "from".
bool ReadPcie(std::string_view text, KernelLine& line) {
  const bool message =
      Has(text, "AER: ") && HasAny(text, {"error message received", "error received", "Multiple "});
  if (!message && !Has(text, "PCIe Bus Error: severity=")) return false;
  line.kind = KernelLineKind::kPcie;
  std::string_view device = After(text, "received from ");
  if (device.empty()) device = After(text, "received: ");
  if (device.empty()) device = After(text, " ");
  line.bus_id = PciCard(device);
  return true;
}

bool ReadMachineCheck(std::string_view text, KernelLine& line) {
  // "Corrected error, no action required" follows a head of its own; each event is counted once.
  if (!HasAny(text, {"Machine check events logged", "[Hardware Error]: Machine Check",
                     "[Hardware Error]: Hardware error from APEI", "Memory failure: 0x"})) {
    return false;
  }
  line.kind = KernelLineKind::kMachineCheck;
  // mm/memory-failure.c: "Memory failure: 0x3a1c2: Killing python3:812 due to hardware memory ..."
  const std::string_view victim = After(text, ": Killing ");
  const size_t end = victim.find(" due to ");
  const size_t colon = victim.substr(0, end).rfind(':');
  if (colon != std::string_view::npos)
    line.pid = std::max(0, Leading<int32_t>(victim.substr(colon + 1)).value_or(0));
  return true;
}

bool ReadStorage(std::string_view text, KernelLine& line) {
  if ((text.starts_with("nfs: server ") &&
       (Has(text, " not responding") || text.ends_with(" OK"))) ||
      (text.starts_with("ceph: ") && Has(text, " hung")) ||
      (text.starts_with("LustreError: ") && Has(text, "lost"))) {
    line.kind = KernelLineKind::kNetworkFile;
    return true;
  }
  const bool disk =
      text.starts_with("Buffer I/O error on dev") || text.starts_with("I/O error, dev ") ||
      text.starts_with("blk_update_request: I/O error") || text.starts_with("EXT4-fs error") ||
      (text.starts_with("XFS (") &&
       HasAny(text, {"metadata I/O error", "Corruption", "log I/O error"})) ||
      (text.starts_with("nvme ") && HasAny(text, {"I/O ", "controller is down"}) &&
       HasAny(text, {"timeout", "controller is down"}));
  if (disk) line.kind = KernelLineKind::kDisk;
  return disk;
}

bool ReadOther(std::string_view text, KernelLine& line) {
  if (text.starts_with("EDAC ") && HasAny(text, {" CE ", " UE "})) {
    line.kind = KernelLineKind::kMemory;
    return true;
  }
  if (text.starts_with("efa ") && HasAny(text, {"rror", "Failed", "failed", "timeout", "reset"})) {
    line.kind = KernelLineKind::kEfa;
    line.bus_id = PciCard(text.substr(4));
    return true;
  }
  return false;
}

}  // namespace

std::optional<int64_t> SequenceOf(std::string_view record) {
  const size_t comma = record.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  return Leading<int64_t>(record.substr(comma + 1));
}

std::string CardOfLongLoss(std::string_view record) {
  const std::string_view text = After(record, ";");
  constexpr std::string_view kBegin = "NVRM: The NVIDIA GPU ";
  return text.starts_with(kBegin) ? PciCard(text.substr(kBegin.size())) : std::string();
}

std::optional<KernelLine> ParseKernelRecord(std::string_view record) {
  const size_t semicolon = record.find(';');
  const std::optional<int64_t> sequence = SequenceOf(record);
  const std::optional<int32_t> priority = Leading<int32_t>(record);
  if (semicolon == std::string_view::npos || !sequence || !priority) return std::nullopt;
  // The facility: what init and other daemons log there may quote a driver. 1 is what an operator
  // writes by hand, to try his alerts.
  if (*priority >> 3 > 1) return std::nullopt;
  std::string_view text = record.substr(semicolon + 1);
  text = text.substr(0, text.find('\n'));
  KernelLine line;
  line.sequence = *sequence;
  // "6,1234,99999,-": the third is the time.
  line.microseconds =
      std::max<int64_t>(0, Leading<int64_t>(After(After(record, ","), ",")).value_or(0));
  if (!ReadNvidia(text, line) && !ReadHungTask(text, line) && !ReadPcie(text, line) &&
      !ReadMachineCheck(text, line) && !ReadStorage(text, line) && !ReadOther(text, line)) {
    return std::nullopt;
  }
  line.text = text.substr(0, KernelLine::kTextCap);
  return line;
}

}  // namespace rankscope::collectors
