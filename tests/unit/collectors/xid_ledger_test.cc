// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Xids by two tellers: what is one and what is two, and what a card waits for until when.
#include "exporter/gpu/xid_ledger.h"

#include <gtest/gtest.h>

namespace rankscope::collectors {
namespace {

using Teller = XidLedger::Teller;

constexpr char kCard[] = "0000:4f:00";
constexpr XidTold kUncontained{kCard, 95};

Timestamp At(double seconds) {
  return {static_cast<int64_t>((1000 + seconds) * 1e9)};
}

int64_t CountOf(const XidLedger& ledger, int32_t code) {
  for (const XidCount& xid : ledger.Report().counts) {
    if (xid.code == code) return xid.count;
  }
  return -1;
}

std::string Waits(const XidLedger& ledger, std::string_view card = kCard) {
  std::string needs;
  const XidPending pending = ledger.PendingOf(card);
  for (size_t i = 0; i < pending.needs.size(); ++i) {
    if (pending.needs[i]) needs += (needs.empty() ? "" : ",") + std::string(kXidNeedNames[i]);
  }
  return needs;
}

TEST(XidLedger, OneToldByBothIsOne) {
  XidLedger ledger;
  EXPECT_TRUE(ledger.Add(Teller::kKernelLog, kUncontained, At(0)));
  EXPECT_FALSE(ledger.Add(Teller::kLibrary, kUncontained, At(0.2)));
  EXPECT_EQ(CountOf(ledger, 95), 1);
  // And in the other order.
  EXPECT_TRUE(ledger.Add(Teller::kLibrary, kUncontained, At(1)));
  EXPECT_TRUE(ledger.OnlyLibrary(kCard, 95, At(1.1)));
  EXPECT_FALSE(ledger.Add(Teller::kKernelLog, kUncontained, At(1.2)));
  EXPECT_FALSE(ledger.OnlyLibrary(kCard, 95, At(1.3)));
  EXPECT_EQ(CountOf(ledger, 95), 2);
}

TEST(XidLedger, TwoToldByOneAreTwo) {
  XidLedger ledger;
  EXPECT_TRUE(ledger.Add(Teller::kKernelLog, kUncontained, At(0)));
  EXPECT_TRUE(ledger.Add(Teller::kKernelLog, kUncontained, At(0.1)));
  EXPECT_FALSE(ledger.Add(Teller::kLibrary, kUncontained, At(0.2)));
  EXPECT_FALSE(ledger.Add(Teller::kLibrary, kUncontained, At(0.3)));
  EXPECT_TRUE(ledger.Add(Teller::kLibrary, kUncontained, At(0.4))) << "the log has missed one";
  EXPECT_EQ(CountOf(ledger, 95), 3);
}

TEST(XidLedger, WhatIsLateOrOfAnotherCardIsAnother) {
  XidLedger ledger;
  ledger.Add(Teller::kKernelLog, kUncontained, At(0));
  EXPECT_TRUE(ledger.Add(Teller::kLibrary, kUncontained, At(6.1)));
  ledger.Add(Teller::kKernelLog, kUncontained, At(20));
  EXPECT_TRUE(ledger.Add(Teller::kLibrary, {"0000:50:00", 95}, At(20)));
  EXPECT_TRUE(ledger.Add(Teller::kLibrary, {kCard, 94}, At(20)));
  EXPECT_FALSE(ledger.Add(Teller::kLibrary, kUncontained, At(24.9)));
}

TEST(XidLedger, AFloodToldByBothIsCountedOnce) {
  XidLedger ledger;
  for (int i = 0; i < 10'000; ++i) ledger.Add(Teller::kKernelLog, kUncontained, At(i * 1e-4));
  for (int i = 0; i < 10'000; ++i) ledger.Add(Teller::kLibrary, kUncontained, At(2 + i * 1e-4));
  EXPECT_EQ(CountOf(ledger, 95), 10'000);
}

TEST(XidLedger, OfBeforeIsKnownAndNotCounted) {
  XidLedger ledger;
  ledger.AddOld(kUncontained, At(-500));
  EXPECT_EQ(CountOf(ledger, 95), 0);
  EXPECT_EQ(ledger.Report().counts[0].last, At(-500));
  EXPECT_EQ(Waits(ledger), "reset_gpu");
  EXPECT_EQ(ledger.PendingOf(kCard).since, At(-500));
  ledger.Add(Teller::kKernelLog, kUncontained, At(3));
  EXPECT_EQ(CountOf(ledger, 95), 1);
  EXPECT_EQ(ledger.Report().counts[0].last, At(3));
}

TEST(XidLedger, WhatACardWaitsFor) {
  struct Case {
    XidTold xid;
    std::string_view waits;
  };
  const Case cases[] = {
      {{kCard, 95}, "reset_gpu"},
      {{kCard, 79}, "reboot"},
      {{kCard, 74}, "inspect"},
      {{kCard, 145}, "inspect"},
      {{kCard, 145, RecoveryAction::kUntold, true}, ""},  // the link has survived it
      {{kCard, 31}, ""},                                  // the program's own
      {{kCard, 94}, ""},                                  // of one process
      {{kCard, 63}, ""},
      {{kCard, 45}, ""},
      {{kCard, 4711}, ""},  // nobody knows what it is
      {{kCard, 154, RecoveryAction::kResetGpu}, "reset_gpu"},
      {{kCard, 154, RecoveryAction::kReboot}, "reboot"},
      {{kCard, 154, RecoveryAction::kDrainPeers}, ""},
      {{kCard, 154, RecoveryAction::kDrainAndReset}, "reset_gpu"},
      {{kCard, 154}, ""},  // told by the library, which does not say to what
  };
  for (const Case& each : cases) {
    XidLedger ledger;
    ledger.Add(Teller::kKernelLog, each.xid, At(0));
    EXPECT_EQ(Waits(ledger), each.waits) << each.xid.code;
    EXPECT_EQ(Waits(ledger, "0000:50:00"), "") << "another card";
  }
}

TEST(XidLedger, QuietDoesNotMeanMended) {
  XidLedger ledger;
  ledger.Add(Teller::kKernelLog, kUncontained, At(0));
  ledger.Add(Teller::kKernelLog, {kCard, 31}, At(1e6));
  ledger.OnNothingAsked(kCard);  // the driver never asks for what its catalogue does
  EXPECT_EQ(Waits(ledger), "reset_gpu");
}

TEST(XidLedger, AResetSettlesAllButAReboot) {
  XidLedger ledger;
  ledger.Add(Teller::kKernelLog, kUncontained, At(0));
  ledger.Add(Teller::kKernelLog, {kCard, 74}, At(0));
  ledger.Add(Teller::kKernelLog, {kCard, 79}, At(1));
  ledger.Add(Teller::kKernelLog, {"0000:50:00", 95}, At(1));
  EXPECT_EQ(Waits(ledger), "reset_gpu,reboot,inspect");
  EXPECT_EQ(ledger.PendingOf(kCard).code, 79);
  ledger.OnReset(kCard, false);
  EXPECT_EQ(Waits(ledger), "reboot");
  ledger.OnReset(kCard, true);
  EXPECT_EQ(Waits(ledger), "");
  EXPECT_EQ(ledger.PendingOf(kCard).code, 0);
  EXPECT_EQ(Waits(ledger, "0000:50:00"), "reset_gpu") << "another card";
}

TEST(XidLedger, TheDriversWordSettles) {
  XidLedger ledger;
  ledger.Add(Teller::kKernelLog, kUncontained, At(0));
  ledger.Add(Teller::kKernelLog, {kCard, 154, RecoveryAction::kResetGpu}, At(0.1));
  EXPECT_EQ(ledger.PendingOf(kCard).code, 95) << "what it sums up says more";
  ledger.Add(Teller::kKernelLog, {kCard, 154, RecoveryAction::kNone}, At(60));
  EXPECT_EQ(Waits(ledger), "");
}

// A reset of before this program began may have left no line in the log.
TEST(XidLedger, TheDriversWordOutlivesAnOldLine) {
  XidLedger ledger;
  ledger.AddOld(kUncontained, At(-900));
  ledger.AddOld({kCard, 74}, At(-900));
  ledger.OnNothingAsked(kCard);
  EXPECT_EQ(Waits(ledger), "inspect") << "of which the driver says nothing";
}

TEST(XidLedger, ALossWithoutACode) {
  XidLedger ledger;
  ledger.AddLoss(kCard, At(0), false);
  ledger.AddLoss("", At(0), false);
  EXPECT_EQ(Waits(ledger), "reboot");
  EXPECT_TRUE(ledger.Report().counts.empty()) << "no Xid";
}

TEST(XidLedger, IsBoundedAndCountsWhatItLoses) {
  XidLedger ledger;
  for (int32_t code = 0; code < 1000; ++code)
    ledger.Add(Teller::kKernelLog, {kCard, 2000 + code}, At(0));
  EXPECT_EQ(ledger.Report().counts.size(), XidLedger::kMaxXids);
  EXPECT_EQ(ledger.lost(), 1000 - static_cast<int64_t>(XidLedger::kMaxXids));
  for (int i = 0; i < 100; ++i) ledger.AddLoss("card" + std::to_string(i), At(0), false);
  EXPECT_EQ(ledger.Report().pending.size(), XidLedger::kMaxCards);
}

}  // namespace
}  // namespace rankscope::collectors
