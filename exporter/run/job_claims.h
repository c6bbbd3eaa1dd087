// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who may speak for which job. A job that Slurm knows is its owner's: the cgroup of the wrapper
// names it, or the wrapper's user is the owner by Slurm's record, or by the processes in the job's
// cgroup. (That its environment names it proves nothing beyond its user: each user writes his own.)
// An id that nobody
// owns is free: who opens it first holds it, until somebody comes who can prove that it is his. A
// name that `run` has made holds the user's number and is no one else's.
//
//     what is known of the job    wrapper in its cgroup  its user's  root    another user's
//     whose it is, as proven      proven                 proven      proven  refused
//     who has opened it first     proven, evicts         free        proven  refused
//     nothing                     proven                 -           proven  free
//
// Pure; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "exporter/run/peer.h"

namespace rankscope::run {

struct JobOwner {
  uint32_t uid = 0;
  bool proven = false;  // by the job's cgroup, or Slurm's record; else by what its processes say of
                        // themselves
};

enum class Proof : uint8_t { kRefused, kFree, kProven };

class JobClaims {
 public:
  static constexpr size_t kMaxHeld = 4096;  // of about 100 B; eight times the jobs of a node

  // `known`: whether anything is kept of the job, so that its holder's word must stay his.
  explicit JobClaims(std::function<bool(const std::string& job_id)> known)
      : known_(std::move(known)) {}

  // `owner`: of the processes that are known of it.
  Proof Judge(const std::string& job_id, const Peer& peer, std::optional<JobOwner> owner) const;
  // Whether it is a number of Slurm's of which no owner is proven: its record is to be asked first.
  bool IsOpen(const std::string& job_id, std::optional<JobOwner> owner) const;
  // The peer speaks for the job from now on. True where another user held the job without proof:
  // what he said of it must go.
  [[nodiscard]] bool Take(const std::string& job_id, uint32_t uid, Proof proof);
  // The job's owner has shown himself, by a process in its cgroup or Slurm's record. True as Take.
  [[nodiscard]] bool Own(const std::string& job_id, uint32_t owner);

  size_t held() const { return holders_.size(); }

 private:
  void Set(const std::string& job_id, JobOwner holder);
  void Trim();

  std::function<bool(const std::string&)> known_;
  std::map<std::string, JobOwner> holders_;
};

// The user whose `run` has made this id (run-<uid>-<8 hex>); nothing for all other ids.
std::optional<uint32_t> MakerOf(std::string_view job_id);

}  // namespace rankscope::run
