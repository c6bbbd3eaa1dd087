// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// libcurl, loaded by the first who asks for it: its 33 libraries would delay the start of every
// command. For http_client.cc and mail_client.cc only, which alone know its options. Any thread.
#pragma once

#include <curl/curl.h>

#include <string>

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

}  // namespace rankscope::exporter
