// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/http_page.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "exporter/loop/owned_fd.h"

namespace rankscope::collectors {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxUrl = 512;

bool Wait(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      errno = ETIMEDOUT;
      return false;
    }
    pollfd entry{fd, events, 0};
    const int n = poll(&entry, 1, static_cast<int>(left));
    if (n > 0) return true;
    if (n == 0) errno = ETIMEDOUT;
    if (n == 0 || errno != EINTR) return false;
  }
}

bool Connect(int fd, const addrinfo& to, Clock::time_point deadline) {
  if (connect(fd, to.ai_addr, to.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS || !Wait(fd, POLLOUT, deadline)) return false;
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return false;
  errno = error;
  return error == 0;
}

bool Send(int fd, std::string_view text, Clock::time_point deadline) {
  while (!text.empty()) {
    const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n > 0) {
      text.remove_prefix(static_cast<size_t>(n));
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
      return false;
    } else if (!Wait(fd, POLLOUT, deadline)) {
      return false;
    }
  }
  return true;
}

// Until the other side ends it. False with errno; EMSGSIZE: there is more than `most`.
bool Receive(int fd, size_t most, Clock::time_point deadline, std::string& bytes) {
  char piece[65536];
  for (;;) {
    if (!Wait(fd, POLLIN, deadline)) return false;
    const ssize_t n = recv(fd, piece, sizeof piece, 0);
    if (n == 0) return true;
    if (n < 0) {
      if (errno == EAGAIN || errno == EINTR) continue;
      return false;
    }
    if (bytes.size() + static_cast<size_t>(n) > most) {
      errno = EMSGSIZE;
      return false;
    }
    bytes.append(piece, static_cast<size_t>(n));
  }
}

HttpPage Failed(std::string why) {
  HttpPage page;
  page.error = std::move(why);
  return page;
}

HttpPage FailedAs(const char* what, int error) {
  if (error == ETIMEDOUT) return Failed("does not answer in time");
  if (error == EMSGSIZE) return Failed("answers with a page that is too large");
  HttpPage page = Failed(std::string(what) + ": " + std::strerror(error));
  page.refused = error == ECONNREFUSED;
  return page;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// Of the head's line `name: value`; empty if it has none. `name` in lower case.
std::string Header(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find('\n'));
    head.remove_prefix(std::min(head.size(), line.size() + 1));
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && Lower(line.substr(0, colon)) == name)
      return Lower(Trimmed(line.substr(colon + 1)));
  }
  return {};
}

}  // namespace

Result<HttpUrl> ParseHttpUrl(std::string_view text) {
  const std::string quoted = "'" + std::string(text.substr(0, kMaxUrl)) + "'";
  constexpr std::string_view kScheme = "http://";
  if (!text.starts_with(kScheme))
    return Error{quoted + " is not a URL; write http://HOST:PORT/PATH"};
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
  if (!plain || text.size() > kMaxUrl)
    return Error{quoted + " has a blank, a sign that is not ASCII, or more than 512 of them"};
  text.remove_prefix(kScheme.size());
  HttpUrl url;
  const size_t slash = text.find('/');
  if (slash != std::string_view::npos) url.path = text.substr(slash);
  std::string_view place = text.substr(0, slash);
  if (place.find('@') != std::string_view::npos ||
      place.find_first_of("?#") != std::string_view::npos)
    return Error{quoted + " has more before its path than HOST:PORT"};
  const size_t bracket = place.rfind(']');
  const size_t colon = place.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    url.port = place.substr(colon + 1);
    place = place.substr(0, colon);
    uint32_t port = 0;
    const auto [end, error] =
        std::from_chars(url.port.data(), url.port.data() + url.port.size(), port);
    if (error != std::errc() || end != url.port.data() + url.port.size() || port == 0 ||
        port > 65535)
      return Error{quoted + " has no port from 1 to 65535"};
  }
  if (place.starts_with('[') && place.ends_with(']')) place = place.substr(1, place.size() - 2);
  if (place.empty() || place.find_first_of("[]") != std::string_view::npos)
    return Error{quoted + " names no host"};
  url.host = place;
  return url;
}

HttpPage ReadAnswer(std::string_view bytes) {
  size_t end = bytes.find("\r\n\r\n");
  if (!bytes.starts_with("HTTP/1.") || end == std::string_view::npos)
    return Failed("does not speak HTTP");
  const std::string_view head = bytes.substr(0, end);
  const std::string_view body = bytes.substr(end + 4);
  const size_t space = head.find(' ');
  int status = 0;
  if (space == std::string_view::npos ||
      std::from_chars(head.data() + space + 1, head.data() + head.size(), status).ec != std::errc())
    return Failed("does not speak HTTP");
  if (status != 200) return Failed("answers with HTTP status " + std::to_string(status));
  // Neither is asked for: a server that does it all the same is none for HTTP/1.0.
  if (!Header(head, "transfer-encoding").empty() || !Header(head, "content-encoding").empty())
    return Failed("answers in an encoding that was not asked for");
  if (const std::string length = Header(head, "content-length"); !length.empty()) {
    size_t expected = 0;
    const auto [last, error] =
        std::from_chars(length.data(), length.data() + length.size(), expected);
    if (error != std::errc() || last != length.data() + length.size() || expected > body.size())
      return Failed("breaks off in the middle of its answer");
  }
  HttpPage page;
  page.body = body;
  page.type = Header(head, "content-type");
  return page;
}

HttpPage FetchPage(const HttpUrl& url, std::chrono::milliseconds patience, size_t most) {
  const auto deadline = Clock::now() + patience;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int failure = getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &list);
      failure != 0)
    return Failed("the name " + url.host + " does not resolve: " + gai_strerror(failure));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(list, &freeaddrinfo);
  // localhost has two addresses, and a server may listen at one of them.
  OwnedFd fd;
  int error = 0;
  for (const addrinfo* to = found.get(); to != nullptr; to = to->ai_next) {
    fd = OwnedFd(
        socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, to->ai_protocol));
    if (fd.get() >= 0 && Connect(fd.get(), *to, deadline)) {
      error = 0;
      break;
    }
    error = errno;
  }
  if (error != 0) return FailedAs("connect", error);
  const std::string request = "GET " + url.path + " HTTP/1.0\r\nHost: " + url.host + ":" +
                              url.port + "\r\nAccept: text/plain;version=0.0.4\r\n\r\n";
  std::string bytes;
  if (!Send(fd.get(), request, deadline)) return FailedAs("send", errno);
  if (!Receive(fd.get(), most, deadline, bytes)) return FailedAs("receive", errno);
  return ReadAnswer(bytes);
}

}  // namespace rankscope::collectors
