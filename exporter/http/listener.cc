// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/listener.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstring>
#include <ctime>
#include <list>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "exporter/config/listen_address.h"
#include "exporter/http/thread_filter.h"
#include "exporter/http/wire.h"

namespace rankscope::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kHeadPatience(5);    // for a whole head
constexpr std::chrono::seconds kIdlePatience(90);   // between requests: a scrape interval and more
constexpr std::chrono::seconds kSlowestAnswer(10);  // until the client has taken a whole answer
constexpr std::chrono::seconds kDrainPatience(1);   // for what a client still sends at the end
constexpr std::chrono::seconds kStalledWriter(1);   // from then on others may take its place
constexpr std::chrono::milliseconds kSweep(500);    // how late a deadline may be noticed
constexpr std::chrono::milliseconds kAcceptPause(50);  // when there is no descriptor left
constexpr uint32_t kMaxHeadBytes = 8192;               // line and headers
constexpr size_t kDrainedBytes = size_t{1} << 20;
// The kernel takes twice as much, for its own books: what 1,024 clients leave unread is 256 MB at
// most, and a page of metrics takes a handful of turns.
constexpr int kSendBuffer = 128 << 10;
// A connect that finds the queue full is tried again after 1 s: 2,000 at once must fit.
constexpr int kBacklog = 4096;
constexpr int kGeneralThreads = 4;  // they compute; and /explain waits for the loop
constexpr int kGeneralNice = 5;     // the loop thread's ticks go first
constexpr uint32_t kLoopback = 127;

class Server;

// One client. Everything of it happens on the server's I/O thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Server& server, tcp::socket socket, uint32_t address, bool beyond_loopback)
      : server_(server),
        socket_(std::move(socket)),
        address_(address),
        beyond_loopback_(beyond_loopback) {}

  void ReadHead();
  void Write(Response response);
  // Counts against max_requests until its answer is written; false: there are too many.
  bool TakePlace();
  // At once; what is not sent yet is thrown away, in the kernel, too.
  void Close();

  uint32_t address() const { return address_; }
  // Whoever waits for a client may give way to another client.
  bool waits() const { return phase_ == Phase::kWaiting || phase_ == Phase::kDraining; }
  bool stalls_writer(Clock::time_point now) const {
    return phase_ == Phase::kWriting && in_flight_ && now - phase_since_ >= kStalledWriter;
  }
  bool is_late(Clock::time_point now) const {
    return phase_ != Phase::kAnswering && now >= deadline_;
  }
  std::list<std::shared_ptr<Connection>>::iterator place;  // the server's

 private:
  enum class Phase { kWaiting, kAnswering, kWriting, kDraining, kClosed };

  void Enter(Phase phase, Clock::duration patience);
  void AwaitRequest();
  void OnHead(error_code error);
  void OnRequest(Request request, int version);
  void Refuse(error_code why);
  void OnWritten(error_code error);
  void Drain();

  Server& server_;
  tcp::socket socket_;
  const uint32_t address_;  // IPv4 of the client
  const bool beyond_loopback_;
  Phase phase_ = Phase::kWaiting;
  Clock::time_point phase_since_, deadline_;
  beast::flat_buffer buffer_{2 * kMaxHeadBytes};
  std::optional<beast::http::request_parser<beast::http::empty_body>> parser_;
  bool keep_alive_ = false;
  bool head_only_ = false;
  bool in_flight_ = false;  // counts against max_requests
  size_t drained_ = 0;
  std::string head_;
  Response response_;  // being written
};

class Server final : public Listener {
 public:
  Server(const ListenerOptions& options, StateFunction state, Router router)
      : max_requests_(std::max(options.max_requests, 1)),
        state_(std::move(state)),
        router_(std::move(router)) {}
  // Without memory for a stop, or with a thread that cannot be joined, nothing can go on.
  ~Server() override { Stop(); }  // NOLINT(bugprone-exception-escape)
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Status Open(const std::vector<ListenAddress>& addresses);
  std::vector<uint16_t> ports() const override;
  metrics::HttpStatus Counts() const override;
  std::string trouble() const override { return trouble_; }

  // For connections, on the I/O thread.
  void Answer(const std::shared_ptr<Connection>& connection, Request request);
  // False: too many requests are being answered.
  bool TakePlace();
  void GivePlace() { --in_flight_; }
  void Count(const Response& response, bool head_only);
  void MoveToEnd(Connection& connection) {
    connections_.splice(connections_.end(), connections_, connection.place);
  }
  void Remove(Connection& connection);

 private:
  void Accept(tcp::acceptor& acceptor);
  void Welcome(tcp::socket socket);
  bool EvictWaiting(std::optional<uint32_t> address);
  void Sweep();
  void StartThread(const char* name, asio::io_context& context, int nice);
  void Stop();

  const int max_requests_;
  StateFunction state_;
  Router router_;
  asio::io_context io_{1}, scrapes_{1}, general_;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::list<tcp::acceptor> acceptors_;
  asio::steady_timer sweeper_{io_}, pause_{io_};
  bool sweeping_ = false;
  // Those that wait for a client, the longest waiting first; others in between.
  std::list<std::shared_ptr<Connection>> connections_;
  std::map<uint32_t, size_t> by_address_;
  int in_flight_ = 0;
  std::array<std::atomic<int64_t>, metrics::kStatusClasses.size()> responses_{};
  std::array<std::atomic<int64_t>, metrics::kFormatNames.size()> scrapes_counted_{};
  std::atomic<int64_t> evicted_ = 0;
  std::string trouble_;
  std::vector<std::thread> threads_;
};

// --- Connection ---

void Connection::Enter(Phase phase, Clock::duration patience) {
  if (phase_ == Phase::kClosed) return;
  phase_ = phase;
  phase_since_ = Clock::now();
  deadline_ = phase_since_ + patience;
  if (waits()) server_.MoveToEnd(*this);
}

void Connection::Close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  if (std::exchange(in_flight_, false)) server_.GivePlace();
  error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.close(ignored);
  server_.Remove(*this);  // may be the last that holds this
}

bool Connection::TakePlace() {
  return in_flight_ = server_.TakePlace();
}

void Connection::AwaitRequest() {
  if (buffer_.size() > 0) return ReadHead();  // pipelined
  Enter(Phase::kWaiting, kIdlePatience);
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
    if (error || self->phase_ == Phase::kClosed) return self->Close();
    self->ReadHead();
  });
}

void Connection::ReadHead() {
  Enter(Phase::kWaiting, kHeadPatience);
  parser_.emplace();
  parser_->header_limit(kMaxHeadBytes);
  beast::http::async_read_header(
      socket_, buffer_, *parser_,
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
  request.beyond_loopback = beyond_loopback_;
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
  server_.Answer(shared_from_this(), std::move(request));
}

// What the parser refuses: malformed, or too large.
void Connection::Refuse(error_code why) {
  using beast::http::error;
  const bool gone = why == asio::error::eof || why == error::end_of_stream ||
                    why == error::partial_message ||
                    why.category() == asio::error::get_system_category();
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
  server_.Count(response, head_only_);
  response_ = std::move(response);
  head_ = HeadOf(response_, keep_alive_);
  std::vector<asio::const_buffer> buffers = {asio::buffer(head_)};
  if (!head_only_) {
    buffers.push_back(asio::buffer(response_.body));
    for (const Page& page : response_.pages) buffers.push_back(asio::buffer(*page));
  }
  Enter(Phase::kWriting, kSlowestAnswer);
  asio::async_write(socket_, buffers, [self = shared_from_this()](error_code error, size_t) {
    self->OnWritten(error);
  });
}

void Connection::OnWritten(error_code error) {
  if (phase_ == Phase::kClosed) return;
  if (error) return Close();
  response_ = {};
  if (std::exchange(in_flight_, false)) server_.GivePlace();
  if (keep_alive_) return AwaitRequest();
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  Enter(Phase::kDraining, kDrainPatience);
  Drain();
}

// Closing while something is unread would throw away what the client has not taken yet.
void Connection::Drain() {
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(kMaxHeadBytes),
                          [self = shared_from_this()](error_code error, size_t bytes) {
                            self->drained_ += bytes;
                            if (error || self->drained_ > kDrainedBytes) return self->Close();
                            self->Drain();
                          });
}

// --- Server ---

Status Server::Open(const std::vector<ListenAddress>& addresses) {
  for (const ListenAddress& address : addresses) {
    tcp::endpoint endpoint;
    std::memcpy(endpoint.data(), &address.socket, sizeof address.socket);
    tcp::acceptor acceptor(io_);
    error_code error;
    acceptor.open(tcp::v4(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(kBacklog, error);
    if (error) {
      return Error{"cannot listen on " + address.text + ": " + Remedy(error.value(), address)};
    }
    acceptors_.push_back(std::move(acceptor));
  }
  // The first look for the time zone opens a file, which restricted threads cannot.
  tzset();
  for (asio::io_context* context : {&io_, &scrapes_, &general_}) {
    work_.emplace_back(context->get_executor());
  }
  for (tcp::acceptor& acceptor : acceptors_) Accept(acceptor);
  StartThread("http", io_, 0);
  StartThread("http-scrape", scrapes_, 0);
  for (int i = 0; i < kGeneralThreads; ++i) StartThread("http-general", general_, kGeneralNice);
  return {};
}

void Server::StartThread(const char* name, asio::io_context& context, int nice) {
  std::atomic<bool> begun = false;
  threads_.emplace_back([&, name, nice] {
    pthread_setname_np(pthread_self(), name);
    if (nice > 0) setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), nice);
    if (const Status restricted = RestrictThread(); !restricted) trouble_ = restricted.error();
    begun = true;
    begun.notify_one();
    context.run();
  });
  begun.wait(false);
}

void Server::Stop() {
  asio::post(io_, [this] { acceptors_.clear(); });
  // A request that is being answered is answered; those behind it are not.
  scrapes_.stop();
  general_.stop();
  for (size_t i = 1; i < threads_.size(); ++i) threads_[i].join();
  asio::post(io_, [this] { io_.stop(); });
  if (!threads_.empty()) threads_.front().join();
  connections_.clear();
}

std::vector<uint16_t> Server::ports() const {
  std::vector<uint16_t> ports;
  for (const tcp::acceptor& acceptor : acceptors_) {
    error_code error;
    ports.push_back(acceptor.local_endpoint(error).port());
  }
  return ports;
}

void Server::Accept(tcp::acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (acceptors_.empty()) return;
    if (!error) {
      Welcome(std::move(socket));
      return Accept(acceptor);
    }
    EvictWaiting(std::nullopt);  // no descriptor or memory is left
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this, &acceptor](error_code stopped) {
      if (!stopped && !acceptors_.empty()) Accept(acceptor);
    });
  });
}

void Server::Welcome(tcp::socket socket) {
  error_code error;
  const tcp::endpoint local = socket.local_endpoint(error);
  if (error) return;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;  // gone again
  const auto number = [](const tcp::endpoint& end) { return end.address().to_v4().to_uint(); };
  const bool inside = number(local) >> 24 == kLoopback && number(peer) >> 24 == kLoopback;
  // All users of the machine come from loopback, under any of its addresses: they share what there
  // is. Nobody else takes more than a quarter.
  const uint32_t address = inside ? kLoopback << 24 : number(peer);
  const bool room_for_it = inside || by_address_[address] < kMaxPerAddress || EvictWaiting(address);
  const bool room = connections_.size() < kMaxConnections || EvictWaiting(std::nullopt);
  if (!room_for_it || !room) {
    socket.set_option(asio::socket_base::linger(true, 0), error);
    if (by_address_[address] == 0) by_address_.erase(address);
    return;
  }
  socket.set_option(tcp::no_delay(true), error);
  socket.set_option(asio::socket_base::send_buffer_size(kSendBuffer), error);
  const auto connection = std::make_shared<Connection>(*this, std::move(socket), address, !inside);
  connections_.push_back(connection);
  connection->place = std::prev(connections_.end());
  ++by_address_[address];
  connection->ReadHead();
  if (!std::exchange(sweeping_, true)) Sweep();
}

void Server::Remove(Connection& connection) {
  const auto count = by_address_.find(connection.address());
  if (count != by_address_.end() && --count->second == 0) by_address_.erase(count);
  connections_.erase(connection.place);
}

bool Server::EvictWaiting(std::optional<uint32_t> address) {
  for (const auto& connection : connections_) {
    if (!connection->waits() || (address && connection->address() != *address)) continue;
    ++evicted_;
    const std::shared_ptr<Connection> held = connection;
    held->Close();
    return true;
  }
  return false;
}

void Server::Sweep() {
  sweeper_.expires_after(kSweep);
  sweeper_.async_wait([this](error_code error) {
    if (error) return;
    const Clock::time_point now = Clock::now();
    for (auto it = connections_.begin(); it != connections_.end();) {
      const std::shared_ptr<Connection> connection = *it++;
      if (connection->is_late(now)) connection->Close();
    }
    sweeping_ = !connections_.empty();
    if (sweeping_) Sweep();
  });
}

bool Server::TakePlace() {
  if (in_flight_ >= max_requests_) {
    const Clock::time_point now = Clock::now();
    const auto stalled =
        std::find_if(connections_.begin(), connections_.end(),
                     [now](const auto& connection) { return connection->stalls_writer(now); });
    if (stalled == connections_.end()) return false;
    ++evicted_;
    const std::shared_ptr<Connection> held = *stalled;
    held->Close();
  }
  ++in_flight_;
  return true;
}

void Server::Answer(const std::shared_ptr<Connection>& connection, Request request) {
  const Lane lane = LaneOf(request);
  if (lane == Lane::kProbe) return connection->Write(router_.Handle(request, *state_()));
  if (lane == Lane::kGeneral && !connection->TakePlace()) {
    Response response = Refusal(503, "more than " + std::to_string(max_requests_) +
                                         " requests at once; try again, or raise web.max_requests");
    response.headers.push_back({"Retry-After", "1"});
    return connection->Write(std::move(response));
  }
  asio::post(lane == Lane::kScrape ? scrapes_ : general_,
             [this, connection, request = std::move(request)] {
               Response response = router_.Handle(request, *state_());
               asio::post(io_, [connection, response = std::move(response)]() mutable {
                 connection->Write(std::move(response));
               });
             });
}

metrics::HttpStatus Server::Counts() const {
  metrics::HttpStatus status;
  std::copy(responses_.begin(), responses_.end(), status.responses.begin());
  std::copy(scrapes_counted_.begin(), scrapes_counted_.end(), status.scrapes.begin());
  status.evicted = evicted_;
  return status;
}

void Server::Count(const Response& response, bool head_only) {
  const int place = std::clamp(response.status / 100 - 2, 0, 3);
  ++responses_[static_cast<size_t>(place)];
  if (response.scrape && !head_only) ++scrapes_counted_[static_cast<size_t>(*response.scrape)];
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Start(const ListenerOptions& options,
                                                  StateFunction state, Router router) {
  if (options.addresses.empty()) return Error{"web.listen names no address; write 127.0.0.1:10177"};
  std::vector<ListenAddress> addresses;
  for (const std::string& text : options.addresses) {
    Result<ListenAddress> address = ParseListenAddress(text);
    if (!address) return Error{address.error()};
    addresses.push_back(*std::move(address));
  }
  auto server = std::make_unique<Server>(options, std::move(state), std::move(router));
  if (const Status open = server->Open(addresses); !open) return Error{open.error()};
  return std::unique_ptr<Listener>(std::move(server));
}

}  // namespace rankscope::http
