// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What `rankscope run` and the daemon say to each other over a SOCK_SEQPACKET socket; one message
// per packet, the first byte is its type. Descriptors are passed, never paths: a root daemon opens
// nothing that a user names.
//
//   run -> daemon                                   daemon -> run
//   'H' Hello + descriptors, once, first
//   'W' the recording has grown (<= 10/s)
//   'C' stream: let go of this stream               'c' stream: done
//   'E' the command has ended, all is recorded      'V' VerdictMessage + a memfd with both texts
//
// A connection that ends without 'E' means that the wrapper died. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "exporter/loop/owned_fd.h"

namespace rankscope::run {

inline constexpr char kDefaultSocket[] = "/run/rankscope/run.sock";

inline constexpr uint8_t kHello = 'H';
inline constexpr uint8_t kWake = 'W';
inline constexpr uint8_t kReleaseStream = 'C';
inline constexpr uint8_t kEnd = 'E';
inline constexpr uint8_t kReleasedStream = 'c';
inline constexpr uint8_t kVerdict = 'V';

inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr size_t kJobIdCap = 128;

// Descriptors that come with it, in this order: the recording's folder, the log, the life pipe's
// read end (it hangs up when wrapper and guardian are both gone), then the read end of each stream
// in `streams`.
struct HelloMessage {
  uint8_t type = kHello;
  std::array<uint8_t, 3> reserved{};
  uint32_t version = kProtocolVersion;
  uint32_t streams = 0;  // bit 0: stdout, bit 1: stderr
  int32_t root_pid = 0;
  int64_t root_start_ticks = 0;
  std::array<char, kJobIdCap> job_id{};  // NUL-terminated
};
static_assert(sizeof(HelloMessage) == 152 && std::is_trivially_copyable_v<HelloMessage>);
inline constexpr size_t kHelloFds = 3;  // without the streams
inline constexpr size_t kMaxStreams = 2;
inline constexpr size_t kMaxFds = kHelloFds + kMaxStreams;

struct StreamMessage {
  uint8_t type = 0;
  uint8_t stream = 0;
};

// The memfd holds the JSON document, then the text.
struct VerdictMessage {
  uint8_t type = kVerdict;
  uint8_t notifies = 0;  // 1: the daemon tells people of the run, and the wrapper does not
  std::array<uint8_t, 6> reserved{};
  uint64_t json_bytes = 0;
  uint64_t text_bytes = 0;
};
static_assert(sizeof(VerdictMessage) == 24);
// A verdict with every list full is about 200 kB.
inline constexpr uint64_t kVerdictCap = 8 << 20;

inline constexpr size_t kPacketCap = 256;

// A job id that may stand in a label, a file name and a URL: letters, digits and ._- ; 1 to 127 of
// them.
bool IsJobId(std::string_view text);

// What a packet says, with so many descriptors; nullopt: it is none of the protocol's. Pure.
std::optional<HelloMessage> ReadHello(std::span<const char> bytes, size_t descriptors);
// Of kReleaseStream and kReleasedStream: the number of the stream.
std::optional<size_t> ReadStream(std::span<const char> bytes);
std::optional<VerdictMessage> ReadVerdict(std::span<const char> bytes, size_t descriptors);

struct Packet {
  enum class State : uint8_t { kMessage, kNothing, kClosed };
  State state = State::kNothing;
  std::array<char, kPacketCap> bytes{};
  size_t size = 0;
  std::vector<OwnedFd> fds;
  bool too_much = false;  // kClosed, for it was longer or carried more than the protocol's
  bool fds_lost = false;  // kClosed, for the kernel could not hand over all that it carried

  std::span<const char> content() const { return {bytes.data(), size}; }
};

// Neither blocks. A packet that is longer than the protocol's or carries more descriptors is
// kClosed; its descriptors are the caller's to close all the same, for closing may block.
bool SendPacket(int socket, std::span<const char> bytes, std::span<const int> fds = {});
Packet ReceivePacket(int socket);

template <typename T>
std::span<const char> BytesOf(const T& message) {
  return {reinterpret_cast<const char*>(&message), sizeof(T)};
}

}  // namespace rankscope::run
