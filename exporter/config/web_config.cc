// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/web_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>

#include "exporter/config/config.h"
#include "exporter/config/yaml_shape.h"

namespace rankscope::http {
namespace {

// More users than have ever shared an exporter; each costs a row of a list that is searched.
constexpr size_t kMostUsers = 1000;
// Twice the work with each step: 15 takes 1.5 s of a core, and whoever guesses pays nothing for it.
constexpr int kMostBcryptCost = 15;

// crypto/tls, CipherSuites() of Go 1.19, which are those that the toolkit takes.
constexpr std::pair<std::string_view, std::string_view> kCiphers[] = {
    {"TLS_AES_128_GCM_SHA256", ""},
    {"TLS_AES_256_GCM_SHA384", ""},
    {"TLS_CHACHA20_POLY1305_SHA256", ""},
    {"TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"},
    {"TLS_RSA_WITH_AES_256_CBC_SHA", "AES256-SHA"},
    {"TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"},
    {"TLS_RSA_WITH_AES_256_GCM_SHA384", "AES256-GCM-SHA384"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA-AES256-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA-AES256-SHA"},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"},
};

constexpr std::pair<std::string_view, std::string_view> kCurves[] = {
    {"CurveP256", "P-256"}, {"CurveP384", "P-384"}, {"CurveP521", "P-521"}, {"X25519", "X25519"}};

constexpr std::pair<std::string_view, ClientAuth> kClientAuths[] = {
    {"NoClientCert", ClientAuth::kNone},
    {"RequestClientCert", ClientAuth::kRequest},
    {"RequireAnyClientCert", ClientAuth::kRequireAny},
    {"RequireClientCert", ClientAuth::kRequireAny},  // its name of before
    {"VerifyClientCertIfGiven", ClientAuth::kVerifyIfGiven},
    {"RequireAndVerifyClientCert", ClientAuth::kRequireAndVerify}};

constexpr std::pair<std::string_view, int> kVersions[] = {
    {"TLS10", 10}, {"TLS11", 11}, {"TLS12", 12}, {"TLS13", 13}};

struct HeaderRule {
  std::string_view name;
  std::string_view values[2];  // empty: any
};
constexpr HeaderRule kHeaders[] = {{"Content-Security-Policy", {}},
                                   {"X-Frame-Options", {"deny", "sameorigin"}},
                                   {"X-Content-Type-Options", {"nosniff"}},
                                   {"X-XSS-Protection", {}},
                                   {"Strict-Transport-Security", {}}};

template <typename Value>
const Value* Named(std::span<const std::pair<std::string_view, Value>> rows,
                   std::string_view name) {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const auto& candidate) { return candidate.first == name; });
  return row == rows.end() ? nullptr : &row->second;
}

template <typename Value>
std::string NamesOf(std::span<const std::pair<std::string_view, Value>> rows) {
  std::string names;
  for (const auto& row : rows) names += (names.empty() ? "" : ", ") + std::string(row.first);
  return names;
}

bool IsOneLine(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

// $2y$10$ and 53 letters of bcrypt's own base64.
std::string WrongHash(std::string_view hash) {
  constexpr std::string_view kLetters =
      "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  const bool known =
      hash.starts_with("$2a$") || hash.starts_with("$2b$") || hash.starts_with("$2y$");
  int cost = 0;
  const char* const digits = hash.data() + 4;
  const bool shaped = known && hash.size() == 60 && hash[6] == '$' &&
                      std::from_chars(digits, digits + 2, cost).ptr == digits + 2 &&
                      hash.substr(7).find_first_not_of(kLetters) == std::string_view::npos;
  if (!shaped || cost < 4) return "is not a bcrypt hash; `htpasswd -nBC 10 \"\"` makes one";
  if (cost > kMostBcryptCost) {
    return "has a bcrypt cost of " + std::to_string(cost) + "; at most " +
           std::to_string(kMostBcryptCost) + ", for each wrong password costs that much";
  }
  return {};
}

class WebReader {
 public:
  explicit WebReader(std::string name)
      : name_(std::move(name)), folder_(std::filesystem::path(name_).parent_path()) {}

  void Read(std::string_view text) {
    if (const auto problem = exporter::CheckYamlShape(text)) {
      return Add(problem->line, "", problem->what);
    }
    try {
      const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
      if (documents.size() > 1) Add(documents[1].Mark().line, "", "a second YAML document");
      if (!documents.empty() && !documents[0].IsNull()) ReadSections(documents[0]);
    } catch (const YAML::Exception& error) {
      Add(error.mark.line, "", "not valid YAML: " + error.msg);
    }
  }

  WebConfigOutcome Take() {
    std::stable_sort(problems_.begin(), problems_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    WebConfigOutcome outcome;
    outcome.config = std::move(config_);
    for (auto& [line, text] : problems_) outcome.problems.push_back(std::move(text));
    return outcome;
  }

 private:
  using Set = void (WebReader::*)(const YAML::Node&, const std::string& path);
  struct Row {
    std::string_view key;
    Set set;
  };

  void Add(int line, const std::string& path, const std::string& what) {
    const std::string where = line < 0 ? name_ : name_ + ':' + std::to_string(line + 1);
    problems_.emplace_back(line, where + ": " + (path.empty() ? "" : path + ": ") + what);
  }

  // Calls each(key, value, line) for every entry; a key that is given twice is a problem.
  template <typename Each>
  bool ForEach(const YAML::Node& node, const std::string& path, Each each) {
    if (node.IsNull()) return false;
    if (!node.IsMap()) {
      Add(node.Mark().line, path, "expected keys with values; write `key: value`");
      return false;
    }
    std::vector<std::string> seen;
    for (const auto& entry : node) {
      const int line = entry.first.Mark().line;
      if (!entry.first.IsScalar()) {
        Add(line, path, "a key must be a word");
        continue;
      }
      const std::string key = entry.first.Scalar();
      const std::string full = path.empty() ? key : path + '.' + key;
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
        Add(line, full, "is given twice; keep one");
        continue;
      }
      seen.push_back(key);
      each(key, entry.second, line);
    }
    return !seen.empty();
  }

  bool ReadTable(const YAML::Node& node, const std::string& path, std::span<const Row> rows) {
    return ForEach(node, path, [&](const std::string& key, const YAML::Node& value, int line) {
      const std::string full = path.empty() ? key : path + '.' + key;
      const auto row =
          std::find_if(rows.begin(), rows.end(), [&](const Row& one) { return one.key == key; });
      if (row != rows.end()) return (this->*row->set)(value, full);
      std::string known;
      for (const Row& one : rows) known += (known.empty() ? "" : ", ") + std::string(one.key);
      Add(line, full, "unknown key; known are " + known);
    });
  }

  std::string Word(const YAML::Node& node, const std::string& path) {
    if (node.IsScalar()) return node.Scalar();
    if (!node.IsNull()) Add(node.Mark().line, path, "expected one value");
    return {};
  }

  std::vector<std::pair<std::string, int>> Words(const YAML::Node& node, const std::string& path) {
    std::vector<std::pair<std::string, int>> words;
    if (node.IsNull()) return words;
    if (!node.IsSequence()) {
      Add(node.Mark().line, path, "expected a list; write [one, two]");
      return words;
    }
    for (const YAML::Node& item : node) {
      if (item.IsScalar()) {
        words.emplace_back(item.Scalar(), item.Mark().line);
      } else {
        Add(item.Mark().line, path, "expected a list of words");
      }
    }
    return words;
  }

  bool Flag(const YAML::Node& node, const std::string& path, bool otherwise) {
    const std::string word = Word(node, path);
    if (word == "true" || word == "false") return word == "true";
    if (!node.IsNull()) Add(node.Mark().line, path, "'" + word + "' is neither true nor false");
    return otherwise;
  }

  template <typename Value>
  void Choose(const YAML::Node& node, const std::string& path,
              std::span<const std::pair<std::string_view, Value>> rows, Value& value) {
    const std::string word = Word(node, path);
    if (word.empty()) return;
    if (const Value* found = Named(rows, word)) {
      value = *found;
    } else {
      Add(node.Mark().line, path, "'" + word + "' is not one of " + NamesOf(rows));
    }
  }

  void FileOf(const YAML::Node& node, const std::string& path, WebConfig::Pem& pem) {
    const std::string word = Word(node, path);
    if (word.empty()) return;
    if (!pem.text.empty()) Add(node.Mark().line, path, "is given inline, too; keep one");
    pem.file = (folder_ / word).string();  // an absolute one stays what it is
  }
  void TextOf(const YAML::Node& node, const std::string& path, WebConfig::Pem& pem) {
    pem.text = Word(node, path);
    if (!pem.text.empty() && !pem.file.empty())
      Add(node.Mark().line, path, "is given as a file, too; keep one");
  }

  void ReadSections(const YAML::Node& node);
  void ReadTls(const YAML::Node& node, const std::string& path);
  void CheckTls(int line, const std::string& path);
  void ReadHttp(const YAML::Node& node, const std::string& path);
  void ReadHeaders(const YAML::Node& node, const std::string& path);
  void ReadUsers(const YAML::Node& node, const std::string& path);
  void ReadRateLimit(const YAML::Node& node, const std::string& path);
  void ReadCiphers(const YAML::Node& node, const std::string& path);
  void ReadCurves(const YAML::Node& node, const std::string& path);

  std::string name_;
  std::filesystem::path folder_;
  WebConfig config_;
  WebConfig::Tls tls_;
  std::vector<std::pair<int, std::string>> problems_;
};

void WebReader::ReadSections(const YAML::Node& node) {
  static constexpr Row kSections[] = {{"tls_server_config", &WebReader::ReadTls},
                                      {"http_server_config", &WebReader::ReadHttp},
                                      {"basic_auth_users", &WebReader::ReadUsers},
                                      {"rate_limit", &WebReader::ReadRateLimit}};
  ReadTable(node, "", kSections);
}

void WebReader::ReadTls(const YAML::Node& node, const std::string& path) {
  ForEach(node, path, [&](const std::string& key, const YAML::Node& value, int line) {
    const std::string full = path + '.' + key;
    if (key == "cert_file") return FileOf(value, full, tls_.cert);
    if (key == "key_file") return FileOf(value, full, tls_.key);
    if (key == "client_ca_file") return FileOf(value, full, tls_.client_ca);
    if (key == "cert") return TextOf(value, full, tls_.cert);
    if (key == "key") return TextOf(value, full, tls_.key);
    if (key == "client_ca") return TextOf(value, full, tls_.client_ca);
    if (key == "client_auth_type")
      return Choose<ClientAuth>(value, full, kClientAuths, tls_.client_auth);
    if (key == "min_version") return Choose<int>(value, full, kVersions, tls_.min_version);
    if (key == "max_version") return Choose<int>(value, full, kVersions, tls_.max_version);
    if (key == "cipher_suites") return ReadCiphers(value, full);
    if (key == "curve_preferences") return ReadCurves(value, full);
    if (key == "prefer_server_cipher_suites") {
      tls_.prefer_server_ciphers = Flag(value, full, true);
    } else if (key == "client_allowed_sans") {
      for (auto& [word, at] : Words(value, full)) {
        if (word.empty()) Add(at, full, "an empty name");
        tls_.allowed_sans.push_back(std::move(word));
      }
    } else {
      Add(line, full,
          "unknown key; known are cert_file, key_file, cert, key, client_ca_file, client_ca, "
          "client_auth_type, client_allowed_sans, min_version, max_version, cipher_suites, "
          "prefer_server_cipher_suites, curve_preferences");
    }
  });
  const bool asked = !tls_.cert.empty() || !tls_.key.empty() || !tls_.client_ca.empty() ||
                     tls_.client_auth != ClientAuth::kNone || !tls_.allowed_sans.empty();
  if (asked) CheckTls(node.Mark().line, path);
}

void WebReader::CheckTls(int line, const std::string& path) {
  if (tls_.cert.empty()) Add(line, path, "no cert_file; a server needs a certificate");
  if (tls_.key.empty()) Add(line, path, "no key_file; a server needs its certificate's key");
  const bool verifies = tls_.client_auth == ClientAuth::kVerifyIfGiven ||
                        tls_.client_auth == ClientAuth::kRequireAndVerify;
  if (!tls_.client_ca.empty() && tls_.client_auth == ClientAuth::kNone) {
    Add(line, path, "a client_ca without client_auth_type; write RequireAndVerifyClientCert");
  }
  // Go takes the authorities of the system instead: then whoever has a certificate may come in.
  if (verifies && tls_.client_ca.empty()) {
    Add(line, path, "client_auth_type verifies certificates, and there is no client_ca_file");
  }
  if (!tls_.allowed_sans.empty() && tls_.client_auth != ClientAuth::kRequireAny &&
      tls_.client_auth != ClientAuth::kRequireAndVerify) {
    Add(line, path,
        "client_allowed_sans needs client_auth_type RequireAndVerifyClientCert or "
        "RequireAnyClientCert");
  }
  if (tls_.max_version < 12) Add(line, path, "max_version: below TLS 1.2 nothing is served");
  tls_.min_version = std::max(tls_.min_version, 12);
  if (tls_.only_tls13_ciphers) tls_.min_version = 13;
  if (tls_.max_version >= 12 && tls_.min_version > tls_.max_version)
    Add(line, path, "no version of TLS is left; correct min_version, max_version, cipher_suites");
  config_.tls = tls_;
}

void WebReader::ReadCiphers(const YAML::Node& node, const std::string& path) {
  const auto words = Words(node, path);
  for (const auto& [word, line] : words) {
    const std::optional<std::string_view> cipher = CipherOfGo(word);
    if (!cipher) {
      Add(line, path,
          "unknown cipher '" + word + "'; the names are Go's, such as " +
              std::string(kCiphers[13].first));
    } else if (!cipher->empty()) {
      tls_.ciphers.emplace_back(*cipher);
    }
  }
  tls_.only_tls13_ciphers = !words.empty() && tls_.ciphers.empty();
}

void WebReader::ReadCurves(const YAML::Node& node, const std::string& path) {
  const std::span<const std::pair<std::string_view, std::string_view>> curves = kCurves;
  for (const auto& [word, line] : Words(node, path)) {
    const std::string_view* curve = Named(curves, word);
    if (curve == nullptr) {
      Add(line, path, "unknown curve '" + word + "'; known are " + NamesOf(curves));
    } else {
      tls_.curves.emplace_back(*curve);
    }
  }
}

void WebReader::ReadHttp(const YAML::Node& node, const std::string& path) {
  ForEach(node, path, [&](const std::string& key, const YAML::Node& value, int line) {
    const std::string full = path + '.' + key;
    if (key == "headers") return ReadHeaders(value, full);
    if (key == "http2") {
      static_cast<void>(Flag(value, full, true));  // HTTP/1.1 is served, whatever it says
    } else {
      Add(line, full, "unknown key; known are http2, headers");
    }
  });
}

void WebReader::ReadHeaders(const YAML::Node& node, const std::string& path) {
  ForEach(node, path, [&](const std::string& key, const YAML::Node& node_value, int line) {
    const std::string full = path + '.' + key;
    const auto rule = std::find_if(std::begin(kHeaders), std::end(kHeaders),
                                   [&](const HeaderRule& one) { return one.name == key; });
    if (rule == std::end(kHeaders)) return Add(line, full, "this header cannot be configured");
    const std::string value = Word(node_value, full);
    if (!IsOneLine(value)) return Add(line, full, "the value has a line break or a control sign");
    const bool free = rule->values[0].empty();
    if (!free && value != rule->values[0] &&
        (rule->values[1].empty() || value != rule->values[1])) {
      const std::string second(rule->values[1]);
      return Add(line, full,
                 "'" + value + "' is not " + std::string(rule->values[0]) +
                     (second.empty() ? "" : " or " + second));
    }
    if (!value.empty()) config_.headers.emplace_back(key, value);
  });
}

void WebReader::ReadUsers(const YAML::Node& node, const std::string& path) {
  ForEach(node, path, [&](const std::string& key, const YAML::Node& value, int line) {
    if (key.find(':') != std::string::npos || !IsOneLine(key))
      return Add(line, path, "the name of a user has no colon and no control sign");
    const std::string hash = Word(value, path + '.' + key);
    const std::string wrong = WrongHash(hash);
    if (!wrong.empty()) return Add(value.Mark().line, path + '.' + key, wrong);
    if (config_.users.size() == kMostUsers)
      return Add(line, path, "more than " + std::to_string(kMostUsers) + " users");
    config_.users.emplace_back(key, hash);
  });
}

void WebReader::ReadRateLimit(const YAML::Node& node, const std::string& path) {
  WebConfig::RateLimit limit;
  ForEach(node, path, [&](const std::string& key, const YAML::Node& value, int line) {
    const std::string full = path + '.' + key;
    const std::string word = Word(value, full);
    if (key == "interval") {
      const auto interval = exporter::ParseDuration(word);
      if (interval && interval->ns >= 0) {
        limit.interval = *interval;
      } else {
        Add(line, full, "'" + word + "' is no time; write 1s");
      }
    } else if (key == "burst") {
      const char* const end = word.data() + word.size();
      const auto parsed = std::from_chars(word.data(), end, limit.burst);
      if (parsed.ec != std::errc() || parsed.ptr != end || limit.burst < 1 || limit.burst > 1000000)
        Add(line, full, "'" + word + "' is not a whole number from 1 to 1000000");
    } else {
      Add(line, full, "unknown key; known are interval, burst");
    }
  });
  if (limit.interval.ns > 0) config_.rate_limit = limit;
}

}  // namespace

std::optional<std::string_view> CipherOfGo(std::string_view name) {
  const std::span<const std::pair<std::string_view, std::string_view>> ciphers = kCiphers;
  const std::string_view* found = Named(ciphers, name);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

WebConfigOutcome ParseWebConfig(std::string_view text, const std::string& name) {
  WebReader reader(name);
  reader.Read(text);
  return reader.Take();
}

}  // namespace rankscope::http
