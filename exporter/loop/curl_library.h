// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// libcurl, loaded by the first who asks for it: its 33 libraries would delay the start of every
// command. For http_client.cc and mail_client.cc only, which alone know its options. Any thread.
#pragma once

#include <curl/curl.h>

#include <array>
#include <memory>
#include <string>

#include "detectors/model/time.h"

namespace rankscope::exporter {

extern const char* const kCurlLibrary;  // its file

// The functions of libcurl that are called, and why there are none.
struct CurlLibrary {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  std::string error;
};

// Loaded once, and never unloaded: a worker that was left behind may be inside.
const CurlLibrary& TheCurlLibrary();

// One request of one thread to one server.
class CurlRequest {
 public:
  explicit CurlRequest(const CurlLibrary& library);
  ~CurlRequest();
  CurlRequest(const CurlRequest&) = delete;
  CurlRequest& operator=(const CurlRequest&) = delete;

  template <class Value>
  void Set(CURLoption option, Value value) {
    if (handle_ == nullptr) return;
    const CURLcode code = library_.easy_setopt(handle_.get(), option, value);
    if (refused_ == CURLE_OK) refused_ = code;
  }
  void SetText(CURLoption option, const std::string& text) {
    if (!text.empty()) Set(option, text.c_str());
  }
  // `protocols`: "http,https". No signals, no proxy and no files of the environment, TLS 1.2 or
  // later, a connection of its own.
  void SetConnection(const std::string& url, const char* protocols, Duration connect_timeout,
                     Duration timeout);
  // A line of the one list that a request may have, of headers or of recipients.
  void Append(const std::string& line);
  const curl_slist* list() const { return list_; }

  // Why it cannot be made, in libcurl's words; empty: it can.
  std::string Refusal() const;
  CURLcode Perform() { return library_.easy_perform(handle_.get()); }
  long Number(CURLINFO info) const;       // 0: there is none
  std::string Said(CURLcode code) const;  // of what went wrong

 private:
  const CurlLibrary& library_;
  std::array<char, CURL_ERROR_SIZE> said_{};
  std::unique_ptr<CURL, decltype(&::curl_easy_cleanup)> handle_;
  curl_slist* list_ = nullptr;
  CURLcode refused_ = CURLE_OK;  // of the first option that libcurl does not take
};

}  // namespace rankscope::exporter
