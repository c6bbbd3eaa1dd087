// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/disturbances.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "tests/generator/text.h"

namespace rankscope::generator {
namespace {

bool IsOf(const std::string& store, Source source) {
  switch (source) {
    case Source::kProcess:
    case Source::kNetwork:
    case Source::kIo:
    case Source::kCuda:
      return store == "ebpf";
    case Source::kNccl:
      return store == "ebpf" || store == "nccl";
    case Source::kNcclRas:
    case Source::kNcclDumps:
      return store == "nccl";
    case Source::kNvml:
      return store == "nvml";
    case Source::kSlurm:
      return store == "slurm";
    case Source::kStdoutTail:
      return store == "text";
    case Source::kStdio:
      return store == "text" || store == "ebpf";
    case Source::kKmsg:
      return store == "kernel";
    default:
      return false;
  }
}

// Without eBPF the kernel's process connector reports starts and exits, and the files are read.
bool Survives(Item& item) {
  const auto& kind = item.observation.kind;
  if (item.source == Source::kProcess &&
      (std::holds_alternative<ProcessStart>(kind) || std::holds_alternative<ProcessExit>(kind))) {
    item.source = Source::kProcConnector;
    return true;
  }
  if (item.source == Source::kStdio && std::holds_alternative<LogLine>(kind)) {
    item.source = Source::kStdoutTail;
    return true;
  }
  return false;
}

bool IsMissing(const Options& options, Item& item) {
  for (const std::string& store : options.without) {
    const bool line = std::holds_alternative<LogLine>(item.observation.kind);
    if (store == "text" && line) return true;
    if (!IsOf(store, item.source)) continue;
    if (auto* const state = std::get_if<SourceState>(&item.observation.kind)) {
      state->state = store == "ebpf" ? Availability::kUnsupported : Availability::kDown;
      state->reason = store == "ebpf" ? "kernel without BTF" : store + " is not there";
      return false;
    }
    if (store == "ebpf" && Survives(item)) continue;
    return true;
  }
  if (auto* const state = std::get_if<SourceState>(&item.observation.kind)) {
    const bool no_ebpf =
        std::find(options.without.begin(), options.without.end(), "ebpf") != options.without.end();
    if (no_ebpf && item.source == Source::kProcConnector) {
      state->state = Availability::kUp;
      state->reason.clear();
    }
  }
  return false;
}

bool IsSetup(const Item& item) {
  return std::holds_alternative<SourceState>(item.observation.kind) ||
         std::holds_alternative<Epoch>(item.observation.kind);
}

// What a daemon that begins at `at` still finds: processes that live, files from their beginning,
// the scheduler's record. Everything else of before is gone.
void Rediscover(const World& world, double from, double at, std::vector<Item>& items,
                bool restarted) {
  std::map<int32_t, ProcessKey> ended;
  for (const Item& item : items) {
    const auto* const exit = std::get_if<ProcessExit>(&item.observation.kind);
    if (exit != nullptr && item.t < at) ended[exit->key.pid] = exit->key;
  }
  std::vector<Item> kept;
  kept.reserve(items.size());
  double delay = 0;
  std::map<uint32_t, Event> read;  // by stream: how far its file is read at once
  for (Item& item : items) {
    if (item.t < from || item.t >= at || (IsSetup(item) && !restarted)) {
      if (IsSetup(item) && item.t < at && !restarted) item.t = at + (item.t < 0.005 ? 0 : 0.01);
      kept.push_back(std::move(item));
      continue;
    }
    auto& kind = item.observation.kind;
    if (auto* const start = std::get_if<ProcessStart>(&kind)) {
      if (ended.contains(start->key.pid)) continue;
      start->preexisting = true;
      item.source = Source::kProcfs;
      item.t = at + 0.1;
      kept.push_back(std::move(item));
    } else if (auto* const exit = std::get_if<ProcessExit>(&kind); exit != nullptr && restarted) {
      exit->status_known = false;
      item.source = Source::kProcfs;
      item.t = at + 0.15;
      kept.push_back(std::move(item));
    } else if (auto* const line = std::get_if<LogLine>(&kind)) {
      if (!world.plan.file_output) continue;  // a pipe cannot be read again
      Event& past = read[line->stream];
      past.rank.job_id = line->job_id;
      past.rank.rank = -1;
      past.type = WireType(EventType::kOutputRead);
      past.num = {{"stream", line->stream},
                  {"end", line->offset + static_cast<int64_t>(item.text.size()) + 1},
                  {"written", world.plan.boot_ns + static_cast<int64_t>(item.t * 1e9)}};
      if (item.source == Source::kStdio) item.source = Source::kStdoutTail;
      delay += 0.00002;
      item.t = at + 0.3 + delay;
      kept.push_back(std::move(item));
    } else if (std::holds_alternative<SchedulerFact>(kind) ||
               std::holds_alternative<RunMark>(kind)) {
      item.t = at + 0.2;
      kept.push_back(std::move(item));
    }
  }
  for (auto& [stream, past] : read) {
    Item& item = kept.emplace_back();
    item.t = at + 0.25;
    item.source = Source::kStdoutTail;
    item.observation.kind = std::move(past);
  }
  items = std::move(kept);
}

void Sort(std::vector<Item>& items) {
  std::stable_sort(items.begin(), items.end(),
                   [](const Item& a, const Item& b) { return a.t < b.t; });
}

void Outage(const World& world, Random& random, std::vector<Item>& items) {
  const double length = random.In({15, 300});
  const double last = world.horizon();
  const double from = last * random.Between(0.2, 0.7);
  const double at = std::min(from + length, last - 5);
  Rediscover(world, from, at, items, true);
  // The processes that were known before are known again.
  std::vector<Item> again;
  for (const Item& item : items) {
    if (item.t >= from) break;
    const auto* const start = std::get_if<ProcessStart>(&item.observation.kind);
    const auto* const state = std::get_if<SourceState>(&item.observation.kind);
    if (start == nullptr && state == nullptr) continue;
    if (start != nullptr) {
      const bool gone = std::any_of(items.begin(), items.end(), [&](const Item& other) {
        const auto* const exit = std::get_if<ProcessExit>(&other.observation.kind);
        return exit != nullptr && exit->key == start->key && other.t < at;
      });
      bool lives = !gone;
      for (const Life& life : world.lives())
        if (life.key == start->key) lives = life.died > at;
      if (!lives) continue;
    }
    Item copy = item;
    if (auto* const old = std::get_if<ProcessStart>(&copy.observation.kind))
      old->preexisting = true;
    copy.t = at + (start != nullptr ? 0.1 : 0.01);
    again.push_back(std::move(copy));
  }
  items.insert(items.end(), std::make_move_iterator(again.begin()),
               std::make_move_iterator(again.end()));
  Item away;
  away.t = at;
  Epoch epoch;
  epoch.wall_offset_ns = world.plan.wall_ns - world.plan.boot_ns;
  epoch.uncertainty_ns = 2'000'000;
  epoch.boot_id = Text("%08x-0000-4000-8000-000000000000", static_cast<unsigned>(world.plan.seed));
  epoch.away_since = {world.plan.boot_ns + static_cast<int64_t>(from * 1e9)};
  away.observation.kind = epoch;
  items.push_back(std::move(away));
  Sort(items);
}

void LoseBytes(Random& random, std::vector<Item>& items) {
  std::map<std::string, int64_t> lost;
  std::vector<Item> kept;
  kept.reserve(items.size());
  for (Item& item : items) {
    auto* const line = std::get_if<LogLine>(&item.observation.kind);
    if (line != nullptr && random.Chance(0.004)) {
      lost[item.stream_name] += static_cast<int64_t>(item.text.size()) + 1;
      continue;
    }
    if (line != nullptr) line->lost_before = std::exchange(lost[item.stream_name], 0);
    kept.push_back(std::move(item));
  }
  items = std::move(kept);
}

// A busy machine: ticks and samples come late, some not at all.
void LateTicks(const World& world, Random& random, std::vector<Item>& items) {
  const double from = world.horizon() * random.Between(0.2, 0.6);
  const double to = from + random.In({20, 120});
  std::vector<Item> kept;
  kept.reserve(items.size());
  for (Item& item : items) {
    if (std::holds_alternative<Tick>(item.observation.kind) && item.t > from && item.t < to) {
      if (random.Chance(0.3)) continue;
      item.t += 0.45 * random.Unit();
    }
    kept.push_back(std::move(item));
  }
  items = std::move(kept);
  Sort(items);
}

}  // namespace

void Disturb(const Options& options, const World& world, Random random, Truth& truth,
             std::vector<Item>& items) {
  std::erase_if(items, [&options](Item& item) { return IsMissing(options, item); });
  for (const auto& [from, to] : world.frozen) {
    std::erase_if(items, [begin = from, end = to](const Item& item) {
      return item.t > begin && item.t < end;
    });
  }
  Sort(items);
  if (options.late && !world.plan.wrapper) {
    const double at = std::floor(world.horizon() * random.Between(0.2, 0.5));
    if (!world.over() || world.ended_at() > at + 10) {
      std::erase_if(items, [at](const Item& item) {
        return item.t < at && std::holds_alternative<Tick>(item.observation.kind);
      });
      Rediscover(world, 0, at, items, false);
      Sort(items);
      truth.stores.push_back("late");
    }
  }
  if (options.outage && !world.plan.wrapper) Outage(world, random, items);
  if (options.plain) return;
  if (random.Chance(0.1)) LoseBytes(random, items);
  if (random.Chance(0.1)) LateTicks(world, random, items);
}

}  // namespace rankscope::generator
