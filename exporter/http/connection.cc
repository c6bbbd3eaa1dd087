// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/connection.h"

#include <boost/beast/http.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/http/wire.h"

namespace rankscope::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kHeadPatience(5);    // for a handshake, and for a whole head
constexpr std::chrono::seconds kIdlePatience(90);   // between requests: a scrape interval and more
constexpr std::chrono::seconds kSlowestAnswer(10);  // until the client has taken a whole answer
constexpr std::chrono::seconds kDrainPatience(1);   // for what a client still sends at the end
constexpr std::chrono::seconds kStalledWriter(1);   // from then on others may take its place
constexpr size_t kDrainedBytes = size_t{1} << 20;
constexpr size_t kFirstBytes =
    512;  // of a head: most are shorter, and an idle client costs no more

}  // namespace

// Its time runs from here: the listener may look at files first, before it begins.
Connection::Connection(ConnectionOwner& owner, tcp::socket socket, ClientFacts client, bool guarded)
    : owner_(owner),
      stream_(std::move(socket)),
      client_(std::move(client)),
      guarded_(guarded),
      phase_since_(Clock::now()),
      deadline_(phase_since_ + kHeadPatience) {}

void Connection::Enter(Phase phase, Clock::duration patience) {
  if (phase_ == Phase::kClosed) return;
  phase_ = phase;
  phase_since_ = Clock::now();
  deadline_ = phase_since_ + patience;
  if (waits()) owner_.MoveToEnd(*this);
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  if (std::exchange(in_flight_, false)) owner_.GivePlace();
  error_code ignored;
  stream_.socket().set_option(asio::socket_base::linger(true, 0), ignored);
  stream_.socket().close(ignored);
  owner_.Remove(*this);  // may be the last that holds this
}

bool Connection::stalls_writer(Clock::time_point now) const {
  return phase_ == Phase::kWriting && in_flight_ && now - phase_since_ >= kStalledWriter;
}

bool Connection::TakePlace() {
  return in_flight_ = owner_.TakePlace();
}

void Connection::Begin(std::shared_ptr<const TlsContext> tls) {
  if (phase_ == Phase::kClosed) return;
  Enter(Phase::kWaiting, kHeadPatience);
  stream_.AsyncBegin(std::move(tls),
                     [self = shared_from_this()](error_code error) { self->OnBegun(error); });
}

void Connection::OnBegun(error_code error) {
  if (phase_ == Phase::kClosed) return;
  if (error) {
    owner_.CountFailedHandshake();
    return Close();
  }
  client_.certified = stream_.certified();
  client_.sans = stream_.NamesOfClient();
  ReadHead();
}

void Connection::AwaitRequest() {
  if (buffer_.size() > 0) return ReadHead();  // pipelined
  Enter(Phase::kWaiting, kIdlePatience);
  stream_.async_read_some(buffer_.prepare(kFirstBytes),
                          [self = shared_from_this()](error_code error, size_t bytes) {
                            if (error || self->phase_ == Phase::kClosed) return self->Close();
                            self->buffer_.commit(bytes);
                            self->ReadHead();
                          });
}

void Connection::ReadHead() {
  Enter(Phase::kWaiting, kHeadPatience);
  parser_.emplace();
  parser_->header_limit(kMaxHeadBytes);
  beast::http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](error_code error, size_t) { self->OnHead(error); });
}

void Connection::OnHead(error_code error) {
  if (phase_ == Phase::kClosed) return;
  if (error) return Refuse(error);
  const auto& message = parser_->get();
  Request request;
  request.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  request.path = target.substr(0, target.find('?'));
  if (request.path.size() < target.size()) request.query = target.substr(request.path.size() + 1);
  for (const auto& field : message) {
    request.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  request.deadline = DeadlineOf(request);
  request.beyond_loopback = client_.beyond_loopback;
  OnRequest(std::move(request), static_cast<int>(message.version()));
}

void Connection::OnRequest(Request request, int version) {
  const std::string_view ambiguity = Ambiguity(request, version);
  const std::string_view length = request.HeaderValue("Content-Length");
  // A body is never read, so what follows it on the connection cannot be understood.
  const bool has_body = length.find_first_not_of('0') != std::string_view::npos ||
                        !request.HeaderValue("Transfer-Encoding").empty();
  keep_alive_ = ambiguity.empty() && !has_body && parser_->get().keep_alive();
  head_only_ = request.method == "HEAD";
  Enter(Phase::kAnswering, {});
  if (!ambiguity.empty()) return Write(Refusal(400, ambiguity));
  owner_.Answer(shared_from_this(), std::move(request));
}

// What the parser refuses: malformed, or too large.
void Connection::Refuse(error_code why) {
  using beast::http::error;
  const bool gone = why == asio::error::eof || why == error::end_of_stream ||
                    why == error::partial_message ||
                    why.category() == asio::error::get_system_category() ||
                    why.category() == asio::error::get_ssl_category() ||
                    why.category() == asio::ssl::error::get_stream_category();
  if (gone) return Close();
  keep_alive_ = head_only_ = false;
  Enter(Phase::kAnswering, {});
  if (why != error::header_limit && why != error::buffer_overflow) {
    return Write(Refusal(400, "not a valid HTTP/1.1 request: " + why.message()));
  }
  const bool in_line = parser_->get().target().empty();  // its end has not been seen
  Write(Refusal(in_line ? 414 : 431,
                "line and headers have more than " + std::to_string(kMaxHeadBytes) + " bytes"));
}

void Connection::Write(Response response) {
  if (phase_ == Phase::kClosed) return;
  owner_.Count(response, head_only_);
  response_ = std::move(response);
  head_ = HeadOf(response_, keep_alive_);
  std::vector<asio::const_buffer> buffers = {asio::buffer(head_)};
  if (!head_only_) {
    buffers.push_back(asio::buffer(response_.body));
    for (const Page& page : response_.pages) buffers.push_back(asio::buffer(*page));
  }
  Enter(Phase::kWriting, kSlowestAnswer);
  asio::async_write(stream_, buffers, [self = shared_from_this()](error_code error, size_t) {
    self->OnWritten(error);
  });
}

void Connection::OnWritten(error_code error) {
  if (phase_ == Phase::kClosed) return;
  if (error) return Close();
  response_ = {};
  if (std::exchange(in_flight_, false)) owner_.GivePlace();
  if (keep_alive_) return AwaitRequest();
  Enter(Phase::kDraining, kDrainPatience);
  stream_.AsyncFinish([self = shared_from_this()](error_code) {
    if (self->phase_ == Phase::kClosed) return;
    error_code ignored;
    self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    self->Drain();
  });
}

// Closing while something is unread would throw away what the client has not taken yet.
void Connection::Drain() {
  buffer_.clear();
  // Under TLS, too: what it says no longer matters.
  stream_.socket().async_read_some(buffer_.prepare(kMaxHeadBytes),
                                   [self = shared_from_this()](error_code error, size_t bytes) {
                                     self->drained_ += bytes;
                                     if (error || self->drained_ > kDrainedBytes)
                                       return self->Close();
                                     self->Drain();
                                   });
}

}  // namespace rankscope::http
