// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/fault_log.h"

#include <gtest/gtest.h>

#include <string>

namespace rankscope::windows {
namespace {

KernelEvent Line(std::string_view type, std::string text, std::string bus_id = {}) {
  KernelEvent event;
  event.type = KernelEventTypeOf(type);
  event.text = std::move(text);
  event.gpu_bus_id = std::move(bus_id);
  return event;
}

Timestamp At(int64_t seconds) {
  return Timestamp{seconds * 1'000'000'000};
}

TEST(FaultLog, EqualLinesAreOneFaultWithACount) {
  FaultLog log;
  const KernelEvent line =
      Line("pcie", "AER: Corrected error received: 0000:50:00.0", "0000:50:00");
  for (int i = 0; i < 5; ++i) log.OnKernelEvent(line, 0, -1, At(10 + i));
  ASSERT_EQ(log.all().size(), 1u);
  EXPECT_EQ(log.all()[0].times, 5);
  EXPECT_EQ(log.all()[0].first, At(10));
  EXPECT_EQ(log.all()[0].last, At(14));
  EXPECT_FALSE(log.all()[0].own());
}

TEST(FaultLog, OneDeviceIsNotAnother) {
  FaultLog log;
  log.OnKernelEvent(Line("pcie", "a", "0000:50:00"), 0, -1, At(1));
  log.OnKernelEvent(Line("pcie", "a", "0000:51:00"), 0, -1, At(1));
  EXPECT_EQ(log.all().size(), 2u);
}

TEST(FaultLog, AServerThatAnswersAgainIsOver) {
  FaultLog log;
  log.OnKernelEvent(Line("network_file", "nfs: server a not responding, still trying"), 0, -1,
                    At(1));
  log.OnKernelEvent(Line("network_file", "nfs: server b not responding, still trying"), 0, -1,
                    At(2));
  log.OnKernelEvent(Line("network_file", "nfs: server b OK"), 0, -1, At(3));
  ASSERT_EQ(log.all().size(), 2u);
  EXPECT_FALSE(log.all()[0].over);
  EXPECT_TRUE(log.all()[1].over);
  EXPECT_EQ(log.all()[1].device, "b");
}

TEST(FaultLog, AndSilentAgainIsAFaultOfItsOwn) {
  FaultLog log;
  log.OnKernelEvent(Line("network_file", "nfs: server a not responding, timed out"), 0, -1, At(1));
  log.OnKernelEvent(Line("network_file", "nfs: server a OK"), 0, -1, At(3));
  log.OnKernelEvent(Line("network_file", "nfs: server a not responding, timed out"), 0, -1, At(90));
  ASSERT_EQ(log.all().size(), 2u);
  EXPECT_TRUE(log.all()[0].over);
  EXPECT_FALSE(log.all()[1].over);
  EXPECT_EQ(log.all()[1].first, At(90));
}

TEST(FaultLog, AnAnswerOfAServerThatWasNeverSilentIsNothing) {
  FaultLog log;
  log.OnKernelEvent(Line("network_file", "nfs: server a OK"), 0, -1, At(1));
  EXPECT_TRUE(log.all().empty());
}

TEST(FaultLog, KeepsTheNewestOfManyAndCountsTheRest) {
  FaultLog log;
  for (int i = 0; i < 100; ++i)
    log.OnKernelEvent(Line("disk", "x", "dev" + std::to_string(i)), 0, -1, At(i));
  ASSERT_EQ(log.all().size(), FaultLog::kMax);
  EXPECT_EQ(log.dropped(), 100 - static_cast<int64_t>(FaultLog::kMax));
  EXPECT_EQ(log.all().back().device, "dev99");
}

TEST(FaultLog, LongLinesAreCut) {
  FaultLog log;
  log.OnKernelEvent(Line("disk", std::string(100'000, 'x')), 0, -1, At(1));
  EXPECT_EQ(log.all()[0].text.size(), KernelFault::kTextCap);
}

TEST(FaultLog, XidsAreNoneOfItsBusiness) {
  EXPECT_FALSE(FaultLog::Takes(KernelEventTypeOf("xid")));
  EXPECT_FALSE(FaultLog::Takes(KernelEventTypeOf("gpu_lost")));
  EXPECT_FALSE(FaultLog::Takes(KernelEventTypeOf("oom_kill")));
  EXPECT_TRUE(FaultLog::Takes(KernelEventTypeOf("sxid")));
}

}  // namespace
}  // namespace rankscope::windows
