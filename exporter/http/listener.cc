// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/listener.h"

#include <arpa/inet.h>
#include <civetweb.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

namespace rankscope::http {
namespace {

struct Setting {
  const char* name;
  const char* value;
};

constexpr Setting kSettings[] = {
    {"request_timeout_ms", "5000"},  // the whole head, and each write of an answer
    {"max_request_size", "8192"},    // line and headers
    {"enable_keep_alive", "yes"},
    {"keep_alive_timeout_ms", "15000"},  // a scrape interval
    {"tcp_nodelay", "1"},
    {"connection_queue", "64"},
    {"listen_backlog", "256"},
    {"decode_url", "no"},                 // the router decodes, strictly
    {"enable_auth_domain_check", "no"},   // absolute-form targets are ours whatever host they name
    {"access_control_allow_origin", ""},  // the library's default is *
    {"access_control_allow_methods", ""},
    {"access_control_allow_headers", ""},
    // Never reached, for no document root is set and every request is taken before: off all the
    // same.
    {"enable_directory_listing", "no"},
    {"cgi_pattern", ""},
    {"ssi_pattern", ""},
    {"index_files", ""},
    {"allow_sendfile_call", "no"},
};

struct Address {
  std::string text;
  sockaddr_in socket{};
};

Result<Address> ParseAddress(const std::string& text) {
  const Error bad{"cannot listen on '" + text +
                  "': not an IPv4 address and a port; write it like 127.0.0.1:10177"};
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return bad;
  Address address{text};
  address.socket.sin_family = AF_INET;
  const std::string host = text.substr(0, colon);
  if (inet_pton(AF_INET, host.c_str(), &address.socket.sin_addr) != 1) return bad;
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  if (parsed.ec != std::errc() || parsed.ptr != end) return bad;
  address.socket.sin_port = htons(port);
  return address;
}

std::string Remedy(int error, const Address& address) {
  switch (error) {
    case EADDRINUSE:
      return "port in use; stop what listens there (`ss -ltnp 'sport = :" +
             std::to_string(ntohs(address.socket.sin_port)) +
             "'` names it) or choose another port in web.listen";
    case EACCES:
      return "not permitted; choose a port from 1024 on in web.listen, or give "
             "CAP_NET_BIND_SERVICE";
    case EADDRNOTAVAIL:
      return "no interface of this machine has this address; correct web.listen";
    default:
      return std::string(std::strerror(error)) + "; correct web.listen";
  }
}

// Binds and lets go again: the library tells only that something failed, not why.
Status TryBind(const Address& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Error{"cannot make a socket: " + std::string(std::strerror(errno))};
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool bound =
      bind(fd, reinterpret_cast<const sockaddr*>(&address.socket), sizeof(address.socket)) == 0 &&
      listen(fd, 1) == 0;
  const int error = errno;
  close(fd);
  if (bound) return {};
  return Error{"cannot listen on " + address.text + ": " + Remedy(error, address)};
}

// Whether the library will keep the connection: its own rule (an explicit wish, else the version's
// default), which the Connection header of the answer must agree with.
bool KeepsAlive(const mg_request_info& info, std::string_view connection) {
  if (!connection.empty())
    return connection.find("keep-alive") != std::string_view::npos ||
           connection.find("Keep-Alive") != std::string_view::npos;
  return info.http_version != nullptr && std::string_view(info.http_version) == "1.1";
}

// A client may take this long for a whole answer; who takes it in drops keeps a thread no longer.
constexpr std::chrono::seconds kSlowestAnswer(10);
// Between two looks at the clock. The library waits 5 s for each of the segments in it.
constexpr size_t kPieceBytes = 16384;

// False when the client is gone or too slow.
bool Write(mg_connection* connection, std::string_view bytes) {
  const auto end = std::chrono::steady_clock::now() + kSlowestAnswer;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPieceBytes);
    if (mg_write(connection, piece.data(), piece.size()) != static_cast<int>(piece.size())) {
      return false;
    }
    bytes.remove_prefix(piece.size());
    if (!bytes.empty() && std::chrono::steady_clock::now() > end) return false;
  }
  return true;
}

// Head and body in one write, so in one packet where it fits; a shared page is not copied.
bool Send(mg_connection* connection, const Response& response, bool head_only, bool keep_alive) {
  std::string out;
  out.reserve(512 + (head_only ? 0 : response.body.size()));
  out.append("HTTP/1.1 ").append(std::to_string(response.status)).push_back(' ');
  out.append(ReasonPhrase(response.status)).append("\r\n");
  for (const Header& header : response.headers) {
    out.append(header.name).append(": ").append(header.value).append("\r\n");
  }
  if (response.status != 304) {
    out.append("Content-Length: ").append(std::to_string(response.ContentSize()));
    out.append("\r\n");
  }
  out.append(keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n");
  if (head_only) return Write(connection, out);
  out.append(response.body);
  return Write(connection, out) &&
         std::all_of(response.pages.begin(), response.pages.end(),
                     [&](const Page& page) { return Write(connection, *page); });
}

// Half a second less than Prometheus will wait, so that an answer still reaches it.
Duration Deadline(const Request& request) {
  const std::string_view text = request.HeaderValue("X-Prometheus-Scrape-Timeout-Seconds");
  double seconds = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const Duration longest = Request{}.deadline;
  if (parsed.ec != std::errc() || !(seconds > 0)) return longest;
  return std::clamp(Seconds(std::min(seconds, 60.0) - 0.5), Milliseconds(100), longest);
}

Request ToRequest(const mg_request_info& info) {
  const auto text = [](const char* s) { return std::string(s == nullptr ? "" : s); };
  Request request;
  request.method = text(info.request_method);
  request.path = text(info.request_uri);
  request.query = text(info.query_string);
  for (int i = 0; i < info.num_headers; ++i) {
    request.headers.push_back({text(info.http_headers[i].name), text(info.http_headers[i].value)});
  }
  request.deadline = Deadline(request);
  return request;
}

// Why two readers of these bytes could disagree about where the request ends or whom it is for (RFC
// 9112, 3.2 and 6.3); empty when they cannot.
std::string_view Ambiguity(const Request& request, std::string_view version) {
  size_t hosts = 0;
  size_t lengths = 0;
  for (const Header& header : request.headers) {
    const auto is = [&](const char* name) { return strcasecmp(header.name.c_str(), name) == 0; };
    if (header.name.empty() || header.name.find_first_of(" \t") != std::string::npos) {
      return "a header's name has a blank in it";
    }
    if (is("Host")) ++hosts;
    if (!is("Content-Length")) continue;
    ++lengths;
    if (header.value.empty() || header.value.find_first_not_of("0123456789") != std::string::npos) {
      return "Content-Length is not a number";
    }
  }
  if (hosts > 1) return "more than one Host";
  if (hosts == 0 && version == "1.1") return "no Host";
  if (lengths > 1) return "more than one Content-Length";
  if (lengths > 0 && !request.HeaderValue("Transfer-Encoding").empty()) {
    return "Content-Length and Transfer-Encoding at once";
  }
  return {};
}

class CivetwebListener final : public Listener {
 public:
  CivetwebListener(StateFunction state, Router router, int max_requests)
      : state_(std::move(state)), router_(std::move(router)), max_requests_(max_requests) {
    mg_init_library(MG_FEATURES_DEFAULT);
  }
  ~CivetwebListener() override {
    if (context_ != nullptr) Stop();
    mg_exit_library();
  }
  CivetwebListener(const CivetwebListener&) = delete;
  CivetwebListener& operator=(const CivetwebListener&) = delete;

  Status Open(const std::vector<Address>& addresses);

  std::vector<uint16_t> ports() const override { return ports_; }
  metrics::HttpStatus Counts() const override;

 private:
  // Every request comes here first, whatever its path: nothing of the library's own is ever
  // reached.
  static int OnRequest(mg_connection* connection);
  // What the library refuses before a request exists: malformed, too large, too slow.
  static int OnError(mg_connection* connection, int status, const char* message);

  Response Handle(const Request& request);
  void Count(const Response& response, bool head_only);
  void Stop();

  StateFunction state_;
  Router router_;
  int max_requests_;
  std::atomic<int> in_flight_ = 0;
  std::array<std::atomic<int64_t>, metrics::kStatusClasses.size()> responses_{};
  std::array<std::atomic<int64_t>, metrics::kFormatNames.size()> scrapes_{};
  std::vector<uint16_t> ports_;
  sockaddr_in wake_{};  // where the first socket listens
  mg_context* context_ = nullptr;
};

Status CivetwebListener::Open(const std::vector<Address>& addresses) {
  std::string listen;
  for (const Address& address : addresses) {
    if (!listen.empty()) listen.push_back(',');
    listen.append(address.text);
  }
  const std::string threads = std::to_string(max_requests_ + kStalledConnections);
  std::vector<const char*> settings = {"listening_ports", listen.c_str(), "num_threads",
                                       threads.c_str()};
  for (const Setting& setting : kSettings) {
    settings.insert(settings.end(), {setting.name, setting.value});
  }
  settings.push_back(nullptr);
  mg_callbacks callbacks{};
  callbacks.begin_request = OnRequest;
  callbacks.http_error = OnError;
  // The library would write its log to a file or stderr; what matters is told by our own answers
  // and counters.
  callbacks.log_message = [](const mg_connection*, const char*) { return 1; };
  std::array<char, 256> message{};
  unsigned code = 0;
  mg_error_data error{&code, message.data(), message.size()};
  mg_init_data init{&callbacks, this, settings.data()};
  context_ = mg_start2(&init, &error);
  if (context_ == nullptr) {
    return Error{"cannot listen on " + listen + ": " + message.data() + "; correct web.listen"};
  }
  std::vector<mg_server_port> bound(addresses.size());
  const int count = mg_get_server_ports(context_, static_cast<int>(bound.size()), bound.data());
  for (int i = 0; i < count; ++i) ports_.push_back(static_cast<uint16_t>(bound[i].port));
  wake_ = addresses.front().socket;
  wake_.sin_port = htons(ports_.front());
  return {};
}

// The library looks at its stop flag when a connection comes or every 2 s; so one comes.
void CivetwebListener::Stop() {
  std::atomic<bool> stopped = false;
  std::thread stopping([&] {
    mg_stop(context_);
    stopped = true;
  });
  while (!stopped) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    connect(fd, reinterpret_cast<const sockaddr*>(&wake_), sizeof(wake_));
    close(fd);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  stopping.join();
}

Response CivetwebListener::Handle(const Request& request) {
  struct InFlight {
    std::atomic<int>& count;
    int before = count.fetch_add(1);
    ~InFlight() { count.fetch_sub(1); }
  } in_flight{in_flight_};
  // A probe that is refused has the daemon restarted for being busy.
  const bool probe = request.path.starts_with("/-/");
  if (in_flight.before >= max_requests_ && !probe) {
    Response response = Refusal(503, "more than " + std::to_string(max_requests_) +
                                         " requests at once; ask again, or raise web.max_requests");
    response.headers.push_back({"Retry-After", "1"});
    return response;
  }
  return router_.Handle(request, *state_());
}

metrics::HttpStatus CivetwebListener::Counts() const {
  metrics::HttpStatus status;
  std::copy(responses_.begin(), responses_.end(), status.responses.begin());
  std::copy(scrapes_.begin(), scrapes_.end(), status.scrapes.begin());
  return status;
}

void CivetwebListener::Count(const Response& response, bool head_only) {
  const int place = std::clamp(response.status / 100 - 2, 0, 3);
  ++responses_[static_cast<size_t>(place)];
  if (response.scrape && !head_only) ++scrapes_[static_cast<size_t>(*response.scrape)];
}

int CivetwebListener::OnRequest(mg_connection* connection) {
  const mg_request_info& info = *mg_get_request_info(connection);
  auto& self = *static_cast<CivetwebListener*>(info.user_data);
  const Request request = ToRequest(info);
  const std::string_view ambiguity =
      Ambiguity(request, info.http_version == nullptr ? "" : info.http_version);
  const bool clear = ambiguity.empty();
  const Response response = clear ? self.Handle(request) : Refusal(400, ambiguity);
  // A body is never read, so what follows it on the connection cannot be understood.
  const bool has_body =
      info.content_length > 0 || !request.HeaderValue("Transfer-Encoding").empty();
  const bool keep_alive = clear && !has_body && KeepsAlive(info, request.HeaderValue("Connection"));
  if (!keep_alive) mg_disable_keep_alive(connection);
  const bool head_only = request.method == "HEAD";
  self.Count(response, head_only);
  if (!Send(connection, response, head_only, keep_alive)) mg_disable_keep_alive(connection);
  return response.status;
}

int CivetwebListener::OnError(mg_connection* connection, int status, const char* message) {
  auto& self = *static_cast<CivetwebListener*>(mg_get_user_data(mg_get_context(connection)));
  mg_disable_keep_alive(connection);
  const Response response = Refusal(status, message == nullptr ? "" : message);
  const mg_request_info* info = mg_get_request_info(connection);  // null: nothing was understood
  const bool head_only = info != nullptr && info->request_method != nullptr &&
                         std::string_view(info->request_method) == "HEAD";
  self.Count(response, head_only);
  Send(connection, response, head_only, false);
  return 0;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Start(ListenerOptions options, StateFunction state,
                                                  Router router) {
  if (options.addresses.empty()) return Error{"web.listen names no address; write 127.0.0.1:10177"};
  std::vector<Address> addresses;
  for (const std::string& text : options.addresses) {
    Result<Address> address = ParseAddress(text);
    if (!address) return Error{address.error()};
    if (const Status free = TryBind(*address); !free) return Error{free.error()};
    addresses.push_back(*std::move(address));
  }
  auto listener = std::make_unique<CivetwebListener>(std::move(state), std::move(router),
                                                     std::max(options.max_requests, 1));
  if (const Status open = listener->Open(addresses); !open) return Error{open.error()};
  return std::unique_ptr<Listener>(std::move(listener));
}

}  // namespace rankscope::http
