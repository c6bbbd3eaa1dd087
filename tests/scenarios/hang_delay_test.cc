// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How soon a hang is named, over all scenarios of one with a culprit: 15 s behind the timeout.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "detectors/engine/engine.h"
#include "detectors/families/family.h"
#include "detectors/families/standstill.h"
#include "detectors/features/build.h"
#include "tests/scenarios/scenario.h"

namespace rankscope::scenarios {
namespace {

constexpr double kWithin = 15;  // seconds

// What the whole job has stood still for, against what it may: the collectives where they are
// counted, else the text, where anything but the text could tell of a rank.
bool TimeoutIsOver(const engine::JobView& job, Timestamp now) {
  std::array<Availability, features::kStores> stores;
  stores.fill(Availability::kUp);
  const features::JobFeatures f = features::BuildFeatures(*job.window, stores, now);
  if (!f.running) return false;
  if (f.collectives.entered > 0)
    return f.collectives.seconds_since_advance >= families::StandstillTimeout(f);
  const bool ranks = f.waits.known() || f.gpu.known() || !f.launches.ranks.empty();
  return ranks && f.progress > 0 && f.silence_seconds >= families::HangTimeout(f);
}

bool Names(const proto::Verdict& verdict, const std::vector<int>& ranks) {
  return verdict.code() == "C2" &&
         std::vector<int>(verdict.ranks().begin(), verdict.ranks().end()) == ranks;
}

struct Delay {
  std::optional<Timestamp> over;   // of the hang that the scenario ends with
  std::optional<Timestamp> named;  // for the first time since
};

Delay MeasureDelay(const Scenario& scenario, const std::vector<int>& ranks) {
  Delay delay;
  Play(scenario, [&](const engine::Engine& engine, Timestamp now) {
    const std::optional<engine::JobView> job = engine.Find(scenario.job_id);
    if (!job || job->window == nullptr) return;
    const bool over = TimeoutIsOver(*job, now);
    if (!over && !delay.named) delay.over.reset();
    if (over && !delay.over) delay.over = now;
    if (!delay.named && Names(*job->verdict, ranks)) delay.named = now;
  });
  return delay;
}

TEST(HangDelay, EachCulpritIsNamedSoonAfterTheTimeout) {
  int culprits = 0;
  for (const std::string& path : ScenarioPaths()) {
    if (path.find("/collective_hang/") == std::string::npos) continue;
    const Scenario scenario = LoadScenario(path);
    const YAML::Node ranks = scenario.expectations.back().what["ranks"];
    if (scenario.kind != "fires" || !ranks || ranks.size() == 0) continue;
    SCOPED_TRACE(path);
    ++culprits;
    const Delay delay = MeasureDelay(scenario, ranks.as<std::vector<int>>());
    EXPECT_TRUE(delay.named);
    // One that is not over: somebody said it before.
    if (delay.named && delay.over) {
      EXPECT_LE((*delay.named - *delay.over).seconds(), kWithin);
    }
  }
  EXPECT_GT(culprits, 0);
}

}  // namespace
}  // namespace rankscope::scenarios
