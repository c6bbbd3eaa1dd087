// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Records of the kernel's log: what each kind looks like, and what looks like it and is none.
#include "exporter/kernel_log/kmsg.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "exporter/kernel_log/kernel_line.h"
#include "tests/unit/collectors/recording_sink.h"

namespace rankscope::collectors {
namespace {

std::string Record(std::string_view text, int priority = 3) {
  return std::to_string(priority) + ",4711,88001234,-;" + std::string(text) +
         "\n SUBSYSTEM=pci\n DEVICE=+pci:0000:4f:00.0\n";
}

TEST(KernelLine, WhatAnXidSaysOfItsCard) {
  const auto read = [](std::string_view text) { return *ParseKernelRecord(Record(text)); };
  const std::string changed = "NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from ";
  EXPECT_EQ(read(changed + "0x0 (None) to 0x4 (Drain and Reset)").recovery,
            RecoveryAction::kDrainAndReset);
  EXPECT_EQ(read(changed + "0x1 (GPU Reset Required) to 0x0 (None)").recovery,
            RecoveryAction::kNone);
  EXPECT_EQ(read(changed + "0x0 (None) to 0x9 (Something)").recovery, RecoveryAction::kUntold);
  EXPECT_EQ(
      read("NVRM: Xid (PCI:0008:01:00): 31, GPU recovery action changed from 0x1 to 0x0").recovery,
      RecoveryAction::kUntold)
      << "no Xid 154";
  const std::string link = "NVRM: Xid (PCI:0018:01:00): 145, pid=7, name=ray::W, RLW_RXPIPE ";
  EXPECT_TRUE(read(link + "Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x8)").nonfatal);
  EXPECT_FALSE(read(link + "Fatal XC0 i0 Link 13 (0x0409a0c2 0x8)").nonfatal);
  EXPECT_EQ(read(link + "Fatal").microseconds, 88001234);
}

TEST(KernelLine, OthersAreNone) {
  for (const std::string_view text : {
           "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15",
           "NVRM: Xid (PCI:0000:4F:00): none",
           "python3[812]: my GPU has fallen off the bus, it said",
           "INFO: task blocked for more than 122 seconds.",
           "pcieport 0000:15:01.0: AER: enabled with IRQ 26",
           "EDAC MC: Ver: 3.0.0",
           "EXT4-fs (sda1): mounted filesystem",
           "nvme nvme0: 16/0/0 default/read/poll queues",
           "efa 0000:00:1d.0: Setup irq:36 name:efa-mgmnt",
           "",
       }) {
    EXPECT_FALSE(ParseKernelRecord(Record(text))) << text;
  }
}

TEST(KernelLine, WhatDaemonsWriteThereIsNot) {
  const std::string_view xid = "NVRM: Xid (PCI:0000:4F:00): 79, GPU has fallen off the bus.";
  EXPECT_TRUE(ParseKernelRecord(Record(xid, 3)));
  EXPECT_TRUE(ParseKernelRecord(Record(xid, 12))) << "an operator's own hand";
  EXPECT_FALSE(ParseKernelRecord(Record(xid, 30))) << "the facility of daemons";
}

TEST(KernelLine, Damaged) {
  for (const std::string_view record :
       {"", ";", "6", "6,", "6,x,1,-;NVRM: Xid (PCI:0000:4F:00): 79, x",
        "x,1,1,-;nfs: server a not responding", "6,1,1,-", "3,1,1,-;NVRM: Xid (",
        "3,1,1,-;NVRM: Xid (PCI:", "3,1,1,-;NVRM: Xid (PCI:::::): 79, "}) {
    const auto line = ParseKernelRecord(record);
    EXPECT_TRUE(!line || line->bus_id.empty()) << record;
  }
  const auto huge = ParseKernelRecord("3,1,1,-;NVRM: Xid (PCI:0000:4F:00): 99999999999, x");
  EXPECT_FALSE(huge);
}

TEST(KernelLine, OfSeveralLinesTheFirstNamesTheCard) {
  EXPECT_EQ(CardOfLongLoss("3,1,1,-;NVRM: The NVIDIA GPU 0000:3B:00.0 (PCI ID: 10de:20b5)"),
            "0000:3b:00");
  EXPECT_EQ(CardOfLongLoss("3,1,1,-;NVRM: The NVIDIA GPU 0000:3B:00.0"), "");
  EXPECT_EQ(CardOfLongLoss("3,1,1,c;NVRM: The NVIDIA GPU 0000:3B:00.0 (PCI ID: 10de:20b5)"),
            "0000:3b:00");
}

// As driver 580.159 has it written on Linux 6.18.
TEST(KernelLine, TheDriverWritesItsLinesAsTheRestOfOne) {
  const std::string_view xid =
      "NVRM: Xid (PCI:0000:00:06): 31, pid=656, name=python, channel 0x00000032, intr 00000000. "
      "MMU "
      "Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_8 faulted @ 0x0_00001000. Fault is of type "
      "FAULT_PDE "
      "ACCESS_TYPE_VIRT_WRITE";
  const auto line = ParseKernelRecord("4,363,51379450,c;" + std::string(xid) + "\n");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->code, 31);
  EXPECT_EQ(line->pid, 656);
  EXPECT_EQ(line->bus_id, "0000:00:06");
  EXPECT_FALSE(ParseKernelRecord("12,363,51379450,c;" + std::string(xid))) << "not by the kernel";
  EXPECT_FALSE(ParseKernelRecord("4,363,51379450,+;" + std::string(xid)));
}

TEST(KernelLine, TheRestOfAnotherLineIsNobodys) {
  for (const std::string_view text : {"nfs: server a not responding, still trying",
                                      "INFO: task python3:41 blocked for more than 122 "
                                      "seconds.",
                                      "name=x, NVRM: Xid (PCI:0000:00:06): 31, pid=656"}) {
    EXPECT_FALSE(ParseKernelRecord("4,7,9,c;" + std::string(text))) << text;
  }
}

// A pipe whose each write is a record, as each read of /dev/kmsg is one.
class KmsgTest : public ::testing::Test {
 protected:
  KmsgTest() : path_(::testing::TempDir() + "kmsg_" + std::to_string(getpid())) {
    mkfifo(path_.c_str(), 0600);
  }
  ~KmsgTest() override {
    unlink(path_.c_str());
    std::filesystem::remove_all(driver_);
  }

  void SetUp() override { MakeDriver(); }
  // The folder of the driver's module, as /proc has it, with the cards that it drives.
  void MakeDriver(std::initializer_list<std::string_view> cards = {"0000:4f:00", "0000:50:00",
                                                                   "0000:3b:00"}) {
    for (const std::string_view card : cards)
      std::filesystem::create_directories(driver_ + "/gpus/" + std::string(card) + ".0");
    std::ofstream(driver_ + "/version") << "NVRM version";
  }

  // Before the source is started nobody reads: the pipe holds what was logged before.
  void Open() {
    writer_ = OwnedFd(open(path_.c_str(), O_RDWR | O_NONBLOCK));
    ASSERT_TRUE(writer_);
    ASSERT_EQ(fcntl(writer_.get(), F_SETFL, O_DIRECT | O_NONBLOCK), 0) << "keeps records apart";
  }
  void Write(int64_t sequence, std::string_view text, int64_t microseconds = 1) {
    const std::string record = "3," + std::to_string(sequence) + "," +
                               std::to_string(microseconds) + ",-;" + std::string(text) + "\n";
    ASSERT_EQ(write(writer_.get(), record.data(), record.size()),
              static_cast<ssize_t>(record.size()));
  }
  void WriteRest(int64_t sequence, std::string_view text) {
    const std::string record = "4," + std::to_string(sequence) + ",1,c;" + std::string(text) + "\n";
    ASSERT_EQ(write(writer_.get(), record.data(), record.size()),
              static_cast<ssize_t>(record.size()));
  }
  void Run(Duration time = Milliseconds(50)) {
    loop_.After(time, [this] { loop_.Stop(); });
    loop_.Run();
  }

  std::string path_;
  std::string driver_ = path_ + "_driver";
  OwnedFd writer_;
  exporter::EventLoop loop_;
  RecordingSink sink_;
  std::shared_ptr<XidLedger> xids_ = std::make_shared<XidLedger>();
};

TEST_F(KmsgTest, OfBeforeItsStartIsKnownAndNeitherCountedNorTold) {
  Open();
  Write(10, "NVRM: Xid (PCI:0000:4F:00): 95, pid=7, name=python3, Uncontained", 5'000'000);
  Write(11, "nfs: server fs-7 not responding, still trying", 6'000'000);
  Kmsg source(std::make_shared<ProcessTable>(), xids_, path_, driver_);
  ASSERT_TRUE(source.Start(loop_, sink_).ok());
  Write(12, "NVRM: Xid (PCI:0000:4F:00): 31, pid=7, name=python3, MMU Fault", 7'000'000);
  Run();
  ASSERT_EQ(sink_.Of<KernelEvent>().size(), 1u);
  EXPECT_EQ(sink_.Of<KernelEvent>()[0].code, 31);
  const XidReport report = xids_->Report();
  EXPECT_TRUE(report.heard);
  ASSERT_EQ(report.counts.size(), 2u);
  EXPECT_EQ(report.counts[0].code, 31);
  EXPECT_EQ(report.counts[0].count, 1);
  EXPECT_EQ(report.counts[1].code, 95);
  EXPECT_EQ(report.counts[1].count, 0);
  EXPECT_EQ(report.counts[1].last.ns, 5'000'000'000);
  EXPECT_EQ(xids_->PendingOf("0000:4f:00").code, 95);
  EXPECT_EQ(source.counts()[static_cast<size_t>(KernelEventType::kXid) - 1].value, 1);
  EXPECT_EQ(source.counts()[static_cast<size_t>(KernelEventType::kNetworkFile) - 1].value, 0);
  // Begun anew, it reads the log from its beginning again, and knows how far it was.
  source.Stop();
  EXPECT_FALSE(xids_->Report().heard);
  ASSERT_TRUE(source.Start(loop_, sink_).ok());
  Write(11, "NVRM: Xid (PCI:0000:4F:00): 31, pid=7, name=python3, MMU Fault");
  Write(13, "NVRM: Xid (PCI:0000:4F:00): 31, pid=7, name=python3, MMU Fault");
  Run();
  EXPECT_EQ(xids_->Report().counts[0].count, 2);
  EXPECT_EQ(source.lost(), 0);
  source.Stop();
}

// A cgroup's name may stand alone in such a record.
TEST_F(KmsgTest, WhatMayBeTheRestOfALineIsBelievedWithTheLibrary) {
  Open();
  Kmsg source(std::make_shared<ProcessTable>(), xids_, path_, driver_);
  ASSERT_TRUE(source.Start(loop_, sink_).ok());
  xids_->SetHeard(XidLedger::Teller::kLibrary, true);
  const auto told = [this] { return sink_.Of<KernelEvent>(); };
  WriteRest(1, "NVRM: Xid (PCI:0000:4F:00): 79, GPU has fallen off the bus.");
  WriteRest(2, "NVRM: Xid (PCI:0000:4F:00): 31, pid=7, name=python3, MMU Fault");
  Run();
  EXPECT_EQ(told().size(), 0u);
  EXPECT_EQ(xids_->Report().counts.size(), 0u);
  xids_->Add(XidLedger::Teller::kLibrary, {"0000:4f:00", 31}, loop_.Now());
  ASSERT_EQ(told().size(), 1u);
  EXPECT_EQ(told()[0].code, 31);
  EXPECT_NE(told()[0].text, "");
  xids_->Add(XidLedger::Teller::kLibrary, {"0000:4f:00", 43}, loop_.Now());
  WriteRest(3, "NVRM: Xid (PCI:0000:4F:00): 43, pid=7, name=python3, channel 0x00000032");
  Run();
  ASSERT_EQ(told().size(), 2u) << "the library was first";
  EXPECT_EQ(told()[1].code, 43);
  for (const XidCount& each : xids_->Report().counts) EXPECT_EQ(each.count, 1) << each.code;
  xids_->SetHeard(XidLedger::Teller::kLibrary, false);
  WriteRest(4, "NVRM: Xid (PCI:0000:50:00): 13, pid=9, name=python3, Graphics Exception");
  Run();
  EXPECT_EQ(told().size(), 3u) << "nobody else could tell";
  source.Stop();
}

TEST_F(KmsgTest, AnErrorOfASwitchHasSeveralLinesAndIsOne) {
  Open();
  const std::string head = "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): ";
  Write(1, head + "20012, Non-fatal, Link 30 LTSSM Fault Up");
  Kmsg source(std::make_shared<ProcessTable>(), xids_, path_, driver_);
  ASSERT_TRUE(source.Start(loop_, sink_).ok());
  Write(2, head + "24007, Fatal, Link 28 sourcing buffer");
  Write(3, head + "24007, Severity 1 Engine instance 28 Sub-engine instance 00");
  Write(4, head + "24007, Data {0x00000000, 0x00000000}");
  Write(5, head + "20012, Non-fatal, Link 30 LTSSM Fault Up");
  Run();
  const std::vector<SxidCount> switches = xids_->Report().switches;
  ASSERT_EQ(switches.size(), 2u);
  EXPECT_EQ(switches[0].code, 20012);
  EXPECT_FALSE(switches[0].fatal);
  EXPECT_EQ(switches[0].count, 1) << "since its start";
  EXPECT_TRUE(switches[1].fatal);
  EXPECT_EQ(switches[1].count, 1);
  EXPECT_EQ(source.counts()[static_cast<size_t>(KernelEventType::kSxid) - 1].value, 4);
  source.Stop();
}

TEST_F(KmsgTest, ALossInThreeRecordsIsOfTheCardOfTheFirst) {
  Open();
  Kmsg source(std::make_shared<ProcessTable>(), xids_, path_, driver_);
  ASSERT_TRUE(source.Start(loop_, sink_).ok());
  Write(1, "NVRM: The NVIDIA GPU 0000:3B:00.0 (PCI ID: 10de:20b5)");
  Write(2, "NVRM: installed in this system has");
  Write(3, "usb 1-1: new device");
  Write(4, "NVRM: fallen off the bus and is not responding to commands.");
  Write(90,
        "NVRM: fallen off the bus and is not responding to commands.");  // of what, nobody knows
  Run();
  const std::vector<KernelEvent> told = sink_.Of<KernelEvent>();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].type, KernelEventType::kGpuLost);
  EXPECT_EQ(told[0].gpu_bus_id, "0000:3b:00");
  EXPECT_EQ(told[1].gpu_bus_id, "");
  EXPECT_TRUE(xids_->PendingOf("0000:3b:00").needs[static_cast<size_t>(XidNeed::kReboot)]);
  source.Stop();
}

TEST_F(KmsgTest, WithoutTheDriverNobodysXidIsBelieved) {
  std::filesystem::remove_all(driver_);
  Open();
  Kmsg source(std::make_shared<ProcessTable>(), xids_, path_, driver_);
  ASSERT_TRUE(source.Start(loop_, sink_).ok());
  Write(1, "NVRM: Xid (PCI:0000:4F:00): 79, GPU has fallen off the bus.");
  Write(2, "NVRM: GPU 0000:4f:00.0: GPU has fallen off the bus.");
  Write(3, "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 28 sourcing buffer");
  Write(4, "I/O error, dev sda, sector 8812 op 0x0:(READ)");
  Run();
  ASSERT_EQ(sink_.Of<KernelEvent>().size(), 1u);
  EXPECT_EQ(sink_.Of<KernelEvent>()[0].type, KernelEventType::kDisk) << "the kernel's own";
  EXPECT_TRUE(xids_->Report().counts.empty());
  EXPECT_TRUE(xids_->Report().switches.empty());
  EXPECT_EQ(source.counts().back().name, "unconfirmed");
  EXPECT_EQ(source.counts().back().value, 3);
  source.Stop();
}

TEST_F(KmsgTest, ACardThatTheDriverDoesNotHaveIsNotBelieved) {
  Open();
  Kmsg source(std::make_shared<ProcessTable>(), xids_, path_, driver_);
  ASSERT_TRUE(source.Start(loop_, sink_).ok());
  Write(1, "NVRM: Xid (PCI:0000:4F:00): 79, GPU has fallen off the bus.");
  Write(2, "NVRM: Xid (PCI:0000:51:00): 79, GPU has fallen off the bus.");
  Run();
  EXPECT_EQ(sink_.Of<KernelEvent>().size(), 1u);
  EXPECT_EQ(source.counts().back().value, 1);
  // Or its library, where it has no folder here.
  xids_->AddCard("0000:51:00");
  Write(3, "NVRM: Xid (PCI:0000:51:00): 95, Uncontained");
  Run();
  EXPECT_EQ(sink_.Of<KernelEvent>().size(), 2u);
  source.Stop();
}

TEST_F(KmsgTest, WhatCannotBeReadIsSaid) {
  exporter::EventLoop loop;
  RecordingSink sink;
  Kmsg source(std::make_shared<ProcessTable>(), std::make_shared<XidLedger>(), "/nowhere/kmsg");
  EXPECT_FALSE(source.Start(loop, sink).ok());
  ASSERT_EQ(sink.Of<SourceState>().size(), 1u);
  EXPECT_EQ(sink.Of<SourceState>()[0].state, Availability::kUnsupported);
}

TEST_F(KmsgTest, EachIsCountedAndTheFirstOfASecondTold) {
  auto table = std::make_shared<ProcessTable>();
  TrackedProcess process;
  process.key = {33120, 900};
  table->Add(process);
  Open();
  Kmsg source(table, xids_, path_, driver_);
  ASSERT_TRUE(source.Start(loop_, sink_).ok());
  for (int i = 0; i < 5; ++i)
    Write(10 + i, "NVRM: Xid (PCI:0000:4F:00): 31, pid=33120, name=python3, MMU Fault");
  Write(15, "NVRM: Xid (PCI:0000:50:00): 31, pid=33120, name=python3, MMU Fault");
  Write(20, "usb 1-1: new device");
  Run();
  const std::vector<KernelEvent> told = sink_.Of<KernelEvent>();
  ASSERT_EQ(told.size(), 2u) << "one of each card";
  EXPECT_EQ(told[0].type, KernelEventType::kXid);
  EXPECT_EQ(told[0].code, 31);
  EXPECT_EQ(told[0].gpu_bus_id, "0000:4f:00");
  EXPECT_EQ(told[0].victim, process.key);
  EXPECT_EQ(told[1].gpu_bus_id, "0000:50:00");
  EXPECT_EQ(source.counts()[static_cast<size_t>(KernelEventType::kXid) - 1].value, 6);
  EXPECT_EQ(source.lost(), 4) << "the numbers between 15 and 20";
  source.Stop();
}

}  // namespace
}  // namespace rankscope::collectors
