// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstdint>

namespace rankscope::http {
namespace {

// As many as there are connections.
constexpr long kSessions = 1024;
constexpr unsigned char kSessionContext[] = "rankscope";

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

// The newest error of this thread, in OpenSSL's words.
std::string Why() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = ERR_reason_error_string(code);
  return reason == nullptr ? "no reason given" : reason;
}

Error Failed(const std::string& what) {
  return Error{what + ": " + Why()};
}

Owned<BIO> Reading(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A key with a passphrase is refused: asking for one would read the terminal.
int NoPassphrase(char*, int, int, void*) {
  return -1;
}

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

std::string AddressOf(const ASN1_STRING* bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  const int family = ASN1_STRING_length(bytes) == 4    ? AF_INET
                     : ASN1_STRING_length(bytes) == 16 ? AF_INET6
                                                       : AF_UNSPEC;
  if (family == AF_UNSPEC) return {};
  inet_ntop(family, ASN1_STRING_get0_data(bytes), text, sizeof text);
  return text;
}

std::vector<std::string> NamesIn(const X509* certificate) {
  std::vector<std::string> names;
  const Owned<GENERAL_NAMES> found(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(found.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(found.get(), i);
    if (name->type == GEN_DNS || name->type == GEN_EMAIL || name->type == GEN_URI) {
      names.push_back(TextOf(name->d.ia5));
    } else if (name->type == GEN_IPADD) {
      names.push_back(AddressOf(name->d.iPAddress));
    }
  }
  std::erase(names, "");
  return names;
}

bool AllowsOne(const std::vector<std::string>& allowed, const std::vector<std::string>& names) {
  return allowed.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return std::find(allowed.begin(), allowed.end(), name) != allowed.end();
         });
}

bool Verifies(ClientAuth auth) {
  return auth == ClientAuth::kVerifyIfGiven || auth == ClientAuth::kRequireAndVerify;
}

// In place of OpenSSL's own verification, so that a name that is not allowed ends the handshake
// with an alert.
int VerifyClient(X509_STORE_CTX* store, void* argument) {
  const auto& tls = *static_cast<const WebConfig::Tls*>(argument);
  if (Verifies(tls.client_auth) && X509_verify_cert(store) != 1) return 0;
  const X509* const certificate = X509_STORE_CTX_get0_cert(store);
  if (certificate == nullptr || !AllowsOne(tls.allowed_sans, NamesIn(certificate))) {
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
  }
  return 1;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string joined;
  for (const std::string& word : words) joined += (joined.empty() ? "" : ":") + word;
  return joined;
}

// At the end of a file OpenSSL leaves an error that is none.
bool AtEnd() {
  const unsigned long code = ERR_peek_last_error();
  const bool end = code == 0 || (ERR_GET_LIB(code) == ERR_LIB_PEM &&
                                 ERR_GET_REASON(code) == PEM_R_NO_START_LINE);
  if (end) ERR_clear_error();
  return end;
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::Make(const WebConfig::Tls& tls,
                                                           const PemTexts& texts) {
  ERR_clear_error();
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) return Failed("TLS cannot be used");
  std::shared_ptr<TlsContext> made(new TlsContext(tls, context));
  if (const Status status = made->SetProtocol(); !status) return Error{status.error()};
  if (const Status status = made->SetCertificate(texts); !status) return Error{status.error()};
  if (const Status status = made->SetClientAuth(texts.client_ca); !status)
    return Error{status.error()};
  return std::shared_ptr<const TlsContext>(std::move(made));
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
}

Status TlsContext::SetProtocol() const {
  SSL_CTX_set_min_proto_version(context_, tls_.min_version == 13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_max_proto_version(context_, tls_.max_version == 13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  // Sessions stay here instead of going to the client in a ticket: out of a ticket OpenSSL 3.0
  // decodes the client's certificate anew, which takes longer than the rest of the handshake.
  uint64_t options = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET;
  if (tls_.prefer_server_ciphers) options |= SSL_OP_CIPHER_SERVER_PREFERENCE;
  SSL_CTX_set_options(context_, options);
  // An idle connection gives its buffers back, which are 34 kB.
  SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_sess_set_cache_size(context_, kSessions);
  SSL_CTX_set_num_tickets(context_, 1);  // of TLS 1.3: which is only a name then
  SSL_CTX_set_session_id_context(context_, kSessionContext, sizeof kSessionContext - 1);
  if (!tls_.ciphers.empty() &&
      SSL_CTX_set_cipher_list(context_, Joined(tls_.ciphers).c_str()) != 1) {
    return Failed("cipher_suites");
  }
  if (!tls_.curves.empty() && SSL_CTX_set1_groups_list(context_, Joined(tls_.curves).c_str()) != 1)
    return Failed("curve_preferences");
  return {};
}

Status TlsContext::SetCertificate(const PemTexts& texts) const {
  const Owned<BIO> cert = Reading(texts.cert);
  const Owned<X509> own(PEM_read_bio_X509(cert.get(), nullptr, NoPassphrase, nullptr));
  if (!own) return Failed("the certificate");
  if (SSL_CTX_use_certificate(context_, own.get()) != 1) return Failed("the certificate");
  while (X509* const next = PEM_read_bio_X509(cert.get(), nullptr, NoPassphrase, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context_, next) != 1) {
      X509_free(next);
      return Failed("a certificate behind the first");
    }
  }
  if (!AtEnd()) return Failed("a certificate behind the first");
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(Reading(texts.key).get(), nullptr, NoPassphrase, nullptr));
  if (!key) return Failed("the key (one with a passphrase cannot be used)");
  if (SSL_CTX_use_PrivateKey(context_, key.get()) != 1 || SSL_CTX_check_private_key(context_) != 1)
    return Failed("the key does not belong to the certificate");
  return {};
}

Status TlsContext::SetClientAuth(const std::string& client_ca) {
  int mode = SSL_VERIFY_NONE;
  if (tls_.client_auth != ClientAuth::kNone) mode = SSL_VERIFY_PEER;
  if (tls_.client_auth == ClientAuth::kRequireAny ||
      tls_.client_auth == ClientAuth::kRequireAndVerify) {
    mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  }
  SSL_CTX_set_verify(context_, mode, nullptr);
  SSL_CTX_set_cert_verify_callback(context_, VerifyClient, const_cast<WebConfig::Tls*>(&tls_));
  if (client_ca.empty()) return {};
  const Owned<BIO> bio = Reading(client_ca);
  int count = 0;
  X509_STORE* const store = SSL_CTX_get_cert_store(context_);
  while (Owned<X509> authority{PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr)}) {
    ++count;
    if (X509_STORE_add_cert(store, authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context_, authority.get()) != 1) {
      return Failed("the authority " + std::to_string(count) + " of client_ca");
    }
  }
  if (!AtEnd() || count == 0) return Failed("client_ca");
  return {};
}

ssl_st* TlsContext::NewConnection() const {
  return SSL_new(context_);
}

void TlsContext::KeepSession(ssl_st* connection) {
  if (SSL_is_init_finished(connection) == 1)
    SSL_set_shutdown(connection, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
}

bool TlsContext::HasVerified(const ssl_st* connection) const {
  return Verifies(tls_.client_auth) && SSL_get0_peer_certificate(connection) != nullptr &&
         SSL_get_verify_result(connection) == X509_V_OK;
}

std::vector<std::string> TlsContext::NamesOfClient(const ssl_st* connection) const {
  if (!HasVerified(connection)) return {};
  return NamesIn(SSL_get0_peer_certificate(connection));
}

}  // namespace rankscope::http
