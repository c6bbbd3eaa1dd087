// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A scenario is a short YAML file whose keys are the fields of recording.proto, plus a few that
// save writing. It expands to a recording and nothing else; the recording is fed to the engine
// through the ordinary decoder. tests/scenarios/README.md describes the keys. Single-threaded.
#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <string>
#include <vector>

#include "detectors/engine/engine.h"
#include "detectors/proto/recording.pb.h"
#include "detectors/proto/verdict.pb.h"
#include "detectors/verdict/assertion.h"

namespace rankscope::scenarios {

struct Expectation {
  double at = 0;  // seconds; the last tick at or before it is judged
  YAML::Node what;
};

struct Scenario {
  std::string path;    // below tests/scenarios, for messages
  std::string family;  // the folder: a family's name
  std::string kind;    // fires | near_miss
  std::string job_id;
  std::vector<proto::Observation> observations;  // by time, ticks included
  std::vector<Expectation> expectations;
  std::vector<std::string>
      unrelated_numbers;  // numbers that a cited line and its sentence share by chance
};

// Throws std::runtime_error with path, line and what is wrong.
Scenario LoadScenario(const std::string& path);

// All scenario files, sorted.
std::vector<std::string> ScenarioPaths();

// The job's verdict at each of the times, in order, with what it asserts; a default one where the
// engine knows no such job.
std::vector<engine::BuiltVerdict> JudgeWithAssertions(const Scenario& scenario,
                                                      const std::vector<double>& times);

// Calls `look` after each tick.
using Look = std::function<void(const engine::Engine&, Timestamp)>;
void Play(const Scenario& scenario, const Look& look);

// At the end.
proto::Verdict Judge(const Scenario& scenario);

}  // namespace rankscope::scenarios
