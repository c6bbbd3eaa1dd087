// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who may come in, and as what: users with passwords, certificates, and how often anybody may ask.
// It knows no socket and no clock. The listener's I/O thread, but for Matches.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "exporter/config/web_config.h"
#include "exporter/config/web_roles.h"
#include "exporter/http/message.h"

namespace rankscope::http {

using GateTime = std::chrono::steady_clock::time_point;

// What is known of the other end of a connection.
struct ClientFacts {
  uint64_t network = 0;  // its IPv4 address, or the first half of its IPv6 address
  bool beyond_loopback = false;
  bool certified = false;         // a certificate that was verified
  std::vector<std::string> sans;  // the names in it
};

struct Credentials {
  std::string user, password;
  std::string hash;    // the user's
  bool known = false;  // otherwise the hash is another's, so that an unknown user takes as long
};

// `times` at once, and one more each `interval`.
class Bucket {
 public:
  Bucket(int64_t times, Duration interval) : interval_(interval.ns), most_(times) {}
  bool Take(GateTime now);
  bool IsFull(GateTime now) const { return now >= empty_until_; }

 private:
  std::chrono::nanoseconds interval_;
  int64_t most_;
  GateTime empty_until_{};  // when all that was taken has come back
};

struct Passage {
  enum class What { kEnter, kCheckPassword, kTooMany };
  What what = What::kEnter;
  Role role = Role::kNone;  // kEnter
  Credentials credentials;  // kCheckPassword: Matches() decides, on another thread
};

class Gate {
 public:
  explicit Gate(std::vector<RoleRow> roles);

  // `config`: null: nothing is asked of a client here.
  Passage Ask(const WebConfig* config, const Request& request, const ClientFacts& client,
              GateTime now);
  // What Matches() said.
  Role Settle(const Credentials& credentials, bool matches, const ClientFacts& client);

  // Takes 45 ms with a usual bcrypt cost of 10. Any thread.
  static bool Matches(const Credentials& credentials);

  void SetRoles(std::vector<RoleRow> roles) { roles_ = std::move(roles); }

  int64_t wrong() const { return wrong_; }

 private:
  using Digest = std::array<unsigned char, 32>;

  Role RoleOfAnonymous(const ClientFacts& client) const;
  Digest DigestOf(const Credentials& credentials) const;
  // A place for one more guess from there.
  bool TakeGuess(uint64_t network, GateTime now);

  std::vector<RoleRow> roles_;
  Digest salt_{};
  // Of passwords that matched, the oldest first: nothing of the memory tells what they are.
  std::set<Digest> matched_;
  std::deque<Digest> matched_order_;
  std::map<uint64_t, Bucket> guesses_;
  std::optional<Bucket> requests_;
  std::optional<WebConfig::RateLimit> limit_;  // that requests_ has
  int64_t wrong_ = 0;
};

// User and password of an Authorization header; nullopt: it has none of the scheme Basic.
std::optional<std::pair<std::string, std::string>> BasicCredentials(std::string_view header);

}  // namespace rankscope::http
