// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The configuration flags that `serve` and `check` share. Flags override the file, the file
// overrides the defaults.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "exporter/config/config.h"

namespace rankscope::cli {

class ConfigOptions {
 public:
  explicit ConfigOptions(CLI::App& app);
  ConfigOptions(const ConfigOptions&) = delete;
  ConfigOptions& operator=(const ConfigOptions&) = delete;

  // Parses the arguments and settles the configuration: it, or the exit status when there is
  // nothing left to do (usage, every mistake reported on stderr, `--print-config` done).
  std::variant<exporter::Config, int> Settle(int argc, char** argv);

  // The same file and flags once more, as they are now.
  exporter::ConfigOutcome Load() const;

 private:
  CLI::App& app_;
  std::string file_;
  bool print_config_ = false;
  std::vector<std::string> listen_;
  std::vector<std::pair<std::string, std::string>> flags_;  // key, text
};

}  // namespace rankscope::cli
