// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who is at the other end of the run socket, by the kernel's word alone: the credentials with which
// the connection was made, and what /proc says of that very process. Reading these texts waits for
// nobody. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detectors/model/ids.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/loop/user_identity.h"

namespace rankscope::run {

struct Peer {
  uint32_t uid = 0;  // as it connected
  // pid 0: not known. It has ended, its pid was given to another, it has changed its user since, or
  // it lives outside the daemon's pid namespace.
  ProcessKey process;
  std::string cgroup_job;  // Slurm's number, by the process's cgroup; empty: none
  // With whose rights its files are read.
  exporter::UserIdentity identity;
};

// Nothing where the kernel does not say who it is.
std::optional<Peer> ReadPeer(int socket);

// A process that this peer has forked: the facts of it that the peer has no say in.
struct ForkedProcess {
  ProcessKey key;
  std::string cgroup;            // as ProcessStart carries it
  std::vector<int32_t> ns_pids;  // outermost first
};

// The child of `parent` that is `claimed` in the parent's own pid namespace, and that `uid` owns.
// Nothing where there is none. `claimed.start_ticks` 0: the parent could not read it.
std::optional<ForkedProcess> FindForked(const ProcessKey& parent, uint32_t uid,
                                        const ProcessKey& claimed);

}  // namespace rankscope::run
