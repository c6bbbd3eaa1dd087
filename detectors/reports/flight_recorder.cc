// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/flight_recorder.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "detectors/reports/json.h"
#include "detectors/reports/pickle.h"

namespace rankscope::reports {
namespace {

using Id = Tree::Id;

constexpr size_t kMaxText = 200;  // of one member that is shown

std::string Shown(std::string_view text) {
  return std::string(text.substr(0, kMaxText));
}

// Lists of lists of numbers, as they are printed.
std::string Sizes(const Tree& tree, Id id, int depth = 0) {
  std::string text = "[";
  Tree::Walk walk(tree, id);
  for (Tree::Element element; walk.Next(element);) {
    if (text.size() > 1) text += ", ";
    if (text.size() > kMaxText) return text + "...]";
    if (tree.is_list(element.value)) {
      text += depth < 2 ? Sizes(tree, element.value, depth + 1) : "...";
    } else {
      text += std::to_string(tree.Int(element.value).value_or(0));
    }
  }
  return text + "]";
}

std::string FirstString(const Tree& tree, Id list) {
  return Shown(tree.String(tree.At(list, 0)));
}

// "nccl:all_reduce" and "nccl:all_reduce_barrier" as the operation alone.
std::string OperationName(std::string_view name) {
  const size_t colon = name.find(':');
  return Shown(colon == std::string_view::npos ? name : name.substr(colon + 1));
}

bool IsTorchFrame(std::string_view file) {
  return file.find("/torch/") != std::string_view::npos ||
         file.find("torch/csrc/") != std::string_view::npos || file.empty() || file == "??";
}

std::string Caller(const Tree& tree, Id frames) {
  constexpr int kMaxFrames = 64;
  Tree::Walk walk(tree, frames);
  int seen = 0;
  for (Tree::Element frame; seen < kMaxFrames && walk.Next(frame); ++seen) {
    const std::string_view file = tree.String(tree.Get(frame.value, "filename"));
    if (IsTorchFrame(file)) continue;
    return Shown(std::string(file) + ":" +
                 std::to_string(tree.Int(tree.Get(frame.value, "line")).value_or(0)) + " " +
                 std::string(tree.String(tree.Get(frame.value, "name"))));
  }
  return {};
}

// "[0, 1, 2]" as PyTorch writes members, or a list of numbers.
std::vector<int32_t> Ranks(const Tree& tree, Id id) {
  constexpr size_t kMaxMembers = size_t{1} << 17;
  std::vector<int32_t> ranks;
  const auto add = [&](int64_t rank) {
    if (rank >= 0 && rank <= INT32_MAX && ranks.size() < kMaxMembers)
      ranks.push_back(static_cast<int32_t>(rank));
  };
  if (tree.is_list(id)) {
    Tree::Walk walk(tree, id);
    for (Tree::Element element; walk.Next(element);) add(tree.Int(element.value).value_or(-1));
  } else {
    std::string_view text = tree.String(id);
    while (!text.empty()) {
      int64_t rank = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
      if (error == std::errc{}) {
        add(rank);
        text.remove_prefix(static_cast<size_t>(end - text.data()));
      } else {
        text.remove_prefix(1);
      }
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

FlightOperation ReadOperation(const Tree& tree, Id entry) {
  FlightOperation operation;
  operation.operation_id = tree.Int(tree.Get(entry, "op_id")).value_or(-1);
  operation.name = OperationName(tree.String(tree.Get(entry, "profiling_name")));
  operation.sizes = Sizes(tree, tree.Get(entry, "input_sizes"));
  operation.dtype = FirstString(tree, tree.Get(entry, "input_dtypes"));
  operation.state = Shown(tree.String(tree.Get(entry, "state")));
  operation.caller = Caller(tree, tree.Get(entry, "frames"));
  operation.created_ns = tree.Int(tree.Get(entry, "time_created_ns")).value_or(0);
  operation.timeout_ms = tree.Int(tree.Get(entry, "timeout_ms")).value_or(0);
  return operation;
}

// The peer of "send 0->1" and "recv 1<-0", by its number in the group; -1 = it is neither.
int32_t PeerOf(std::string_view operation) {
  for (const std::string_view arrow : {"->", "<-"}) {
    const size_t at = operation.find(arrow);
    if (at == std::string_view::npos) continue;
    const std::string_view digits = operation.substr(at + arrow.size());
    int32_t peer = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), peer);
    return peer;
  }
  return -1;
}

// A send or receive, or a batch of them.
struct Exchange {
  bool batch = false;
  bool completed = false;
  std::vector<int32_t> peers;  // by their numbers in the group
  FlightOperation first;

  // Of a batch only its last entry, "coalesced", is told to be complete.
  void Add(FlightOperation operation, bool done) {
    if (operation.name == "coalesced") {
      batch = true;
      completed = done;
    } else {
      if (!batch) completed = done;
      if (const int32_t peer = PeerOf(operation.name); peer >= 0) peers.push_back(peer);
    }
    if (first.sequence < 0) first = std::move(operation);
  }
};

// Those of a group, by their numbers.
struct ExchangesOfGroup {
  std::map<int64_t, Exchange> by_number;
  bool newest = false;  // nothing of the group was recorded after them

  int64_t last() const { return by_number.empty() ? -1 : by_number.rbegin()->first; }

  // What the rank's own later sends and receives wait behind. One that a later one with the same
  // peers has overtaken is complete: pairs of ranks have a stream each. nullptr: there is none.
  const Exchange* Oldest() const {
    const Exchange* oldest = nullptr;
    std::set<int32_t> done;
    for (auto at = by_number.rbegin(); at != by_number.rend(); ++at) {
      const Exchange& exchange = at->second;
      // A batch whose entries have numbers of their own (PyTorch 2.4 and before).
      if (exchange.completed && exchange.peers.empty()) break;
      if (exchange.completed) done.insert(exchange.peers.begin(), exchange.peers.end());
      const bool overtaken = std::ranges::all_of(
          exchange.peers, [&done](int32_t peer) { return done.contains(peer); });
      if (!exchange.completed && !exchange.peers.empty() && !overtaken) oldest = &exchange;
    }
    return oldest;
  }
};

class Collector {
 public:
  explicit Collector(const Tree& tree, Id root) : tree_(tree), root_(root) {}

  FlightDump Run() {
    FlightDump dump;
    dump.version = Shown(tree_.String(tree_.Get(root_, "version")));
    dump.nccl_version = Shown(tree_.String(tree_.Get(root_, "nccl_version")));
    if (dump.nccl_version.empty())
      dump.nccl_version = Shown(tree_.String(tree_.Get(root_, "comm_lib_version")));
    Tree::Walk walk(tree_, tree_.Get(root_, "entries"));
    for (Tree::Element entry; dump.entries < kMaxFlightEntries && walk.Next(entry);) {
      ++dump.entries;
      Entry(entry.value);
    }
    Status();
    Config();
    Exchanges();
    for (auto& [name, group] : groups_) dump.groups.push_back(std::move(group));
    return dump;
  }

 private:
  FlightGroup* Group(std::string_view name) {
    const auto found = groups_.find(name);
    if (found != groups_.end()) return &found->second;
    if (groups_.size() >= kMaxFlightGroups) return nullptr;
    FlightGroup& group = groups_[std::string(name)];
    group.name = Shown(name);
    return &group;
  }

  void Entry(Id entry) {
    // A pair of name and description; one text before 2.0.
    const Id group_id = tree_.Get(entry, "process_group");
    std::string_view name = tree_.String(tree_.At(group_id, 0));
    if (name.empty()) name = tree_.String(group_id);
    if (name.empty()) name = tree_.String(tree_.Get(entry, "pg_name"));
    const int64_t local_id = tree_.Int(tree_.Get(entry, "pg_id")).value_or(-1);
    std::string numbered;
    if (name.empty() && local_id >= 0) name = numbered = std::to_string(local_id);
    if (name.empty()) return;
    FlightGroup* const group = Group(name);
    if (group == nullptr) return;
    ++group->entries;
    group->local_id = local_id;
    if (group->description.empty()) group->description = Shown(tree_.String(tree_.At(group_id, 1)));
    const bool completed = tree_.String(tree_.Get(entry, "state")) == "completed";
    ExchangesOfGroup& exchanges = exchanges_[group->name];
    exchanges.newest = tree_.Bool(tree_.Get(entry, "is_p2p")).value_or(false);
    if (exchanges.newest) {
      FlightOperation operation = ReadOperation(tree_, entry);
      operation.sequence = tree_.Int(tree_.Get(entry, "p2p_seq_id")).value_or(-1);
      if (operation.sequence < 0) return;
      exchanges.by_number[operation.sequence].Add(std::move(operation), completed);
      return;
    }
    int64_t sequence = tree_.Int(tree_.Get(entry, "collective_seq_id")).value_or(-1);
    if (sequence < 0) sequence = tree_.Int(tree_.Get(entry, "seq_id")).value_or(-1);
    if (sequence < 0) return;
    group->last_enqueued = std::max(group->last_enqueued, sequence);
    if (completed) {
      group->last_completed = std::max(group->last_completed, sequence);
    } else if (!group->has_pending || sequence < group->pending.sequence) {
      group->has_pending = true;
      group->pending = ReadOperation(tree_, entry);
      group->pending.sequence = sequence;
    }
  }

  // The recorder is a ring and may have forgotten what the status still knows.
  void Status() {
    const Id status = tree_.Get(root_, "pg_status");
    std::map<int64_t, Id> by_id;
    Tree::Walk walk(tree_, status);
    for (Tree::Element element; by_id.size() < kMaxFlightGroups && walk.Next(element);) {
      if (const auto id = tree_.Int(element.key)) by_id[*id] = element.value;
    }
    for (auto& [name, group] : groups_) {
      const auto found = by_id.find(group.local_id);
      if (found == by_id.end()) continue;
      const auto number = [&](std::string_view key) {
        return tree_.Int(tree_.Get(found->second, key)).value_or(-1);
      };
      const ExchangesOfGroup& exchanges = exchanges_[name];
      if (exchanges.newest && exchanges.last() == number("last_enqueued_collective")) continue;
      group.last_enqueued = std::max(group.last_enqueued, number("last_enqueued_collective"));
      group.last_completed = std::max(group.last_completed, number("last_completed_collective"));
      group.last_started = number("last_started_collective");
      if (group.has_pending && group.pending.sequence <= group.last_completed)
        group.has_pending = false;  // the watchdog knew better than the entry
    }
  }

  void Config() {
    Tree::Walk walk(tree_, tree_.Get(root_, "pg_config"));
    for (Tree::Element element; walk.Next(element);) {
      std::string_view name = tree_.String(tree_.Get(element.value, "name"));
      if (name.empty()) name = tree_.String(element.key);
      if (name.empty()) continue;
      FlightGroup* const group = Group(name);
      if (group == nullptr) return;
      group->ranks = Ranks(tree_, tree_.Get(element.value, "ranks"));
      if (group->description.empty())
        group->description = Shown(tree_.String(tree_.Get(element.value, "desc")));
    }
  }

  void Exchanges() {
    constexpr std::string_view kDefaultGroup = "0";  // numbers ranks as the job does
    for (auto& [name, group] : groups_) {
      const auto found = exchanges_.find(name);
      const Exchange* const oldest = found == exchanges_.end() ? nullptr : found->second.Oldest();
      if (oldest == nullptr) continue;
      group.exchange = oldest->first;
      for (const int32_t peer : oldest->peers) {
        const auto at = static_cast<size_t>(peer);
        if (at < group.ranks.size()) {
          group.peers.push_back(group.ranks[at]);
        } else if (group.ranks.empty() && name == kDefaultGroup) {
          group.peers.push_back(peer);
        }
      }
      std::sort(group.peers.begin(), group.peers.end());
      group.peers.erase(std::unique(group.peers.begin(), group.peers.end()), group.peers.end());
    }
  }

  const Tree& tree_;
  const Id root_;
  std::map<std::string, ExchangesOfGroup, std::less<>> exchanges_;  // by group
  std::map<std::string, FlightGroup, std::less<>> groups_;
};

}  // namespace

Result<FlightDump> ReadFlightDump(std::string_view bytes) {
  const Result<Document> read = IsPickle(bytes) ? ReadPickle(bytes) : ReadJson(bytes);
  if (!read) return Error{read.error()};
  const Tree& tree = read->tree;
  if (!tree.is_dict(read->root) || (tree.Get(read->root, "entries") == Tree::kNone &&
                                    tree.Get(read->root, "pg_status") == Tree::kNone &&
                                    tree.Get(read->root, "pg_config") == Tree::kNone)) {
    return Error{"no dump of a Flight Recorder: it holds neither entries nor process groups"};
  }
  FlightDump dump = Collector(tree, read->root).Run();
  dump.cut = read->cut;
  return dump;
}

}  // namespace rankscope::reports
