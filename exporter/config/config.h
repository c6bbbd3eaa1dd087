// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's configuration: strict YAML, every mistake reported with its line. A key is a member
// here with its default and one row in config.cc; reading, printing and the reference file come
// from that row. Plain data; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"
#include "detectors/model/time.h"

namespace rankscope::exporter {

struct SourceSettings {
  std::string name;  // row of sources.cc
  bool enabled = true;
  Duration interval;  // 0 = the source is not polled and has no such key
};

struct Config {
  struct Node {
    std::string name;  // empty = gethostname()
  } node;
  struct Web {
    std::vector<std::string> listen = {"127.0.0.1:10177"};
    int64_t max_requests = 40;
    std::vector<std::string> hosts;       // names that are served besides the machine's own
    std::string config_file;              // of Prometheus's exporters: TLS and users; empty = none
    bool plain_loopback = false;          // addresses on loopback stay without what that file says
    std::vector<std::string> open_paths;  // that need no authentication
    std::vector<std::string> roles;       // user:NAME=ROLE, san:NAME=ROLE
    bool enable_lifecycle = false;
  } web;
  struct State {
    std::string dir = "/var/lib/rankscope";
    int64_t job_bytes = int64_t{64} << 20;
    int64_t total_bytes = int64_t{2} << 30;
    Duration keep = Seconds(24 * 3600);
    int64_t max_jobs = 256;
    int64_t memory = 0;  // 0 = what the cgroup of the daemon allows
  } state;
  struct Run {
    std::string socket = "/run/rankscope/run.sock";
  } run;
  struct Metrics {
    std::string profile = "default";
    int64_t max_series = 0;           // 0 = the profile's
    std::string dcgm_names = "auto";  // auto | true | false
  } metrics;
  std::vector<SourceSettings> sources;  // in the order of sources.cc
  struct Slurm {
    std::string role = "node";         // node | controller | off
    std::string controller_url;        // of the instance whose role is controller; empty = none
    std::string restd_url;             // of slurmrestd, with the version; empty = Slurm's commands
    std::string restd_curl_config;     // options of requests to it; empty = none
    std::string conf;                  // SLURM_CONF of Slurm's commands; empty = their default
    std::string mapping_dir;           // of a prolog's files; empty = none
    std::vector<std::string> targets;  // PARTITION:WHAT=N
  } slurm;
  struct Fleet {
    std::string prometheus;
  } fleet;
  struct Gpu {
    // The kubelet's, which knows whose each GPU is; empty = none.
    std::string pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock";
    std::string dcgm_url = "http://127.0.0.1:9400/metrics";  // empty = none
  } gpu;
  struct Ebpf {
    std::string mode = "auto";  // auto | off | force
    double budget = 0.01;       // of one core, for what probes cost each rank
  } ebpf;
  struct Stdio {
    int64_t rate = int64_t{64} << 10;  // bytes per second of each stream of a process
    int64_t burst = int64_t{1} << 20;
  } stdio;
  struct Families {
    Duration hang_floor = Seconds(60);
    Duration rendezvous_suspect = Seconds(120);
    Duration rendezvous_fire = Seconds(300);
  } families;
  struct Notify {
    std::string file;  // of channels and rules; empty = nobody is told
  } notify;
  struct Log {
    std::string level = "info";
    std::string format = "logfmt";
  } log;

  const SourceSettings* FindSource(std::string_view name) const;
};

// One mistake, said so that it can be printed as it is: "config.yaml:7: web.max_requests: ...".
using Problems = std::vector<std::string>;

struct ConfigOutcome {
  Config config;      // the defaults where a key was wrong
  Problems problems;  // by line
};

// `sources` names the source keys with their defaults. `name` stands before each line number.
ConfigOutcome ParseConfig(std::string_view text, const std::string& name,
                          std::span<const SourceSettings> sources);
// The same from a file; an unreadable file is one problem.
ConfigOutcome LoadConfig(const std::string& path, std::span<const SourceSettings> sources);
// All defaults.
Config DefaultConfig(std::span<const SourceSettings> sources);

// Sets one key by its dotted name ("web.max_requests") from a flag's text; lists are separated by
// commas.
Status SetConfigKey(Config& config, std::string_view key, std::string_view value);

// Canonical YAML with a comment per key; reads back as the same configuration.
std::string PrintConfig(const Config& config);

// Prometheus durations: 30s, 1m30s, 500ms, 24h, 7d, 0.
Result<Duration> ParseDuration(std::string_view text);
std::string FormatDuration(Duration duration);
// 1%, 0.5%.
Result<double> ParseShare(std::string_view text);
std::string FormatShare(double share);
// 64MiB, 2GiB, 512KiB, or plain bytes.
Result<int64_t> ParseSize(std::string_view text);
std::string FormatSize(int64_t bytes);
// Those of web.listen that more than this machine's users reach.
std::vector<std::string> BeyondLoopback(const Config& config);
// IPv4:PORT or [IPv6]:PORT.
Status CheckListenAddress(std::string_view text);

}  // namespace rankscope::exporter
