// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One client of the listener: a TLS handshake where one is due, then requests and answers one after
// the other, with a deadline for whatever the client has to do. Everything happens on the
// listener's I/O thread.
#pragma once

#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "exporter/http/gate.h"
#include "exporter/http/message.h"
#include "exporter/http/stream.h"

namespace rankscope::http {

inline constexpr uint32_t kMaxHeadBytes = 8192;  // line and headers

class Connection;

// What a connection asks of the listener.
class ConnectionOwner {
 public:
  virtual void Answer(const std::shared_ptr<Connection>& connection, Request request) = 0;
  // False: too many requests are being answered.
  virtual bool TakePlace() = 0;
  virtual void GivePlace() = 0;
  virtual void Count(const Response& response, bool head_only) = 0;
  virtual void CountFailedHandshake() = 0;
  virtual void MoveToEnd(Connection& connection) = 0;
  virtual void Remove(Connection& connection) = 0;

 protected:
  ~ConnectionOwner() = default;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  // `guarded`: what web-config says is in force here.
  Connection(ConnectionOwner& owner, boost::asio::ip::tcp::socket socket, ClientFacts client,
             bool guarded);

  // `tls`: null: plain.
  void Begin(std::shared_ptr<const TlsContext> tls);
  void Write(Response response);
  // Counts against max_requests until its answer is written; false: there are too many.
  bool TakePlace();
  // At once; what is not sent yet is thrown away, in the kernel, too.
  void Close();

  const ClientFacts& client() const { return client_; }
  bool guarded() const { return guarded_; }
  // Whoever waits for a client may give way to another client.
  bool waits() const { return phase_ == Phase::kWaiting || phase_ == Phase::kDraining; }
  bool stalls_writer(Clock::time_point now) const;
  bool is_late(Clock::time_point now) const {
    return phase_ != Phase::kAnswering && now >= deadline_;
  }
  std::list<std::shared_ptr<Connection>>::iterator place;  // the owner's

 private:
  enum class Phase { kWaiting, kAnswering, kWriting, kDraining, kClosed };
  using Error = boost::system::error_code;

  void Enter(Phase phase, Clock::duration patience);
  void OnBegun(Error error);
  void AwaitRequest();
  void ReadHead();
  void OnHead(Error error);
  void OnRequest(Request request, int version);
  void Refuse(Error why);
  void OnWritten(Error error);
  void Drain();

  ConnectionOwner& owner_;
  Stream stream_;
  ClientFacts client_;
  const bool guarded_;
  Phase phase_ = Phase::kWaiting;
  Clock::time_point phase_since_, deadline_;
  boost::beast::flat_buffer buffer_{2 * kMaxHeadBytes};
  std::optional<boost::beast::http::request_parser<boost::beast::http::empty_body>> parser_;
  bool keep_alive_ = false;
  bool head_only_ = false;
  bool in_flight_ = false;  // counts against max_requests
  size_t drained_ = 0;
  std::string head_;
  Response response_;  // being written
};

}  // namespace rankscope::http
