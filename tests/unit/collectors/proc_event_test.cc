// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/proc_event.h"

#include <gtest/gtest.h>

#include <cstring>

namespace rankscope::collectors {
namespace {

// nlmsghdr (16 bytes), cn_msg (20 bytes), then what, cpu, timestamp and four words, as the kernel
// lays them out.
std::string Message(uint32_t what, std::vector<uint32_t> words, uint32_t channel = 1,
                    uint32_t sequence = 0, uint32_t acknowledged = 0) {
  std::string payload(16, '\0');
  std::memcpy(payload.data(), &what, 4);
  for (const uint32_t word : words) payload.append(reinterpret_cast<const char*>(&word), 4);
  const uint32_t netlink[] = {static_cast<uint32_t>(36 + payload.size()), 3, 0, 0};
  const uint32_t connector[] = {channel, 1, sequence, acknowledged,
                                static_cast<uint32_t>(payload.size())};
  std::string message(reinterpret_cast<const char*>(netlink), sizeof netlink);
  message.append(reinterpret_cast<const char*>(connector), sizeof connector);
  return message + payload;
}

TEST(ParseProcEvents, ReadsForkExecAndExit) {
  const auto events = ParseProcEvents(Message(1, {10, 11, 12, 12}) + Message(2, {13, 12, 0, 0}) +
                                      Message(0x80000000u, {12, 12, 139, 17, 10, 11}));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].what, ProcEvent::What::kFork);
  EXPECT_EQ(events[0].parent, 11);
  EXPECT_EQ(events[0].process, 12);
  EXPECT_EQ(events[1].what, ProcEvent::What::kExec);
  EXPECT_EQ(events[1].pid, 13);
  EXPECT_EQ(events[1].process, 12);
  EXPECT_EQ(events[2].what, ProcEvent::What::kExit);
  EXPECT_EQ(events[2].wait_status, 139);
}

TEST(ParseProcEvents, ReadsTheAcknowledgement) {
  const auto events = ParseProcEvents(Message(0, {1, 0, 0, 0}));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].what, ProcEvent::What::kAck);
  EXPECT_EQ(events[0].error, 1u);
}

TEST(ParseProcEvents, AnAcknowledgementIsOfOneRequest) {
  constexpr uint32_t kOurs = 1234;
  const auto is_ours = [&](uint32_t sequence, uint32_t acknowledged) {
    const auto events = ParseProcEvents(Message(0, {0, 0, 0, 0}, 1, sequence, acknowledged));
    return events.size() == 1 && Answers(events[0], kOurs);
  };
  // The kernel counts its messages in the other number.
  EXPECT_TRUE(is_ours(677022, kOurs + 1));
  EXPECT_FALSE(is_ours(677022, kOurs)) << "our own request, as somebody sends it back";
  EXPECT_FALSE(is_ours(0, 1)) << "of a program that numbers nothing";
  EXPECT_FALSE(Answers(ParseProcEvents(Message(1, {10, 11, 12, 12}, 1, 77, kOurs + 1))[0], kOurs));
}

TEST(ParseProcEvents, TheFirstPidNamespaceHasAFixedNumber) {
  EXPECT_EQ(IsFirstPidNamespace("pid:[4026531836]"), true);
  EXPECT_EQ(IsFirstPidNamespace("pid:[4026532177]"), false);
  EXPECT_EQ(IsFirstPidNamespace(""), std::nullopt);
  EXPECT_EQ(IsFirstPidNamespace("user:[4026531837]"), std::nullopt);
}

TEST(ParseProcEvents, SkipsOtherChannelsAndOtherEvents) {
  EXPECT_TRUE(ParseProcEvents(Message(1, {10, 11, 12, 12}, 2)).empty());
  const auto events = ParseProcEvents(Message(0x200, {1, 2, 3, 4}));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].what, ProcEvent::What::kOther);
}

TEST(ParseProcEvents, StopsAtDamage) {
  const std::string good = Message(1, {10, 11, 12, 12});
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_TRUE(ParseProcEvents(std::string_view(good).substr(0, length)).empty()) << length;
  }
  std::string lying = good;
  lying[0] = 4;  // a message shorter than its header
  EXPECT_TRUE(ParseProcEvents(lying).empty());
  std::string long_payload = good;
  long_payload[32] = '\xff';  // more payload than message
  EXPECT_EQ(ParseProcEvents(long_payload).size(), 1u);
  EXPECT_TRUE(ParseProcEvents(std::string(200, '\0')).empty());
}

}  // namespace
}  // namespace rankscope::collectors
