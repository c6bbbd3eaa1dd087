// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/curl_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace rankscope::exporter {

const char* const kCurlLibrary = "libcurl.so.4";

namespace {

CurlLibrary Load() {
  CurlLibrary library;
  void* const handle = dlopen(kCurlLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    library.error = std::string("cannot be asked: ") + (why != nullptr ? why : kCurlLibrary) +
                    "; install libcurl4";
    return library;
  }
  bool whole = true;
  const auto find = [handle, &whole](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    whole = whole && function != nullptr;
  };
  find("curl_global_init", library.global_init);
  find("curl_easy_init", library.easy_init);
  find("curl_easy_setopt", library.easy_setopt);
  find("curl_easy_perform", library.easy_perform);
  find("curl_easy_getinfo", library.easy_getinfo);
  find("curl_easy_cleanup", library.easy_cleanup);
  find("curl_easy_strerror", library.easy_strerror);
  find("curl_slist_append", library.slist_append);
  find("curl_slist_free_all", library.slist_free_all);
  if (!whole || library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    library.error = std::string("cannot be asked: ") + kCurlLibrary +
                    " does not start; install libcurl4 7.87 or later";
  return library;
}

}  // namespace

const CurlLibrary& TheCurlLibrary() {
  static const CurlLibrary* const library = new CurlLibrary(Load());
  return *library;
}

namespace {

// 0 would be curl's own default, five minutes.
long InMilliseconds(Duration duration) {
  return static_cast<long>(std::max<int64_t>(1, duration.ns / 1'000'000));
}

}  // namespace

CurlRequest::CurlRequest(const CurlLibrary& library)
    : library_(library), handle_(library.easy_init(), library.easy_cleanup) {
  if (handle_ == nullptr) refused_ = CURLE_OUT_OF_MEMORY;
}

CurlRequest::~CurlRequest() {
  library_.slist_free_all(list_);
}

void CurlRequest::SetConnection(const std::string& url, const char* protocols,
                                Duration connect_timeout, Duration timeout) {
  Set(CURLOPT_ERRORBUFFER, said_.data());
  Set(CURLOPT_URL, url.c_str());
  Set(CURLOPT_PROTOCOLS_STR, protocols);
  Set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  Set(CURLOPT_PROXY, "");
  Set(CURLOPT_NOSIGNAL, 1L);
  Set(CURLOPT_CONNECTTIMEOUT_MS, InMilliseconds(connect_timeout));
  Set(CURLOPT_TIMEOUT_MS, InMilliseconds(timeout));
  // Without it the end of a request waits for a name server that does not answer, however late
  // (lib/asyn-thread.c, Curl_resolver_kill; the option is of 7.87).
  Set(CURLOPT_QUICK_EXIT, 1L);
  Set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  Set(CURLOPT_FRESH_CONNECT, 1L);
  Set(CURLOPT_FORBID_REUSE, 1L);
}

void CurlRequest::Append(const std::string& line) {
  curl_slist* const longer = library_.slist_append(list_, line.c_str());
  if (longer == nullptr) {
    refused_ = CURLE_OUT_OF_MEMORY;
  } else {
    list_ = longer;
  }
}

std::string CurlRequest::Refusal() const {
  return refused_ == CURLE_OK ? std::string() : library_.easy_strerror(refused_);
}

long CurlRequest::Number(CURLINFO info) const {
  long number = 0;
  library_.easy_getinfo(handle_.get(), info, &number);
  return number;
}

std::string CurlRequest::Said(CURLcode code) const {
  return said_[0] != '\0' ? said_.data() : library_.easy_strerror(code);
}

}  // namespace rankscope::exporter
