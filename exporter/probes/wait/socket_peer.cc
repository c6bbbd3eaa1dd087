// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/socket_peer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "exporter/loop/small_file.h"
#include "exporter/processes/proc_text.h"

namespace rankscope::probes {
namespace {

// A node with ten thousand connections has tables of 1.5 MB.
constexpr size_t kTableCap = 4 << 20;
constexpr size_t kSmall = 4096;
constexpr int kMostAncestors = 64;

std::string OfProcess(const std::string& proc, int32_t pid, std::string_view name) {
  return proc + '/' + std::to_string(pid) + '/' + std::string(name);
}

template <typename T>
std::optional<T> DigitsOf(std::string_view text, int base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string Normal(std::string_view address) {
  constexpr std::string_view kMapped = "0000000000000000FFFF0000";
  return std::string(address.starts_with(kMapped) ? address.substr(kMapped.size()) : address);
}

// The inode of "socket:[123]".
std::optional<uint64_t> SocketOf(const std::string& link) {
  std::array<char, 64> target;
  const ssize_t length = readlink(link.c_str(), target.data(), target.size());
  if (length <= 0) return std::nullopt;
  std::string_view text(target.data(), static_cast<size_t>(length));
  constexpr std::string_view kSocket = "socket:[";
  if (!text.starts_with(kSocket) || !text.ends_with("]")) return std::nullopt;
  text.remove_prefix(kSocket.size());
  text.remove_suffix(1);
  return DigitsOf<uint64_t>(text, 10);
}

template <typename Each>
void ForEachNumber(const std::string& folder, Each each) {
  DIR* const open = opendir(folder.c_str());
  if (open == nullptr) return;
  while (const dirent* entry = readdir(open)) {
    const auto number = DigitsOf<int32_t>(entry->d_name, 10);
    if (number && !each(*number)) break;
  }
  closedir(open);
}

bool Holds(const std::string& proc, int32_t pid, uint64_t inode) {
  const std::string folder = OfProcess(proc, pid, "fd");
  bool found = false;
  ForEachNumber(folder, [&](int32_t fd) {
    found = SocketOf(folder + '/' + std::to_string(fd)) == inode;
    return !found;
  });
  return found;
}

bool IsAncestor(const std::string& proc, int32_t of, int32_t ancestor) {
  for (int i = 0; i < kMostAncestors && of > 1; ++i) {
    const auto stat = collectors::ParseStat(ReadSmallFile(OfProcess(proc, of, "stat"), kSmall));
    if (!stat) return false;
    of = stat->parent;
    if (of == ancestor) return true;
  }
  return false;
}

std::string_view HostOf(std::string_view address) {
  return address.substr(0, address.find(':'));
}

// Who listens there: of a connection that nobody has accepted yet.
uint64_t ListenerAt(const std::vector<TcpConnection>& all, std::string_view address) {
  const std::string_view port = address.substr(HostOf(address).size());
  for (const TcpConnection& of : all) {
    const std::string_view host = HostOf(of.local);
    const bool any = host.find_first_not_of('0') == std::string_view::npos;
    if (of.listens && of.local.ends_with(port) && (any || of.local == address)) return of.inode;
  }
  return 0;
}

}  // namespace

std::vector<TcpConnection> ParseTcpTable(std::string_view text) {
  constexpr std::string_view kEstablished = "01", kListens = "0A";
  constexpr size_t kLocal = 1, kRemote = 2, kState = 3, kInode = 9;
  std::vector<TcpConnection> connections;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::array<std::string_view, kInode + 1> words;
    for (std::string_view& word : words) {
      line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
      word = line.substr(0, line.find(' '));
      line.remove_prefix(word.size());
    }
    const auto inode = DigitsOf<uint64_t>(words[kInode], 10);
    const bool listens = words[kState] == kListens;
    if ((words[kState] != kEstablished && !listens) || !inode) continue;
    connections.push_back({Normal(words[kLocal]), Normal(words[kRemote]), *inode, listens});
  }
  return connections;
}

std::string AddressText(std::string_view address) {
  constexpr size_t kWord = 8, kWords = 4;
  const size_t colon = address.find(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view host = address.substr(0, colon);
  const auto port = DigitsOf<uint16_t>(address.substr(colon + 1), 16);
  if (!port || (host.size() != kWord && host.size() != kWords * kWord)) return {};
  // Each word is in the byte order of the machine, so its bytes are in that of the network.
  std::array<uint32_t, kWords> words{};
  for (size_t i = 0; i * kWord < host.size(); ++i) {
    const auto word = DigitsOf<uint32_t>(host.substr(i * kWord, kWord), 16);
    if (!word) return {};
    words[i] = *word;
  }
  const bool v4 = host.size() == kWord;
  std::array<char, INET6_ADDRSTRLEN> text;
  if (inet_ntop(v4 ? AF_INET : AF_INET6, words.data(), text.data(), text.size()) == nullptr)
    return {};
  const std::string shown = text.data();
  return (v4 ? shown : '[' + shown + ']') + ':' + std::to_string(*port);
}

std::string ForeignPeer(const std::string& proc, int32_t pid, uint64_t fd,
                        std::span<const int32_t> own) {
  const auto inode = SocketOf(OfProcess(proc, pid, "fd/" + std::to_string(fd)));
  if (!inode) return {};
  std::vector<TcpConnection> all =
      ParseTcpTable(ReadSmallFile(OfProcess(proc, pid, "net/tcp"), kTableCap));
  const auto more = ParseTcpTable(ReadSmallFile(OfProcess(proc, pid, "net/tcp6"), kTableCap));
  all.insert(all.end(), more.begin(), more.end());
  const auto mine = std::find_if(all.begin(), all.end(), [&inode](const TcpConnection& of) {
    return !of.listens && of.inode == *inode;
  });
  if (mine == all.end()) return {};
  const auto other = std::find_if(all.begin(), all.end(), [&mine](const TcpConnection& of) {
    return !of.listens && of.local == mine->remote && of.remote == mine->local;
  });
  if (other == all.end()) {
    // The other end of a loopback is of this node, and not to be seen from here.
    const std::string text = AddressText(mine->remote);
    const bool here = HostOf(mine->remote) == HostOf(mine->local) || text.starts_with("127.");
    return here ? std::string() : text;
  }
  const uint64_t theirs = other->inode != 0 ? other->inode : ListenerAt(all, mine->remote);
  if (theirs == 0) return {};
  const auto holds = [&](int32_t of) { return Holds(proc, of, theirs); };
  if (std::any_of(own.begin(), own.end(), holds)) return {};
  int32_t holder = 0;
  ForEachNumber(proc, [&](int32_t of) {
    if (holds(of)) holder = of;
    return holder == 0;
  });
  if (holder == 0 || holder == pid || IsAncestor(proc, pid, holder)) return {};
  const std::string comm = ReadSmallFile(OfProcess(proc, holder, "comm"), kSmall);
  return comm.substr(0, comm.find('\n')) + " (pid " + std::to_string(holder) + ")";
}

}  // namespace rankscope::probes
