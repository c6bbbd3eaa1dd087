// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The web-config file that Prometheus and its exporters share (exporter-toolkit): TLS, users,
// headers, a limit of requests. Strict, every mistake with its line. What is ours beside it are
// keys of the daemon's own configuration, so that `promtool check web-config` still reads this
// file. Reads no other file; plain data; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/model/time.h"

namespace rankscope::http {

enum class ClientAuth {
  kNone,           // no certificate is asked for
  kRequest,        // asked for, and whatever comes is taken
  kRequireAny,     // must come, and is not verified
  kVerifyIfGiven,  // verified where it comes
  kRequireAndVerify,
};

struct WebConfig {
  // One of them, or neither.
  struct Pem {
    std::string file;  // absolute, or relative to the working directory as the file's name is
    std::string text;
    bool empty() const { return file.empty() && text.empty(); }
  };
  struct Tls {
    Pem cert, key, client_ca;
    ClientAuth client_auth = ClientAuth::kNone;
    std::vector<std::string> allowed_sans;  // empty: all
    int min_version = 12;                   // 12 | 13: older ones are not served
    int max_version = 13;
    std::vector<std::string> ciphers;  // OpenSSL's names, of TLS 1.2; empty: OpenSSL's choice
    bool only_tls13_ciphers = false;   // named were some, and none of TLS 1.2
    bool prefer_server_ciphers = true;
    std::vector<std::string> curves;  // OpenSSL's names; empty: OpenSSL's choice
  };
  struct RateLimit {
    Duration interval;  // a request's place comes back after this
    int64_t burst = 1;
  };
  std::optional<Tls> tls;
  std::vector<std::pair<std::string, std::string>> headers;  // of every answer
  std::vector<std::pair<std::string, std::string>> users;    // name, bcrypt
  std::optional<RateLimit> rate_limit;
};

struct WebConfigOutcome {
  WebConfig config;
  std::vector<std::string> problems;  // "web.yaml:7: tls_server_config.cert_fil: unknown key"
};

// `name` stands before each line number, and paths in the file are relative to its folder.
WebConfigOutcome ParseWebConfig(std::string_view text, const std::string& name);

// OpenSSL's name of a cipher suite that Go calls `name`: empty for those of TLS 1.3, which are
// always offered; nullopt: Go knows none of this name.
std::optional<std::string_view> CipherOfGo(std::string_view name);

}  // namespace rankscope::http
