// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What two incidents of a run have to do with each other. Pure.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "detectors/features/job_features.h"
#include "detectors/windows/trackers/loss_tracker.h"

namespace rankscope::features {

// Whether any incident that initiates matches.
bool AnyInitiating(const std::vector<Cause>& causes, const auto& matches) {
  return std::any_of(causes.begin(), causes.end(), [&](const Cause& cause) {
    return cause.role == Cause::Role::kInitiating && matches(cause);
  });
}

// Neither says that it happened to another process than the other did.
bool SharesProcess(const windows::Candidate& a, const windows::Candidate& b);

// It tells nothing of how the run fares: advice, and the death of a process that a rank has
// started, where neither the rank's own text nor its end speaks of it.
bool SaysNothing(const std::vector<windows::Candidate>& all, const windows::Candidate& candidate);

// Whether the program is taken down rather than failing: SIGTERM, SIGINT, or its own word for them.
bool IsTakedown(const logs::Incident& incident);
// Whether somebody asked a process to stop: not where it sent the signal to itself.
bool IsRequest(const Cause& cause);

// A line in the job's own output about its end, which whoever prints there may have made up.
bool IsBareWord(const windows::Candidate& candidate);

// A traceback that begins in the program's own start: nobody caught it, and the program ended.
bool WasUncaught(const logs::Incident& incident);

// A warning about a wait that may end, since a peer may save or evaluate.
bool IsPassingWait(const logs::Incident& incident);

// Whether `other` is a second source for the event that `cause` is.
bool Supports(const Cause& other, const Cause& cause);

// A rank had exited with a code of its own, and without a word of a lost peer, when another one
// lost its connection; or it was the first to end.
bool LeftByItself(const JobFeatures& f, const std::vector<Cause>& causes, const Cause& lost);

// The rank that was the first of all to end, with a code that Python does not give to an exception,
// while the others ended by what they say; null: none. An interpreter closes its sockets up to
// seconds before it ends, so the loss may be told first.
const Cause* FirstToLeave(const JobFeatures& f, const std::vector<Cause>& causes,
                          const Cause& lost);

// torchrun's summary lists the failure that its agent saw first behind the others: an entry of
// those others.
bool FollowsRoot(const Cause& cause);

// An exception that a connection or a name raised in the program's own code.
bool IsAboutConnecting(const logs::Incident& incident);

// The other end closed the connection, as the kernel does for a process that ends; a path that
// breaks resets it or is silent.
bool WasClosedInOrder(const logs::Incident& loss);

// A lost peer of the process group. A broken pipe to a logger or a helper process is none.
bool OfProcessGroup(const logs::Incident& incident);

// The rank raised, and the next that is said of it is that it ended with an error: training records
// between are its peers'. `all` in order of arrival.
bool EndedItsRank(const std::vector<windows::Candidate>& all, const windows::Candidate& raised);

// Whether a training record stands before an incident; `first` is the run's first. A traceback is
// told some lines late, so a record that had arrived by then may stand behind it.
bool HasRecordBefore(const windows::Candidate& said, const windows::CitedPoint& first);

// Whether the text from an incident to a training record behind it, of one stream, is more than
// `writers` processes can have held back until they ended.
bool OutgrowsBuffers(const windows::Candidate& said, const windows::CitedPoint& record,
                     int32_t writers);

// A process group's survivors abort when a peer is gone: SIGABRT where another rank ended with an
// error of its own says nothing by itself.
bool IsSurvivorsAbort(const std::vector<Cause>& causes, const Cause& abort);

// Somebody had already ended with a code when the others were told to stop.
bool AfterAnExit(const std::vector<Cause>& causes, const Cause& takedown);

// Who sent the signal that it is about, a word of windows/signal_sender.h; empty: nobody saw it.
std::string_view SenderOf(const std::vector<Cause>& causes, const Cause& cause);

// SIGKILL is what is sent to who has not followed a request to stop, after slurm.conf's KillWait
// or torchrun's 30 s; and who is stopped while it works may abort.
bool FollowsARequest(const std::vector<Cause>& causes, const Cause& death);

// The watchdog of each rank gives up the same collective in words of its own: that is one thing,
// which many ranks tell.

// Whether both are a timeout of one collective, by its operation and its place in the sequence.
bool IsOfOneCollective(const Cause& a, const Cause& b);

// All ranks that tell of the collective that `cause` is about, rising; its own where it is about
// none.
std::vector<int32_t> RanksThatGaveUp(const std::vector<Cause>& causes, const Cause& cause);

// Whether `again`, a further line, adds nothing to `evidence` of `told`: it is of a rank that tells
// of the same collective there.
bool IsToldWith(const Cause& again, const Cause& told, const Evidence& evidence);

}  // namespace rankscope::features
