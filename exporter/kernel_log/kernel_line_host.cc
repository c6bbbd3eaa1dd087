// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel itself logs of the host: PCIe, machine checks, memory, disks, file servers, tasks
// that hang.
#include <algorithm>
#include <cctype>
#include <initializer_list>

#include "detectors/model/line_cursor.h"
#include "detectors/model/pci_card.h"
#include "detectors/model/xid_line.h"
#include "exporter/kernel_log/kernel_line_forms.h"

namespace rankscope::collectors {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kNameBytes =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
constexpr std::string_view kHostBytes =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:%[]@/";
constexpr size_t kMaxName = 64;
constexpr size_t kMaxHost = 255;

bool TakeOne(LineCursor& cursor, std::initializer_list<std::string_view> texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [&cursor](std::string_view text) { return cursor.Take(text); });
}

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "0000:4f:00.0", as the kernel names a device: always with the function.
bool TakeDevice(LineCursor& cursor) {
  const std::string_view before = cursor.rest();
  return cursor.TakePciPlace() && Has(before.substr(0, before.size() - cursor.rest().size()), ".");
}

// The driver of this device wrote the record: since Linux 3.5 the kernel adds "+pci:0000:4f:00.0"
// to all that drivers log with dev_printk. An operator's hand cannot.
bool IsOfDevice(const KmsgRecord& record, std::string_view name) {
  const std::string_view device = record.device;
  if (device.empty()) return !record.by_kernel;
  const size_t at = device.find(name);
  return device.starts_with('+') && at != std::string_view::npos && at > 0 && device[at - 1] == ':';
}

// "NAME:PID" that ends so; the name is the process's own and may hold a colon.
int32_t PidOf(std::string_view named) {
  const size_t colon = named.rfind(':');
  if (colon == std::string_view::npos || colon > LoggedSize(named, kCommBytes)) return 0;
  LineCursor cursor(named.substr(colon + 1));
  const std::optional<int64_t> pid = cursor.TakeNumber();
  return pid && cursor.at_end() && *pid <= INT32_MAX ? static_cast<int32_t>(*pid) : 0;
}

// kernel/hung_task.c: "INFO: task python3:4711 blocked for more than 122 seconds.", since Linux
// 6.19 "blocked in I/O wait for more than". Read from its end, for the name comes first. It is too
// short to hold these words.
bool ReadHungTask(std::string_view text, KernelLine& line) {
  constexpr std::string_view kBegin = "INFO: task ";
  constexpr std::string_view kEnd = " seconds.";
  if (!text.starts_with(kBegin) || !text.ends_with(kEnd)) return false;
  text.remove_prefix(kBegin.size());
  text.remove_suffix(kEnd.size());
  const size_t digits = text.find_last_not_of(kDigits);
  if (digits == std::string_view::npos || digits + 1 == text.size()) return false;
  text = text.substr(0, digits + 1);
  for (const std::string_view words : {" blocked for more than ",
                                       " blocked in I/O wait for more "
                                       "than "}) {
    if (!text.ends_with(words)) continue;
    line.kind = KernelEventType::kHungTask;
    line.pid = PidOf(text.substr(0, text.size() - words.size()));
    return line.pid > 0;
  }
  return false;
}

// drivers/pci/pcie/aer.c. "nvidia 0000:18:00.0: PCIe Bus Error: severity=Uncorrected (Fatal)" is of
// the device that it begins with, whose driver comes first; a message received names it behind
// "from", and before Linux 4.20 only by a number: "received: id=0018".
bool ReadPcie(const KmsgRecord& record, KernelLine& line) {
  LineCursor cursor(record.text);
  if (cursor.TakeAll(kNameBytes, kMaxName).empty() || !cursor.Take(" ")) return false;
  const std::string_view place = cursor.rest();
  if (!TakeDevice(cursor)) return false;
  const std::string_view device = place.substr(0, place.size() - cursor.rest().size());
  if (!cursor.Take(": ")) return false;
  const bool aer = cursor.Take("AER: ");
  const bool of_bus = cursor.Take("PCIe Bus Error: severity=");
  if (!of_bus) {
    if (!aer) return false;
    cursor.Take("Multiple ");
    // AER of Linux 6.11 says "Correctable" and "Uncorrectable", earlier ones "Corrected".
    if (!TakeOne(cursor, {"Corrected", "Correctable", "Uncorrected", "Uncorrectable"}))
      return false;
    TakeOne(cursor, {" (Fatal)", " (Non-Fatal)"});
    if (!cursor.Take(" error ")) return false;
    cursor.Take("message ");
    if (!TakeOne(cursor, {"received from ", "received: "})) return false;
  }
  if (!IsOfDevice(record, device)) return false;
  line.kind = KernelEventType::kPcie;
  line.bus_id = PciCard(of_bus ? device : cursor.rest());
  return true;
}

// mm/memory-failure.c: "Memory failure: 0x3a1c2: Killing python3:812 due to hardware memory
// corruption", since Linux 4.17 "Sending SIGBUS to", and before 4.3 "MCE 0x3a1c2: ..".
bool ReadPoisonedPage(std::string_view text, KernelLine& line) {
  LineCursor cursor(text);
  if (!TakeOne(cursor, {"Memory failure: 0x", "MCE 0x"}) || !cursor.TakeHex(1, 16) ||
      !cursor.Take(": ")) {
    return false;
  }
  line.kind = KernelEventType::kMachineCheck;
  const bool kills = TakeOne(cursor, {"Killing ", "Sending SIGBUS to "});
  const bool must = !kills && cursor.Take("forcibly killing ");
  if (!kills && !must) return cursor.Take("recovery action for ");
  const std::string_view why =
      kills ? " due to hardware memory corruption" : " because of failure to unmap corrupted page";
  std::string_view victim = cursor.rest();
  if (!victim.ends_with(why)) return true;
  victim.remove_suffix(why.size());
  line.pid = PidOf(victim);
  return true;
}

// arch/x86/kernel/cpu/mce/core.c and drivers/acpi/apei/ghes.c. "Corrected error, no action
// required" follows a head of its own; each event is counted once.
bool ReadMachineCheck(std::string_view text, KernelLine& line) {
  if (ReadPoisonedPage(text, line)) return true;
  line.kind = KernelEventType::kMachineCheck;
  LineCursor cursor(text);
  cursor.Take("mce: ");
  if (cursor.Take("{")) {
    if (!cursor.TakeNumber() || !cursor.Take("}")) return false;
  }
  const bool marked = cursor.Take("[Hardware Error]: ");
  if (cursor.rest() == "Machine check events logged") return true;
  if (!marked) return false;
  if (cursor.Take("Hardware error from APEI Generic Hardware Error Source: ")) return true;
  if (cursor.Take("Machine Check")) return true;
  // "CPU 12: Machine Check Exception: 5 Bank 7: be00000001010092"
  return cursor.Take("CPU ") && cursor.TakeNumber() &&
         TakeOne(cursor, {": Machine Check: ", ": Machine Check Exception: "});
}

// drivers/edac/edac_mc.c: "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_.. (channel:1 ..)", and
// before Linux 3.4 "EDAC MC0: UE page 0x0, offset ..".
bool ReadMemory(std::string_view text, KernelLine& line) {
  LineCursor cursor(text);
  if (!cursor.Take("EDAC MC") || !cursor.TakeNumber() || !cursor.Take(": ")) return false;
  line.kind = KernelEventType::kMemory;
  const bool counted = cursor.TakeNumber().has_value();
  if (counted && !cursor.Take(" ")) return false;
  if (!TakeOne(cursor, {"CE ", "UE "})) return false;
  if (!counted) return cursor.Take("page 0x");
  // What the controller's driver says of it, and where: no process's name follows, but one could
  // stand before " invoked oom-killer".
  const std::string_view rest = cursor.rest();
  const size_t on = rest.find(" on ");
  return on != std::string_view::npos && Has(rest.substr(on), " (") && rest.ends_with(')') &&
         std::isalpha(static_cast<unsigned char>(rest.front())) != 0 &&
         !rest.starts_with("invoked ");
}

// net/sunrpc/clnt.c: "nfs: server fs-7 not responding, still trying", ".. timed out", ".. OK".
bool IsNfs(LineCursor cursor) {
  if (!cursor.Take("nfs: server ") || cursor.TakeAll(kHostBytes, kMaxHost).empty()) return false;
  return cursor.rest() == " not responding, still trying" ||
         cursor.rest() == " not responding, timed out" || cursor.rest() == " OK";
}

// fs/ceph/mds_client.c: "ceph: mds0 hung", since Linux 6.7 "ceph: [fsid client]: mds0 hung".
bool IsCeph(LineCursor cursor) {
  if (!cursor.Take("ceph: ")) return false;
  if (cursor.Take("[")) {
    constexpr std::string_view kId = "0123456789abcdef-";
    if (cursor.TakeAll(kId, kMaxName).empty() || !cursor.Take(" ") || !cursor.TakeNumber() ||
        !cursor.Take("]: ")) {
      return false;
    }
  }
  return cursor.Take("mds") && cursor.TakeNumber() && cursor.rest() == " hung";
}

// lustre/ptlrpc/import.c: "LustreError: 166-1: MGC10.0.0.1@o2ib: Connection to MGS (at
// 10.0.0.1@o2ib) was lost; in progress ..", of other targets "Lustre: fs-OST0001-osc-ff..: ..".
bool IsLustre(LineCursor cursor) {
  if (cursor.Take("LustreError: ")) {
    if (!cursor.TakeNumber() || !cursor.Take("-") || !cursor.TakeHex(1, 8) || !cursor.Take(": "))
      return false;
  } else if (!cursor.Take("Lustre: ")) {
    return false;
  }
  constexpr std::string_view kTarget =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.@";
  return !cursor.TakeAll(kTarget, kMaxHost).empty() && cursor.Take(": Connection to ") &&
         !cursor.TakeAll(kTarget, kMaxHost).empty() && cursor.Take(" (at ") &&
         !cursor.TakeAll(kHostBytes, kMaxHost).empty() && cursor.Take(") was lost");
}

// A disk of the node's own. Who may set up a loop or a network block device has it fail as he
// likes.
bool TakeDisk(LineCursor& cursor) {
  const std::string_view name = cursor.TakeAll(kNameBytes, kMaxName);
  if (name.empty()) return false;
  constexpr std::string_view kMade[] = {"loop", "nbd", "ram", "zram", "ublk"};
  return std::none_of(std::begin(kMade), std::end(kMade),
                      [name](std::string_view made) { return name.starts_with(made); });
}

// block/blk-core.c: since Linux 5.18 "I/O error, dev sda, sector 8812 op 0x0:(READ) ..", before it
// with the function's name in front, which was end_request until 3.18.
bool IsBlock(LineCursor cursor) {
  TakeOne(cursor, {"blk_update_request: ", "print_req_error: ", "end_request: "});
  return cursor.Take("I/O error, dev ") && TakeDisk(cursor) && cursor.Take(", sector ") &&
         cursor.TakeNumber().has_value();
}

// fs/buffer.c: "Buffer I/O error on dev sda1, logical block 7, async page read", "on device" before
// Linux 4.1.
bool IsBuffer(LineCursor cursor) {
  return cursor.Take("Buffer I/O error on dev") && TakeOne(cursor, {"ice ", " "}) &&
         TakeDisk(cursor) && cursor.Take(", logical block ") && cursor.TakeNumber().has_value();
}

// fs/ext4/super.c: "EXT4-fs error (device sda1): ext4_find_entry:1455: inode #2: comm python3: ..",
// "EXT4-fs error (device sda1) in ext4_reserve_inode_write:5792: .." Nothing behind is read.
bool IsExt4(LineCursor cursor) {
  if (!cursor.Take("EXT4-fs error (device ") || !TakeDisk(cursor)) return false;
  return TakeOne(cursor, {"): ", ") in "}) && !cursor.TakeAll(kNameBytes, kMaxName).empty() &&
         cursor.Take(":") && cursor.TakeNumber() && cursor.Take(": ");
}

bool IsXfs(LineCursor cursor) {
  return cursor.Take("XFS (") && TakeDisk(cursor) && cursor.Take("): ") &&
         TakeOne(cursor, {"metadata I/O error", "Metadata corruption", "Corruption ",
                          "Internal error", "log I/O error"});
}

// drivers/nvme/host/pci.c: "nvme nvme0: I/O 12 QID 3 timeout, aborting", since Linux 6.1 with an
// opcode and 6.6 "I/O tag 12 (d00c)"; "nvme 0000:05:00.0: .." before 4.6.
bool IsNvme(LineCursor cursor) {
  if (!cursor.Take("nvme ")) return false;
  if (cursor.Take("nvme") ? !cursor.TakeNumber().has_value() : !TakeDevice(cursor)) return false;
  if (!cursor.Take(": ")) return false;
  if (cursor.Take("controller is down; will reset")) return true;
  if (!cursor.Take("I/O ")) return false;
  cursor.Take("tag ");
  return cursor.TakeNumber() && Has(cursor.rest(), " timeout");
}

bool ReadStorage(std::string_view text, KernelLine& line) {
  const LineCursor cursor(text);
  if (IsNfs(cursor) || IsCeph(cursor) || IsLustre(cursor)) {
    line.kind = KernelEventType::kNetworkFile;
    return true;
  }
  line.kind = KernelEventType::kDisk;
  return IsBlock(cursor) || IsBuffer(cursor) || IsExt4(cursor) || IsXfs(cursor) || IsNvme(cursor);
}

// "efa 0000:00:1d.0: ..", of its verbs "efa 0000:00:1d.0 rdmap0s29: ..".
bool ReadEfa(const KmsgRecord& record, KernelLine& line) {
  LineCursor cursor(record.text);
  if (!cursor.Take("efa ")) return false;
  const std::string_view device = cursor.rest();
  if (!TakeDevice(cursor)) return false;
  const std::string_view place = device.substr(0, device.size() - cursor.rest().size());
  if (cursor.Take(" ") && cursor.TakeAll(kNameBytes, kMaxName).empty()) return false;
  if (!cursor.Take(": ") || !IsOfDevice(record, place)) return false;
  constexpr std::string_view kTrouble[] = {"rror", "Failed", "failed", "timeout", "reset"};
  const bool trouble =
      std::any_of(std::begin(kTrouble), std::end(kTrouble),
                  [&cursor](std::string_view word) { return Has(cursor.rest(), word); });
  line.kind = KernelEventType::kEfa;
  line.bus_id = PciCard(place);
  return trouble;
}

}  // namespace

bool ReadHostLine(const KmsgRecord& record, KernelLine& line) {
  return ReadHungTask(record.text, line) || ReadPcie(record, line) ||
         ReadMachineCheck(record.text, line) || ReadStorage(record.text, line) ||
         ReadMemory(record.text, line) || ReadEfa(record, line);
}

}  // namespace rankscope::collectors
