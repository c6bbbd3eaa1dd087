// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/io/io_facts.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>

#include "detectors/model/event_types.h"

namespace rankscope::probes {
namespace {

int64_t Number(const Event& event, std::string_view name) {
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == name) return pair.value;
  }
  return -1;
}
std::string Text(const Event& event, std::string_view name) {
  for (const KeyValue& pair : event.str) {
    if (pair.key == name) return pair.value;
  }
  return "-";
}

rs_io_failure OfPath(const char* path) {
  rs_io_failure failure{};
  failure.is_path = 1;
  std::memcpy(reinterpret_cast<char*>(&failure) + offsetof(rs_io_failure, name), path,
              std::strlen(path));
  return failure;
}

TEST(IoFacts, OfAPathTheLastTwoNamesAreKept) {
  const FileNames names = NamesOf(OfPath("/home/lena/private/out/last.pt"));
  EXPECT_EQ(names.name, "last.pt");
  EXPECT_EQ(names.directory, "out");
  EXPECT_EQ(NamesOf(OfPath("last.pt")).name, "last.pt");
  EXPECT_EQ(NamesOf(OfPath("last.pt")).directory, "");
  EXPECT_EQ(NamesOf(OfPath("/last.pt")).directory, "");
  EXPECT_EQ(NamesOf(OfPath("out/last.pt")).directory, "out");
  EXPECT_EQ(NamesOf(OfPath("")).name, "");
  EXPECT_EQ(NamesOf(OfPath("/")).name, "");
}

TEST(IoFacts, AFileThatIsNotThereIsNoError) {
  rs_io_failure failure = OfPath("out/last.pt");
  failure.times = 3;
  Event event = FailureEvent({7, ENOENT, SYS_newfstatat, RS_IO_CHECKPOINT, 0}, failure, {7, 70});
  EXPECT_EQ(event.type, WireType(EventType::kFileMissing));
  EXPECT_EQ(Text(event, "call"), "stat");
  EXPECT_EQ(Text(event, "class"), "checkpoint");
  EXPECT_EQ(Number(event, "times"), 3);
  event = FailureEvent({7, ENOSPC, SYS_write, RS_IO_OTHER, 0}, failure, {7, 70});
  EXPECT_EQ(event.type, WireType(EventType::kFileError));
  EXPECT_EQ(Number(event, "errno"), ENOSPC);
  EXPECT_EQ(Text(event, "class"), "other");
}

TEST(IoFacts, FileSystemsHaveNames) {
  EXPECT_EQ(FileSystemName(TMPFS_MAGIC), "tmpfs");
  EXPECT_EQ(FileSystemName(NFS_SUPER_MAGIC), "nfs");
  EXPECT_EQ(FileSystemName(12345), "other");
  EXPECT_EQ(FileSystemName(0), "");
}

TEST(IoFacts, ACheckpointTellsBytesTimeAndWhetherItIsWhole) {
  rs_io_event closed{};
  closed.file.opened_ns = 1'000'000'000;
  closed.header.time_ns = 3'600'000'000;
  closed.file.flags = RS_IO_WRITES | RS_IO_MAIN_THREAD;
  closed.bytes = closed.size = 4096;
  std::strcpy(closed.file.name, "last.pt");
  Event event = WrittenEvent(closed, {7, 70}, true);
  EXPECT_EQ(Number(event, "bytes"), 4096);
  EXPECT_EQ(Number(event, "seconds"), 3);
  EXPECT_EQ(Number(event, "milliseconds"), 2600);
  EXPECT_EQ(Number(event, "complete"), 1);
  EXPECT_EQ(Number(event, "main_thread"), 1);
  EXPECT_EQ(Number(WrittenEvent(closed, {7, 70}, false), "complete"), 0);
  closed.size = 0;
  EXPECT_EQ(Number(WrittenEvent(closed, {7, 70}, true), "complete"), 0) << "an empty file";
  EXPECT_EQ(Number(AbandonedEvent(closed.file, {7, 70}, 2'000'000'000), "complete"), 0);
}

}  // namespace
}  // namespace rankscope::probes
