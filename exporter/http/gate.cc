// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/gate.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <strings.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace rankscope::http {
namespace {

// Servers and people that read one exporter are a handful; each costs 200 bytes here.
constexpr size_t kMostMatched = 256;
// Wrong passwords of one network: a typing mistake is no attack, and one a second finds none.
constexpr int64_t kGuesses = 10;
constexpr Duration kGuessInterval = Seconds(1);
constexpr size_t kMostNetworks = 1024;
constexpr size_t kMaxHeader = 1024;

}  // namespace

bool Bucket::Take(GateTime now) {
  const GateTime since = std::max(empty_until_, now);
  if (since - now > interval_ * (most_ - 1)) return false;
  empty_until_ = since + interval_;
  return true;
}

std::optional<std::pair<std::string, std::string>> BasicCredentials(std::string_view header) {
  constexpr std::string_view kScheme = "Basic ";
  if (header.size() > kMaxHeader || header.size() <= kScheme.size() ||
      strncasecmp(header.data(), kScheme.data(), kScheme.size()) != 0) {
    return std::nullopt;
  }
  const std::string_view coded = header.substr(kScheme.size());
  std::string text(coded.size(), '\0');
  auto* const out = reinterpret_cast<unsigned char*>(text.data());
  const auto* const in = reinterpret_cast<const unsigned char*>(coded.data());
  if (coded.size() % 4 != 0) return std::nullopt;
  const int size = EVP_DecodeBlock(out, in, static_cast<int>(coded.size()));
  if (size < 0) return std::nullopt;
  const size_t padding = coded.ends_with("==") ? 2 : coded.ends_with('=') ? 1 : 0;
  text.resize(static_cast<size_t>(size) - std::min(padding, static_cast<size_t>(size)));
  const size_t colon = text.find(':');
  if (colon == std::string::npos || text.find('\0') != std::string::npos) return std::nullopt;
  return std::pair(text.substr(0, colon), text.substr(colon + 1));
}

Gate::Gate(std::vector<RoleRow> roles) : roles_(std::move(roles)) {
  // Without chance the memory of passwords is what it is elsewhere: a plain hash.
  static_cast<void>(RAND_bytes(salt_.data(), static_cast<int>(salt_.size())));
}

// The users of the machine see everything, and others nothing that quotes a job's output.
Role Gate::RoleOfAnonymous(const ClientFacts& client) const {
  if (client.certified) return RoleOf(roles_, {}, client.sans);
  return client.beyond_loopback ? Role::kVerdict : Role::kLog;
}

Gate::Digest Gate::DigestOf(const Credentials& credentials) const {
  std::string text(reinterpret_cast<const char*>(salt_.data()), salt_.size());
  // None of them has a NUL.
  for (const std::string* part : {&credentials.user, &credentials.hash, &credentials.password})
    text.append(*part).push_back('\0');
  Digest digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  OPENSSL_cleanse(text.data(), text.size());
  return digest;
}

bool Gate::TakeGuess(uint64_t network, GateTime now) {
  auto found = guesses_.find(network);
  if (found == guesses_.end()) {
    if (guesses_.size() >= kMostNetworks)
      std::erase_if(guesses_, [now](const auto& entry) { return entry.second.IsFull(now); });
    if (guesses_.size() >= kMostNetworks) return false;
    found = guesses_.emplace(network, Bucket(kGuesses, kGuessInterval)).first;
  }
  return found->second.Take(now);
}

Passage Gate::Ask(const WebConfig* config, const Request& request, const ClientFacts& client,
                  GateTime now) {
  Passage passage;
  passage.role = RoleOfAnonymous(client);
  if (config == nullptr) return passage;
  if (config->rate_limit) {
    const WebConfig::RateLimit& limit = *config->rate_limit;
    if (!limit_ || limit_->burst != limit.burst || limit_->interval != limit.interval)
      requests_ = Bucket(limit.burst, limit.interval);
    limit_ = limit;
    if (!requests_->Take(now)) {
      passage.what = Passage::What::kTooMany;
      return passage;
    }
  }
  if (config->users.empty()) return passage;
  passage.role = Role::kNone;
  auto given = BasicCredentials(request.HeaderValue("Authorization"));
  if (!given) return passage;
  Credentials credentials;
  credentials.user = std::move(given->first);
  credentials.password = std::move(given->second);
  const auto user =
      std::find_if(config->users.begin(), config->users.end(),
                   [&](const auto& candidate) { return candidate.first == credentials.user; });
  credentials.known = user != config->users.end();
  credentials.hash = credentials.known ? user->second : config->users.front().second;
  if (credentials.known && matched_.contains(DigestOf(credentials))) {
    passage.role = RoleOf(roles_, credentials.user, client.sans);
    return passage;
  }
  passage.what =
      TakeGuess(client.network, now) ? Passage::What::kCheckPassword : Passage::What::kTooMany;
  passage.credentials = std::move(credentials);
  return passage;
}

Role Gate::Settle(const Credentials& credentials, bool matches, const ClientFacts& client) {
  if (!matches) {
    ++wrong_;
    return Role::kNone;
  }
  const Digest digest = DigestOf(credentials);
  if (matched_.insert(digest).second) {
    matched_order_.push_back(digest);
    if (matched_order_.size() > kMostMatched) {
      matched_.erase(matched_order_.front());
      matched_order_.pop_front();
    }
  }
  guesses_.erase(client.network);
  return RoleOf(roles_, credentials.user, client.sans);
}

bool Gate::Matches(const Credentials& credentials) {
  const auto data = std::make_unique<crypt_data>();  // 32 kB
  const char* const made =
      crypt_r(credentials.password.c_str(), credentials.hash.c_str(), data.get());
  const bool same = made != nullptr && std::string_view(made).size() == credentials.hash.size() &&
                    CRYPTO_memcmp(made, credentials.hash.data(), credentials.hash.size()) == 0;
  OPENSSL_cleanse(data.get(), sizeof *data);
  return same && credentials.known;
}

}  // namespace rankscope::http
