// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The real snapshot, router and listener over scripted states, for tests with a real client on the
// other side. Prints `listening PORT`; then each word on standard input (healthy, hanging,
// finished, diverged, none, or LOAD:MINUTE of node_loads.h) publishes that state and is answered by
// `published WORD`. Ends with its input. Loads are shown as by a daemon without configuration that
// also has DCGM's names, all else in the full profile.
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exporter/http/listener.h"
#include "tests/unit/metrics/node_loads.h"

namespace {

using rankscope::JobStatus;
using rankscope::metrics::Published;

Published StateNamed(const std::string& word) {
  const size_t colon = word.find(':');
  for (const rankscope::test::NodeLoad& load : rankscope::test::kNodeLoads) {
    if (colon != std::string::npos && word.substr(0, colon) == load.name)
      return rankscope::test::NodeAt(load, std::stoi(word.substr(colon + 1)));
  }
  std::vector<JobStatus> jobs;
  if (word == "healthy") jobs.push_back(rankscope::test::HealthyJob());
  if (word == "hanging") jobs.push_back(rankscope::test::HangingJob());
  if (word == "finished") jobs.push_back(rankscope::test::FinishedJob("8841", 120));
  if (word == "diverged") {
    jobs.push_back(rankscope::test::HealthyJob());
    jobs.back().signals.Set(rankscope::SignalId::kLoss, std::nan(""));
    jobs.back().training.nonfinite_loss = 3;
    rankscope::test::AddLaunchGaps(jobs.back().ranks.front());
    rankscope::test::SetFamily(jobs.back(), "E1", 0.85, "critical");
  }
  return rankscope::test::OnNode(std::move(jobs));
}

}  // namespace

int main() {
  rankscope::http::StateHolder holder;
  rankscope::metrics::SnapshotBuilder full({.profile = rankscope::metrics::Profile::kFull});
  rankscope::metrics::SnapshotBuilder loads({.dcgm_names = true});
  const auto listener = rankscope::http::Listener::Start(
      {.addresses = {"127.0.0.1:0"}}, [&] { return holder.Current(); }, rankscope::http::Router());
  if (!listener) {
    std::cerr << listener.error() << "\n";
    return 1;
  }
  std::cout << "listening " << (*listener)->ports().front() << std::endl;
  for (std::string word; std::cin >> word;) {
    auto published = std::make_shared<Published>(StateNamed(word));
    published->agent.http = (*listener)->Counts();
    auto& builder = word.find(':') == std::string::npos ? full : loads;
    auto exposition =
        std::make_shared<const rankscope::http::Exposition>(builder.Build(*published));
    holder.Publish(std::make_shared<const rankscope::http::State>(std::move(published),
                                                                  std::move(exposition), nullptr));
    std::cout << "published " << word << std::endl;
  }
  return 0;
}
