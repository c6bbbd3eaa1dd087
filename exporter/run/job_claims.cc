// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/job_claims.h"

#include <charconv>

namespace rankscope::run {
namespace {

bool IsSlurms(std::string_view job_id) {
  return job_id.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<uint32_t> MakerOf(std::string_view job_id) {
  constexpr std::string_view kPrefix = "run-";
  if (!job_id.starts_with(kPrefix)) return std::nullopt;
  job_id.remove_prefix(kPrefix.size());
  uint32_t uid = 0;
  const auto [end, error] = std::from_chars(job_id.data(), job_id.data() + job_id.size(), uid);
  if (error != std::errc()) return std::nullopt;
  job_id.remove_prefix(static_cast<size_t>(end - job_id.data()));
  constexpr std::string_view kHex = "0123456789abcdef";
  const bool made = job_id.size() == 9 && job_id[0] == '-' &&
                    job_id.find_first_not_of(kHex, 1) == std::string_view::npos;
  return made ? std::optional(uid) : std::nullopt;
}

Proof JobClaims::Judge(const std::string& job_id, const Peer& peer,
                       std::optional<JobOwner> owner) const {
  if (peer.uid == 0) return Proof::kProven;
  if (const auto maker = MakerOf(job_id); maker && *maker != peer.uid) return Proof::kRefused;
  if (peer.cgroup_job == job_id) return Proof::kProven;
  const auto held = holders_.find(job_id);
  if (held != holders_.end() && (!owner || !owner->proven)) owner = held->second;
  if (owner && owner->uid == peer.uid) return owner->proven ? Proof::kProven : Proof::kFree;
  if (owner && (owner->proven || known_(job_id))) return Proof::kRefused;
  // Of a job of Slurm's that has ended before the daemon began, or that nobody has spoken for.
  if (IsSlurms(job_id) && held == holders_.end() && known_(job_id)) return Proof::kRefused;
  return Proof::kFree;
}

bool JobClaims::IsOpen(const std::string& job_id, std::optional<JobOwner> owner) const {
  const bool proven = owner && owner->proven;  // what a process says of itself is no proof
  return IsSlurms(job_id) && !proven && !holders_.contains(job_id);
}

bool JobClaims::Take(const std::string& job_id, uint32_t uid, Proof proof) {
  const auto held = holders_.find(job_id);
  const bool proven = proof == Proof::kProven;
  if (held == holders_.end()) {
    Set(job_id, {uid, proven});
    Trim();
    return false;
  }
  const JobOwner before = held->second;
  if (before.uid == uid) {
    Set(job_id, {uid, proven || before.proven});
    return false;
  }
  if (uid == 0) return false;  // it may speak for a job too, and takes none away
  Set(job_id, {uid, proven});
  return !before.proven && known_(job_id);
}

bool JobClaims::Own(const std::string& job_id, uint32_t owner) {
  const auto held = holders_.find(job_id);
  if (held == holders_.end()) {
    Set(job_id, {owner, true});
    Trim();
    return false;
  }
  const JobOwner before = held->second;
  if (before.proven) return false;
  Set(job_id, {owner, true});
  return before.uid != owner && known_(job_id);
}

void JobClaims::Set(const std::string& job_id, JobOwner holder) {
  holders_.insert_or_assign(job_id, holder);
}

// Of jobs of which nothing is kept nobody needs to be kept either.
void JobClaims::Trim() {
  if (holders_.size() <= kMaxHeld) return;
  std::erase_if(holders_, [this](const auto& entry) { return !known_(entry.first); });
  while (holders_.size() > kMaxHeld) holders_.erase(holders_.begin());
}

}  // namespace rankscope::run
