// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// B1 and X2: a GPU allocation that does not fit, because of this job's own plan (B1) or because
// somebody else holds the memory (X2). The allocator's text carries the numbers that tell the two
// apart.
#include "detectors/families/gpu_memory.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "detectors/families/gpu.h"
#include "detectors/families/rows.h"

namespace rankscope::families {

using features::Cause;
using features::JobFeatures;
using logs::IncidentKind;

namespace {

// Ranks of the job whose process is known to the process source, or named by their launcher.
bool IsOwnProcess(const JobFeatures& f, int32_t pid) {
  if (std::find(f.rank_pids.begin(), f.rank_pids.end(), pid) != f.rank_pids.end()) return true;
  return std::any_of(f.causes.begin(), f.causes.end(), [pid](const Cause& cause) {
    const logs::Incident& incident = cause.incident();
    const bool death =
        incident.kind == IncidentKind::kNonZeroExit || incident.kind == IncidentKind::kSignalDeath;
    return death && incident.rank >= 0 && incident.pid == pid;
  });
}

// What the allocator's text says of the job's other ranks on the same card.
double SiblingBytes(const JobFeatures& f, const logs::Incident& incident) {
  double bytes = 0;
  for (const KeyValue& field : incident.fields) {
    if (field.key != "tenant") continue;
    const char* const end = field.value.data() + field.value.size();
    int32_t pid = 0;
    double held = 0;
    const auto [rest, error] = std::from_chars(field.value.data(), end, pid);
    if (error != std::errc() || rest == end) continue;
    if (std::from_chars(rest + 1, end, held).ec == std::errc() && IsOwnProcess(f, pid))
      bytes += held;
  }
  return bytes;
}

}  // namespace

std::optional<double> Field(const logs::Incident& incident, std::string_view key) {
  for (const KeyValue& field : incident.fields) {
    if (field.key != key) continue;
    double value = 0;
    const auto [end, error] =
        std::from_chars(field.value.data(), field.value.data() + field.value.size(), value);
    if (error == std::errc()) return value;
  }
  return std::nullopt;
}

double ForeignBytes(const JobFeatures& f, const logs::Incident& incident) {
  const auto total = Field(incident, "total");
  const auto free = Field(incident, "free");
  const double pool =
      std::max(Field(incident, "allocated").value_or(0), Field(incident, "reserved").value_or(0));
  const double this_process = Field(incident, "this_process").value_or(0);
  // Inside a container the allocator cannot tell its own process from others, or finds a stranger
  // of its number: what holds less than its own pool is not its own process. Then its own pool and
  // a context are its own.
  constexpr double kContext = kGiB;
  const bool counted = this_process > 0 && this_process >= pool;
  const bool known = counted || Field(incident, "allocated").has_value();
  const double own = counted ? this_process : pool + kContext;
  double said = total && free && known ? *total - *free - own - SiblingBytes(f, incident) : 0;
  // What is left over may be a large context, NCCL's channels or a library's work space.
  constexpr double kOwnShare = 1.0 / 8;
  if (total && !counted && said < kOwnShare * *total) said = 0;
  const features::RunGpu* const shared = SharedCard(f, incident.rank);
  return std::max(said, shared != nullptr ? shared->foreign_bytes : 0);
}

bool IsCrowdedOut(const JobFeatures& f, const logs::Incident& incident) {
  const double foreign = ForeignBytes(f, incident);
  if (foreign < kGiB) return false;
  const auto requested = Field(incident, "requested");
  const auto free = Field(incident, "free");
  return !requested || !free || *requested <= *free + foreign;
}

// No word of it, but the card refused an allocation, this rank launched nothing after it, and the
// command failed within a minute.
bool DiedRefused(const JobFeatures& f) {
  constexpr double kSoon = 60;
  const features::LaunchFeatures& l = f.launches;
  const bool failed =
      f.exit_known ? f.exit_code != 0 : FindCause(f, IncidentKind::kNonZeroExit) != nullptr;
  return f.Primary() == nullptr && f.ended && failed && l.allocation_failures > 0 &&
         l.launches_since_failure <= 0 && l.seconds_since_failure <= kSoon;
}

Finding Refused(const JobFeatures& f) {
  Finding finding;
  finding.matched = true;
  finding.tier = proto::TIER_S;
  finding.cap = cap::kOneSource;  // it may have been caught, and the end be another's doing
  finding.ranks = {f.launches.failed_rank};
  finding.shows = {f.launches.allocation_evidence, f.exit_evidence};
  finding.root = {f.launches.allocation_evidence};
  finding.onset = f.At(f.launches.allocation_evidence)->begin;
  return finding;
}

bool OthersHeldIt(const JobFeatures& f) {
  const features::RunGpu* const shared = SharedCard(f, f.launches.failed_rank);
  return shared != nullptr && shared->foreign_bytes >= kGiB &&
         !(f.launches.last_failed_bytes > shared->foreign_bytes);
}

}  // namespace rankscope::families
