// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Lines as every generation of the kernel and of NVIDIA's driver writes them.
#pragma once

#include <string_view>

#include "exporter/kernel_log/kernel_line.h"

namespace rankscope::collectors {

struct RealLine {
  std::string_view text;
  KernelEventType kind;
  std::string_view bus = "";
  int32_t code = -1;
  int32_t pid = 0;
  std::string_view device = "";  // that dev_printk adds
};

inline constexpr RealLine kRealLines[] = {
    // NVIDIA: before 450, since 450 with a process, since 460 with its name, of a MIG instance.
    {"NVRM: Xid (0000:02:00): 13, 0003 00000000 000090c0 00001b0c 00000000 00000000",
     KernelEventType::kXid, "0000:02:00", 13},
    {"NVRM: Xid (PCI:0000:06:00): 31, Ch 00000010, engmask 00000101, intr 10000000",
     KernelEventType::kXid, "0000:06:00", 31},
    {"NVRM: Xid (PCI:0000:65:00): 45, pid=1812, Ch 00000008", KernelEventType::kXid, "0000:65:00",
     45, 1812},
    {"NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout after 6s of waiting "
     "for "
     "RPC response from GPU4 GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4).",
     KernelEventType::kXid, "0000:9b:00", 119, 2024380},
    {"NVRM: Xid (PCI:0000:38:00): 13, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception "
     "on "
     "(GPC 9, TPC 1, SM 1): Out Of Range Address",
     KernelEventType::kXid, "0000:38:00", 13},
    {"NVRM: Xid (PCI:0000:38:00): 43, pid=2924364, name=pt_main_thread, Ch 00000008",
     KernelEventType::kXid, "0000:38:00", 43, 2924364},
    {"NVRM: Xid (PCI:0000:cb:00): 109, pid=1797828, name=pt_main_thread, Ch 00000008, errorString "
     "CTX SWITCH TIMEOUT, Info 0x58005",
     KernelEventType::kXid, "0000:cb:00", 109, 1797828},
    {"NVRM: Xid (PCI:0018:01:00): 145, pid=876767, name=ray::WorkerDict, RLW_RXPIPE Nonfatal XC0 "
     "i0 "
     "Link 13 (0x0409a0c2 0x00000008 0x0 0x0 0x0 0x0)",
     KernelEventType::kXid, "0018:01:00", 145, 876767},
    {"NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain "
     "and "
     "Reset)",
     KernelEventType::kXid, "0008:01:00", 154},
    {"NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus.", KernelEventType::kXid,
     "0000:18:00", 79},
    {"NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
     KernelEventType::kXid, "0000:18:00", 79},
    {"NVRM: Xid (PCI:0000:4F:00): 94, pid=33120, name=python3, Contained: SM (0x1). RST: No, "
     "D-RST: "
     "No",
     KernelEventType::kXid, "0000:4f:00", 94, 33120},
    {"NVRM: Xid (PCI:0000:01:00 GPU-I:05): 43, pid=5512, name=a: 79, b, Ch 00000008",
     KernelEventType::kXid, "0000:01:00", 43, 5512},
    {"NVRM: Xid (PCI:0000:9b:00): 48, pid=101, name=python3, An uncorrectable double bit error "
     "(DBE) "
     "has been detected on GPU (00 00 00).",
     KernelEventType::kXid, "0000:9b:00", 48, 101},
    {"NVRM: Xid (PCI:0000:50:00): 63, pid=102, name=python3, Row Remapper: New row marked for "
     "remapping, reset gpu to activate.",
     KernelEventType::kXid, "0000:50:00", 63, 102},
    {"NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", KernelEventType::kGpuLost,
     "0000:18:00"},
    {"NVRM: fallen off the bus and is not responding to commands.", KernelEventType::kGpuLost},
    {"NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:20b5)\\x0aNVRM: installed in this system has"
     "\\x0aNVRM: fallen off the bus and is not responding to commands.",
     KernelEventType::kGpuLost, "0000:3b:00"},
    {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 28 sourcing buffer",
     KernelEventType::kSxid, "0000:c1:00", 24007},
    {"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 44 sourcetrack timeout "
     "error",
     KernelEventType::kSxid, "0000:c1:00", 12028},
    {"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Severity 1 Engine instance 28 Sub-engine "
     "instance 00",
     KernelEventType::kSxid, "0000:c1:00", 24007},
    // PCIe: since 6.11, since 4.20, before; of the device itself.
    {"pcieport 0000:15:01.0: AER: Uncorrectable (Fatal) error message received from 0000:18:00.0",
     KernelEventType::kPcie, "0000:18:00", -1, 0, "+pci:0000:15:01.0"},
    {"pcieport 0000:15:01.0: AER: Multiple Correctable error message received from 0000:18:00.0",
     KernelEventType::kPcie, "0000:18:00", -1, 0, "+pci:0000:15:01.0"},
    {"pcieport 0000:00:1c.0: AER: Corrected error received: 0000:02:00.0", KernelEventType::kPcie,
     "0000:02:00", -1, 0, "+pci:0000:00:1c.0"},
    {"pcieport 0000:00:1c.0: AER: Uncorrected (Non-Fatal) error received: id=0018",
     KernelEventType::kPcie, "", -1, 0, "+pci:0000:00:1c.0"},
    {"nvidia 0000:18:00.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver "
     "ID)",
     KernelEventType::kPcie, "0000:18:00", -1, 0, "+pci:0000:18:00.0"},
    {"pcieport 0000:00:1c.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction "
     "Layer, (Requester ID)",
     KernelEventType::kPcie, "0000:00:1c", -1, 0, "+pci:0000:00:1c.0"},
    // Processor and memory.
    {"mce: [Hardware Error]: Machine check events logged", KernelEventType::kMachineCheck},
    {"[Hardware Error]: Machine check events logged", KernelEventType::kMachineCheck},
    {"mce: [Hardware Error]: CPU 12: Machine Check: 0 Bank 7: be00000001010092",
     KernelEventType::kMachineCheck},
    {"mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 1: bf80000000100134",
     KernelEventType::kMachineCheck},
    {"{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4",
     KernelEventType::kMachineCheck},
    {"[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4",
     KernelEventType::kMachineCheck},
    {"Memory failure: 0x3a1c2: Killing python3:812 due to hardware memory corruption",
     KernelEventType::kMachineCheck, "", -1, 812},
    {"Memory failure: 0x3a1c2: Sending SIGBUS to pt_main_thread:812 due to hardware memory "
     "corruption",
     KernelEventType::kMachineCheck, "", -1, 812},
    {"Memory failure: 0x3a1c2: forcibly killing python3:812 because of failure to unmap corrupted "
     "page",
     KernelEventType::kMachineCheck, "", -1, 812},
    {"Memory failure: 0x3a1c2: recovery action for dirty LRU page: Recovered",
     KernelEventType::kMachineCheck},
    {"MCE 0x3a1c2: Killing python3:812 due to hardware memory corruption",
     KernelEventType::kMachineCheck, "", -1, 812},
    {"EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 "
     "page:0x3a1c2 offset:0x0 grain:32)",
     KernelEventType::kMemory},
    {"EDAC MC1: 3 CE memory scrubbing error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 "
     "page:0x1 offset:0x0 grain:32 syndrome:0x0 -  err_code:0x0008:0x00c0)",
     KernelEventType::kMemory},
    {"EDAC MC0: UE page 0x3a1c2, offset 0x0, grain 4096, row 2, labels \"\": i3200 UE",
     KernelEventType::kMemory},
    // Tasks that hang.
    {"INFO: task pt_main_thread:9120 blocked for more than 122 seconds.",
     KernelEventType::kHungTask, "", -1, 9120},
    {"INFO: task a:b c:77 blocked for more than 241 seconds.", KernelEventType::kHungTask, "", -1,
     77},
    {"INFO: task python3:812 blocked in I/O wait for more than 122 seconds.",
     KernelEventType::kHungTask, "", -1, 812},
    // File servers.
    {"nfs: server fs-7 not responding, still trying", KernelEventType::kNetworkFile},
    {"nfs: server 10.0.0.1 not responding, timed out", KernelEventType::kNetworkFile},
    {"nfs: server fd00::7 OK", KernelEventType::kNetworkFile},
    {"ceph: mds0 hung", KernelEventType::kNetworkFile},
    {"ceph: [3a1c2b44-0000-4f00-9b00-cb0038001801 4711]: mds0 hung", KernelEventType::kNetworkFile},
    {"LustreError: 166-1: MGC10.0.0.1@o2ib: Connection to MGS (at 10.0.0.1@o2ib) was lost; in "
     "progress operations using this service will fail",
     KernelEventType::kNetworkFile},
    {"Lustre: scratch-OST0001-osc-ffff9b00cb00: Connection to scratch-OST0001 (at 10.0.0.2@o2ib) "
     "was "
     "lost; in progress operations using this service will wait for recovery to complete",
     KernelEventType::kNetworkFile},
    // Disks: since 5.18, 4.13, before; and the file systems on them.
    {"I/O error, dev nvme1n1, sector 8812 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2",
     KernelEventType::kDisk},
    {"blk_update_request: I/O error, dev sda, sector 8812 op 0x1:(WRITE) flags 0x800",
     KernelEventType::kDisk},
    {"print_req_error: I/O error, dev sda, sector 8812", KernelEventType::kDisk},
    {"end_request: I/O error, dev sda, sector 8812", KernelEventType::kDisk},
    {"Buffer I/O error on dev sda1, logical block 7, async page read", KernelEventType::kDisk},
    {"Buffer I/O error on device dm-3, logical block 7", KernelEventType::kDisk},
    {"EXT4-fs error (device nvme0n1p2): ext4_find_entry:1455: inode #2: comm a): b:1: c: reading "
     "directory lblock 0",
     KernelEventType::kDisk},
    {"EXT4-fs error (device sda1) in ext4_reserve_inode_write:5792: Journal has aborted",
     KernelEventType::kDisk},
    {"XFS (dm-0): metadata I/O error in \"xfs_buf_ioend_handle_error+0x1\" at daddr 0x8 len 8 "
     "error 5",
     KernelEventType::kDisk},
    {"XFS (sda1): log I/O error -5", KernelEventType::kDisk},
    {"XFS (sda1): Corruption of in-memory data (0x8) detected at xfs_trans_cancel+0x1.  Shutting "
     "down filesystem.",
     KernelEventType::kDisk},
    {"nvme nvme0: I/O 12 QID 3 timeout, aborting", KernelEventType::kDisk},
    {"nvme nvme0: I/O tag 12 (d00c) opcode 0x2 (Read) QID 3 timeout, reset controller",
     KernelEventType::kDisk},
    {"nvme 0000:05:00.0: I/O 12 QID 3 timeout, aborting", KernelEventType::kDisk},
    {"nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff",
     KernelEventType::kDisk},
    {"efa 0000:00:1d.0: Failed to get device attributes -110", KernelEventType::kEfa, "0000:00:1d",
     -1, 0, "+pci:0000:00:1d.0"},
    {"efa 0000:00:1d.0 rdmap0s29: Failed to process command CREATE_QP (opcode 1) comp_status 3 err "
     "-5",
     KernelEventType::kEfa, "0000:00:1d", -1, 0, "+pci:0000:00:1d.0"},
};

}  // namespace rankscope::collectors
