// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/curl_library.h"

#include <dlfcn.h>

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

}  // namespace rankscope::exporter
