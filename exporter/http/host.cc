// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/host.h"

#include <arpa/inet.h>
#include <strings.h>

#include <algorithm>
#include <optional>

namespace rankscope::http {
namespace {

// Without the port; empty: it is no host and port.
std::string_view NameOf(std::string_view host) {
  const size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == std::string_view::npos) return {};
  const size_t colon = host.find(':', bracket);
  const std::string_view port = colon == std::string_view::npos ? "" : host.substr(colon + 1);
  if (port.find_first_not_of("0123456789") != std::string_view::npos) return {};
  std::string_view name = host.substr(0, colon);
  if (name.ends_with('.')) name.remove_suffix(1);  // of the root
  return name;
}

bool Same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

enum class Literal { kNone, kLoopback, kOther };

Literal LiteralOf(std::string_view name) {
  if (name.starts_with('[')) {
    in6_addr address{};
    const std::string text(name.substr(1, name.size() - 2));
    if (!name.ends_with(']') || inet_pton(AF_INET6, text.c_str(), &address) != 1)
      return Literal::kNone;
    return IN6_IS_ADDR_LOOPBACK(&address) ? Literal::kLoopback : Literal::kOther;
  }
  in_addr address{};
  if (inet_pton(AF_INET, std::string(name).c_str(), &address) != 1) return Literal::kNone;
  return ntohl(address.s_addr) >> 24 == 127 ? Literal::kLoopback : Literal::kOther;
}

// "host:1" of "http://host:1/metrics".
std::optional<std::string_view> AuthorityOf(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    return target.substr(0, target.find('/'));
  }
  return std::nullopt;
}

}  // namespace

bool IsServed(std::string_view host, bool beyond_loopback, const HostNames& names) {
  const std::string_view name = NameOf(host);
  if (name.empty()) return false;
  const Literal literal = LiteralOf(name);
  if (literal == Literal::kLoopback || Same(name, "localhost")) return true;
  const std::string_view node = names.node;
  const bool own = Same(name, node) || Same(name, node.substr(0, node.find('.')));
  if (beyond_loopback && (literal == Literal::kOther || own)) return true;
  return std::any_of(names.hosts.begin(), names.hosts.end(),
                     [&](const std::string& known) { return Same(name, known); });
}

std::string_view WrongHost(const Request& request, const HostNames& names) {
  // A target in absolute form goes before the header (RFC 9112, 3.2.2); a browser sends the same in
  // both, so both are looked at.
  const std::optional<std::string_view> authority = AuthorityOf(request.path);
  if (authority && !IsServed(*authority, request.beyond_loopback, names)) {
    return authority->empty() ? "(none)" : *authority;
  }
  for (const Header& header : request.headers) {
    if (!Same(header.name, "Host")) continue;
    if (IsServed(header.value, request.beyond_loopback, names)) continue;
    return header.value.empty() ? "(none)" : std::string_view(header.value);
  }
  return {};
}

}  // namespace rankscope::http
