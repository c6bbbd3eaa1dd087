// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How a server is reached and what proves to it who asks, and the file that an operator keeps this
// in: lines as in a configuration file of curl, of which those options are read that are named in
// http_options.cc. Values are secrets: errors name the line and the option, never the value. Pure;
// any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"

namespace rankscope::exporter {

struct HttpOptions {
  std::vector<std::string> headers;  // "Name: value"
  std::string user;                  // "name:password", by basic authentication
  std::string bearer;                // token
  std::string unix_socket;           // path; the URL's host is then only a name
  std::string proxy;                 // empty = none, whatever the environment says
  std::string ca_file, ca_folder;    // empty = those of the system
  std::string certificate, key, key_password;
  bool insecure = false;  // the server's certificate is not verified
};

Result<HttpOptions> ReadHttpOptions(std::string_view text);

}  // namespace rankscope::exporter
