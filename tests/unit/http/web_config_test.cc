// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/web_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <string>
#include <vector>

namespace rankscope::http {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr char kHash[] = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

std::string TlsWith(const std::string& lines) {
  return "tls_server_config:\n  cert_file: server.crt\n  key_file: /etc/server.key\n" + lines;
}

WebConfigOutcome Read(const std::string& text) {
  return ParseWebConfig(text, "/etc/rankscope/web.yaml");
}

TEST(ParseWebConfig, AnEmptyFileIsPlainHttp) {
  for (const char* text : {"", "# nothing\n", "tls_server_config:\n", "tls_server_config: {}\n",
                           "basic_auth_users:\nhttp_server_config:\n"}) {
    const WebConfigOutcome outcome = Read(text);
    EXPECT_THAT(outcome.problems, IsEmpty()) << text;
    EXPECT_FALSE(outcome.config.tls) << text;
    EXPECT_THAT(outcome.config.users, IsEmpty()) << text;
  }
}

TEST(ParseWebConfig, ReadsEveryKey) {
  const WebConfigOutcome outcome = Read(
      TlsWith("  client_ca_file: ca.crt\n"
              "  client_auth_type: RequireAndVerifyClientCert\n"
              "  client_allowed_sans: [a.example, 10.1.2.3]\n"
              "  min_version: TLS13\n  max_version: TLS13\n"
              "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256]\n"
              "  prefer_server_cipher_suites: false\n"
              "  curve_preferences: [X25519, CurveP256]\n") +
      "http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n"
      "    Strict-Transport-Security: max-age=31536000\n"
      "basic_auth_users:\n  ann: " +
      kHash + "\nrate_limit: {interval: 1s, burst: 20}\n");
  EXPECT_THAT(outcome.problems, IsEmpty());
  ASSERT_TRUE(outcome.config.tls);
  const WebConfig::Tls& tls = *outcome.config.tls;
  EXPECT_EQ(tls.cert.file, "/etc/rankscope/server.crt") << "relative to the file";
  EXPECT_EQ(tls.key.file, "/etc/server.key");
  EXPECT_EQ(tls.client_ca.file, "/etc/rankscope/ca.crt");
  EXPECT_EQ(tls.client_auth, ClientAuth::kRequireAndVerify);
  EXPECT_THAT(tls.allowed_sans, ElementsAre("a.example", "10.1.2.3"));
  EXPECT_EQ(tls.min_version, 13);
  EXPECT_THAT(tls.ciphers, ElementsAre("ECDHE-RSA-AES128-GCM-SHA256"));
  EXPECT_FALSE(tls.prefer_server_ciphers);
  EXPECT_THAT(tls.curves, ElementsAre("X25519", "P-256"));
  EXPECT_THAT(outcome.config.headers,
              ElementsAre(Pair("X-Frame-Options", "deny"),
                          Pair("Strict-Transport-Security", "max-age=31536000")));
  EXPECT_THAT(outcome.config.users, ElementsAre(Pair("ann", kHash)));
  ASSERT_TRUE(outcome.config.rate_limit);
  EXPECT_EQ(outcome.config.rate_limit->burst, 20);
}

TEST(ParseWebConfig, KnowsTheFiveWaysToAskForACertificate) {
  const std::pair<const char*, ClientAuth> names[] = {
      {"NoClientCert", ClientAuth::kNone},
      {"RequestClientCert", ClientAuth::kRequest},
      {"RequireAnyClientCert", ClientAuth::kRequireAny},
      {"RequireClientCert", ClientAuth::kRequireAny},
      {"VerifyClientCertIfGiven", ClientAuth::kVerifyIfGiven},
      {"RequireAndVerifyClientCert", ClientAuth::kRequireAndVerify}};
  for (const auto& [name, auth] : names) {
    const std::string ca = auth == ClientAuth::kNone ? "" : "  client_ca_file: ca\n";
    const WebConfigOutcome outcome =
        Read(TlsWith("  client_auth_type: " + std::string(name) + "\n" + ca));
    EXPECT_THAT(outcome.problems, IsEmpty()) << name;
    EXPECT_EQ(outcome.config.tls->client_auth, auth) << name;
  }
}

TEST(ParseWebConfig, OldProtocolsAreNotServed) {
  EXPECT_EQ(Read(TlsWith("  min_version: TLS10\n")).config.tls->min_version, 12);
  EXPECT_EQ(Read(TlsWith("")).config.tls->min_version, 12);
  EXPECT_THAT(Read(TlsWith("  max_version: TLS11\n")).problems, SizeIs(1));
  EXPECT_THAT(Read(TlsWith("  min_version: TLS13\n  max_version: TLS12\n")).problems, SizeIs(1));
  // Suites of TLS 1.3 alone leave nothing for 1.2.
  EXPECT_EQ(Read(TlsWith("  cipher_suites: [TLS_AES_128_GCM_SHA256]\n")).config.tls->min_version,
            13);
}

TEST(ParseWebConfig, EveryMistakeHasItsLine) {
  struct Case {
    std::string text, problem;
  };
  const Case cases[] = {
      {"tls_server_confg: {}\n", "web.yaml:1: tls_server_confg: unknown key"},
      {TlsWith("  cert_fil: x\n"), "web.yaml:4: tls_server_config.cert_fil: unknown key"},
      {"http_server_config: {http3: true}\n", "http_server_config.http3: unknown key"},
      {"http_server_config: {http2: yes please}\n", "neither true nor false"},
      {"rankscope: {roles: []}\n", "rankscope: unknown key"},
      {"tls_server_config: {cert_file: a}\n", "no key_file"},
      {"tls_server_config: {key_file: a}\n", "no cert_file"},
      {TlsWith("  cert: PEM\n"), "web.yaml:4: tls_server_config.cert: is given as a file"},
      {TlsWith("  client_ca_file: ca\n"), "client_auth_type"},
      {TlsWith("  client_auth_type: VerifyClientCertIfGiven\n"), "no client_ca_file"},
      {TlsWith("  client_auth_type: Require\n"), "web.yaml:4"},
      {TlsWith("  client_auth_type: RequestClientCert\n  client_allowed_sans: [a]\n"),
       "client_allowed_sans needs"},
      {TlsWith("  min_version: TLS14\n"), "'TLS14' is not one of"},
      {TlsWith("  cipher_suites: [ECDHE-RSA-AES128-GCM-SHA256]\n"), "unknown cipher"},
      {TlsWith("  cipher_suites: TLS_AES_128_GCM_SHA256\n"), "expected a list"},
      {TlsWith("  curve_preferences: [P-256]\n"), "unknown curve"},
      {TlsWith("  cert_file: other\n"), "is given twice"},
      {"http_server_config: {headers: {X-Powered-By: me}}\n", "cannot be configured"},
      {"http_server_config: {headers: {X-Frame-Options: maybe}}\n", "deny or sameorigin"},
      {"http_server_config: {headers: {X-Content-Type-Options: sniff}}\n", "is not nosniff"},
      {"http_server_config: {headers: {Content-Security-Policy: \"a\\nSet-Cookie: b\"}}\n",
       "line break"},
      {"basic_auth_users: {ann: secret}\n", "bcrypt"},
      {"basic_auth_users: {ann: $2y$31$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi}\n",
       "cost of 31"},
      {"basic_auth_users: [ann]\n", "expected keys with values"},
      {"rate_limit: {burst: 0}\n", "rate_limit.burst"},
      {"rate_limit: {interval: soon}\n", "rate_limit.interval"},
      {"a: [b\n", "not valid YAML"},
      {"a: 1\n---\nb: 2\n", "second YAML document"},
      {std::string("a\0b", 3), "NUL byte"},
      {",", "web.yaml:1: "},
      {"basic_auth_users:\n,", "web.yaml:2: "},
  };
  for (const Case& one : cases) {
    const WebConfigOutcome outcome = Read(one.text);
    EXPECT_THAT(outcome.problems, testing::Contains(HasSubstr(one.problem))) << one.text;
    for (const std::string& problem : outcome.problems)
      EXPECT_THAT(problem, HasSubstr("/etc/rankscope/web.yaml")) << one.text;
  }
}

// Each name that Go has is one that OpenSSL takes.
TEST(CipherOfGo, NamesCiphersOfOpenSsl) {
  EXPECT_EQ(CipherOfGo("TLS_AES_256_GCM_SHA384"), "");
  EXPECT_FALSE(CipherOfGo("TLS_RSA_WITH_RC4_128_SHA"));
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  for (const char* name :
       {"TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_AES_256_CBC_SHA",
        "TLS_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"}) {
    const auto cipher = CipherOfGo(name);
    ASSERT_TRUE(cipher) << name;
    EXPECT_EQ(SSL_CTX_set_cipher_list(context, std::string(*cipher).c_str()), 1) << name;
  }
  SSL_CTX_free(context);
}

}  // namespace
}  // namespace rankscope::http
