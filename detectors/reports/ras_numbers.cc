// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/ras_numbers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace rankscope::reports {
namespace {

std::optional<RasState> StateOf(RasRank::State state) {
  switch (state) {
    case RasRank::State::kRunning:
      return RasState::kRunning;
    case RasRank::State::kInitialising:
      return RasState::kInitialising;
    case RasRank::State::kFinalising:
      return RasState::kFinalising;
    case RasRank::State::kAborted:
      return RasState::kAborted;
    case RasRank::State::kNoMember:
      return RasState::kMissing;
    case RasRank::State::kUnresponsive:
      return RasState::kUnresponsive;
    case RasRank::State::kDead:
      return RasState::kDead;
    case RasRank::State::kUnknown:
      break;
  }
  return std::nullopt;
}

// As the text's table prints the state of a group whose ranks agree.
RasState StateOf(const RasGroup& group) {
  if (group.status == "INIT") return RasState::kInitialising;
  if (group.status == "FINALIZE") return RasState::kFinalising;
  if (group.status == "ABORT") return RasState::kAborted;
  return RasState::kRunning;
}

class Counter {
 public:
  explicit Counter(const RasReport& report) : report_(report) {}

  RasNumbers Count() {
    for (const RasCommunicator& communicator : report_.communicators) {
      for (const RasRank& rank : communicator.ranks) Add(communicator, rank);
      AddLag(communicator);
    }
    AddProcesses();
    for (const auto& [key, rank] : ranks_) {
      // One that stands out by its counts or its error alone runs.
      ++numbers_.ranks[static_cast<size_t>(rank.state.value_or(RasState::kRunning))];
      if (rank.error) ++numbers_.errors;
    }
    AddOthers();
    return numbers_;
  }

 private:
  struct Rank {
    std::optional<RasState> state;
    bool error = false;
  };

  // Releases before 2.26 name a rank by its number in the communicator alone.
  static std::string KeyOf(const RasCommunicator& communicator, const RasRank& rank) {
    if (rank.host.empty() && rank.pid < 0) return communicator.id + '#' + std::to_string(rank.rank);
    return KeyOf(rank.host, rank.pid) + '/' + std::to_string(rank.nvml_device);
  }
  static std::string KeyOf(const std::string& host, int64_t pid) {
    return host + '/' + std::to_string(pid);
  }

  void Add(const RasCommunicator& communicator, const RasRank& rank) {
    Rank& known = ranks_[KeyOf(communicator, rank)];
    if (const auto state = StateOf(rank.state)) {
      known.state = known.state ? std::max(*known.state, *state) : *state;
    }
    known.error = known.error || !rank.error.empty();
  }

  void AddLag(const RasCommunicator& communicator) {
    std::array<int64_t, kRasOperationCount + 1> first, last;
    first.fill(-1);
    last.fill(-1);
    for (const RasCount& count : communicator.counts) {
      if (count.operation >= first.size() || count.ranks <= 0 || count.launched < 0) continue;
      int64_t& most = first[count.operation];
      int64_t& least = last[count.operation];
      most = std::max(most, count.launched);
      least = least < 0 ? count.launched : std::min(least, count.launched);
    }
    for (size_t i = 0; i < first.size(); ++i) {
      if (last[i] >= 0) numbers_.lag = std::max(numbers_.lag, first[i] - last[i]);
    }
  }

  // Whole processes, which the text lists apart: the state of each rank of theirs, and one rank
  // each where no rank of theirs is named. In one pass: the job's own service writes the lists.
  void AddProcesses() {
    std::unordered_map<std::string, RasState> states;
    for (const auto& [processes, state] :
         {std::pair{&report_.unresponsive, RasState::kUnresponsive},
          std::pair{&report_.dead, RasState::kDead}}) {
      for (const RasProcess& process : *processes) states[KeyOf(process.host, process.pid)] = state;
    }
    std::unordered_set<std::string> named;
    for (auto& [key, rank] : ranks_) {
      const auto found = states.find(key.substr(0, key.rfind('/')));
      if (found == states.end()) continue;
      rank.state = std::max(rank.state.value_or(found->second), found->second);
      named.insert(found->first);
    }
    for (const auto& [process, state] : states) {
      if (!named.contains(process)) ranks_[process].state = state;
    }
  }

  // Of the text: those whom it does not name.
  void AddOthers() {
    if (report_.json) return;
    const RasGroup* largest = nullptr;
    for (const RasGroup& group : report_.groups) {
      if (largest == nullptr || group.ranks > largest->ranks) largest = &group;
    }
    if (largest == nullptr) return;
    const int64_t all = std::max<int64_t>(report_.gpus, largest->ranks);
    const int64_t others = all - static_cast<int64_t>(ranks_.size());
    if (others > 0) numbers_.ranks[static_cast<size_t>(StateOf(*largest))] += others;
  }

  const RasReport& report_;
  std::unordered_map<std::string, Rank> ranks_;
  RasNumbers numbers_;
};

}  // namespace

RasNumbers NumbersOf(const RasReport& report) {
  return Counter(report).Count();
}

}  // namespace rankscope::reports
