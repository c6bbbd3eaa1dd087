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
#include <chrono>
#include <cstring>
#include <ctime>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "exporter/config/listen_address.h"
#include "exporter/http/connection.h"
#include "exporter/http/gate.h"
#include "exporter/http/thread_filter.h"
#include "exporter/http/wire.h"

namespace rankscope::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSweep(500);       // how late a deadline may be noticed
constexpr std::chrono::milliseconds kAcceptPause(50);  // when there is no descriptor left
// The kernel takes twice as much, for its own books: what 1,024 clients leave unread is 256 MB at
// most, and a page of metrics takes a handful of turns.
constexpr int kSendBuffer = 128 << 10;
// A connect that finds the queue full is tried again after 1 s: 2,000 at once must fit.
constexpr int kBacklog = 4096;
constexpr int kGeneralThreads = 4;  // they compute; and /explain waits for the loop
constexpr int kGeneralNice = 5;     // the loop thread's ticks go first
// One thread, as one core is what guessing may take; behind 64 others a password waits 3 s.
constexpr int kPasswordNice = 10;
constexpr size_t kMostPasswords = 64;
// Files are looked at no more often, and nobody waits longer for a file system that hangs.
constexpr std::chrono::seconds kFilesFresh(1);
constexpr std::chrono::milliseconds kFilesPatience(500);
constexpr uint32_t kLoopback = 127;

// As IPv4 where it is one, in whichever way it came.
asio::ip::address Plain(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return address;
}

// A network of IPv6 is 64 bits: whoever has one has all its addresses.
uint64_t NetworkOf(const asio::ip::address& address) {
  if (address.is_v4()) return address.to_v4().to_uint();
  uint64_t network = 0;
  const auto bytes = address.to_v6().to_bytes();
  for (size_t i = 0; i < 8; ++i) network = network << 8 | bytes[i];
  return network;
}

Response TooMany() {
  Response response = Refusal(429, "too many requests or wrong passwords; try again later");
  response.headers.push_back({"Retry-After", "1"});
  return response;
}

// A socket that listens, and whether web-config is in force there.
struct Door {
  tcp::acceptor acceptor;
  bool guarded = false;
};

class Server final : public Listener, public ConnectionOwner {
 public:
  Server(const ListenerOptions& options, std::unique_ptr<WebFiles> files, StateFunction state,
         Router router)
      : max_requests_(std::max(options.max_requests, 1)),
        plain_loopback_(options.plain_loopback),
        state_(std::move(state)),
        router_(std::move(router)),
        gate_(options.roles),
        files_(std::move(files)) {}
  // Without memory for a stop, or with a thread that cannot be joined, nothing can go on.
  ~Server() override { Stop(); }  // NOLINT(bugprone-exception-escape)
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Status Open(const std::vector<ListenAddress>& addresses);
  std::vector<uint16_t> ports() const override;
  metrics::HttpStatus Counts() const override;
  metrics::ReloadStatus WebReading() const override {
    return files_ == nullptr ? metrics::ReloadStatus() : files_->Reading();
  }
  std::string trouble() const override { return trouble_; }
  void SetRoles(std::vector<RoleRow> roles) override {
    asio::post(io_, [this, roles = std::move(roles)] { gate_.SetRoles(roles); });
  }

  // For connections, on the I/O thread.
  void Answer(const std::shared_ptr<Connection>& connection, Request request) override;
  bool TakePlace() override;
  void GivePlace() override { --in_flight_; }
  void Count(const Response& response, bool head_only) override;
  void CountFailedHandshake() override { ++handshakes_failed_; }
  void MoveToEnd(Connection& connection) override {
    connections_.splice(connections_.end(), connections_, connection.place);
  }
  void Remove(Connection& connection) override;

 private:
  using Work = std::function<void()>;

  Status Listen(const ListenAddress& address, bool only_ipv6);
  void Accept(Door& door);
  void Welcome(tcp::socket socket, bool guarded);
  bool EvictWaiting(std::optional<uint64_t> network);
  // Runs `work` when the files of web-config have been looked at.
  void WhenFresh(Work work);
  void RunWaiting();
  void Examine(const std::shared_ptr<Connection>& connection, Request request);
  void CheckPassword(const std::shared_ptr<Connection>& connection, Request request,
                     Credentials credentials);
  void Respond(const std::shared_ptr<Connection>& connection, Request request);
  void Send(const std::shared_ptr<Connection>& connection, Response response);
  void Sweep();
  void StartThread(const char* name, asio::io_context& context, int nice);
  void Stop();

  const int max_requests_;
  const bool plain_loopback_;
  StateFunction state_;
  Router router_;
  Gate gate_;
  std::unique_ptr<WebFiles> files_;  // null: no web-config
  Clock::time_point files_seen_{};
  bool files_looked_at_ = false;  // right now
  std::vector<Work> waiting_;     // for that
  size_t passwords_waiting_ = 0;
  asio::io_context io_{1}, scrapes_{1}, passwords_{1}, general_;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::list<Door> doors_;
  asio::steady_timer sweeper_{io_}, pause_{io_}, files_patience_{io_};
  bool sweeping_ = false;
  // Those that wait for a client, the longest waiting first; others in between.
  std::list<std::shared_ptr<Connection>> connections_;
  std::map<uint64_t, size_t> by_network_;
  int in_flight_ = 0;
  std::array<std::atomic<int64_t>, metrics::kStatusClasses.size()> responses_{};
  std::array<std::atomic<int64_t>, metrics::kFormatNames.size()> scrapes_counted_{};
  std::atomic<int64_t> evicted_ = 0, handshakes_failed_ = 0, unauthenticated_ = 0;
  std::string trouble_;
  std::vector<std::thread> threads_;
};

Status Server::Listen(const ListenAddress& address, bool only_ipv6) {
  error_code error;
  const tcp::endpoint endpoint(asio::ip::make_address(address.host, error), address.port);
  tcp::acceptor acceptor(io_);
  if (!error) acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && address.ipv6) acceptor.set_option(asio::ip::v6_only(only_ipv6), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(kBacklog, error);
  if (error)
    return Error{"cannot listen on " + address.text + ": " + Remedy(error.value(), address)};
  const bool guarded = files_ != nullptr && !(plain_loopback_ && address.loopback);
  doors_.push_back({std::move(acceptor), guarded});
  return {};
}

Status Server::Open(const std::vector<ListenAddress>& addresses) {
  for (const ListenAddress& address : addresses) {
    // [::] takes IPv4, too, unless somebody else here does.
    const bool only_ipv6 = std::any_of(addresses.begin(), addresses.end(), [&](const auto& other) {
      return !other.ipv6 && other.port == address.port && other.port != 0;
    });
    if (Status status = Listen(address, only_ipv6); !status) return status;
  }
  // The first look for the time zone opens a file, which restricted threads cannot.
  tzset();
  for (asio::io_context* context : {&io_, &scrapes_, &passwords_, &general_}) {
    work_.emplace_back(context->get_executor());
  }
  for (Door& door : doors_) Accept(door);
  StartThread("http", io_, 0);
  StartThread("http-scrape", scrapes_, 0);
  if (files_ != nullptr) StartThread("http-password", passwords_, kPasswordNice);
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
  asio::post(io_, [this] { doors_.clear(); });
  // A request that is being answered is answered; those behind it are not.
  scrapes_.stop();
  passwords_.stop();
  general_.stop();
  for (size_t i = 1; i < threads_.size(); ++i) threads_[i].join();
  asio::post(io_, [this] { io_.stop(); });
  if (!threads_.empty()) threads_.front().join();
  files_.reset();  // its thread posts to io_
  connections_.clear();
}

std::vector<uint16_t> Server::ports() const {
  std::vector<uint16_t> ports;
  for (const Door& door : doors_) {
    error_code error;
    ports.push_back(door.acceptor.local_endpoint(error).port());
  }
  return ports;
}

void Server::Accept(Door& door) {
  door.acceptor.async_accept([this, &door](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (doors_.empty()) return;
    if (!error) {
      Welcome(std::move(socket), door.guarded);
      return Accept(door);
    }
    EvictWaiting(std::nullopt);  // no descriptor or memory is left
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this, &door](error_code stopped) {
      if (!stopped && !doors_.empty()) Accept(door);
    });
  });
}

void Server::Welcome(tcp::socket socket, bool guarded) {
  error_code error;
  const asio::ip::address local = Plain(socket.local_endpoint(error).address());
  if (error) return;
  const asio::ip::address peer = Plain(socket.remote_endpoint(error).address());
  if (error) return;  // gone again
  const bool inside = local.is_loopback() && peer.is_loopback();
  // All users of the machine come from loopback, under any of its addresses: they share what there
  // is. Nobody else takes more than a quarter.
  const uint64_t network = inside ? kLoopback << 24 : NetworkOf(peer);
  const bool room_for_it = inside || by_network_[network] < kMaxPerAddress || EvictWaiting(network);
  const bool room = connections_.size() < kMaxConnections || EvictWaiting(std::nullopt);
  if (!room_for_it || !room) {
    socket.set_option(asio::socket_base::linger(true, 0), error);
    if (by_network_[network] == 0) by_network_.erase(network);
    return;
  }
  socket.set_option(tcp::no_delay(true), error);
  socket.set_option(asio::socket_base::send_buffer_size(kSendBuffer), error);
  const auto connection = std::make_shared<Connection>(
      *this, std::move(socket), ClientFacts{network, !inside, false, {}}, guarded);
  connections_.push_back(connection);
  connection->place = std::prev(connections_.end());
  ++by_network_[network];
  if (!std::exchange(sweeping_, true)) Sweep();
  if (!guarded) return connection->Begin(nullptr);
  WhenFresh([this, connection] { connection->Begin(files_->Current()->tls); });
}

void Server::WhenFresh(Work work) {
  const bool fresh = Clock::now() - files_seen_ < kFilesFresh;
  const bool hangs = files_looked_at_ && waiting_.empty();
  if (fresh || hangs) return work();
  waiting_.push_back(std::move(work));
  if (std::exchange(files_looked_at_, true)) return;
  files_->Look([this] {
    asio::post(io_, [this] {
      files_looked_at_ = false;
      files_seen_ = Clock::now();
      files_patience_.cancel();
      RunWaiting();
    });
  });
  files_patience_.expires_after(kFilesPatience);
  files_patience_.async_wait([this](error_code stopped) {
    if (!stopped) RunWaiting();
  });
}

void Server::RunWaiting() {
  for (const Work& work : std::exchange(waiting_, {})) work();
}

void Server::Remove(Connection& connection) {
  const auto count = by_network_.find(connection.client().network);
  if (count != by_network_.end() && --count->second == 0) by_network_.erase(count);
  connections_.erase(connection.place);
}

bool Server::EvictWaiting(std::optional<uint64_t> network) {
  for (const auto& connection : connections_) {
    if (!connection->waits() || (network && connection->client().network != *network)) continue;
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
  if (!connection->guarded()) return Examine(connection, std::move(request));
  WhenFresh([this, connection, request = std::move(request)] { Examine(connection, request); });
}

// Who it is, and then what it wants.
void Server::Examine(const std::shared_ptr<Connection>& connection, Request request) {
  const std::shared_ptr<const Web> web = connection->guarded() ? files_->Current() : nullptr;
  Passage passage = gate_.Ask(web == nullptr ? nullptr : &web->config, request,
                              connection->client(), Clock::now());
  switch (passage.what) {
    case Passage::What::kTooMany:
      return Send(connection, TooMany());
    case Passage::What::kCheckPassword:
      return CheckPassword(connection, std::move(request), std::move(passage.credentials));
    case Passage::What::kEnter:
      request.role = passage.role;
      return Respond(connection, std::move(request));
  }
}

void Server::CheckPassword(const std::shared_ptr<Connection>& connection, Request request,
                           Credentials credentials) {
  if (passwords_waiting_ >= kMostPasswords) return Send(connection, TooMany());
  ++passwords_waiting_;
  asio::post(passwords_, [this, connection, request = std::move(request),
                          credentials = std::move(credentials)]() mutable {
    const bool matches = Gate::Matches(credentials);
    asio::post(io_, [this, connection, request = std::move(request),
                     credentials = std::move(credentials), matches]() mutable {
      --passwords_waiting_;
      request.role = gate_.Settle(credentials, matches, connection->client());
      unauthenticated_ = gate_.wrong();
      Respond(connection, std::move(request));
    });
  });
}

void Server::Respond(const std::shared_ptr<Connection>& connection, Request request) {
  const Lane lane = LaneOf(request);
  // What is refused is refused here: nobody else's turn is taken for it.
  if (lane == Lane::kProbe || request.role == Role::kNone)
    return Send(connection, router_.Handle(request, *state_()));
  if (lane == Lane::kGeneral && !connection->TakePlace()) {
    Response response = Refusal(503, "more than " + std::to_string(max_requests_) +
                                         " requests at once; try again, or raise web.max_requests");
    response.headers.push_back({"Retry-After", "1"});
    return Send(connection, std::move(response));
  }
  asio::post(lane == Lane::kScrape ? scrapes_ : general_,
             [this, connection, request = std::move(request)] {
               Response response = router_.Handle(request, *state_());
               asio::post(io_, [this, connection, response = std::move(response)]() mutable {
                 Send(connection, std::move(response));
               });
             });
}

// With the headers that web-config says.
void Server::Send(const std::shared_ptr<Connection>& connection, Response response) {
  if (connection->guarded()) SetHeaders(files_->Current()->config.headers, response);
  connection->Write(std::move(response));
}

metrics::HttpStatus Server::Counts() const {
  metrics::HttpStatus status;
  std::copy(responses_.begin(), responses_.end(), status.responses.begin());
  std::copy(scrapes_counted_.begin(), scrapes_counted_.end(), status.scrapes.begin());
  status.evicted = evicted_;
  status.handshakes_failed = handshakes_failed_;
  status.unauthenticated = unauthenticated_;
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
  std::unique_ptr<WebFiles> files;
  if (!options.web_config.empty()) {
    auto opened = WebFiles::Open(options.web_config, options.on_web_config);
    if (!opened) return Error{opened.error()};
    files = *std::move(opened);
  }
  auto server =
      std::make_unique<Server>(options, std::move(files), std::move(state), std::move(router));
  if (const Status open = server->Open(addresses); !open) return Error{open.error()};
  return std::unique_ptr<Listener>(std::move(server));
}

}  // namespace rankscope::http
