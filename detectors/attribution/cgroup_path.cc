// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/cgroup_path.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>
#include <vector>

namespace rankscope::attribution {
namespace {

// Slurm's own bounds are lower: MaxJobId is 2^26, and of a federation 2^32.
constexpr uint64_t kMaxJobId = 0xffffffff;
constexpr size_t kMaxNameBytes = 64;  // of a node or an LXC container

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

// A name as administrators give them, which can be printed anywhere.
bool IsName(std::string_view text) {
  constexpr std::string_view kCharacters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  return !text.empty() && text.size() <= kMaxNameBytes &&
         text.find_first_not_of(kCharacters) == text.npos;
}

// As Slurm prints numbers: no sign, no zeros before.
std::optional<uint64_t> NumberIn(std::string_view text, uint64_t most) {
  if (!IsDigits(text) || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number > most) return std::nullopt;
  return number;
}

std::optional<uint64_t> NumberAfter(std::string_view text, std::string_view prefix, uint64_t most) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return NumberIn(text.substr(prefix.size()), most);
}

std::string_view TakeUntil(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view taken = rest.substr(0, at);
  rest = at == rest.npos ? std::string_view() : rest.substr(at + 1);
  return taken;
}

using Components = std::vector<std::string_view>;

// Empty for what the kernel does not print. It begins with ".." for each level that a cgroup
// namespace hides, and has them nowhere else.
Components Split(std::string_view path) {
  Components components;
  if (path.empty() || path.front() != '/' || path.size() > kCgroupPathCap) return {};
  path.remove_prefix(1);
  bool hidden = true;
  while (!path.empty()) {
    const std::string_view component = TakeUntil(path, '/');
    if (component.empty() || component == ".") return {};
    hidden = hidden && component == "..";
    if (!hidden && component == "..") return {};
    if (component.find('\0') != component.npos) return {};
    components.push_back(component);
  }
  return components;
}

// The node of "slurm_<node>" and "<node>_slurmstepd.scope"; nullopt where it is neither these nor
// the plain word.
std::optional<std::string_view> NodeOfV1(std::string_view component) {
  constexpr std::string_view kWord = "slurm";
  if (component == kWord) return std::string_view();
  if (!component.starts_with("slurm_") || !IsName(component.substr(6))) return std::nullopt;
  return component.substr(6);
}

std::optional<std::string_view> NodeOfV2(std::string_view component) {
  constexpr std::string_view kWord = "slurmstepd.scope";
  if (component == kWord) return std::string_view();
  if (!component.ends_with("_slurmstepd.scope")) return std::nullopt;
  component.remove_suffix(kWord.size() + 1);
  if (!IsName(component)) return std::nullopt;
  return component;
}

bool IsDelegated(std::string_view component) {
  return component.starts_with("user@") && component.ends_with(".service");
}

// "7", "0+1", batch, extern, interactive; empty for anything else.
std::string_view StepOf(std::string_view component) {
  constexpr std::string_view kPrefix = "step_";
  if (!component.starts_with(kPrefix)) return {};
  const std::string_view step = component.substr(kPrefix.size());
  if (step == "batch" || step == "extern" || step == "interactive") return step;
  std::string_view rest = step;
  const std::string_view number = TakeUntil(rest, '+');
  const bool whole = number.size() == step.size();
  if (!NumberIn(number, kMaxJobId) || (!whole && !NumberIn(rest, kMaxJobId))) return {};
  return step;
}

void ReadStep(const Components& path, size_t at, CgroupFacts& facts) {
  if (at >= path.size()) return;
  facts.step_id = StepOf(path[at]);
  if (facts.step_id.empty() || ++at >= path.size()) return;
  facts.slurm_process = facts.layout == CgroupLayout::kV2 && path[at] == "slurm";
  if (facts.layout == CgroupLayout::kV2 && path[at] == "user") ++at;
  if (at >= path.size()) return;
  if (const auto task = NumberAfter(path[at], "task_", INT32_MAX))
    facts.task = static_cast<int32_t>(*task);
}

void ReadJob(const Components& path, CgroupFacts& facts) {
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    if (IsDelegated(path[i])) return;
    size_t job = i + 1;
    std::optional<std::string_view> node = NodeOfV2(path[i]);
    std::optional<uint64_t> uid;
    if (!node) {
      node = NodeOfV1(path[i]);
      uid = node ? NumberAfter(path[job++], "uid_", kMaxJobId) : std::nullopt;
      if (!uid || job >= path.size()) continue;
    }
    std::string_view sluid = path[job];
    const auto id = NumberAfter(TakeUntil(sluid, '@'), "job_", kMaxJobId);
    if (!id || *id == 0 || (!sluid.empty() && (uid || !IsSluid(sluid)))) continue;
    facts.sluid = sluid;
    facts.job_id = std::to_string(*id);
    facts.node_name = *node;
    facts.layout = uid ? CgroupLayout::kV1 : CgroupLayout::kV2;
    if (uid) facts.uid = static_cast<int64_t>(*uid);
    return ReadStep(path, job + 1, facts);
  }
}

// Names before and after a container's 64 digits. The monitors of podman and CRI-O stand outside of
// what they watch ("libpod-conmon-").
struct ContainerRow {
  std::string_view before, after;
};
constexpr std::array<ContainerRow, 9> kContainerNames = {{
    {"docker-", ".scope"},
    {"cri-containerd-", ".scope"},
    {"crio-", ".scope"},
    {"crio-", ""},
    {"libpod-", ".scope"},
    {"libpod-", ""},
    {"nerdctl-", ".scope"},
    {"containerd-", ".scope"},
    {"", ""},  // docker and the pods of the cgroupfs driver: the digits alone
}};

std::string_view ContainerOf(std::string_view component, std::string_view parent) {
  constexpr size_t kDigits = 64;
  // containerd on a machine without systemd's driver: "<slice>:cri-containerd:<digits>".
  if (const size_t colon = component.rfind(":cri-containerd:"); colon != component.npos) {
    const std::string_view digits = component.substr(colon + 16);
    return digits.size() == kDigits && IsHex(digits) ? digits : std::string_view();
  }
  for (const ContainerRow& row : kContainerNames) {
    if (component.size() != row.before.size() + kDigits + row.after.size()) continue;
    if (!component.starts_with(row.before) || !component.ends_with(row.after)) continue;
    const std::string_view digits = component.substr(row.before.size(), kDigits);
    if (IsHex(digits)) return digits;
  }
  constexpr std::string_view kPayload = "lxc.payload.";
  if (component.starts_with(kPayload) && IsName(component.substr(kPayload.size())))
    return component.substr(kPayload.size());
  if ((parent == "lxc" || parent == "lxc.payload") && IsName(component)) return component;
  return {};
}

// "pod<uid>", "kubepods-burstable-pod<uid>.slice"; systemd's driver writes dashes as underscores.
std::string PodOf(std::string_view component) {
  if (component.ends_with(".slice")) component.remove_suffix(6);
  const size_t at = component.rfind("pod");
  if (at == component.npos || (at > 0 && component[at - 1] != '-')) return {};
  std::string uid(component.substr(at + 3));
  std::replace(uid.begin(), uid.end(), '_', '-');
  constexpr size_t kUuid = 36, kHash = 32;  // a static pod's is the hash of its manifest
  if (uid.size() == kHash && IsHex(uid)) return uid;
  if (uid.size() != kUuid) return {};
  for (size_t i = 0; i < uid.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? uid[i] != '-' : !IsHex(uid.substr(i, 1))) return {};
  }
  return uid;
}

void ReadContainers(const Components& path, CgroupFacts& facts) {
  bool pods = false;
  for (size_t i = 0; i < path.size(); ++i) {
    pods = pods || path[i].find("kubepods") != std::string_view::npos;
    if (const auto id = ContainerOf(path[i], i > 0 ? path[i - 1] : std::string_view()); !id.empty())
      facts.container_id = id;
    if (!pods) continue;
    if (std::string uid = PodOf(path[i]); !uid.empty()) facts.pod_uid = std::move(uid);
  }
}

struct Line {
  std::string_view path;
  bool v1 = false;
};

// "4:memory:/a", "0::/b", or a path alone, which may hold colons.
Line ReadLine(std::string_view line) {
  if (line.starts_with('/')) return {line, false};
  const std::string_view hierarchy = TakeUntil(line, ':');
  const std::string_view controllers = TakeUntil(line, ':');
  if (!IsDigits(hierarchy) || !line.starts_with('/')) return {};
  return {line, !controllers.empty()};
}

CgroupFacts ReadPath(std::string_view path) {
  CgroupFacts facts;
  const Components components = Split(path);
  ReadJob(components, facts);
  ReadContainers(components, facts);
  return facts;
}

// What `more` knows and `facts` does not. Hierarchies of v1 stop at different depths: freezer at
// the step, memory at the task.
bool Merge(CgroupFacts& facts, const CgroupFacts& more) {
  const CgroupFacts before = facts;
  if (facts.job_id.empty()) {
    CgroupFacts merged = more;
    if (merged.container_id.empty()) merged.container_id = facts.container_id;
    if (merged.pod_uid.empty()) merged.pod_uid = facts.pod_uid;
    facts = std::move(merged);
    return facts != before;
  }
  if (more.job_id == facts.job_id) {
    if (facts.step_id.empty()) facts.step_id = more.step_id;
    if (facts.task < 0 && more.step_id == facts.step_id) facts.task = more.task;
  }
  if (facts.container_id.empty()) facts.container_id = more.container_id;
  if (facts.pod_uid.empty()) facts.pod_uid = more.pod_uid;
  return facts != before;
}

}  // namespace

CgroupFacts ReadCgroup(std::string_view text) {
  CgroupFacts facts;
  bool v1 = false, v2 = false;
  for (size_t i = 0; i < kCgroupLinesCap && !text.empty(); ++i) {
    const std::string_view whole = TakeUntil(text, '\n');
    const Line line = ReadLine(whole);
    v1 = v1 || line.v1;
    v2 = v2 || whole.starts_with("0::");
    Merge(facts, ReadPath(line.path));
  }
  if (!facts.job_id.empty() && v1 && v2) facts.layout = CgroupLayout::kHybrid;
  return facts;
}

std::string CarriedCgroup(std::string_view text) {
  CgroupFacts facts;
  std::vector<std::string_view> lines;
  std::string_view longest, unified;
  bool v1 = false;
  for (size_t i = 0; i < kCgroupLinesCap && !text.empty(); ++i) {
    const std::string_view whole = TakeUntil(text, '\n');
    const Line line = ReadLine(whole);
    if (line.path.empty() || whole.size() > kCarriedCgroupCap) continue;
    v1 = v1 || line.v1;
    if (whole.starts_with("0::")) unified = whole;
    if (line.path.size() > longest.size()) longest = line.path;
    if (Merge(facts, ReadPath(line.path))) lines.push_back(whole);
  }
  if (lines.empty()) return std::string(longest);
  if (!v1 && lines.size() == 1) return std::string(ReadLine(lines.front()).path);
  // Both kinds of hierarchy are told by one line of each.
  if (!unified.empty() && std::find(lines.begin(), lines.end(), unified) == lines.end()) {
    // In its place: of two containers the one that is named later is the process's.
    lines.push_back(unified);
    std::sort(lines.begin(), lines.end(),
              [](std::string_view a, std::string_view b) { return a.data() < b.data(); });
  }
  std::string carried;
  for (const std::string_view line : lines) {
    const size_t end_of_last = carried.empty() ? 0 : 1;
    if (carried.size() + end_of_last + line.size() > kCarriedCgroupCap) break;
    if (!carried.empty()) carried += '\n';
    carried += line;
  }
  return carried;
}

bool IsSluid(std::string_view component) {
  // Without I, L, O and U, which are taken for others.
  constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz";
  return component.size() == 14 && component.front() == 's' &&
         component.substr(1).find_first_not_of(kDigits) == component.npos;
}

std::string_view SluidDirectory(std::string_view path) {
  const Components components = Split(path);
  for (size_t i = 0; i + 1 < components.size(); ++i) {
    if (IsDelegated(components[i])) return {};
    if (!NodeOfV2(components[i])) continue;
    const std::string_view job = components[i + 1];
    if (NumberAfter(job, "job_", kMaxJobId)) return {};
    if (IsSluid(job)) return path.substr(0, static_cast<size_t>(job.end() - path.begin()));
  }
  return {};
}

std::string NameSluid(std::string_view text, std::string_view directory, std::string_view job_id) {
  constexpr size_t kSluid = 14;
  const auto end = static_cast<size_t>(directory.data() + directory.size() - text.data());
  std::string named(text.substr(0, end - kSluid));
  named.append("job_").append(job_id).append("@").append(text.substr(end - kSluid));
  return named;
}

std::string_view NameOf(CgroupLayout layout) {
  constexpr std::string_view kNames[] = {"", "v1", "v2", "hybrid"};
  const auto at = static_cast<size_t>(layout);
  return at < std::size(kNames) ? kNames[at] : std::string_view();
}

}  // namespace rankscope::attribution
