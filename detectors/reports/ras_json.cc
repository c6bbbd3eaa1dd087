// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <map>

#include "detectors/reports/json.h"
#include "detectors/reports/ras_report.h"

namespace rankscope::reports {
namespace {

using Id = Tree::Id;

// NCCL's result codes that are no error.
constexpr int64_t kSuccess = 0;
constexpr int64_t kInProgress = 7;

std::string_view ErrorName(int64_t code) {
  constexpr std::string_view kNames[] = {"success",        "unhandled CUDA error", "system error",
                                         "internal error", "invalid argument",     "invalid usage",
                                         "remote error",   "in progress",          "timeout"};
  return code >= 0 && code < static_cast<int64_t>(std::size(kNames)) ? kNames[code]
                                                                     : "unknown error";
}

int32_t Int32(const Tree& tree, Id id, int32_t otherwise) {
  const auto value = tree.Int(id);
  if (!value || *value < INT32_MIN || *value > INT32_MAX) return otherwise;
  return static_cast<int32_t>(*value);
}

RasRank ReadProcess(const Tree& tree, Id dict) {
  RasRank rank;
  rank.rank = Int32(tree, tree.Get(dict, "rank"), -1);
  rank.host = tree.String(tree.Get(dict, "host"));
  rank.pid = tree.Int(tree.Get(dict, "pid")).value_or(-1);
  rank.cuda_device = Int32(tree, tree.Get(dict, "cuda_dev"), -1);
  rank.nvml_device = Int32(tree, tree.Get(dict, "nvml_dev"), rank.cuda_device);
  return rank;
}

RasRank ReadRank(const Tree& tree, Id dict) {
  RasRank rank = ReadProcess(tree, dict);
  const Id status = tree.Get(dict, "status");
  const int64_t init = tree.Int(tree.Get(status, "init_state")).value_or(kSuccess);
  const int64_t async = tree.Int(tree.Get(status, "async_error")).value_or(kSuccess);
  const auto flag = [&](std::string_view name) {
    return tree.Bool(tree.Get(status, name)).value_or(false);
  };
  if (flag("abort_flag")) {
    rank.state = RasRank::State::kAborted;
  } else if (flag("finalize_called") || flag("destroy_flag")) {
    rank.state = RasRank::State::kFinalising;
  } else if (init == kSuccess) {
    rank.state = RasRank::State::kRunning;
  } else {
    rank.state = RasRank::State::kInitialising;
  }
  for (const int64_t code : {async, init}) {
    if (code != kSuccess && code != kInProgress) rank.error = ErrorName(code);
  }
  const Id counts = tree.Get(dict, "collective_counts");
  int64_t all = 0;
  for (size_t i = 0; i < kRasOperationCount; ++i) {
    const int64_t count = tree.Int(tree.Get(counts, kRasOperations[i])).value_or(-1);
    rank.launched[i] = count;
    if (count > 0) all += std::min<int64_t>(count, INT64_MAX / 8);
  }
  if (tree.is_dict(counts)) rank.launched[kRasAllOperations] = all;
  return rank;
}

RasRank ReadMissing(const Tree& tree, Id dict) {
  RasRank rank = ReadProcess(tree, dict);
  const Id status = tree.Get(dict, "status");
  const auto flag = [&](std::string_view name) {
    return tree.Bool(tree.Get(status, name)).value_or(false);
  };
  rank.state = flag("considered_dead") ? RasRank::State::kDead
               : flag("unresponsive")  ? RasRank::State::kUnresponsive
                                       : RasRank::State::kNoMember;
  return rank;
}

// What the text's table would say.
void Summarise(RasCommunicator& communicator) {
  std::array<std::map<int64_t, int32_t>, kRasOperationCount> counts;
  bool states[8] = {};
  for (const RasRank& rank : communicator.ranks) {
    states[static_cast<size_t>(rank.state)] = true;
    if (!rank.error.empty()) communicator.failed = true;
    if (rank.state == RasRank::State::kUnresponsive || rank.state == RasRank::State::kDead)
      communicator.incomplete = true;
    for (size_t i = 0; i < kRasOperationCount; ++i) {
      if (rank.launched[i] >= 0) ++counts[i][rank.launched[i]];
    }
  }
  const auto differ = [&](std::initializer_list<RasRank::State> those) {
    return std::count_if(those.begin(), those.end(), [&](RasRank::State state) {
             return states[static_cast<size_t>(state)];
           }) > 1;
  };
  using State = RasRank::State;
  communicator.mismatch = differ({State::kRunning, State::kInitialising, State::kFinalising,
                                  State::kAborted, State::kNoMember});
  for (size_t i = 0; i < kRasOperationCount; ++i) {
    if (counts[i].size() > 1) communicator.mismatch = true;
    for (const auto& [launched, ranks] : counts[i]) {
      communicator.counts.push_back({i, launched, ranks});
    }
  }
}

}  // namespace

RasReport ReadRasJson(std::string_view text) {
  RasReport report;
  report.json = true;
  const Result<Document> read = ReadJson(text);
  if (!read) {
    report.cut = true;
    return report;
  }
  const Tree& tree = read->tree;
  report.cut = read->cut;
  report.repaired = read->repaired;
  report.version = tree.String(tree.Get(read->root, "nccl_version"));
  report.timestamp = tree.String(tree.Get(read->root, "timestamp"));
  const Id ras = tree.Get(read->root, "ras");
  report.collection_seconds = tree.Number(tree.Get(ras, "collection_time_sec")).value_or(-1);
  report.timeouts = Int32(tree, tree.Get(ras, "timeouts_count"), 0);
  const Id communicators = tree.Get(read->root, "communicators");
  report.communicators_told =
      Int32(tree, tree.Get(read->root, "communicators_count"),
            static_cast<int32_t>(std::min<size_t>(tree.size(communicators), INT32_MAX)));
  size_t ranks = 0;
  Tree::Walk walk(tree, communicators);
  for (Tree::Element element; walk.Next(element);) {
    if (report.communicators.size() >= kMaxRasCommunicators) break;
    if (!tree.is_dict(element.value)) continue;
    RasCommunicator communicator;
    communicator.id = tree.String(tree.Get(element.value, "hash"));
    if (const auto second = tree.String(tree.Get(element.value, "secondary_hash"));
        !second.empty()) {
      communicator.id.append("/").append(second);
    }
    communicator.size = Int32(tree, tree.Get(element.value, "size"), 0);
    for (const bool present : {true, false}) {
      Tree::Walk members(tree, tree.Get(element.value, present ? "ranks" : "missing_ranks"));
      for (Tree::Element member; ranks < kMaxRasRanks && members.Next(member); ++ranks) {
        if (!tree.is_dict(member.value)) continue;
        communicator.ranks.push_back(present ? ReadRank(tree, member.value)
                                             : ReadMissing(tree, member.value));
        ++(present ? communicator.reported : communicator.missing);
      }
    }
    Summarise(communicator);
    report.communicators.push_back(std::move(communicator));
  }
  report.none = report.communicators.empty() && tree.is_list(communicators) && !report.cut;
  return report;
}

}  // namespace rankscope::reports
