// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/cli/config_options.h"

#include <cstdio>

#include "exporter/config/notify_config.h"
#include "exporter/daemon/sources.h"

namespace rankscope::cli {

ConfigOptions::ConfigOptions(CLI::App& app) : app_(app) {
  struct Flag {
    const char* name;
    const char* key;
    const char* what;
  };
  static constexpr Flag kFlags[] = {
      {"--ebpf", "ebpf.mode", "Whether programs are loaded into the kernel: auto, off or force"},
      {"--ebpf.budget", "ebpf.budget",
       "Maximum cost of counting calls for each rank, as a share of one core, such as 1%"},
      {"--log.level", "log.level", "Log level: debug, info, warn or error"},
      {"--log.format", "log.format", "Log format: logfmt or json"},
      {"--state.dir", "state.dir", "Directory of recordings and final verdicts"},
      {"--state.max-jobs", "state.max_jobs", "Maximum number of jobs watched at once"},
      {"--state.memory", "state.memory",
       "Memory limit of the daemon, such as 96MiB; 0: the limit of its cgroup, or 2GiB without "
       "one"},
      {"--run.socket", "run.socket", "Socket on which the daemon listens for `rankscope run`"},
      {"--metrics.max-series", "metrics.max_series", "Maximum number of series on /metrics"},
      {"--web.config.file", "web.config_file",
       "File with TLS, client certificates and users, in the web-config format of Prometheus's "
       "exporters"},
      {"--web.max-requests", "web.max_requests", "Maximum number of requests served at once"},
  };
  app.add_option("--config.file,--config", file_, "Configuration file, in YAML");
  app.add_flag("--print-config", print_config_, "Print the effective configuration and exit");
  app.add_option("--web.listen-address", listen_,
                 "Address to listen on, IPv4:PORT or [IPv6]:PORT; may be given several times")
      ->take_all();
  flags_.reserve(std::size(kFlags));
  for (const Flag& flag : kFlags) {
    auto& [key, value] = flags_.emplace_back(flag.key, std::string());
    app.add_option(flag.name, value, flag.what);
  }
}

std::variant<exporter::Config, int> ConfigOptions::Settle(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app_.exit(error) == 0 ? 0 : 2;
  }
  exporter::ConfigOutcome outcome = Load();
  for (const std::string& problem : outcome.problems) {
    std::fprintf(stderr, "%s: %s\n", app_.get_name().c_str(), problem.c_str());
  }
  if (!outcome.problems.empty()) return 2;
  if (print_config_) {
    std::fputs(exporter::PrintConfig(outcome.config).c_str(), stdout);
    return 0;
  }
  return std::move(outcome.config);
}

exporter::ConfigOutcome ConfigOptions::Load() const {
  const std::vector<exporter::SourceSettings> sources = exporter::SourceDefaults();
  exporter::ConfigOutcome outcome = file_.empty() ? exporter::ParseConfig({}, "defaults", sources)
                                                  : exporter::LoadConfig(file_, sources);
  const auto set = [&outcome](const std::string& key, const std::string& value) {
    const Status status = exporter::SetConfigKey(outcome.config, key, value);
    if (!status.ok()) outcome.problems.push_back("command line: " + status.error());
  };
  std::string addresses;
  for (const std::string& address : listen_) addresses += (addresses.empty() ? "" : ",") + address;
  if (!addresses.empty()) set("web.listen", addresses);
  for (const auto& [key, value] : flags_) {
    if (!value.empty()) set(key, value);
  }
  if (const std::string& notify = outcome.config.notify.file; !notify.empty()) {
    for (std::string& problem : exporter::LoadNotifyConfig(notify).problems)
      outcome.problems.push_back(std::move(problem));
  }
  return outcome;
}

}  // namespace rankscope::cli
