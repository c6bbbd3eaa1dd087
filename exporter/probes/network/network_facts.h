// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the programs of bpf/net.bpf.c count, in the words of detectors/model. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bpf/events/net.h"
#include "detectors/model/observation.h"

namespace rankscope::probes {

// "10.0.0.1:29500", "[fd00::1]:29500".
std::string PeerText(const rs_net_key& key);

// The outcome of a connection or of bind() in one word; empty: nothing worth telling.
//   connected | refused (the peer said so) | rejected (somebody between, by ICMP) | unreachable |
//   no_answer | no_local_address | abandoned | failed;  listening | in_use | denied
std::string_view OutcomeOf(const rs_net_key& key, const rs_net_fact& fact);

// nullopt where the outcome says nothing.
std::optional<Event> EventOf(const rs_net_key& key, const rs_net_fact& fact,
                             const ProcessKey& process);
// A connection that has waited for an answer up to now.
Event EventOf(const rs_net_pending& pending, const ProcessKey& process, uint64_t now_ns);
// A name: `times` this process has asked with the same answer. end_ns 0: it asks still.
Event EventOf(const rs_net_lookup& lookup, const ProcessKey& process, int64_t times,
              uint64_t now_ns);

}  // namespace rankscope::probes
