// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's end of the wrappers' socket: a source of begin, lines and end of each wrapped
// command. Everybody may connect (0666); who it is the kernel says. Loop thread only; what users
// name is touched on their own threads, and what comes of it is taken in by turns, a share of each
// beat at most.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exporter/loop/event_loop.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/loop/user_workers.h"
#include "exporter/run/job_claims.h"
#include "exporter/run/run_session.h"
#include "exporter/source.h"

namespace rankscope::run {

class RunListener final : public exporter::Source {
 public:
  // Eight descriptors each: with 512 runs 4,096, so the daemon raises its limit of open files.
  static constexpr size_t kMaxRuns = 512;
  // Of one user; and never more than are left to all the others, so that there is room for one more
  // user at any time.
  static constexpr size_t kMaxRunsPerUser = 128;
  // Connections of one user that have not said Hello. A wrapper says it at once.
  static constexpr size_t kMaxSilentPerUser = 16;
  static constexpr Duration kBeat = Milliseconds(100);
  // Of each beat, for passing on what wrappers have recorded: the rest is everybody else's.
  static constexpr Duration kShareOfBeat = Milliseconds(30);

  struct Counters {
    int64_t accepted = 0;            // connections
    int64_t refused = 0;             // no room
    int64_t denied = 0;              // another user's job
    int64_t evicted = 0;             // the job was another user's, as has been shown
    int64_t malformed = 0;           // messages and connections that were no wrapper's
    int64_t fds_lost = 0;            // packets for whose descriptors there was none
    int64_t foreign = 0;             // observations that are not a wrapper's to tell
    int64_t orphaned = 0;            // wrappers that died without a word, as of now
    int64_t stalled = 0;             // whose user's files do not answer, as of now
    int64_t without_descriptor = 0;  // connections for which there was no descriptor
  };

  struct Hooks {
    // A wrapper has said its last and waits (a second) for Answer: tick the engine, answer at once.
    std::function<void(const std::string& job_id)> on_end;
    // After a restart that restored the engine: the last Observation::seq of this wrapper's that it
    // holds. Absent: a wrapper's recording is delivered from its beginning. The slot counts the
    // wrappers of one job on this node.
    std::function<int64_t(const std::string& job_id, int slot)> resume_after;
    // Whose the job is, by the processes that are known of it. Absent: nobody knows.
    std::function<std::optional<JobOwner>(const std::string& job_id)> owner_of;
    // Whether anything is kept of the job: its holder's word must stay his. Absent: no.
    std::function<bool(const std::string& job_id)> knows;
    // Asks Slurm whose the job is; OwnerTold hears the answer. False, or absent: nobody can tell.
    std::function<bool(const std::string& job_id)> ask_owner;
  };

  // So long a wrapper waits for Slurm's word: three calls that hang take longer, and then the
  // number is as free as where there is no Slurm.
  static constexpr Duration kOwnerPatience = Seconds(10);
  // Numbers that are asked for at once; of one user, a few.
  static constexpr size_t kMaxAsked = 64;
  static constexpr size_t kMaxAskedOfUser = 4;

  explicit RunListener(std::string socket_path, Hooks hooks = {});
  ~RunListener() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override;
  std::vector<Count> counts() const override;

  // Sends the verdict to the wrappers of this job that wait for it; others do not hear it. `text`
  // may be empty: the wrapper then prints its own. `notifies`: people are told from here.
  void Answer(std::string_view job_id, std::string_view json, std::string_view text = {},
              bool notifies = false);

  // A wrapper of this user spoke for the job, to an earlier daemon.
  void Hold(const std::string& job_id, uint32_t uid);
  // A process of the job's cgroup has shown whose it is. Told before that process is: a stranger
  // that has spoken for the job is sent away, and the job begins anew.
  void NoteOwner(const std::string& job_id, uint32_t uid);

  // What Slurm's record says; nothing: it does not know, or does not answer.
  void OwnerTold(const std::string& job_id, std::optional<uint32_t> uid);

  Counters counters() const;
  size_t runs() const { return sessions_.size(); }

 private:
  struct Disposal;

  void OnConnection();
  bool HasRoom(uint32_t uid) const;
  RunSession::Callbacks CallbacksFor(const Peer& peer);
  void OnBeat();
  void RestIfFull(int error);
  void Pump();
  void StartReads();
  RunSession* NextToDeliver();
  int Admit(const std::string& job_id, const Peer& peer);
  bool AsksOwner(const std::string& job_id, uint32_t uid);
  void Disown(const std::string& job_id, uint32_t owner);
  bool HasCompany(const RunSession& session, bool RunSession::*told) const;
  int32_t SettleStatus(const std::string& job_id, int32_t wait_status, bool last);
  void Dispose(const exporter::UserIdentity& who, std::vector<OwnedFd> fds, RunFiles* files);
  void SubmitDisposal(const std::shared_ptr<Disposal>& disposal);
  void Refuse(OwnedFd socket, const Peer& peer);
  void NoteLate(uint32_t uid, bool late);

  std::string socket_path_;
  Hooks hooks_;
  OwnedFd socket_;
  exporter::EventLoop::TimerId beat_ = 0;
  bool resting_ = false;  // until the next beat nobody is accepted
  std::unique_ptr<exporter::UserWorkers> workers_;
  JobClaims claims_;
  struct Asked {
    Timestamp since;
    uint32_t uid = 0;   // for whom
    bool told = false;  // what there is to tell
  };
  std::map<std::string, Asked> asked_;  // Slurm, by job
  std::vector<std::unique_ptr<RunSession>> sessions_;
  std::map<std::string, int32_t> failed_;  // first failure of a wrapper, of jobs that have several
  bool pumping_ = false;
  Duration left_of_beat_ = kShareOfBeat;
  uint32_t last_uid_ = 0;  // whose turn it was
  std::map<uint32_t, int> late_;
  std::string told_reason_;
  std::map<uint32_t, size_t> closing_;           // descriptors that wait to be closed, by user
  std::vector<std::shared_ptr<Disposal>> held_;  // disposals that the user's thread had no room for
  std::shared_ptr<std::atomic<int>> undone_ = std::make_shared<std::atomic<int>>(0);
  Counters counters_;
  int64_t lost_in_closed_ = 0;
};

}  // namespace rankscope::run
