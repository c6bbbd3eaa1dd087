// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// OpenSSL's server side: what web-config says of TLS as a context of connections, and what a
// client's certificate says of it. A context is made where files may be opened (OpenSSL reads its
// own configuration the first time) and used by any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "detectors/model/result.h"
#include "exporter/config/web_config.h"

struct ssl_ctx_st;
struct ssl_st;

namespace rankscope::http {

// Certificate, key and authorities as PEM.
struct PemTexts {
  std::string cert, key, client_ca;
};

class TlsContext {
 public:
  static Result<std::shared_ptr<const TlsContext>> Make(const WebConfig::Tls& tls,
                                                        const PemTexts& texts);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // For one connection, the caller's; null: there is no memory. The context must outlive it.
  ssl_st* NewConnection() const;

  // Names in the certificate of the client at the other end: DNS, e-mail, URI, IP. Empty where it
  // has not been verified.
  std::vector<std::string> NamesOfClient(const ssl_st* connection) const;
  // Before a connection is freed: that its client did not say good-bye is no reason to make it
  // prove itself anew (RFC 5246, 7.2.1).
  static void KeepSession(ssl_st* connection);

  // That it has sent one, and it was verified.
  bool HasVerified(const ssl_st* connection) const;

 private:
  TlsContext(const WebConfig::Tls& tls, ssl_ctx_st* context) : tls_(tls), context_(context) {}

  Status SetCertificate(const PemTexts& texts) const;
  Status SetClientAuth(const std::string& client_ca);
  Status SetProtocol() const;

  const WebConfig::Tls tls_;
  ssl_ctx_st* const context_;
};

}  // namespace rankscope::http
