// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/pci_card.h"

#include <gtest/gtest.h>

namespace rankscope {
namespace {

TEST(PciCard, IsTheSameHoweverItIsWritten) {
  for (const std::string_view text :
       {"0000:4f:00", "0000:4F:00.0", "PCI:0000:4F:00", "00000000:4F:00.0", "PCI:0000:4f:00): 79"})
    EXPECT_EQ(PciCard(text), "0000:4f:00") << text;
  EXPECT_EQ(PciCard("PCI:0018:01:00"), "0018:01:00") << "a domain of its own";
  EXPECT_EQ(PciCard("00010000:4f:00.0"), "00010000:4f:00") << "and one of more than 16 bits";
}

TEST(PciCard, IsNone) {
  for (const std::string_view text :
       {"", "PCI:", "4f:00", "0000:4f", "::", ":::::", "cafe", "0000:4f:00:1", "GPU-5f1c0a77"})
    EXPECT_EQ(PciCard(text), "") << text;
}

}  // namespace
}  // namespace rankscope
