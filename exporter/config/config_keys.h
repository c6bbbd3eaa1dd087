// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The table of configuration keys: one row per key binds its name to a member of Config, with how
// it is read and printed. Used by config.cc only. Any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exporter/config/config.h"

namespace rankscope::exporter {

// One key: where it lives, how its text is read and how it is printed.
struct Key {
  std::string path;  // section.key, sources.NAME.key, families.NAME.key
  std::string comment;
  std::function<Status(const std::string&)> set;
  std::function<std::string()> get;  // as YAML
  bool list = false;
  std::function<Status(const std::vector<std::string>&)> set_list = {};
};

// Every key there is, in the order in which they are printed; bound to `config`, which must outlive
// the rows.
std::vector<Key> Bind(Config& config);

}  // namespace rankscope::exporter
