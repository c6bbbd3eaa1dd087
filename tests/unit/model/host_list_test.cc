// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Lists of nodes, and texts that would be very long lists.
#include "detectors/model/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankscope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(HostList, KeepsOrderAndZeros) {
  EXPECT_THAT(ExpandHostList("n[1-3,05-07],gpu-a").names,
              ElementsAre("n1", "n2", "n3", "n05", "n06", "n07", "gpu-a"));
  EXPECT_THAT(ExpandHostList("n[08-11]").names, ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(ExpandHostList("n[9-10]").names, ElementsAre("n9", "n10"));
  EXPECT_THAT(ExpandHostList("b,a,b").names, ElementsAre("b", "a", "b"));
  EXPECT_THAT(ExpandHostList("n[3,1]-ib.cluster").names,
              ElementsAre("n3-ib.cluster", "n1-ib.cluster"));
  EXPECT_TRUE(ExpandHostList("n[1-3,05-07],gpu-a").whole);
}

TEST(HostList, MultipliesBrackets) {
  EXPECT_THAT(ExpandHostList("r[0-1]n[1-2],x").names,
              ElementsAre("r0n1", "r0n2", "r1n1", "r1n2", "x"));
  EXPECT_THAT(ExpandHostList("[1-2][3]").names, ElementsAre("13", "23"));
}

TEST(HostList, OfNoNodesIsEmptyAndWhole) {
  for (const char* text : {"", "(null)", "None assigned", "None"}) {
    EXPECT_THAT(ExpandHostList(text).names, IsEmpty()) << text;
    EXPECT_TRUE(ExpandHostList(text).whole) << text;
  }
}

TEST(HostList, SaysWhereItEnds) {
  for (const char* text :
       {"a,n[1-", "a,n[3-1]", "a,n[]", "a,n[1,]", "a,n[x-y]", "a,,b", "a,b c", "a,n]", "a,n[1-3]]",
        "a,n[[1]]", "a,n[1-3-5]", "a,n[-3]", "a,n[1-99999999999999999999]", "a,b;c", "a,\x01"}) {
    const HostNames hosts = ExpandHostList(text);
    EXPECT_THAT(hosts.names, ElementsAre("a")) << text;
    EXPECT_FALSE(hosts.whole) << text;
  }
}

TEST(HostList, IsBounded) {
  EXPECT_THAT(ExpandHostList("n[1-16384]").names, SizeIs(kMaxHosts));
  EXPECT_TRUE(ExpandHostList("n[1-16384]").whole);
  EXPECT_FALSE(ExpandHostList("n[1-16385]").whole);
  EXPECT_FALSE(ExpandHostList("n[1-16384],n1").whole);
  EXPECT_THAT(ExpandHostList("n[1-16384],n1").names, SizeIs(kMaxHosts));
  EXPECT_FALSE(ExpandHostList("n[1-999999999999999999]").whole);
  EXPECT_FALSE(ExpandHostList("n[0-999][0-999][0-999]").whole);
  EXPECT_FALSE(ExpandHostList(std::string(300, 'n')).whole);
  EXPECT_FALSE(ExpandHostList(std::string(250, 'n') + "[1-2]" + "abcdef").whole);
  EXPECT_THAT(ExpandHostList(std::string(255, 'n')).names, SizeIs(1));
}

}  // namespace
}  // namespace rankscope
