// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// `rankscope run`: starts a command, stays out of its way, keeps its log and its recording, and
// judges it. The exit status is a function of the command's fate alone. Main thread, once per
// process.
//
//   main       signals, the command's end
//   2 relays   pipe -> log, stdout/stderr         (relay.h)
//   observer   queue -> lines -> consumer, daemon (observer.h)
//   guardian   a process: votes and outlives us   (guardian.h)
#pragma once

#include <string>
#include <vector>

#include "detectors/model/time.h"
#include "exporter/run/artifacts.h"
#include "exporter/run/consumer.h"

namespace rankscope::run {

inline constexpr int kRefused = 125;  // wrong usage: nothing was started

struct Options {
  enum class Print : uint8_t { kAuto, kStderr, kNone, kJson };
  std::string job_id;         // IsJobId
  std::string run_directory;  // wanted; see CreateRunDirectory
  std::string socket_path;    // empty: no daemon
  // Throughputs that the command should reach, "tokens_per_second=40000"; of several of one measure
  // the last.
  std::vector<std::string> targets;
  ArtifactOptions artifacts;
  std::string notify;  // channels and addresses that are told of the run, besides the rules'
  // How long to wait for grandchildren that hold the streams open after the command's end.
  Duration drain = Seconds(2);
  Print print = Print::kAuto;
  // A terminal of ours is a terminal of the command's; otherwise it gets a pipe.
  bool ptys = true;
  std::string tool_version;
  char* const* argv = nullptr;  // the command; ends with nullptr
  char* const* environment = nullptr;
};

int Wrap(const Options& options, const MakeConsumer& make_consumer);

}  // namespace rankscope::run
