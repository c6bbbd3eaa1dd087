// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/listen_address.h"

#include <arpa/inet.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

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
  std::string host = text.substr(0, colon);
  // All interfaces are not meant by leaving something out: who reads it sees what it opens.
  if (host.empty()) return bad("names no address; write 0.0.0.0 or [::] for all of the host's");
  ListenAddress address;
  address.text = text;
  address.port = port;
  address.ipv6 = host.front() == '[' && host.back() == ']';
  if (address.ipv6) {
    address.host = host.substr(1, host.size() - 2);
    in6_addr number{};
    if (inet_pton(AF_INET6, address.host.c_str(), &number) != 1)
      return bad("names no IPv6 address");
    // Such an address is an IPv4 address that the kernel calls otherwise: one spelling is enough.
    if (IN6_IS_ADDR_V4MAPPED(&number)) return bad("is an IPv4 address written as IPv6");
    address.loopback = IN6_IS_ADDR_LOOPBACK(&number);
    return address;
  }
  if (host.find(':') != std::string::npos)
    return bad("is an IPv6 address without brackets, or none; write it like [::1]:10177");
  in_addr number{};
  if (inet_pton(AF_INET, host.c_str(), &number) != 1) return bad("names no IP address");
  address.loopback = ntohl(number.s_addr) >> 24 == 127;
  address.host = std::move(host);
  return address;
}

std::string Remedy(int error, const ListenAddress& address) {
  switch (error) {
    case EADDRINUSE:
      return "port in use; stop what listens there (`ss -ltnp 'sport = :" +
             std::to_string(address.port) + "'` names it) or choose another port in web.listen";
    case EACCES:
      return "not permitted; choose a port from 1024 on in web.listen, or give "
             "CAP_NET_BIND_SERVICE";
    case EADDRNOTAVAIL:
      return "no interface of this host has this address; correct web.listen";
    default:
      return std::string(std::strerror(error)) + "; correct web.listen";
  }
}

}  // namespace rankscope::http
