// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The bytes of one client, with TLS around them or without: one type, so that who reads and writes
// requests does not know which. The I/O thread of the listener.
#pragma once

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "exporter/http/tls.h"

namespace rankscope::http {

class Stream {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;

  explicit Stream(Socket socket) : socket_(std::move(socket)) {}
  ~Stream() {
    if (tls_) TlsContext::KeepSession(tls_->native_handle());
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }
  Socket& socket() { return socket_; }

  // `tls`: null: plain. `handler(error)`; at once where nothing is to be agreed on.
  template <typename Handler>
  void AsyncBegin(std::shared_ptr<const TlsContext> tls, Handler&& handler) {
    context_ = std::move(tls);
    if (context_ == nullptr) return handler(boost::system::error_code());
    ssl_st* const connection = context_->NewConnection();
    if (connection == nullptr) return handler(boost::asio::error::no_memory);
    tls_.emplace(socket_, connection);  // which is its own from now on
    tls_->async_handshake(boost::asio::ssl::stream_base::server, std::forward<Handler>(handler));
  }

  // Says that nothing more is sent. `handler(error)` when TLS's client has said the same.
  template <typename Handler>
  void AsyncFinish(Handler&& handler) {
    if (tls_) return tls_->async_shutdown(std::forward<Handler>(handler));
    handler(boost::system::error_code());
  }

  bool certified() { return tls_ && context_->HasVerified(tls_->native_handle()); }
  std::vector<std::string> NamesOfClient() {
    return tls_ ? context_->NamesOfClient(tls_->native_handle()) : std::vector<std::string>();
  }

  // As Asio's streams.
  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_read_some(buffers, std::forward<Handler>(handler));
    socket_.async_read_some(buffers, std::forward<Handler>(handler));
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_) return tls_->async_write_some(buffers, std::forward<Handler>(handler));
    socket_.async_write_some(buffers, std::forward<Handler>(handler));
  }

 private:
  Socket socket_;
  std::shared_ptr<const TlsContext> context_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace rankscope::http
