// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/nccl/ras_listener.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <set>

namespace rankscope::collectors {
namespace {

// 150 bytes a line: a node with 50,000 connections; the listeners come first.
constexpr size_t kTableBytes = 8 << 20;
constexpr int kMaxDescriptors = 16384;

std::string ReadTable(const std::string& path) {
  std::string text;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char piece[16384];
  while (text.size() < kTableBytes) {
    const ssize_t n = read(fd, piece, sizeof piece);
    if (n <= 0) break;
    text.append(piece, static_cast<size_t>(n));
  }
  close(fd);
  return text;
}

template <typename T>
std::optional<T> Number(std::string_view text, int base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The kernel prints each word of the address in the machine's order.
std::optional<std::string> Address(std::string_view hex) {
  std::string bytes;
  for (; hex.size() >= 8; hex.remove_prefix(8)) {
    const auto word = Number<uint32_t>(hex.substr(0, 8), 16);
    if (!word) return std::nullopt;
    char raw[4];
    std::memcpy(raw, &*word, sizeof raw);
    bytes.append(raw, sizeof raw);
  }
  return hex.empty() ? std::optional(bytes) : std::nullopt;
}

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (fields.size() < 10) {
    const size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const size_t end = line.find(' ');
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) break;
    line.remove_prefix(end);
  }
  return fields;
}

enum class Holds : uint8_t { kNo, kYes, kUnknown };

Holds HoldsSocket(const std::string& proc, int32_t pid, uint64_t inode) {
  const std::string path = proc + '/' + std::to_string(pid) + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) return Holds::kUnknown;
  const std::string wanted = "socket:[" + std::to_string(inode) + "]";
  char link[64];
  for (int looked = 0; looked < kMaxDescriptors; ++looked) {
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) break;
    const ssize_t n = readlinkat(dirfd(directory.get()), entry->d_name, link, sizeof link);
    if (n > 0 && std::string_view(link, static_cast<size_t>(n)) == wanted) return Holds::kYes;
  }
  return Holds::kNo;
}

}  // namespace

uint16_t RasPortOf(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return kRasPort;
  const auto port = Number<uint16_t>(address.substr(colon + 1), 10);
  return port && *port > 0 ? *port : kRasPort;
}

std::vector<ListeningSocket> ParseListeners(std::string_view text, bool v6, uint16_t port) {
  constexpr std::string_view kListen = "0A";
  constexpr size_t kMost = 64;
  std::vector<ListeningSocket> found;
  while (!text.empty() && found.size() < kMost) {
    const size_t end = text.find('\n');
    const std::vector<std::string_view> fields = Fields(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (fields.size() < 10 || fields[3] != kListen) continue;
    const size_t colon = fields[1].find(':');
    if (colon == std::string_view::npos) continue;
    const auto address = Address(fields[1].substr(0, colon));
    const auto local_port = Number<uint16_t>(fields[1].substr(colon + 1), 16);
    const auto uid = Number<uint32_t>(fields[7], 10);
    const auto inode = Number<uint64_t>(fields[9], 10);
    if (!address || address->size() != (v6 ? 16u : 4u) || local_port != port || !uid || !inode) {
      continue;
    }
    found.push_back({v6, *address, *local_port, *uid, *inode});
  }
  return found;
}

std::optional<RasListener> FindRasListener(const RankRoster& roster,
                                           const std::vector<const RankProcess*>& ranks) {
  std::optional<RasListener> unproved;
  std::set<std::pair<uint64_t, uint16_t>> looked;  // network namespace and port
  for (const RankProcess* rank : ranks) {
    if (rank->Variable("NCCL_RAS_ENABLE") == "0") continue;
    const uint16_t port = RasPortOf(rank->Variable("NCCL_RAS_ADDR"));
    if (!looked.insert({rank->network_namespace, port}).second) continue;
    const bool ours =
        rank->network_namespace == 0 || rank->network_namespace == roster.own_network_namespace();
    const std::string net =
        roster.proc_root() + '/' + std::to_string(rank->tracked.key.pid) + "/net/";
    for (const bool v6 : {false, true}) {
      for (const ListeningSocket& socket :
           ParseListeners(ReadTable(net + (v6 ? "tcp6" : "tcp")), v6, port)) {
        RasListener listener{socket, rank->tracked.key, ours ? 0 : rank->tracked.key.pid};
        bool unknown = false;
        for (const RankProcess* owner : ranks) {
          const Holds holds = HoldsSocket(roster.proc_root(), owner->tracked.key.pid, socket.inode);
          unknown = unknown || holds == Holds::kUnknown;
          if (holds != Holds::kYes) continue;
          listener.owner = owner->tracked.key;
          return listener;
        }
        // Not allowed to look: the socket's user is all that tells.
        if (unknown && socket.uid == rank->tracked.uid && !unproved) unproved = listener;
      }
    }
  }
  return unproved;
}

}  // namespace rankscope::collectors
