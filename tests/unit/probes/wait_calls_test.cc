// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/wait_calls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace rankscope::probes {
namespace {

std::optional<CallText> Call(int number, uint64_t first = 0, uint64_t second = 0) {
  return CallText{false, number, first, second};
}

TEST(WaitCalls, TheTableOfTheKernelSaysWhatACallWaitsFor) {
  const auto calls = WaitCalls();
  EXPECT_EQ(calls[SYS_futex], RS_WAIT_FUTEX);
  EXPECT_EQ(calls[SYS_read], RS_CALL_FILE);
  EXPECT_EQ(calls[SYS_ppoll], RS_CALL_POLL);
  EXPECT_EQ(calls[SYS_fcntl], RS_CALL_FCNTL);
  EXPECT_EQ(calls[SYS_getpid], RS_CALL_OTHER);
}

TEST(WaitCalls, TheTextOfACallIsRead) {
  const auto call = ParseCall("271 0x7f00 0x2 0x7ffe 0x0 0x0 0x0 0x7ffd 0x7f01\n");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->number, 271);
  EXPECT_EQ(call->first, 0x7f00u);
  EXPECT_EQ(call->second, 2u);
  EXPECT_TRUE(ParseCall("running\n")->running);
  EXPECT_EQ(ParseCall("-1 0x7ffe 0x7f01\n")->number, -1);
  EXPECT_FALSE(ParseCall(""));
  EXPECT_FALSE(ParseCall("x 1 2"));
}

TEST(WaitCalls, ASleepIsAPollOfNothing) {
  EXPECT_EQ(ClassOf('S', Call(SYS_ppoll, 0x7f00, 2), "", ""), WaitClass::kSocket);
  EXPECT_EQ(ClassOf('S', Call(SYS_ppoll, 0, 0), "", ""), WaitClass::kSleep);
  EXPECT_EQ(ClassOf('S', Call(SYS_pselect6, 0), "", ""), WaitClass::kSleep);
  EXPECT_EQ(ClassOf('S', Call(SYS_clock_nanosleep), "", ""), WaitClass::kSleep);
}

TEST(WaitCalls, TheFileTellsWhatAReadWaitsFor) {
  EXPECT_EQ(ClassOf('S', Call(SYS_read, 7), "pipe", ""), WaitClass::kSocket);
  EXPECT_EQ(ClassOf('S', Call(SYS_read, 0), "terminal", ""), WaitClass::kOther);
  EXPECT_EQ(ClassOf('S', Call(SYS_ioctl, 9), "gpu", ""), WaitClass::kGpu);
  EXPECT_EQ(ClassOf('D', Call(SYS_read, 7), "file", ""), WaitClass::kBlock);
  EXPECT_EQ(ClassOf('D', Call(SYS_read, 7), "network_file", ""), WaitClass::kNetworkFile);
}

TEST(WaitCalls, ALockIsNoOtherCommandOnAFile) {
  EXPECT_EQ(ClassOf('S', Call(SYS_fcntl, 7, F_SETLKW), "file", ""), WaitClass::kFileLock);
  EXPECT_EQ(ClassOf('S', Call(SYS_fcntl, 7, F_GETFL), "pipe", ""), WaitClass::kSocket);
  EXPECT_EQ(ClassOf('S', Call(SYS_flock, 7), "file", ""), WaitClass::kFileLock);
}

TEST(WaitCalls, TheStateGoesFirst) {
  EXPECT_EQ(ClassOf('T', Call(SYS_read, 7), "pipe", ""), WaitClass::kStopped);
  EXPECT_EQ(ClassOf('t', {}, "", ""), WaitClass::kStopped);
  EXPECT_EQ(ClassOf('R', {}, "", ""), WaitClass::kRunning);
  EXPECT_EQ(ClassOf('D', {}, "", ""), WaitClass::kBlock) << "a page that is brought in";
  EXPECT_EQ(ClassOf('D', Call(SYS_openat), "", "rpc_wait_bit_killable"), WaitClass::kNetworkFile);
  EXPECT_EQ(ClassOf('D', Call(SYS_openat), "", "folio_wait_bit_common"), WaitClass::kBlock);
}

TEST(WaitCalls, KindsOfFiles) {
  EXPECT_EQ(FileKind("pipe:[123]", ""), "pipe");
  EXPECT_EQ(FileKind("anon_inode:[eventpoll]", ""), "event");
  EXPECT_EQ(FileKind("/dev/nvidia-uvm", ""), "gpu");
  EXPECT_EQ(FileKind("/dev/pts/3", ""), "terminal");
  EXPECT_EQ(FileKind("/data/shard-1", "nfs4"), "network_file");
  EXPECT_EQ(FileKind("/data/shard-1", "ext4"), "file");
  EXPECT_EQ(FileKind("", ""), "");
}

}  // namespace
}  // namespace rankscope::probes
