// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/listen_address.h"

#include <arpa/inet.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace rankscope::http {

Result<ListenAddress> ParseListenAddress(const std::string& text) {
  const auto bad = [&text](const std::string& why) {
    return Error{"'" + text + "' " + why + "; write it like 127.0.0.1:10177"};
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return bad("has no port");
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end) return bad("has no port between 0 and 65535");
  const std::string host = text.substr(0, colon);
  // All interfaces are not meant by leaving something out: who reads it sees what it opens.
  if (host.empty()) return bad("names no address; write 0.0.0.0 for all addresses of the host");
  if (host.find(':') != std::string::npos)
    return bad("is an IPv6 address, but only IPv4 is supported");
  ListenAddress address{text};
  address.socket.sin_family = AF_INET;
  if (inet_pton(AF_INET, host.c_str(), &address.socket.sin_addr) != 1)
    return bad("names no IPv4 address");
  address.socket.sin_port = htons(port);
  return address;
}

std::string Remedy(int error, const ListenAddress& address) {
  switch (error) {
    case EADDRINUSE:
      return "port in use; stop what listens there (`ss -ltnp 'sport = :" +
             std::to_string(ntohs(address.socket.sin_port)) +
             "'` names it) or choose another port in web.listen";
    case EACCES:
      return "not permitted; choose a port from 1024 on in web.listen, or give "
             "CAP_NET_BIND_SERVICE";
    case EADDRNOTAVAIL:
      return "no interface of this host has this address; correct web.listen";
    default:
      return std::string(std::strerror(error)) + "; correct web.listen";
  }
}

bool IsLoopback(const ListenAddress& address) {
  return ntohl(address.socket.sin_addr.s_addr) >> 24 == 127;
}

}  // namespace rankscope::http
