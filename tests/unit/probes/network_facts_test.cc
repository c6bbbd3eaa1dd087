// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/network/network_facts.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace rankscope::probes {
namespace {

rs_net_key Key(int family, const char* address, uint16_t port, uint8_t outcome, uint32_t error) {
  rs_net_key key{};
  key.pid = 7;
  key.family = static_cast<uint8_t>(family);
  key.port = htons(port);
  key.outcome = outcome;
  key.error = error;
  inet_pton(family, address, key.address);
  return key;
}

int64_t Number(const Event& event, std::string_view name) {
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == name) return pair.value;
  }
  return -1;
}

TEST(NetworkFacts, AddressesAreReadable) {
  EXPECT_EQ(PeerText(Key(AF_INET, "10.0.0.7", 29500, RS_NET_CONNECTED, 0)), "10.0.0.7:29500");
  EXPECT_EQ(PeerText(Key(AF_INET6, "fd00::7", 29500, RS_NET_CONNECTED, 0)), "[fd00::7]:29500");
  EXPECT_EQ(PeerText(Key(AF_INET6, "::ffff:10.0.0.7", 80, RS_NET_CONNECTED, 0)), "10.0.0.7:80");
}

TEST(NetworkFacts, ARefusalIsThePeersOnlyWithItsReset) {
  rs_net_key key = Key(AF_INET, "10.0.0.7", 29500, RS_NET_FAILED, ECONNREFUSED);
  EXPECT_EQ(OutcomeOf(key, {}), "rejected");
  key.by_reset = 1;
  EXPECT_EQ(OutcomeOf(key, {}), "refused");
}

TEST(NetworkFacts, EachErrorHasItsWord) {
  struct Row {
    uint8_t outcome;
    uint32_t error;
    std::string_view word;
  };
  for (const Row& row :
       {Row{RS_NET_FAILED, EHOSTUNREACH, "unreachable"},
        Row{RS_NET_FAILED, ENETUNREACH, "unreachable"}, Row{RS_NET_FAILED, EINVAL, "unreachable"},
        Row{RS_NET_FAILED, ETIMEDOUT, "no_answer"},
        Row{RS_NET_FAILED, EADDRNOTAVAIL, "no_local_address"},
        Row{RS_NET_FAILED, ECONNRESET, "failed"}, Row{RS_NET_NOT_BOUND, EADDRINUSE, "in_use"},
        Row{RS_NET_NOT_BOUND, EACCES, "denied"}, Row{RS_NET_LISTENING, 0, "listening"},
        Row{RS_NET_RESET, 0, "reset"}, Row{77, 0, ""}}) {
    EXPECT_EQ(OutcomeOf(Key(AF_INET, "10.0.0.7", 1, row.outcome, row.error), {}), row.word);
  }
}

TEST(NetworkFacts, WhatIsGivenUpAtOnceIsNoSilence) {
  const rs_net_key key = Key(AF_INET, "10.0.0.7", 29500, RS_NET_ABANDONED, 0);
  rs_net_fact fact{};
  fact.longest_ns = 999'999'999;
  EXPECT_EQ(OutcomeOf(key, fact), "abandoned");
  fact.longest_ns = 1'000'000'000;
  EXPECT_EQ(OutcomeOf(key, fact), "no_answer");
}

TEST(NetworkFacts, AConnectionThatWaitsTellsForHowLong) {
  rs_net_pending pending{};
  pending.key = Key(AF_INET, "10.0.0.7", 29500, 0, 0);
  pending.begin_ns = 2'000'000'000;
  pending.sent_again = 3;
  const Event event = EventOf(pending, {7, 70}, 9'500'000'000);
  EXPECT_EQ(Number(event, "milliseconds"), 7500);
  EXPECT_EQ(Number(event, "attempts"), 4);
  EXPECT_EQ(Number(event, "waiting"), 1);
  EXPECT_EQ(Number(EventOf(pending, {7, 70}, 1), "milliseconds"), 0) << "a clock that is behind";
}

TEST(NetworkFacts, ANameNeedNotEnd) {
  rs_net_lookup lookup{};
  std::memset(lookup.name, 'a', sizeof lookup.name);
  lookup.code = EAI_NONAME;
  lookup.header.time_ns = 1;
  lookup.end_ns = 2'000'000'001;
  const Event event = EventOf(lookup, {7, 70}, 5, 0);
  EXPECT_EQ(event.str[0].value, std::string(RS_NAME, 'a'));
  EXPECT_EQ(event.str[1].value, "no_such_name");
  EXPECT_EQ(Number(event, "attempts"), 5);
  EXPECT_EQ(Number(event, "code"), EAI_NONAME);
}

}  // namespace
}  // namespace rankscope::probes
