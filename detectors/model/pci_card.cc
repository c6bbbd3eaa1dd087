// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/pci_card.h"

#include <algorithm>
#include <cctype>

namespace rankscope {

std::string PciCard(std::string_view text) {
  if (text.starts_with("PCI:")) text.remove_prefix(4);
  std::string place;
  for (const char c : text.substr(0, 16)) {
    if (c != ':' && std::isxdigit(static_cast<unsigned char>(c)) == 0) break;
    place.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  while (place.ends_with(':')) place.pop_back();
  if (std::count(place.begin(), place.end(), ':') != 2) return {};
  // The driver's library has room for 32 bits of the domain; the kernel prints what there is of it.
  const size_t colon = place.find(':');
  if (colon > 4 && place.find_first_not_of('0') >= colon - 4) place.erase(0, colon - 4);
  return place;
}

}  // namespace rankscope
