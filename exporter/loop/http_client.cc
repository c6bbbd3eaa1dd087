// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/http_client.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "exporter/loop/curl_library.h"

namespace rankscope::exporter {
namespace {

struct Receiver {
  HttpAnswer* answer;
  size_t left;
  bool too_long = false;

  bool Takes(size_t bytes) {
    too_long = too_long || bytes > left;
    left -= too_long ? 0 : bytes;
    return !too_long;
  }
};

size_t OnBody(char* data, size_t size, size_t count, void* context) {
  auto& receiver = *static_cast<Receiver*>(context);
  if (!receiver.Takes(size * count)) return 0;
  receiver.answer->body.append(data, size * count);
  return size * count;
}

// A line of the head, with its end.
size_t OnHead(char* data, size_t size, size_t count, void* context) {
  constexpr std::string_view kLink = "link:";
  auto& receiver = *static_cast<Receiver*>(context);
  if (!receiver.Takes(size * count)) return 0;
  std::string_view line(data, size * count);
  if (line.size() < kLink.size() || strncasecmp(line.data(), kLink.data(), kLink.size()) != 0)
    return size * count;
  line.remove_prefix(kLink.size());
  const size_t first = line.find_first_not_of(" \t\r\n");
  const size_t last = line.find_last_not_of(" \t\r\n");
  if (first != std::string_view::npos) receiver.answer->link = line.substr(first, last - first + 1);
  return size * count;
}

// One request of one thread.
class Transfer {
 public:
  explicit Transfer(const CurlLibrary& library)
      : library_(library), handle_(library.easy_init(), library.easy_cleanup) {}
  ~Transfer() { library_.slist_free_all(headers_); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  HttpAnswer Run(const HttpRequest& request, const HttpBody* body) {
    HttpAnswer answer;
    Receiver receiver{&answer, request.max_bytes};
    answer.body.reserve(std::min(request.expected_bytes, request.max_bytes));
    if (handle_ != nullptr) {
      SetLimits(request);
      SetIdentity(request, body);
      if (body != nullptr) SetBody(*body);
      Set(CURLOPT_WRITEFUNCTION, &OnBody);
      Set(CURLOPT_WRITEDATA, static_cast<void*>(&receiver));
      Set(CURLOPT_HEADERFUNCTION, &OnHead);
      Set(CURLOPT_HEADERDATA, static_cast<void*>(&receiver));
    }
    if (handle_ == nullptr || refused_ != CURLE_OK) {
      answer.end = HttpAnswer::End::kNotLoaded;
      answer.error =
          std::string("cannot be asked: ") + kCurlLibrary + ": " + library_.easy_strerror(refused_);
      return answer;
    }
    const CURLcode code = library_.easy_perform(handle_.get());
    long status = 0;
    library_.easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    answer.status = static_cast<int>(status);
    Judge(code, receiver.too_long, request, answer);
    return answer;
  }

 private:
  template <class Value>
  void Set(CURLoption option, Value value) {
    const CURLcode code = library_.easy_setopt(handle_.get(), option, value);
    if (refused_ == CURLE_OK) refused_ = code;
  }
  void SetText(CURLoption option, const std::string& text) {
    if (!text.empty()) Set(option, text.c_str());
  }
  void AddHeader(const std::string& line) {
    curl_slist* const longer = library_.slist_append(headers_, line.c_str());
    if (longer == nullptr) {
      refused_ = CURLE_OUT_OF_MEMORY;
    } else {
      headers_ = longer;
    }
  }

  void SetLimits(const HttpRequest& request) {
    Set(CURLOPT_ERRORBUFFER, said_.data());
    Set(CURLOPT_URL, request.url.c_str());
    Set(CURLOPT_PROTOCOLS_STR, "http,https");
    Set(CURLOPT_PATH_AS_IS, 1L);
    Set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    Set(CURLOPT_FOLLOWLOCATION, 0L);
    Set(CURLOPT_NOSIGNAL, 1L);
    // 0 would be curl's own default, five minutes.
    Set(CURLOPT_CONNECTTIMEOUT_MS, InMilliseconds(request.connect_timeout));
    Set(CURLOPT_TIMEOUT_MS, InMilliseconds(request.timeout));
    // Without it the end of a request waits for a name server that does not answer, however late
    // (lib/asyn-thread.c, Curl_resolver_kill; the option is of 7.87).
    Set(CURLOPT_QUICK_EXIT, 1L);
    Set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    Set(CURLOPT_FRESH_CONNECT, 1L);
    Set(CURLOPT_FORBID_REUSE, 1L);
  }

  void SetBody(const HttpBody& body) {
    Set(CURLOPT_POST, 1L);
    Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.text.size()));
    Set(CURLOPT_POSTFIELDS, body.text.data());  // not copied: the caller's, until the answer
  }

  void SetIdentity(const HttpRequest& request, const HttpBody* body) {
    const HttpOptions& options = request.options;
    AddHeader("Accept: " + request.accept);
    if (body != nullptr) {
      AddHeader("Content-Type: " + body->content_type);
      AddHeader("Expect:");  // a body is small: no server is asked first whether it wants it
    }
    for (const std::string& line : options.headers) AddHeader(line);
    Set(CURLOPT_HTTPHEADER, headers_);
    Set(CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));  // none of these to a proxy
    Set(CURLOPT_PROXY, options.proxy.c_str());  // empty: not that of the environment either
    if (!options.proxy.empty()) Set(CURLOPT_NOPROXY, "");
    SetText(CURLOPT_UNIX_SOCKET_PATH, options.unix_socket);
    if (!options.user.empty()) Set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    SetText(CURLOPT_USERPWD, options.user);
    if (!options.bearer.empty()) Set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
    SetText(CURLOPT_XOAUTH2_BEARER, options.bearer);
    Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    Set(CURLOPT_SSL_VERIFYPEER, options.insecure ? 0L : 1L);
    Set(CURLOPT_SSL_VERIFYHOST, options.insecure ? 0L : 2L);
    SetText(CURLOPT_CAINFO, options.ca_file);
    SetText(CURLOPT_CAPATH, options.ca_folder);
    SetText(CURLOPT_SSLCERT, options.certificate);
    SetText(CURLOPT_SSLKEY, options.key);
    SetText(CURLOPT_KEYPASSWD, options.key_password);
  }

  static long InMilliseconds(Duration duration) {
    return static_cast<long>(std::max<int64_t>(1, duration.ns / 1'000'000));
  }

  void Judge(CURLcode code, bool too_long, const HttpRequest& request, HttpAnswer& answer) const {
    using End = HttpAnswer::End;
    const auto is = [&answer](End end, std::string error) {
      answer.end = end;
      answer.error = std::move(error);
      if (end != End::kAnswered) answer.body.clear();
    };
    if (too_long)
      return is(End::kTooLong,
                "answers with more than " + std::to_string(request.max_bytes) + " bytes");
    switch (code) {
      case CURLE_OK:
        return is(End::kAnswered, answer.status / 100 == 2 ? std::string()
                                                           : "answers with HTTP status " +
                                                                 std::to_string(answer.status));
      case CURLE_OPERATION_TIMEDOUT:
        return is(End::kLate, "does not answer in time");
      case CURLE_COULDNT_CONNECT: {
        long error = 0;
        library_.easy_getinfo(handle_.get(), CURLINFO_OS_ERRNO, &error);
        return is(error == ECONNREFUSED ? End::kRefused : End::kFailed,
                  "cannot be reached: " +
                      (error != 0 ? std::strerror(static_cast<int>(error)) : Said(code)));
      }
      case CURLE_UNSUPPORTED_PROTOCOL:  // HTTP/0.9
      case CURLE_WEIRD_SERVER_REPLY:
        return is(End::kFailed, "does not speak HTTP");
      case CURLE_PARTIAL_FILE:
      case CURLE_RECV_ERROR:
        return is(End::kFailed, "breaks off in the middle of its answer");
      case CURLE_GOT_NOTHING:
        return is(End::kFailed, "ends the connection without an answer");
      default:
        return is(End::kFailed, "gives no answer: " + Said(code));
    }
  }

  std::string Said(CURLcode code) const {
    return said_[0] != '\0' ? said_.data() : library_.easy_strerror(code);
  }

  const CurlLibrary& library_;
  std::array<char, CURL_ERROR_SIZE> said_{};
  std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)> handle_;
  curl_slist* headers_ = nullptr;
  CURLcode refused_ = CURLE_OK;  // of the first option that libcurl does not take
};

}  // namespace

namespace {

HttpAnswer Ask(const HttpRequest& request, const HttpBody* body) {
  const CurlLibrary& library = TheCurlLibrary();
  if (library.error.empty()) return Transfer(library).Run(request, body);
  HttpAnswer answer;
  answer.end = HttpAnswer::End::kNotLoaded;
  answer.error = library.error;
  return answer;
}

}  // namespace

HttpAnswer HttpGet(const HttpRequest& request) {
  return Ask(request, nullptr);
}

HttpAnswer HttpPost(const HttpRequest& request, const HttpBody& body) {
  return Ask(request, &body);
}

}  // namespace rankscope::exporter
