// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Request -> Response, a pure function over the published state, behind whichever listener. Any
// thread; nothing throws.
//
//   /metrics           the snapshot: text 0.0.4, or by Accept OpenMetrics or protobuf;
//                      ?collect[]= ?exclude[]= groups of families
//   /verdict           verdicts in pages, the worst first: ?limit= (100) of those behind the job
//                      ?after=, and a Link header to the next; ?state= ?severity= ?user=
//                      ?partition= ?family= ?node= ?since= of these only; ?job_id= one (alias
//                      slurm_job_id): JSON, or by Accept text/plain or application/x-protobuf
//   /evidence?job_id=  what the verdict shows and every number known of the job, JSON
//   /events?job_id=    attempts, changes, the job's life on this node and the cause chain, JSON;
//                      beside Slurm's controller also its events, of all jobs and nodes where none
//                      is named; ?since= time, ?after= number of the last event known
//   /explain?pid=      how a process came to its job and rank, text
//   /config            the configuration in effect, YAML without secrets; for the role log
//   /-/reload          POST: reads the configuration again; for the role log
//   /-/healthy         503 when nothing has been judged for kHealthyAge; a daemon that starts is
//                      healthy; /health is the same
//   /-/ready           503 while it starts, and when nothing has been judged for kReadyAge
//   /                  for browsers: a line per job, with the parameters of /verdict
//   /job/ID            one job; /node: the GPUs and sources of the node
//
// Who has not authenticated and must gets 401, and who has a role too small for a path 403. Text of
// logs is for the role log alone.
// Errors about a job's documents are application/problem+json, all others a line of text. Answers
// that are worth it are compressed for whoever asks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/result.h"
#include "detectors/model/time.h"
#include "exporter/http/host.h"
#include "exporter/http/message.h"
#include "exporter/http/state.h"

namespace rankscope::http {

// What the router cannot know from the published state.
struct RouterOptions {
  // Text for /explain; empty: the pid is not known; nullopt: no answer before the deadline. May be
  // null: 404.
  std::function<std::optional<std::string>(int32_t pid, Duration deadline)> explain = nullptr;
  // The clock of the published ticks, for the probes; null: the age of a tick is not looked at.
  std::function<Timestamp()> now = nullptr;
  HostNames names{};
  // What /config shows, without secrets; nullopt: no answer before the deadline. May be null: 404.
  std::function<std::optional<std::string>(Duration deadline)> config = nullptr;
  // Reads the configuration again; the error is what is wrong with it. Null: /-/reload is 403.
  std::function<Status(Duration deadline)> reload = nullptr;
  std::vector<std::string> open_paths{};  // answered to who has not authenticated, too
};

class Router {
 public:
  explicit Router(RouterOptions options = {}) : options_(std::move(options)) {}

  Response Handle(const Request& request, const State& state) const;

 private:
  RouterOptions options_;
};

// Ticks come once a second, and on two busy cores a tick was seen to come 4 s late: twice that and
// some is a daemon that has nothing new to say. Whoever restarts an unhealthy one loses what was in
// flight, so a minute passes before.
inline constexpr Duration kReadyAge = Seconds(10);
inline constexpr Duration kHealthyAge = Seconds(60);
// 2 GiB of recordings, all that is kept by default, are read in this time at 4 MB/s.
inline constexpr Duration kLongestStart = Seconds(600);

// Longest path and query together; the longest that we print ourselves is below 300 bytes.
inline constexpr size_t kMaxTargetBytes = 2048;

}  // namespace rankscope::http
