// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/scenarios/expand.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include "tests/scenarios/yaml_proto.h"

namespace rankscope::scenarios {
namespace {

using Variables = std::map<std::string, double>;

constexpr int64_t kWallStartNs = 1'750'000'000'000'000'000;  // wall time of monotonic 0
constexpr int kLauncherPid = 100;  // of `ranks: N`; rank r has the pid after it plus r

[[noreturn]] void Fail(const YAML::Node& node, const std::string& what) {
  throw YAML::Exception(node.Mark(), what);
}

int64_t Nanoseconds(double seconds) {
  return static_cast<int64_t>(std::llround((kStartSeconds + seconds) * 1e9));
}

// "step {i} loss {loss:.4f}": braces around anything that is not a variable stay as they are.
std::string Substitute(const std::string& text, const Variables& variables) {
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t open = text.find('{', at);
    const size_t close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) return out + text.substr(at);
    const std::string inside = text.substr(open + 1, close - open - 1);
    const size_t colon = inside.find(":.");
    const auto variable = variables.find(inside.substr(0, colon));
    if (variable == variables.end()) {
      out += text.substr(at, open + 1 - at);
      at = open + 1;
      continue;
    }
    const int digits = colon == std::string::npos ? 0 : std::stoi(inside.substr(colon + 2));
    char number[64];
    std::snprintf(number, sizeof(number), "%.*f", digits, variable->second);
    out += text.substr(at, open - at) + number;
    at = close + 1;
  }
}

YAML::Node Substitute(const YAML::Node& node, const Variables& variables) {
  if (node.IsScalar()) return YAML::Node(Substitute(node.Scalar(), variables));
  YAML::Node copy;
  if (node.IsSequence()) {
    for (const auto& item : node) copy.push_back(Substitute(item, variables));
  } else if (node.IsMap()) {
    for (const auto& entry : node) copy[entry.first.Scalar()] = Substitute(entry.second, variables);
  }
  return copy;
}

// Linear from point to point; `share` is 0 at the first and 1 at the last.
double Interpolate(const std::vector<double>& points, double share) {
  if (points.size() == 1) return points.front();
  const double position = share * static_cast<double>(points.size() - 1);
  const auto left = std::min(static_cast<size_t>(position), points.size() - 2);
  const double rest = position - static_cast<double>(left);
  return points[left] * (1 - rest) + points[left + 1] * rest;
}

class Expander {
 public:
  Expander(const std::string& path, const YAML::Node& root) : root_(root) {
    const std::filesystem::path file(path);
    scenario_.path = file.parent_path().filename() / file.filename();
    scenario_.family = file.parent_path().filename();
  }

  Scenario Expand() {
    for (const auto& entry : root_) {
      static constexpr const char* kKeys[] = {
          "what",   "kind",    "job_id",    "ranks",        "settle",
          "expect", "stopped", "expect_at", "observations", "unrelated_numbers"};
      if (std::find(std::begin(kKeys), std::end(kKeys), entry.first.Scalar()) == std::end(kKeys)) {
        Fail(entry.first, "unknown key '" + entry.first.Scalar() + "'");
      }
    }
    scenario_.kind = root_["kind"].as<std::string>("");
    if (scenario_.kind != "fires" && scenario_.kind != "near_miss")
      Fail(root_, "kind: fires or near_miss");
    scenario_.job_id = root_["job_id"].as<std::string>("8841");
    scenario_.unrelated_numbers =
        root_["unrelated_numbers"].as<std::vector<std::string>>(std::vector<std::string>());

    auto& epoch = *Add(0).mutable_epoch();
    epoch.set_wall_offset_ns(kWallStartNs);
    epoch.set_boot_id("0f0f0f0f-0000-4000-8000-000000000000");
    if (root_["ranks"]) AddRanks(root_["ranks"].as<int>());
    for (const auto& item : root_["observations"]) {
      try {
        AddItem(item);
      } catch (const YAML::Exception& error) {
        Fail(item, error.msg);  // substituted nodes have lost their place
      }
    }
    AddTicks(root_["settle"].as<double>(5));
    std::stable_sort(scenario_.observations.begin(), scenario_.observations.end(),
                     [](const auto& a, const auto& b) { return a.t_ns() < b.t_ns(); });
    AssignOffsets();

    for (const auto& expectation : root_["expect_at"]) {
      scenario_.expectations.push_back({expectation["at"].as<double>(), expectation});
    }
    if (!root_["expect"]) Fail(root_, "expect is missing");
    scenario_.expectations.push_back({std::numeric_limits<double>::infinity(), root_["expect"]});
    return std::move(scenario_);
  }

 private:
  proto::Observation& Add(double t) {
    proto::Observation& observation = scenario_.observations.emplace_back();
    observation.set_t_ns(Nanoseconds(t));
    observation.set_seq(static_cast<int64_t>(scenario_.observations.size()));
    return observation;
  }

  // A launcher and its ranks, as the process source reports them.
  void AddRanks(int ranks) {
    for (int i = 0; i <= ranks; ++i) {
      auto& start = *Add(0.1).mutable_start();
      start.mutable_key()->set_pid(kLauncherPid + i);
      start.mutable_key()->set_start_ticks(int64_t{10} * (kLauncherPid + i));
      start.set_comm("python3");
      start.set_job_id(scenario_.job_id);
      start.set_complete(true);
      if (i == 0) continue;
      start.mutable_parent()->set_pid(kLauncherPid);
      start.mutable_parent()->set_start_ticks(int64_t{10} * kLauncherPid);
      const std::pair<const char*, int> environment[] = {
          {"RANK", i - 1}, {"LOCAL_RANK", i - 1}, {"WORLD_SIZE", ranks}};
      for (const auto& [key, value] : environment) {
        auto& pair = *start.add_env();
        pair.set_key(key);
        pair.set_value(std::to_string(value));
      }
    }
  }

  // `each: N` or a list: the observation once for each of these ranks, {rank} and its {pid}.
  void AddItem(const YAML::Node& item) {
    const YAML::Node each = item["each"];
    if (!each) return AddRepeated(item, {});
    std::vector<int> ranks;
    if (each.IsScalar()) {
      for (int rank = 0; rank < each.as<int>(); ++rank) ranks.push_back(rank);
    } else {
      ranks = each.as<std::vector<int>>();
    }
    for (const int rank : ranks)
      AddRepeated(item, {{"rank", rank}, {"pid", kLauncherPid + 1 + rank}});
  }

  void AddRepeated(const YAML::Node& item, const Variables& of_rank) {
    const YAML::Node repeat = item["repeat"];
    const int count = !repeat ? 1 : repeat.IsMap() ? repeat["count"].as<int>() : repeat.as<int>();
    const double from = repeat && repeat.IsMap() ? repeat["from"].as<double>(0) : 0;
    const double by = repeat && repeat.IsMap() ? repeat["by"].as<double>(1) : 1;
    const auto dropped = item["drop"].as<std::vector<int>>(std::vector<int>());
    const double at = item["at"].as<double>(0);
    const double every = item["every"].as<double>(0);
    const uint32_t seed = item["noise"] ? item["noise"]["seed"].as<uint32_t>(1) : 1;
    std::mt19937 random(seed +
                        static_cast<uint32_t>(of_rank.contains("rank") ? of_rank.at("rank") : 0));

    double t = at;
    for (int i = 0; i < count; ++i) {
      Variables variables = of_rank;
      variables["i"] = from + by * i;
      const double share = count > 1 ? static_cast<double>(i) / (count - 1) : 0;
      for (const auto& ramp : item["ramp"]) {
        variables[ramp.first.Scalar()] = Interpolate(ramp.second.as<std::vector<double>>(), share);
      }
      for (const auto& noise : item["noise"]) {
        if (noise.first.Scalar() == "seed") continue;
        // Not std::normal_distribution: its numbers differ between standard libraries.
        const double unit =
            static_cast<double>(random()) / static_cast<double>(std::mt19937::max());
        variables[noise.first.Scalar()] += noise.second.as<double>() * (2 * unit - 1);
      }
      if (std::find(dropped.begin(), dropped.end(), i) == dropped.end()) {
        AddOnce(Substitute(item, variables), t);
      }
      t += every;
    }
  }

  // One repetition. `every` lies between repetitions or, where there is no `repeat`, between the
  // lines of the block.
  void AddOnce(const YAML::Node& item, double t) {
    static constexpr const char* kHelpers[] = {"at",     "every",  "repeat", "ramp",
                                               "noise",  "drop",   "lines",  "stream",
                                               "writer", "source", "each"};
    if (item["lines"]) {
      const double gap = item["repeat"] ? 0 : item["every"].as<double>(0);
      for (const std::string& text : Lines(item["lines"])) {
        AddLine(item, text, t);
        t += gap;
      }
      return;
    }
    proto::Observation& observation = Add(t);
    observation.set_source(item["source"].as<uint32_t>(0));
    YAML::Node kind;
    for (const auto& entry : item) {
      const std::string name = entry.first.Scalar();
      if (std::find(std::begin(kHelpers), std::end(kHelpers), name) == std::end(kHelpers)) {
        kind[name] = entry.second;
      }
    }
    if (kind.size() != 1) Fail(item, "an observation has exactly one kind");
    FillMessage(observation, kind);
    if (observation.has_run() && observation.run().job_id().empty()) {
      observation.mutable_run()->set_job_id(scenario_.job_id);
    }
    if (observation.has_scheduler() && observation.scheduler().job_id().empty()) {
      observation.mutable_scheduler()->set_job_id(scenario_.job_id);
    }
  }

  static std::vector<std::string> Lines(const YAML::Node& node) {
    if (node.IsSequence()) return node.as<std::vector<std::string>>();
    std::vector<std::string> lines;
    std::istringstream block(node.as<std::string>());
    for (std::string line; std::getline(block, line);) lines.push_back(line);
    return lines;
  }

  void AddLine(const YAML::Node& item, const std::string& text, double t) {
    auto& line = *Add(t).mutable_line();
    const auto stream = item["stream"].as<std::string>("stdout");
    line.set_stream(stream == "stdout" ? 1 : 2);
    line.set_stream_name(stream);
    line.set_job_id(scenario_.job_id);
    line.set_text(text);
    line.set_end(proto::LogLine::LF);
    if (item["writer"]) FillMessage(*line.mutable_writer(), item["writer"]);
  }

  // On the whole seconds, from the first to `settle` after the last observation.
  void AddTicks(double settle) {
    int64_t last = 0;
    for (const auto& observation : scenario_.observations)
      last = std::max(last, observation.t_ns());
    const double end = static_cast<double>(last) * 1e-9 - kStartSeconds + settle;
    for (double t = 1; t <= end; ++t) {
      bool stopped = false;
      for (const auto& span : root_["stopped"])
        stopped = stopped || (t > span[0].as<double>() && t < span[1].as<double>());
      if (!stopped) Add(t).mutable_tick();
    }
  }

  void AssignOffsets() {
    std::map<std::string, int64_t> ends;
    for (auto& observation : scenario_.observations) {
      if (!observation.has_line()) continue;
      auto& line = *observation.mutable_line();
      int64_t& end = ends[line.stream_name()];
      line.set_offset(end);
      end += static_cast<int64_t>(line.text().size()) + 1;
    }
  }

  const YAML::Node root_;
  Scenario scenario_;
};

}  // namespace

Scenario ExpandScenario(const std::string& path, const YAML::Node& root) {
  return Expander(path, root).Expand();
}

}  // namespace rankscope::scenarios
