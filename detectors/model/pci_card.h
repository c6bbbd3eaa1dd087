// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A card by its place on the PCI bus, as everybody writes it differently. Pure, any thread.
#pragma once

#include <string>
#include <string_view>

namespace rankscope {

// The domain, bus and device that the text begins with, in lower case and with four digits of the
// domain: "0000:4f:00" of "PCI:0000:4F:00", "00000000:4F:00.0" and "0000:4f:00.1): 79". A function
// is the same card's. Empty where the text begins with no such place.
std::string PciCard(std::string_view text);

}  // namespace rankscope
