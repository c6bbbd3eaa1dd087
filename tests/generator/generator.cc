// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/generator.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "detectors/recording/recording.h"
#include "tests/generator/disturbances.h"
#include "tests/generator/faults.h"
#include "tests/generator/named.h"
#include "tests/generator/sampler.h"

namespace rankscope::generator {
namespace {

class RecordingSink final : public Sink {
 public:
  explicit RecordingSink(std::string& bytes) : bytes_(bytes) {}
  void Accept(const Observation& observation) override {
    recording::AppendObservation(observation, bytes_);
  }

 private:
  std::string& bytes_;
};

std::string FamilyOf(const Options& options, Random& random) {
  if (options.family != "any") return options.family;
  if (random.Chance(0.25)) return "healthy";
  const auto faults = Faults();
  return std::string(faults[random.Next() % faults.size()].code);
}

void Pass(const World& world, const std::vector<Item>& items, Sink& sink) {
  std::array<int64_t, kSourceNames.size()> sequence{};
  const std::string node = world.plan.NodeName(world.plan.observed_node);
  for (const Item& item : items) {
    Observation observation = item.observation;
    observation.t = {world.plan.boot_ns + static_cast<int64_t>(item.t * 1e9)};
    observation.source = static_cast<uint32_t>(item.source);
    observation.seq = ++sequence[static_cast<size_t>(item.source)];
    observation.node = node;
    if (auto* const line = std::get_if<LogLine>(&observation.kind)) {
      line->text = item.text;
      line->stream_name = item.stream_name;
    }
    sink.Accept(observation);
  }
}

}  // namespace

Truth Generate(const Options& asked, Sink& sink) {
  Options options = asked;
  Random random(options.seed * 0x2545F4914F6CDD1Dull + 1, options.widen);
  const std::string family = FamilyOf(options, random);
  const FaultRow* fault = FindFault(family);
  const FaultRow* second = FindFault(options.second);
  if (fault == nullptr) std::swap(fault, second);
  const NamedRow* const named = FindNamed(family);
  Plan plan = DrawPlan(options, random.Fork(3));
  Random shape = random.Fork(4);
  if (named != nullptr) {
    named->shape(plan);
  } else if (fault == nullptr) {
    MakeHealthy(plan, shape);
  }
  for (const FaultRow* row : {fault, second})
    if (row != nullptr) row->require(options, plan, shape);
  World world(options, std::move(plan), random.Fork(5));
  if (named != nullptr) {
    world.truth.family = named->code;
    if (named->code != "G1") world.truth.accepted.clear();
    Random of = random.Fork(7);
    named->apply(world, of);
  }
  if (fault != nullptr) world.truth.accepted.clear();
  if (second != nullptr && second != fault) {
    Random of = random.Fork(6);
    second->apply(world, of);
    world.truth.second = second->code;
  }
  if (fault != nullptr) {
    const Truth of_second = world.truth;
    const auto decided_by_second = world.decided_by;
    world.truth.accepted.clear();
    Random of = random.Fork(7);
    fault->apply(world, of);
    world.truth.family = fault->code;
    if (second != nullptr && second != fault) {
      // Whichever came first is the family; the other is right as well.
      const bool other = of_second.onset > 0 && of_second.onset < world.truth.onset;
      if (other) {
        Truth swapped = of_second;
        swapped.second = world.truth.family;
        std::swap(world.truth, swapped);
        world.decided_by = decided_by_second;
        world.truth.family = second->code;
      }
      world.truth.accepted.push_back(other ? std::string(fault->code) : std::string(second->code));
    }
  }
  world.Run();
  const double until = std::max(world.horizon(), world.over() ? world.ended_at() + 25 : 0.0);
  Sampler(world).Run(until);
  world.truth.seconds = until;
  Truth truth = world.truth;
  std::vector<Item> items = std::move(world.items());
  Disturb(options, world, random.Fork(8), truth, items);
  // Where so little is wrong that to call it healthy is right, so is what ended a healthy job.
  const auto& right = truth.accepted;
  if (!truth.healthy && std::find(right.begin(), right.end(), "G1") != right.end()) {
    if (truth.disposition == "cancelled") truth.accepted.emplace_back("X20");
    if (truth.disposition == "time_limit") truth.accepted.emplace_back("F3");
  }
  // That nothing is wrong is decided by training that is seen.
  if (truth.healthy) world.decided_by = {{Witness::kText}, {Witness::kCalls}};
  truth.decidable = IsDecidable(world.decided_by, truth, items);
  Pass(world, items, sink);
  return truth;
}

Truth GenerateRecording(const Options& options, std::string& bytes) {
  recording::Header header;
  header.tool_version = "generator";
  std::string body;
  RecordingSink sink(body);
  Truth truth = Generate(options, sink);
  header.node = truth.observed_node;
  recording::AppendHeader(header, bytes);
  bytes += body;
  return truth;
}

}  // namespace rankscope::generator
