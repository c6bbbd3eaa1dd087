// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/calls/nccl_numbers.h"

#include <algorithm>
#include <array>

namespace rankscope::probes {
namespace {

constexpr double kNs = 1e-9;
constexpr int64_t kLongCallNs = 10'000'000'000;

double SecondsSince(uint64_t then_ns, int64_t now_ns) {
  return static_cast<double>(std::max<int64_t>(now_ns - static_cast<int64_t>(then_ns), 0)) * kNs;
}

// By rs_nccl_kind less 1.
struct KindSignals {
  SignalId bytes, seconds, bus_bytes;
};
constexpr std::array<KindSignals, RS_NCCL_KINDS> kKinds = {{
    {SignalId::kAllReduceBytes, SignalId::kAllReduceSeconds, SignalId::kAllReduceBusBytes},
    {SignalId::kAllGatherBytes, SignalId::kAllGatherSeconds, SignalId::kAllGatherBusBytes},
    {SignalId::kReduceScatterBytes, SignalId::kReduceScatterSeconds,
     SignalId::kReduceScatterBusBytes},
    {SignalId::kBroadcastBytes, SignalId::kBroadcastSeconds, SignalId::kBroadcastBusBytes},
    {SignalId::kReduceBytes, SignalId::kReduceSeconds, SignalId::kReduceBusBytes},
    {SignalId::kAllToAllBytes, SignalId::kAllToAllSeconds, SignalId::kAllToAllBusBytes},
    {SignalId::kSendBytes, SignalId::kSendSeconds, SignalId::kSendBusBytes},
    {SignalId::kReceiveBytes, SignalId::kReceiveSeconds, SignalId::kReceiveBusBytes},
}};

// Of the kinds that the process has used. Bus bytes are not known where no communicator's making
// was seen.
void AddKinds(const rs_nccl_counts& counts, std::vector<Sample>& samples) {
  for (size_t i = 0; i < kKinds.size(); ++i) {
    const rs_nccl_kind_counts& kind = counts.kinds[i];
    if (kind.calls == 0) continue;
    samples.push_back({kKinds[i].bytes, static_cast<double>(kind.bytes)});
    samples.push_back({kKinds[i].seconds, static_cast<double>(kind.inside_ns) * kNs});
    if (kind.bus_bytes > 0)
      samples.push_back({kKinds[i].bus_bytes, static_cast<double>(kind.bus_bytes)});
  }
}

}  // namespace

std::optional<uint64_t> CollectiveSequence(const NcclView& view) {
  uint64_t most = view.counts.gone_ranks;
  for (const rs_communicator& one : view.communicators) most = std::max<uint64_t>(most, one.ranks);
  if (most == 0) return std::nullopt;
  uint64_t sequence = view.counts.gone_ranks == most ? view.counts.gone_collectives : 0;
  for (const rs_communicator& one : view.communicators) {
    if (one.ranks == most) sequence += one.collectives;
  }
  return sequence;
}

std::vector<Sample> NcclSamples(const NcclView& view, int64_t now_ns,
                                const std::function<bool(uint32_t thread)>& lives) {
  const rs_nccl_counts& counts = view.counts;
  std::vector<Sample> samples;
  const auto add = [&samples](SignalId signal, double value) {
    samples.push_back({signal, static_cast<double>(value)});
  };
  const auto count = [&add](SignalId signal, uint64_t value) {
    add(signal, static_cast<double>(value));
  };
  count(SignalId::kCollectivesEnqueued, counts.enqueued);
  count(SignalId::kCollectiveBytes, counts.bytes);
  add(SignalId::kCollectiveSeconds, static_cast<double>(counts.inside_ns) * kNs);
  AddKinds(counts, samples);
  if (const auto sequence = CollectiveSequence(view)) {
    count(SignalId::kCollectiveSequence, *sequence);
  }
  count(SignalId::kCommunicators, view.communicators.size());
  int inits = 0;
  double oldest_init = 0;
  for (const rs_inside& slot : counts.initialising) {
    if (slot.start_ns == 0) continue;
    const double age = SecondsSince(slot.start_ns, now_ns);
    if (age * 1e9 > static_cast<double>(kLongCallNs) && lives && !lives(slot.thread)) continue;
    ++inits;
    oldest_init = std::max(oldest_init, age);
  }
  add(SignalId::kInitsInFlight, inits);
  add(SignalId::kCommunicatorInitSeconds, oldest_init);
  count(SignalId::kCommunicatorAborts, counts.aborts);
  // Without a watchdog nobody knows what is done.
  if (counts.queries == 0) return samples;
  count(SignalId::kEventQueries, counts.queries);
  count(SignalId::kCollectivesCompleted, counts.completed);
  int in_flight = 0;
  double oldest = 0;
  for (const rs_asked& event : view.asked) {
    if (now_ns - static_cast<int64_t>(event.last_ns) > kForgottenEventNs) continue;
    ++in_flight;
    oldest = std::max(oldest, SecondsSince(event.first_ns, now_ns));
  }
  add(SignalId::kCollectivesInFlight, in_flight);
  add(SignalId::kOldestCollectiveSeconds, oldest);
  return samples;
}

}  // namespace rankscope::probes
