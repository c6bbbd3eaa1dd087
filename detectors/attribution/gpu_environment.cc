// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/gpu_environment.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

namespace rankscope::attribution {
namespace {

constexpr std::string_view kUuidPrefix = "GPU-";
constexpr std::string_view kMigPrefix = "MIG-";

using Environment = std::vector<KeyValue>;

std::optional<std::string_view> ValueOf(const Environment& environment, std::string_view key) {
  for (const KeyValue& entry : environment) {
    if (entry.key == key && entry.value.size() <= kGpuListCap) return entry.value;
  }
  return std::nullopt;
}

std::optional<int32_t> NumberIn(std::string_view text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int32_t> NumberOf(const Environment& environment, std::string_view key) {
  const auto value = ValueOf(environment, key);
  return value ? NumberIn(*value) : std::nullopt;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

bool IsUuid(std::string_view text) {
  constexpr std::string_view kCharacters = "0123456789abcdefABCDEF-";
  constexpr size_t kUuid = 36;
  if (!text.starts_with(kUuidPrefix)) return false;
  text.remove_prefix(kUuidPrefix.size());
  return text.size() >= kMinUuidCharacters && text.size() <= kUuid &&
         text.find_first_not_of(kCharacters) == text.npos;
}

struct List {
  std::vector<GpuName> cards;  // in the order of the list, each once
  bool mig = false;
  bool whole = true;  // nothing in it could not be read
};

void AddOnce(GpuName name, List& list) {
  if (list.cards.size() >= kMaxGpusNamed) return;
  if (std::find(list.cards.begin(), list.cards.end(), name) == list.cards.end())
    list.cards.push_back(std::move(name));
}

// "3", "0-3" or a uuid. False where it is none of them.
bool AddEntry(std::string_view entry, List& list) {
  if (entry.starts_with(kMigPrefix)) {
    list.mig = true;
    // Before driver 470: MIG-GPU-<uuid>/<instance>/<compute instance>. Since then an instance has a
    // uuid of its own, which tells nothing of its card.
    entry.remove_prefix(kMigPrefix.size());
    entry = entry.substr(0, entry.find('/'));
    if (IsUuid(entry)) AddOnce({std::string(entry), -1, -1}, list);
    return true;
  }
  if (IsUuid(entry)) {
    AddOnce({std::string(entry), -1, -1}, list);
    return true;
  }
  const size_t dash = entry.find('-', 1);
  const auto first = NumberIn(entry.substr(0, dash));
  const auto last = dash == entry.npos ? first : NumberIn(entry.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last > kMaxGpuIndex) return false;
  const int32_t most = std::min(*last, *first + static_cast<int32_t>(kMaxGpusNamed));
  for (int32_t index = *first; index <= most; ++index) AddOnce({{}, index, -1}, list);
  return true;
}

// CUDA takes the entries before the first that it cannot read, and so does this.
List ReadList(std::string_view text) {
  List list;
  for (size_t i = 0; i < kMaxGpusNamed && !text.empty(); ++i) {
    const size_t comma = text.find(',');
    const std::string_view entry = Trimmed(text.substr(0, comma));
    if (!AddEntry(entry, list)) {
      list.whole = false;
      break;
    }
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  }
  return list;
}

bool ByUuid(const List& list) {
  return std::all_of(list.cards.begin(), list.cards.end(),
                     [](const GpuName& card) { return !card.uuid.empty(); });
}

bool CountsFromZero(const List& list) {
  for (size_t i = 0; i < list.cards.size(); ++i) {
    if (list.cards[i].index != static_cast<int32_t>(i)) return false;
  }
  return true;
}

// srun hands the batch script's environment to every node of the job; the list in it is of the
// first one.
bool IsOfThisNode(const Environment& environment) {
  auto nodes = NumberOf(environment, "SLURM_JOB_NUM_NODES");
  if (!nodes) nodes = NumberOf(environment, "SLURM_NNODES");
  if (nodes == 1) return true;
  // A step of some of the nodes counts from its own first one.
  const auto step = ValueOf(environment, "SLURM_STEP_NODELIST");
  if (step && step != ValueOf(environment, "SLURM_JOB_NODELIST")) return false;
  return NumberOf(environment, "SLURM_NODEID") == 0;
}

// The list that Slurm gives, with the node's numbers; empty where it gives none that is of this
// node. The job's goes before the step's, which 23.11 gets wrong (CEEMS saw it).
List ReadSlurm(const Environment& environment) {
  for (const std::string_view key : {"SLURM_JOB_GPUS", "SLURM_STEP_GPUS"}) {
    const auto value = ValueOf(environment, key);
    if (!value || value->empty()) continue;
    if (key == "SLURM_JOB_GPUS" && !IsOfThisNode(environment)) continue;
    List list = ReadList(*value);
    if (list.whole && (!list.cards.empty() || list.mig)) return list;
  }
  return {};
}

List ReadContainer(const Environment& environment) {
  const auto value = ValueOf(environment, "NVIDIA_VISIBLE_DEVICES");
  if (!value) return {};
  List list = ReadList(*value);
  if (!list.whole)
    return {};  // "all", "void", "none"; with a device interface, nonsense on purpose
  return list;
}

// Whether ordinals of CUDA_VISIBLE_DEVICES are the node's numbers.
bool OrdinalsAreTheNodes(const Environment& environment, const List& slurm, bool contained) {
  const auto container = ValueOf(environment, "NVIDIA_VISIBLE_DEVICES");
  if (contained || (container && *container != "all")) return false;
  if (!ValueOf(environment, "SLURM_JOB_ID")) return true;
  const auto wrote = ValueOf(environment, "GPU_DEVICE_ORDINAL");
  if (!wrote || slurm.cards.empty()) return false;
  const List ordinals = ReadList(*wrote);
  return ordinals.whole && ordinals.cards == slurm.cards && !CountsFromZero(ordinals);
}

// Of those that it may see, the one of its LOCAL_RANK, as every launcher has it; all where there is
// no such.
std::vector<GpuName> OwnOf(const std::vector<GpuName>& visible, const Environment& environment) {
  auto local = NumberOf(environment, "LOCAL_RANK");
  if (!local) local = NumberOf(environment, "OMPI_COMM_WORLD_LOCAL_RANK");
  if (visible.size() <= 1 || !local) return visible;
  if (*local < 0 || static_cast<size_t>(*local) >= visible.size()) return {};
  return {visible[static_cast<size_t>(*local)]};
}

// The cards that ordinals mean of those that may be opened. One beyond them ends the list, as CUDA
// has it.
std::vector<GpuName> Places(const std::vector<GpuName>& ordinals,
                            const std::vector<GpuName>& open) {
  std::vector<GpuName> cards;
  for (const GpuName& ordinal : ordinals) {
    const auto place = static_cast<size_t>(ordinal.index);
    if (!ordinal.uuid.empty() || place >= open.size()) break;
    cards.push_back(open[place]);
  }
  return cards;
}

}  // namespace

GpuEnvironment ReadGpuEnvironment(const Environment& environment, bool contained,
                                  const std::vector<int32_t>& allowed) {
  GpuEnvironment out;
  const List slurm = ReadSlurm(environment);
  const List container = ReadContainer(environment);
  out.mig = slurm.mig || container.mig;
  std::vector<GpuName> open;
  for (size_t i = 0; i < allowed.size() && i < kMaxGpusNamed; ++i)
    open.push_back({{}, -1, allowed[i]});
  if (!open.empty()) {
    out.given = open;
    out.given_by = GpuWord::kDevices;
  } else if (!slurm.cards.empty()) {
    out.given = slurm.cards;
    out.given_by = GpuWord::kSlurm;
  } else if (!container.cards.empty() && !ValueOf(environment, "SLURM_JOB_ID")) {
    out.given = container.cards;
    out.given_by = GpuWord::kContainer;
  }
  const auto visible = ValueOf(environment, "CUDA_VISIBLE_DEVICES");
  if (!visible && !open.empty()) {
    out.own = OwnOf(open, environment);
    out.own_by = GpuWord::kDevices;
  }
  if (!visible) return out;
  const List list = ReadList(*visible);
  out.mig = out.mig || list.mig;
  out.none = list.cards.empty() && !list.mig;
  if (list.cards.empty() || list.mig) return out;
  const bool by_uuid = ByUuid(list);
  if (!by_uuid && !open.empty()) {
    out.own = OwnOf(Places(list.cards, open), environment);
    out.own_by = GpuWord::kDevices;
    return out;
  }
  if (!by_uuid && !OrdinalsAreTheNodes(environment, slurm, contained)) return out;
  out.own = OwnOf(list.cards, environment);
  out.own_by = by_uuid ? GpuWord::kUuid : GpuWord::kOrdinal;
  return out;
}

bool IsNamed(const GpuName& name, std::string_view uuid, int32_t index, int32_t minor) {
  if (name.minor >= 0) return name.minor == minor;
  if (name.uuid.empty()) return name.index >= 0 && name.index == index;
  return uuid.starts_with(name.uuid);
}

std::vector<GpuName> ReadGpuMapping(std::string_view text) {
  List list;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
    const auto index = NumberIn(entry.substr(0, entry.find('.')));
    if (index && *index >= 0 && *index <= kMaxGpuIndex) AddOnce({{}, *index, -1}, list);
  }
  return list.cards;
}

std::string_view NameOf(GpuWord word) {
  constexpr std::string_view kNames[] = {"",     "devices", "slurm",  "container",
                                         "uuid", "ordinal", "mapping"};
  const auto at = static_cast<size_t>(word);
  return at < std::size(kNames) ? kNames[at] : std::string_view();  // restored from damaged bytes
}

}  // namespace rankscope::attribution
