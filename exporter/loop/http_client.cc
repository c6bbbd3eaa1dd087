// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/http_client.h"

#include <strings.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
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

void TakeHeader(std::string_view line, std::string_view name, std::string& value) {
  if (line.size() < name.size() || strncasecmp(line.data(), name.data(), name.size()) != 0) return;
  line.remove_prefix(name.size());
  const size_t first = line.find_first_not_of(" \t\r\n");
  const size_t last = line.find_last_not_of(" \t\r\n");
  if (first != std::string_view::npos) value = line.substr(first, last - first + 1);
}

// A line of the head or of the trailers, with its end.
size_t OnHead(char* data, size_t size, size_t count, void* context) {
  auto& receiver = *static_cast<Receiver*>(context);
  if (!receiver.Takes(size * count)) return 0;
  const std::string_view line(data, size * count);
  TakeHeader(line, "link:", receiver.answer->link);
  TakeHeader(line, "grpc-status:", receiver.answer->grpc_status);
  return size * count;
}

class Transfer {
 public:
  explicit Transfer(const CurlLibrary& library) : curl_(library) {}

  HttpAnswer Run(const HttpRequest& request, const HttpBody* body) {
    HttpAnswer answer;
    Receiver receiver{&answer, request.max_bytes};
    answer.body.reserve(std::min(request.expected_bytes, request.max_bytes));
    curl_.SetConnection(request.url, "http,https", request.connect_timeout, request.timeout);
    curl_.Set(CURLOPT_PATH_AS_IS, 1L);
    curl_.Set(CURLOPT_HTTP_VERSION,
              static_cast<long>(request.http2 ? CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                                              : CURL_HTTP_VERSION_1_1));
    curl_.Set(CURLOPT_FOLLOWLOCATION, 0L);
    SetIdentity(request, body);
    if (body != nullptr) SetBody(*body);
    curl_.Set(CURLOPT_WRITEFUNCTION, &OnBody);
    curl_.Set(CURLOPT_WRITEDATA, static_cast<void*>(&receiver));
    curl_.Set(CURLOPT_HEADERFUNCTION, &OnHead);
    curl_.Set(CURLOPT_HEADERDATA, static_cast<void*>(&receiver));
    if (const std::string refusal = curl_.Refusal(); !refusal.empty()) {
      answer.end = HttpAnswer::End::kNotLoaded;
      answer.error = std::string("cannot be asked: ") + kCurlLibrary + ": " + refusal;
      return answer;
    }
    const CURLcode code = curl_.Perform();
    answer.status = static_cast<int>(curl_.Number(CURLINFO_RESPONSE_CODE));
    Judge(code, receiver.too_long, request, answer);
    return answer;
  }

 private:
  void SetBody(const HttpBody& body) {
    curl_.Set(CURLOPT_POST, 1L);
    curl_.Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.text.size()));
    curl_.Set(CURLOPT_POSTFIELDS, body.text.data());  // not copied: the caller's, until the answer
  }

  void SetIdentity(const HttpRequest& request, const HttpBody* body) {
    const HttpOptions& options = request.options;
    curl_.Append("Accept: " + request.accept);
    if (body != nullptr) {
      curl_.Append("Content-Type: " + body->content_type);
      curl_.Append("Expect:");  // a body is small: no server is asked first whether it wants it
    }
    for (const std::string& line : options.headers) curl_.Append(line);
    curl_.Set(CURLOPT_HTTPHEADER, curl_.list());
    curl_.Set(CURLOPT_HEADEROPT,
              static_cast<long>(CURLHEADER_SEPARATE));  // none of these to a proxy
    if (!options.proxy.empty()) {
      curl_.SetText(CURLOPT_PROXY, options.proxy);
      curl_.Set(CURLOPT_NOPROXY, "");
    }
    curl_.SetText(CURLOPT_UNIX_SOCKET_PATH, options.unix_socket);
    if (!options.user.empty()) curl_.Set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    curl_.SetText(CURLOPT_USERPWD, options.user);
    if (!options.bearer.empty()) curl_.Set(CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BEARER));
    curl_.SetText(CURLOPT_XOAUTH2_BEARER, options.bearer);
    curl_.Set(CURLOPT_SSL_VERIFYPEER, options.insecure ? 0L : 1L);
    curl_.Set(CURLOPT_SSL_VERIFYHOST, options.insecure ? 0L : 2L);
    curl_.SetText(CURLOPT_CAINFO, options.ca_file);
    curl_.SetText(CURLOPT_CAPATH, options.ca_folder);
    curl_.SetText(CURLOPT_SSLCERT, options.certificate);
    curl_.SetText(CURLOPT_SSLKEY, options.key);
    curl_.SetText(CURLOPT_KEYPASSWD, options.key_password);
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
        const long error = curl_.Number(CURLINFO_OS_ERRNO);
        return is(error == ECONNREFUSED ? End::kRefused : End::kFailed,
                  "cannot be reached: " +
                      (error != 0 ? std::strerror(static_cast<int>(error)) : curl_.Said(code)));
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
        return is(End::kFailed, "gives no answer: " + curl_.Said(code));
    }
  }

  CurlRequest curl_;
};

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
