// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/scenarios/scenario.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "detectors/engine/engine.h"
#include "detectors/recording/recording.h"
#include "tests/scenarios/expand.h"

namespace rankscope::scenarios {
namespace {

// One delimited recording of observations[begin, end).
std::string Encode(const Scenario& scenario, size_t begin, size_t end) {
  std::string bytes;
  if (begin == 0) {
    recording::Header header;
    header.node = "n1";
    recording::AppendHeader(header, bytes);
  }
  for (size_t i = begin; i < end; ++i) {
    const std::string frame = scenario.observations[i].SerializeAsString();
    for (size_t size = frame.size(); true; size >>= 7) {
      if (size < 0x80) {
        bytes.push_back(static_cast<char>(size));
        break;
      }
      bytes.push_back(static_cast<char>(size | 0x80));
    }
    bytes += frame;
  }
  return bytes;
}

}  // namespace

Scenario LoadScenario(const std::string& path) {
  try {
    return ExpandScenario(path, YAML::LoadFile(path));
  } catch (const YAML::Exception& error) {
    throw std::runtime_error(path + ":" + std::to_string(error.mark.line + 1) + ": " + error.msg);
  }
}

std::vector<std::string> ScenarioPaths() {
  std::vector<std::string> paths;
  const std::filesystem::path folder =
      std::filesystem::path(RANKSCOPE_SOURCE_DIR) / "tests/scenarios";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<engine::BuiltVerdict> JudgeWithAssertions(const Scenario& scenario,
                                                      const std::vector<double>& times) {
  engine::Engine engine({}, "n1");
  recording::Decoder decoder;
  const auto accept = [&](const Observation& observation) {
    if (std::holds_alternative<Tick>(observation.kind)) {
      engine.Tick(observation.t);
    } else {
      engine.Accept(observation);
    }
  };
  std::vector<engine::BuiltVerdict> verdicts;
  size_t done = 0;
  for (const double time : times) {
    size_t end = done;
    while (end < scenario.observations.size() &&
           static_cast<double>(scenario.observations[end].t_ns()) * 1e-9 <= time + kStartSeconds) {
      ++end;
    }
    decoder.Feed(
        Encode(scenario, done, end), [](const recording::Header&) {}, accept);
    if (decoder.failed()) throw std::runtime_error(scenario.path + ": " + decoder.error());
    done = end;
    const std::optional<engine::JobView> job = engine.Find(scenario.job_id);
    engine::BuiltVerdict& verdict = verdicts.emplace_back();
    if (job) verdict.document = *job->verdict;
    if (job && job->assertions != nullptr) verdict.assertions = *job->assertions;
  }
  return verdicts;
}

void Play(const Scenario& scenario, const Look& look) {
  engine::Engine engine({}, "n1");
  recording::Decoder decoder;
  decoder.Feed(
      Encode(scenario, 0, scenario.observations.size()), [](const recording::Header&) {},
      [&](const Observation& observation) {
        if (!std::holds_alternative<Tick>(observation.kind)) return engine.Accept(observation);
        engine.Tick(observation.t);
        look(engine, observation.t);
      });
  if (decoder.failed()) throw std::runtime_error(scenario.path + ": " + decoder.error());
}

proto::Verdict Judge(const Scenario& scenario) {
  return JudgeWithAssertions(scenario, {INFINITY}).front().document;
}

}  // namespace rankscope::scenarios
