// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/config_keys.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <utility>

#include "detectors/model/speeds.h"
#include "exporter/config/web_roles.h"
#include "exporter/loop/http_url.h"

namespace rankscope::exporter {
namespace {

std::string Quoted(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./-") == std::string::npos;
  if (plain) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

Key DurationKey(std::string path, Duration& value, Duration least, std::string comment) {
  return {std::move(path), std::move(comment),
          [&value, least](const std::string& text) -> Status {
            const auto parsed = ParseDuration(text);
            if (!parsed) return Error{parsed.error()};
            if (*parsed < least) {
              return Error{"'" + text + "' is too short; at least " + FormatDuration(least)};
            }
            value = *parsed;
            return {};
          },
          [&value] { return FormatDuration(value); }};
}

Key SizeKey(std::string path, int64_t& value, int64_t least, std::string comment) {
  return {std::move(path), std::move(comment),
          [&value, least](const std::string& text) -> Status {
            const auto parsed = ParseSize(text);
            if (!parsed) return Error{parsed.error()};
            if (*parsed < least) {
              return Error{"'" + text + "' is too small; at least " + FormatSize(least)};
            }
            value = *parsed;
            return {};
          },
          [&value] { return FormatSize(value); }};
}

Key ShareKey(std::string path, double& value, double least, std::string comment) {
  return {std::move(path), std::move(comment),
          [&value, least](const std::string& text) -> Status {
            const auto parsed = ParseShare(text);
            if (!parsed) return Error{parsed.error()};
            if (*parsed < least || *parsed > 1) {
              return Error{"'" + text + "' is not from " + FormatShare(least) + " to 100%"};
            }
            value = *parsed;
            return {};
          },
          [&value] { return FormatShare(value); }};
}

Key NumberKey(std::string path, int64_t& value, int64_t least, int64_t most, std::string comment) {
  return {std::move(path), std::move(comment),
          [&value, least, most](const std::string& text) -> Status {
            int64_t parsed = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), parsed);
            if (error != std::errc() || end != text.data() + text.size() || parsed < least ||
                parsed > most) {
              return Error{"'" + text + "' is not a whole number from " + std::to_string(least) +
                           " to " + std::to_string(most)};
            }
            value = parsed;
            return {};
          },
          [&value] { return std::to_string(value); }};
}

Key FlagKey(std::string path, bool& value, std::string comment) {
  return {std::move(path), std::move(comment),
          [&value](const std::string& text) -> Status {
            if (text != "true" && text != "false") {
              return Error{"'" + text + "' is neither true nor false"};
            }
            value = text == "true";
            return {};
          },
          [&value] { return value ? "true" : "false"; }};
}

Key ChoiceKey(std::string path, std::string& value, std::vector<std::string> choices,
              std::string comment) {
  return {std::move(path), std::move(comment),
          [&value, choices = std::move(choices)](const std::string& text) -> Status {
            if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
              std::string list;
              for (const std::string& choice : choices) list += (list.empty() ? "" : ", ") + choice;
              return Error{"'" + text + "' is not one of " + list};
            }
            value = text;
            return {};
          },
          [&value] { return Quoted(value); }};
}

Key PathKey(std::string path, std::string& value, std::string comment) {
  return {std::move(path), std::move(comment),
          [&value](const std::string& text) -> Status {
            if (text.empty() || text[0] != '/' || text.find('\0') != std::string::npos) {
              return Error{"'" + text + "' is not an absolute path"};
            }
            value = text;
            return {};
          },
          [&value] { return Quoted(value); }};
}

// As PathKey, or empty for none.
Key PathOrNoneKey(std::string path, std::string& value, std::string comment) {
  Key key = PathKey(std::move(path), value, std::move(comment));
  key.set = [&value, set = std::move(key.set)](const std::string& text) -> Status {
    if (!text.empty()) return set(text);
    value.clear();
    return {};
  };
  return key;
}

Key UrlKey(std::string path, std::string& value, std::string comment) {
  return {std::move(path), std::move(comment),
          [&value](const std::string& text) -> Status {
            if (!text.empty() && text.rfind("http://", 0) != 0 && text.rfind("https://", 0) != 0) {
              return Error{"'" + text + "' is not a URL; write http://HOST:PORT, or \"\" for none"};
            }
            value = text;
            return {};
          },
          [&value] { return Quoted(value); }};
}

Key PageKey(std::string path, std::string& value, std::string comment) {
  return {std::move(path), std::move(comment),
          [&value](const std::string& text) -> Status {
            if (!text.empty()) {
              const Status url = CheckHttpUrl(text);
              if (!url) return Error{url.error() + ", or \"\" for none"};
            }
            value = text;
            return {};
          },
          [&value] { return Quoted(value); }};
}

// A list of words, each of which `check` likes.
Key ListKey(std::string path, std::vector<std::string>& value, std::string comment,
            Status (*check)(std::string_view)) {
  const auto set_list = [&value, check](const std::vector<std::string>& items) -> Status {
    for (const std::string& item : items) {
      if (Status status = check(item); !status.ok()) return status;
    }
    value = items;
    return {};
  };
  const auto set = [set_list](const std::string& text) -> Status {
    std::vector<std::string> items;
    std::stringstream stream(text);
    for (std::string item; std::getline(stream, item, ',');) items.push_back(item);
    return set_list(items);
  };
  const auto get = [&value] {
    std::string list;
    for (const std::string& item : value) list += (list.empty() ? "" : ", ") + ('"' + item + '"');
    return '[' + list + ']';
  };
  return {std::move(path), std::move(comment), set, get, true, set_list};
}

Key ListenKey(std::string path, std::vector<std::string>& value, std::string comment) {
  Key key = ListKey(std::move(path), value, std::move(comment), CheckListenAddress);
  key.set_list = [set_list = key.set_list](const std::vector<std::string>& items) -> Status {
    if (items.empty()) return Error{"the list is empty; write [\"127.0.0.1:10177\"]"};
    return set_list(items);
  };
  key.set = [set = key.set](const std::string& text) -> Status {
    if (text.empty()) return Error{"the list is empty; write [\"127.0.0.1:10177\"]"};
    return set(text);
  };
  return key;
}

Status CheckHostName(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  if (!text.empty() && text.size() <= 253 && std::all_of(text.begin(), text.end(), allowed))
    return {};
  return Error{"'" + std::string(text.substr(0, 60)) +
               "' is not a host name; write it like node7.example, without a port"};
}

Status CheckRole(std::string_view text) {
  const Result<http::RoleRow> row = http::ParseRole(text);
  return row ? Status() : Status(Error{row.error()});
}

// What tells nothing of a job's content. A balancer or a kubelet has no password to send.
Status CheckOpenPath(std::string_view text) {
  for (const std::string_view path : {"/-/healthy", "/-/ready", "/health", "/metrics"}) {
    if (text == path) return {};
  }
  return Error{"'" + std::string(text.substr(0, 60)) +
               "' is not one of /-/healthy, /-/ready, /health, /metrics"};
}

Status CheckTargetOfPartition(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos && colon > 0 && ReadTarget(text.substr(colon + 1))) return {};
  std::string names;
  for (const std::string_view name : kSpeedNames)
    names += (names.empty() ? "" : ", ") + std::string(name);
  return Error{"'" + std::string(text.substr(0, 60)) +
               "' is not PARTITION:WHAT=N with a number above 0 and WHAT one of " + names};
}

Key NodeNameKey(std::string& value) {
  return {"node.name",
          "Name of this node in verdicts, metrics and recordings; empty: the host name. Where "
          "Slurm's NodeName is not the host name, write the NodeName here.",
          [&value](const std::string& text) -> Status {
            if (!text.empty()) {
              if (Status valid = CheckHostName(text); !valid) return valid;
            }
            value = text;
            return {};
          },
          [&value] { return Quoted(value); }};
}

std::vector<Key> SlurmKeys(Config::Slurm& slurm) {
  return {
      ChoiceKey(
          "slurm.role", slurm.role, {"node", "controller", "off"},
          "node: asks Slurm once when a job begins and once when it ends badly. controller: polls "
          "all jobs and nodes; for the one instance beside slurmctld. off: never asks."),
      PageKey("slurm.controller_url", slurm.controller_url,
              "With role node: http://HOST:PORT of the instance with role controller, whose "
              "/events is read instead of asking Slurm."),
      UrlKey("slurm.restd_url", slurm.restd_url,
             "With role controller: http://HOST:PORT/slurm/v0.0.NN of slurmrestd, which is used "
             "instead of scontrol, sdiag and sacct."),
      PathOrNoneKey("slurm.restd_curl_config", slurm.restd_curl_config,
                    "File with options for requests to slurmrestd, in the format of a curl "
                    "configuration file: the header with a token, a socket, certificates."),
      PathOrNoneKey("slurm.conf", slurm.conf,
                    "SLURM_CONF for Slurm's commands; empty: their default."),
      PathOrNoneKey("slurm.mapping_dir", slurm.mapping_dir,
                    "Directory in which a prolog maps GPUs to jobs, as for dcgm-exporter's "
                    "--hpc-job-mapping-dir; empty: none."),
      ListKey("slurm.targets", slurm.targets,
              "What the jobs of a partition should reach where their user names no target, as "
              "PARTITION:WHAT=N: gpu:tokens_per_second=12000, gpu:mfu=0.35.",
              CheckTargetOfPartition),
  };
}

std::vector<Key> WebKeys(Config::Web& web) {
  return {
      ListenKey("web.listen", web.listen,
                "Addresses that serve /metrics, /verdict and the pages for browsers: IPv4:PORT or "
                "[IPv6]:PORT."),
      NumberKey("web.max_requests", web.max_requests, 1, 1000,
                "Maximum number of requests served at once; more are answered with 503."),
      ListKey("web.hosts", web.hosts,
              "Further host names that clients may use. localhost is always accepted; beyond "
              "loopback, IP addresses and the node's name are too.",
              CheckHostName),
      PathOrNoneKey("web.config_file", web.config_file,
                    "File with TLS, client certificates, users and headers, in the format of "
                    "Prometheus's exporters (web-config); empty: none."),
      FlagKey("web.plain_loopback", web.plain_loopback,
              "Whether addresses of web.listen on loopback stay plain HTTP without authentication, "
              "even if there is a web.config_file."),
      ListKey("web.open_paths", web.open_paths,
              "Paths that need no user and password: /-/healthy, /-/ready, /health, /metrics.",
              CheckOpenPath),
      ListKey("web.roles", web.roles,
              "What users (user:NAME=ROLE) and verified client certificates (san:NAME=ROLE) may "
              "see: metrics, verdict (without text of logs) or log. Empty: all see everything; "
              "otherwise others than those named see metrics.",
              CheckRole),
      FlagKey(
          "web.enable_lifecycle", web.enable_lifecycle,
          "Whether POST /-/reload, by a client with the role log, reads this file again. SIGHUP "
          "always does."),
  };
}

}  // namespace

std::vector<Key> Bind(Config& c) {
  std::vector<Key> keys = {NodeNameKey(c.node.name)};
  const auto append = [&keys](std::vector<Key> more) {
    std::move(more.begin(), more.end(), std::back_inserter(keys));
  };
  append(WebKeys(c.web));
  append({
      PathKey("state.dir", c.state.dir, "Directory of recordings and final verdicts; mode 0700."),
      SizeKey("state.job_bytes", c.state.job_bytes, int64_t{1} << 20,
              "Maximum size of the recording of one job."),
      SizeKey(
          "state.total_bytes", c.state.total_bytes, int64_t{1} << 20,
          "Maximum size of all recordings; those of the jobs that ended first are removed first."),
      DurationKey("state.keep", c.state.keep, Seconds(300),
                  "Time for which a final verdict is kept."),
      NumberKey("state.max_jobs", c.state.max_jobs, 1, 1024,
                "Maximum number of jobs watched at once, shared fairly between users; further jobs "
                "are only counted."),
      SizeKey("state.memory", c.state.memory, 0,
              "Memory limit of the daemon, which watches fewer jobs to stay below it. 0: the limit "
              "of its cgroup, or 2GiB without one."),
      PathKey("run.socket", c.run.socket,
              "Socket on which this daemon listens for `rankscope run`."),
      ChoiceKey("metrics.profile", c.metrics.profile, {"default", "full"},
                "Metric families on /metrics: default or full."),
      NumberKey("metrics.max_series", c.metrics.max_series, 0, 16000,
                "Maximum number of series on /metrics; dropped series are counted. 0: 5000, or "
                "16000 with profile full."),
      ChoiceKey("metrics.dcgm_names", c.metrics.dcgm_names, {"auto", "true", "false"},
                "Whether GPU metrics are also exported under dcgm-exporter's names (DCGM_FI_*): "
                "true, false, or auto. auto decides at the start: true where no dcgm-exporter "
                "runs on the node and none answers at gpu.dcgm_url."),
  });
  for (SourceSettings& source : c.sources) {
    const std::string path = "sources." + source.name;
    keys.push_back(FlagKey(path + ".enabled", source.enabled, {}));
    if (source.interval.ns > 0)
      keys.push_back(DurationKey(path + ".interval", source.interval, Milliseconds(100), {}));
  }
  append({
      ChoiceKey("ebpf.mode", c.ebpf.mode, {"auto", "off", "force"},
                "Whether programs are loaded into the kernel. auto: on kernels that are known to "
                "support them; off: never; force: on every kernel that accepts them. `check` "
                "reports the result."),
      ShareKey("ebpf.budget", c.ebpf.budget, 1e-4,
               "Maximum cost of counting calls for each rank, as a share of one core. If it is "
               "exceeded, only a part of the calls is counted."),
      SizeKey("stdio.rate", c.stdio.rate, 1 << 10,
              "Average output per second that is captured from each standard stream of a process; "
              "the rest is only counted."),
      SizeKey("stdio.burst", c.stdio.burst, 64 << 10,
              "Output that is captured at once beyond that average."),
      PageKey("gpu.dcgm_url", c.gpu.dcgm_url,
              "URL of the node's dcgm-exporter, for GPUs whose units the driver does not count."),
      PathOrNoneKey("gpu.pod_resources", c.gpu.pod_resources,
                    "Socket of the kubelet that knows which pod has which GPU, for the labels "
                    "pod, namespace and container of dcgm-exporter's names; empty: none."),
  });
  append(SlurmKeys(c.slurm));
  append({
      UrlKey("fleet.prometheus", c.fleet.prometheus,
             "URL of a Prometheus that scrapes the other nodes. This build does not use it; "
             "`check` reports that."),
      DurationKey("families.rendezvous_hang.suspect", c.families.rendezvous_suspect, Seconds(10),
                  "Silence in rendezvous after which C1 is suspected."),
      DurationKey("families.rendezvous_hang.fire", c.families.rendezvous_fire, Seconds(10),
                  "Silence in rendezvous after which C1 is the verdict."),
      DurationKey("families.collective_hang.hang_floor", c.families.hang_floor, Seconds(5),
                  "Minimum silence before a hang is the verdict, however short the steps are."),
      PathOrNoneKey(
          "notify.file", c.notify.file,
          "File of the channels and rules for notifications about failed and hanging jobs, "
          "by mail, Alertmanager, webhook, Slack or Teams; empty: none are sent."),
      ChoiceKey("log.level", c.log.level, {"debug", "info", "warn", "error"},
                "Log level: debug, info, warn or error."),
      ChoiceKey("log.format", c.log.format, {"logfmt", "json"},
                "Log format on stderr: logfmt or json."),
  });
  return keys;
}

}  // namespace rankscope::exporter
