// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What of a configuration that was read again can come into force in a daemon that runs. Pure; any
// thread.
#pragma once

#include <string>
#include <vector>

#include "exporter/config/config.h"

namespace rankscope::exporter {

struct ConfigChange {
  Config config;                           // what is in force from now on
  std::vector<std::string> changed;        // keys whose new value is in it
  std::vector<std::string> needs_restart;  // keys whose new value is not
};

// `now`: what is in force. Everything that can change does, the rest stays as it is and is named: a
// file that a package or a person has changed in two places shall not wait for both.
ConfigChange TakeOver(const Config& now, const Config& read);

// A printed configuration with what stands before '@' in URLs masked: users and passwords. Other
// secrets are in files of their own, of which it has the paths.
std::string WithoutSecrets(std::string text);

}  // namespace rankscope::exporter
