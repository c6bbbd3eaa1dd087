// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/trainer/options.h"

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace sample_trainer {
namespace {

struct FaultName {
  std::string_view name;
  FaultKind kind;
};
constexpr FaultName kFaultNames[] = {
    {"exception", FaultKind::kException},
    {"segv", FaultKind::kSegv},
    {"kill", FaultKind::kKill},
    {"hang", FaultKind::kHang},
    {"sleep", FaultKind::kSleep},
    {"exit", FaultKind::kExit},
    {"nan", FaultKind::kNan},
    {"plateau", FaultKind::kPlateau},
    {"missing_file", FaultKind::kMissingFile},
    {"one_step", FaultKind::kOneStep},
    {"no_progress", FaultKind::kNoProgress},
};

template <typename Number>
Number ParseNumber(std::string_view what, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::invalid_argument(std::string(what) + ": '" + std::string(text) +
                                "' is not a number");
  }
  return value;
}

// exception:rank=1,step=30
Fault ParseFault(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  Fault fault;
  for (const FaultName& row : kFaultNames) {
    if (row.name == name) fault.kind = row.kind;
  }
  if (fault.kind == FaultKind::kNone) {
    throw std::invalid_argument("--fault: unknown kind '" + std::string(name) + "'");
  }
  std::string_view rest = name.size() < text.size() ? text.substr(name.size() + 1) : "";
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::string_view key = item.substr(0, item.find('='));
    const std::string_view value = key.size() < item.size() ? item.substr(key.size() + 1) : "";
    int* const target = key == "rank"   ? &fault.rank
                        : key == "step" ? &fault.step
                        : key == "ms"   ? &fault.ms
                        : key == "code" ? &fault.code
                                        : nullptr;
    if (target == nullptr) {
      throw std::invalid_argument("--fault: unknown key '" + std::string(key) + "'");
    }
    *target = ParseNumber<int>("--fault", value);
  }
  return fault;
}

// Faults that are nothing but unlucky settings.
void ApplyFault(Options& options) {
  switch (options.fault.kind) {
    case FaultKind::kNan:
      options.lr = 1e30f;
      break;
    case FaultKind::kPlateau:
      options.lr = 5;
      options.clip = 1;
      options.warmup = options.steps / 2;
      break;
    case FaultKind::kMissingFile:
      options.data = "data/train.txt";
      break;
    case FaultKind::kOneStep:
      options.steps = 1;
      break;
    default:
      break;
  }
}

}  // namespace

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(std::string(name) + " needs a value");
    const std::string_view value = argv[i + 1];
    if (name == "--ranks") {
      options.ranks = ParseNumber<int>(name, value);
    } else if (name == "--steps") {
      options.steps = ParseNumber<int>(name, value);
    } else if (name == "--step-ms") {
      options.step_ms = ParseNumber<int>(name, value);
    } else if (name == "--log-every") {
      options.log_every = ParseNumber<int>(name, value);
    } else if (name == "--save-every") {
      options.save_every = ParseNumber<int>(name, value);
    } else if (name == "--warmup") {
      options.warmup = ParseNumber<int>(name, value);
    } else if (name == "--timeout") {
      options.timeout_s = ParseNumber<int>(name, value);
    } else if (name == "--lr") {
      options.lr = ParseNumber<float>(name, value);
    } else if (name == "--clip") {
      options.clip = ParseNumber<float>(name, value);
    } else if (name == "--checkpoint") {
      options.checkpoint = value;
    } else if (name == "--resume") {
      options.resume = value;
    } else if (name == "--data") {
      options.data = value;
    } else if (name == "--fault") {
      options.fault = ParseFault(value);
    } else {
      throw std::invalid_argument("unknown option '" + std::string(name) + "'");
    }
  }
  if (options.ranks < 1 || options.ranks > 64) throw std::invalid_argument("--ranks: 1 to 64");
  if (options.log_every < 1) throw std::invalid_argument("--log-every: at least 1");
  ApplyFault(options);
  if (options.fault.rank < 0) options.fault.rank = options.ranks - 1;
  return options;
}

}  // namespace sample_trainer
