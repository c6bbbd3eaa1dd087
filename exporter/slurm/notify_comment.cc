// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/notify_comment.h"

#include <algorithm>

namespace rankscope::exporter::slurm {
namespace {

constexpr std::string_view kKey = "rankscope:notify=";
constexpr size_t kMostWish = 1024;

// Of channels and plain addresses, and of "mail:".
bool MayStand(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._+-=@,:").find(c) != std::string_view::npos;
}

}  // namespace

std::string WishInComment(std::string_view comment) {
  for (size_t at = comment.find(kKey); at != std::string_view::npos;
       at = comment.find(kKey, at + 1)) {
    // A word of its own: "norankscope:notify=" is another's.
    const char before = at == 0 ? ' ' : comment[at - 1];
    if (std::string_view(" \t;,\"'").find(before) == std::string_view::npos) continue;
    std::string_view wish = comment.substr(at + kKey.size());
    wish = wish.substr(0, wish.find_first_of(" \t\n;\"'"));
    if (wish.empty() || wish.size() > kMostWish || !std::all_of(wish.begin(), wish.end(), MayStand))
      return {};
    return std::string(wish);
  }
  return {};
}

}  // namespace rankscope::exporter::slurm
