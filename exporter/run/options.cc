// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string>

#include "detectors/model/speeds.h"
#include "exporter/run/process_facts.h"
#include "exporter/run/protocol.h"

namespace rankscope::run {

const char kUsage[] =
    "usage: rankscope run [FLAGS] [--] CMD [ARGS...]\n"
    "\n"
    "Runs CMD unchanged, keeps its output in a log, records it, and prints a verdict at the end.\n"
    "The exit status is that of CMD; 128+N if signal N ended it; 127 or 126 if it could not be\n"
    "executed; 125 for wrong usage, when nothing was started. If DIR cannot be written, the log "
    "is\n"
    "kept elsewhere or not at all, and CMD runs anyway.\n"
    "\n"
    "  --dir DIR        the run's directory: log, run.json, recording/, verdict.json, verdict.txt\n"
    "                   [RANKSCOPE_RUN_DIR, or rankscope-runs/JOB_ID]; DIR.2 ... when DIR holds a "
    "run\n"
    "  --job-id ID      [SLURM_JOB_ID, or run-UID-XXXXXXXX]\n"
    "  --socket PATH    the daemon's socket; empty: no daemon\n"
    "                   [RANKSCOPE_SOCKET, or /run/rankscope/run.sock]\n"
    "  --drain TIME     how long to wait for grandchildren that hold the output open after CMD's "
    "end [2s]\n"
    "  --target WHAT=N  the throughput that CMD should reach: tokens_per_second, "
    "samples_per_second,\n"
    "                   steps_per_second or mfu (0 to 1), as CMD prints it; may be given for each\n"
    "  --notify LIST    who is notified of a failure or a hang, besides the rules of the daemon:\n"
    "                   its channels and mail addresses, with commas; with the word completed,\n"
    "                   of success as well\n"
    "                   [RANKSCOPE_NOTIFY]\n"
    "  --artifacts GLOB files that CMD writes and that are kept when it has ended, compressed in\n"
    "                   artifacts.tar.gz of DIR, the newest first; artifacts.txt lists them, and "
    "what\n"
    "                   did not fit; may be given several times; ** is any number of directories\n"
    "  --artifacts-size SIZE  how large that archive may become, such as 10MiB [10MiB]\n"
    "  --pty WHEN       auto (CMD gets a terminal if rankscope writes to one), never [auto]\n"
    "  --verdict WHERE  auto (stderr if it is a terminal), stderr, json (on stderr), none [auto]\n"
    "  --help\n";

namespace {

struct Flag {
  std::string_view name;
  bool (*apply)(std::string_view value, Options& options);
  const char* expects;
};

bool SetPrint(std::string_view value, Options& options) {
  struct Row {
    std::string_view word;
    Options::Print print;
  };
  constexpr std::array<Row, 4> kWords = {Row{"auto", Options::Print::kAuto},
                                         {"stderr", Options::Print::kStderr},
                                         {"none", Options::Print::kNone},
                                         {"json", Options::Print::kJson}};
  for (const Row& row : kWords) {
    if (row.word == value) {
      options.print = row.print;
      return true;
    }
  }
  return false;
}

std::optional<int64_t> ParseSize(std::string_view text) {
  constexpr int64_t kLeast = 4 << 10, kMost = int64_t{1} << 30;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number > kMost) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  const int shift = unit.empty()    ? 0
                    : unit == "KiB" ? 10
                    : unit == "MiB" ? 20
                    : unit == "GiB" ? 30
                                    : -1;
  if (shift < 0) return std::nullopt;
  const int64_t bytes = number << shift;
  return bytes >= kLeast && bytes <= kMost ? std::optional(bytes) : std::nullopt;
}

bool AddTarget(std::string_view value, Options& options) {
  if (!ReadTarget(value)) return false;
  options.targets.emplace_back(value);
  return true;
}

constexpr std::array<Flag, 10> kFlags = {
    Flag{"--dir",
         [](std::string_view value, Options& options) {
           options.run_directory = value;
           return !value.empty();
         },
         "a directory"},
    Flag{"--job-id",
         [](std::string_view value, Options& options) {
           options.job_id = value;
           return IsJobId(value);
         },
         "letters, digits, '.', '_' and '-', at most 127"},
    Flag{"--socket",
         [](std::string_view value, Options& options) {
           options.socket_path = value;
           return value.size() < 108;  // sockaddr_un
         },
         "a path of at most 107 bytes"},
    Flag{"--drain",
         [](std::string_view value, Options& options) {
           const std::optional<Duration> drain = ParseDuration(value);
           if (drain) options.drain = *drain;
           return drain.has_value();
         },
         "a time such as 2s or 500ms"},
    Flag{"--target", AddTarget,
         "tokens_per_second, samples_per_second or steps_per_second = a number above 0, or mfu = 0 "
         "to 1"},
    Flag{"--notify",
         [](std::string_view value, Options& options) {
           options.notify = value;
           const auto plain = [](char c) { return c > 0x20 && c < 0x7F && c != '/'; };
           return !value.empty() && value.size() <= 1024 && std::ranges::all_of(value, plain);
         },
         "channels of the daemon and mail addresses with commas, without blanks; no URL"},
    Flag{"--artifacts",
         [](std::string_view value, Options& options) {
           constexpr size_t kMostPatterns = 64;
           options.artifacts.patterns.emplace_back(value);
           return !value.empty() && options.artifacts.patterns.size() <= kMostPatterns;
         },
         "a pattern of file names; at most 64 of them"},
    Flag{"--artifacts-size",
         [](std::string_view value, Options& options) {
           const std::optional<int64_t> size = ParseSize(value);
           options.artifacts.budget = size.value_or(0);
           return size.has_value();
         },
         "a size from 4KiB to 1GiB, such as 10MiB"},
    Flag{"--pty",
         [](std::string_view value, Options& options) {
           options.ptys = value == "auto";
           return value == "auto" || value == "never";
         },
         "auto or never"},
    Flag{"--verdict", SetPrint, "auto, stderr, none or json"},
};

Error Usage(const std::string& problem) {
  return {problem + "; see `rankscope run --help`"};
}

// Takes the flag at `argv`, "--name value" or "--name=value"; returns how many arguments it was.
Result<int> TakeFlag(char* const* argv, Options& options) {
  const std::string_view argument = *argv;
  for (const Flag& flag : kFlags) {
    if (!argument.starts_with(flag.name)) continue;
    std::string_view rest = argument.substr(flag.name.size());
    if (!rest.empty() && rest[0] != '=') continue;
    if (rest.empty() && argv[1] == nullptr) {
      return Usage(std::string(flag.name) + " needs " + flag.expects);
    }
    const std::string_view value = rest.empty() ? std::string_view(argv[1]) : rest.substr(1);
    if (!flag.apply(value, options)) {
      return Usage(std::string(flag.name) + " '" + std::string(value) + "': expected " +
                   flag.expects);
    }
    return rest.empty() ? 2 : 1;
  }
  return Usage("unknown flag '" + std::string(argument) + "'");
}

std::string GeneratedJobId(uint32_t uid, uint32_t random) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "run-%u-%08x", uid, random);
  return text.data();
}

}  // namespace

std::optional<Duration> ParseDuration(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0) || number > 1e6) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.empty() || unit == "s") return Seconds(number);
  if (unit == "ms") return Seconds(number / 1000);
  if (unit == "m") return Seconds(number * 60);
  return std::nullopt;
}

Result<Arguments> ParseArguments(char* const* argv, char* const* environment, uint32_t uid,
                                 uint32_t random) {
  Arguments arguments;
  Options& options = arguments.options;
  options.environment = environment;
  options.run_directory = EnvironmentValue(environment, "RANKSCOPE_RUN_DIR");
  options.socket_path = EnvironmentValue(environment, "RANKSCOPE_SOCKET");
  if (options.socket_path.empty() || options.socket_path.size() >= 108)
    options.socket_path = kDefaultSocket;

  for (++argv; *argv != nullptr && **argv == '-';) {
    const std::string_view argument = *argv;
    if (argument == "--help" || argument == "-h") {
      arguments.help = true;
      return arguments;
    }
    if (argument == "--") {
      ++argv;
      break;
    }
    const Result<int> taken = TakeFlag(argv, options);
    if (!taken) return Error{taken.error()};
    argv += *taken;
  }
  if (*argv == nullptr) return Usage("no command given");
  options.argv = argv;

  const std::string_view slurm_job = EnvironmentValue(environment, "SLURM_JOB_ID");
  if (options.job_id.empty() && IsJobId(slurm_job)) options.job_id = slurm_job;
  if (options.job_id.empty()) options.job_id = GeneratedJobId(uid, random);
  if (options.run_directory.empty()) options.run_directory = "rankscope-runs/" + options.job_id;
  return arguments;
}

}  // namespace rankscope::run
