// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Two contracts of the kernel's lines: what every driver and kernel writes is still taken for what
// it is, and no line that holds a name of somebody's choice is taken for one of them.
#include "exporter/kernel_log/kernel_line.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/unit/collectors/kernel_lines.h"

namespace rankscope::collectors {
namespace {

using Kind = KernelEventType;

std::string Record(std::string_view text, std::string_view device = {}, int priority = 3) {
  std::string record = std::to_string(priority) + ",4711,88001234,-;" + std::string(text) + "\n";
  if (!device.empty()) record += " SUBSYSTEM=pci\n DEVICE=" + std::string(device) + "\n";
  return record;
}

TEST(KernelLineContract, WhatKernelsAndDriversWriteIsTaken) {
  for (const RealLine& real : kRealLines) {
    for (const int priority : {3, 6, 12}) {  // 12: an operator's own hand, which names no device
      const auto line = ParseKernelRecord(
          Record(real.text, priority < 8 ? real.device : std::string_view(), priority));
      ASSERT_TRUE(line) << real.text;
      EXPECT_EQ(line->kind, real.kind) << real.text;
      EXPECT_EQ(line->bus_id, real.bus) << real.text;
      EXPECT_EQ(line->code, real.code) << real.text;
      EXPECT_EQ(line->pid, real.pid) << real.text;
      EXPECT_EQ(line->sequence, 4711);
      EXPECT_EQ(line->microseconds, 88001234);
      EXPECT_EQ(line->text, real.text);
    }
  }
}

TEST(KernelLineContract, EveryKindHasARealLine) {
  std::set<Kind> kinds;
  for (const RealLine& real : kRealLines) kinds.insert(real.kind);
  EXPECT_EQ(kinds.size(), kKernelLogTypes);
}

// What the kernel writes of a program, by whoever has named it: `comm` is at most 15 bytes of the
// program's choice, `file` a file's name without its folder, and `path` one with it. From
// Linux 6.18 (arch/x86/mm/fault.c, kernel/traps.c, mm/oom_kill.c, mm/page_alloc.c, mm/memory.c,
// fs/exec.c, kernel/audit, kernel/cgroup, net/ipv4), 5.10 where the words differ, and arm64.
std::vector<std::string> LinesWithNames(const std::string& comm, const std::string& file) {
  const std::string pid = "[17967]";
  const std::string in = " in " + file + "[11e1,556e1d865000+1000]";
  const std::string path = "/home/u/" + file;
  return {
      comm + pid + ": segfault at 10 ip 0000556e1d8651e1 sp 00007ffd6286c0e0 error 6" + in +
          " likely on CPU 1 (core 1, socket 0)",
      comm + pid + ": segfault at 10 ip 0000556e1d8651e1 sp 00007ffd6286c0e0 error 6" + in,
      comm + pid + ": segfault at 10 ip 0000556e1d8651e1 sp 00007ffd6286c0e0 error 6 cpu 1" + in,
      comm + pid + ": segfault at 10 ip 0000556e1d8651e1 sp 00007ffd6286c0e0 error 6",
      "traps: " + comm + pid + " general protection fault ip:563463df21ac sp:7fff8a45eca0 error:0" +
          in,
      "traps: " + comm + pid + " trap invalid opcode ip:565473ee31da sp:7fff203b3b70 error:0" + in,
      comm + pid + " general protection ip:563463df21ac sp:7fff8a45eca0 error:0" + in,
      comm + pid + " trap divide error ip:563463df21ac sp:7fff8a45eca0 error:0" + in,
      comm + pid + ": unhandled exception: DABT (lower EL), ESR 0x92000046, in " + file + "[1+2]",
      comm + pid + " bad frame in rt_sigreturn frame:00007ffd ip:1 sp:2 orax:ffffffff" + in,
      comm + pid + " vsyscall attempted with vsyscall=none ip:1 cs:33 sp:7ff ax:60 si:0 di:1",
      comm + "/17967: potentially unexpected fatal signal 11.",
      comm + ": page allocation failure: order:0, mode:0xcc0(GFP_KERNEL), nodemask=(null),cpuset=" +
          file + ",mems_allowed=0",
      comm + " invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
      comm + " (17967) used greatest stack depth: 10616 bytes left",
      comm + " (17967): drop_caches: 3",
      comm + " (17967): Using mlock ulimits for SHM_HUGETLB is deprecated",
      comm + "(17967): Attempt to set a LOCK_MAND lock via flock(2).",
      comm + " uses obsolete (PF_INET,SOCK_PACKET)",
      "warning: `" + comm + "' uses 32-bit capabilities (legacy support in use)",
      "process '" + path + "' started with executable stack",
      "BUG: Bad page map in process " + comm + "  pte:80 pmd:1",
      "Out of memory: Killed process 17967 (" + comm + ") total-vm:1kB, anon-rss:1kB, UID:61002",
      "Memory cgroup out of memory: Killed process 17967 (" + comm + ") total-vm:1kB, UID:61002",
      "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=" + file +
          ",mems_allowed=0,oom_memcg=/" + file + ",task_memcg=/" + file + ",task=" + comm +
          ",pid=17967,uid=61002",
      "Tasks state (memory values in pages): ",
      "[  17967] 61002 17967      614      237    65536        0             0 " + comm,
      "audit: type=1701 audit(1763000000.1:2): auid=1 uid=61002 pid=17967 comm=\"" + comm +
          "\" exe=\"" + path + "\" sig=11 res=1",
      "cgroup: fork rejected by pids controller in /user.slice/" + file,
      "INFO: task " + comm + ":17967 is blocked on a mutex likely owned by task " + comm + ":1.",
      "task:" + comm + " state:D stack:0     pid:17967 tgid:17967 ppid:1",
      "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [" + comm + ":17967]",
      "CPU: 1 UID: 61002 PID: 17967 Comm: " + comm + " Not tainted 6.18.44 #1 PREEMPT",
      "overlayfs: failed to resolve '" + path + "': -2",
      "EXT4-fs warning (device vda): ext4_dirblock_csum_verify:1: inode #2: comm " + comm + ": " +
          "No space for directory leaf checksum. Please run e2fsck -D.",
      "usb 1-1: usbfs: process 17967 (" + comm + ") did not claim interface 0 before use",
      "mmap: " + comm + " (17967): VmData 1 exceed data ulimit 0. Update limits.",
      "show_signal: " + comm + pid + ": " + file,
  };
}

// Beginnings, ends and middles of a line, as a comm has room for them.
std::vector<std::string> CommsOf(std::string_view line) {
  std::set<std::string> comms{"python3", "", " ", ":", "a:1"};
  for (size_t size = 1; size <= 15; ++size) comms.emplace(line.substr(0, size));
  for (size_t at = 1; at < line.size(); at += 3) comms.emplace(line.substr(at, 15));
  return {comms.begin(), comms.end()};
}

// The line, its ends, and it behind what begins a line: a file's name has 255 bytes.
std::vector<std::string> FilesOf(std::string_view line) {
  std::vector<std::string> files{"libcuda.so.1", std::string(line), "\\x0a" + std::string(line),
                                 "a " + std::string(line), std::string(line) + ")"};
  for (const size_t size : {1, 4, 8, 11, 12, 13, 14, 15, 16, 20, 30})
    if (size < line.size()) files.emplace_back(line.substr(size));
  return files;
}

TEST(KernelLineContract, NoNameMakesALine) {
  int64_t tried = 0;
  for (const RealLine& real : kRealLines) {
    for (const std::string& comm : CommsOf(real.text)) {
      for (const std::string& file : FilesOf(real.text)) {
        for (const std::string& text : LinesWithNames(comm, file)) {
          ++tried;
          ASSERT_FALSE(ParseKernelRecord(Record(text, {}, 6))) << text;
          // An operator's own hand is held to the same.
          ASSERT_FALSE(ParseKernelRecord(Record(text, {}, 14))) << text;
        }
      }
    }
  }
  EXPECT_GT(tried, 100'000);
}

// What the kernel could not put to the record that begins the line begins with a name: of a file
// (" in NAME"), of a cgroup.
TEST(KernelLineContract, TheRestOfALineMakesNone) {
  for (const RealLine& real : kRealLines) {
    const std::string text(real.text);
    for (const std::string_view flags : {"c", "+", "c,caller=T17967", ""}) {
      const auto line = ParseKernelRecord("4,1,2," + std::string(flags) + ";" + text);
      const bool drivers = text.starts_with("NVRM: ") && flags.starts_with('c');
      EXPECT_TRUE(!line || (drivers && line->continues)) << flags << text;
    }
    EXPECT_TRUE(ParseKernelRecord("12,1,2,-,caller=T17967;" + text)) << text;
    for (const std::string_view before : {" in ", ",cpuset=", ",oom_memcg=", "x", " ", "\\x0a"})
      EXPECT_FALSE(ParseKernelRecord(Record(std::string(before) + text, {}, 6))) << text;
  }
}

// A hung task, a process on a poisoned page and whoever used the card are named by the kernel, and
// may name themselves so that the line seems to name another, or to say more.
TEST(KernelLineContract, ANameInALineChangesNothingOfIt) {
  for (const std::string_view name :
       {"a:4711", "a:1 blocked for", "x, pid=4711, y", "x, RLW Fatal XC", ", 79, Uncontain",
        ": 79, ", "due to hardware", "a\\x0ab:9", "", "x:1 due to hard", ", RLW_X Fatal ,"}) {
    const std::string comm(name);
    auto line =
        ParseKernelRecord(Record("INFO: task " + comm + ":812 blocked for more than 122 seconds."));
    ASSERT_TRUE(line) << comm;
    EXPECT_EQ(line->pid, 812) << comm;
    line = ParseKernelRecord(Record("Memory failure: 0x3a1c2: Sending SIGBUS to " + comm +
                                    ":812 due to hardware memory corruption"));
    ASSERT_TRUE(line) << comm;
    EXPECT_EQ(line->pid, 812) << comm;
    line = ParseKernelRecord(Record("NVRM: Xid (PCI:0000:4F:00): 145, pid=812, name=" + comm +
                                    ", RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x8)"));
    ASSERT_TRUE(line) << comm;
    EXPECT_EQ(line->pid, 812) << comm;
    EXPECT_EQ(line->code, 145) << comm;
    EXPECT_TRUE(line->nonfatal) << comm;
    // Where the driver itself says no more, the name does not.
    line = ParseKernelRecord(
        Record("NVRM: Xid (PCI:0000:4F:00): 145, pid=812, name=" + comm + ", Ch 00000008"));
    ASSERT_TRUE(line) << comm;
    EXPECT_FALSE(line->nonfatal) << comm;
  }
  EXPECT_FALSE(ParseKernelRecord(Record(
      "INFO: task a very long name that no process has:812 blocked for more than 122 seconds.")));
}

TEST(KernelLineContract, WhatADriverSaysOfADeviceComesFromThatDevice) {
  const std::string text =
      "nvidia 0000:18:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=X";
  EXPECT_TRUE(ParseKernelRecord(Record(text, "+pci:0000:18:00.0")));
  EXPECT_FALSE(ParseKernelRecord(Record(text, "+pci:0000:19:00.0")));
  EXPECT_FALSE(ParseKernelRecord(Record(text, "+usb:1-1")));
  EXPECT_FALSE(ParseKernelRecord(Record(text))) << "no driver wrote it";
  EXPECT_TRUE(ParseKernelRecord(Record(text, {}, 12))) << "an operator's own hand";
}

TEST(KernelLineContract, DisksThatAnybodySetsUpAreNone) {
  for (const std::string_view disk : {"loop0", "nbd3", "zram0", "ram1", "ublkb0"}) {
    const std::string name(disk);
    EXPECT_FALSE(
        ParseKernelRecord(Record("I/O error, dev " + name + ", sector 8812 op 0x0:(READ)")));
    EXPECT_FALSE(ParseKernelRecord(
        Record("EXT4-fs error (device " + name + "): ext4_lookup:1: inode #2: comm ls: bad")));
    EXPECT_FALSE(
        ParseKernelRecord(Record("Buffer I/O error on dev " + name + ", logical block 1")));
  }
}

}  // namespace
}  // namespace rankscope::collectors
