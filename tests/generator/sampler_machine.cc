// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The node's GPUs and the node itself.

#include <algorithm>
#include <cmath>

#include "tests/generator/sampler.h"
#include "tests/generator/text.h"

namespace rankscope::generator {
GpuSecond Sampler::Reading(int rank, const Life* life, double t) {
  const Plan& plan = world_.plan;
  Gpu& state = gpus_[rank];
  GpuSecond gpu;
  gpu.rank = rank;
  gpu.t = t;
  double compute = 0, spin = 0, age = 0;
  if (life != nullptr && t - 1 >= std::floor(life->born)) {
    const auto index = static_cast<size_t>(t - 1 - std::floor(life->born));
    if (index < life->seconds.size()) {
      compute = life->seconds[index].of(Doing::kCompute);
      spin = life->seconds[index].of(Doing::kSpin);
    }
    age = t - life->born;
  }
  const auto noisy = [this](double value, double by) {
    return std::clamp(value * (1 + by * random_.Normal()), 0.0, 1.0);
  };
  gpu.engine = std::min(1.0, std::round((compute + spin) * 1000) / 1000);
  gpu.sm = noisy(compute * plan.sm + spin * plan.spin_sm, 0.02);
  gpu.tensor = noisy(compute * plan.tensor_activity, 0.04);
  gpu.dram = noisy(compute * plan.dram + spin * 0.01, 0.04);
  const bool training = age > plan.import_seconds + plan.rendezvous_seconds + plan.load_seconds;
  gpu.memory_used = 0.6 * kGiBytes;
  if (life != nullptr && age > plan.import_seconds) gpu.memory_used += 0.5 * kGiBytes;
  if (training && plan.work != Work::kNotebook)
    gpu.memory_used += plan.memory_share * plan.gpu.memory_bytes;
  gpu.power_limit = plan.gpu.power_limit;
  const double idle = 0.12 * gpu.power_limit;
  gpu.power = idle + (gpu.power_limit * plan.power_share - idle) * (compute + 0.45 * spin);
  gpu.power *= 1 + 0.02 * random_.Normal();
  const double busy = compute + spin;
  const double target = plan.idle_temperature + (plan.temperature - plan.idle_temperature) *
                                                    std::min(1.0, compute + 0.6 * spin);
  if (state.temperature == 0) state.temperature = plan.idle_temperature;
  state.temperature += (target - state.temperature) / 25;
  gpu.temperature = std::round(state.temperature + 0.3 * random_.Normal());
  gpu.memory_temperature = gpu.temperature + 9;
  gpu.clock = busy > 0.05 ? plan.gpu.clock_hertz * (1 - 0.02 * random_.Unit()) : 345e6;
  gpu.throttle = busy > 0.05 ? (plan.power_share > 0.93 ? 0x4u : 0u) : 0x1u;
  for (const auto& hook : world_.on_gpu) hook(gpu);
  state.nvlink += plan.ranks > 1 && busy > 0 ? 2e9 * busy : 0;
  state.pcie += 5e7 * busy;
  return gpu;
}

void Sampler::OfGpu(int rank, const Life* life, double t) {
  const Plan& plan = world_.plan;
  Gpu& state = gpus_[rank];
  const GpuSecond gpu = Reading(rank, life, t);
  state.energy += gpu.power;
  GpuFacts(rank, life, gpu, t);
  if (!gpu.answers) return;
  SampleBatch batch;
  batch.subject.kind = Subject::Kind::kGpu;
  batch.subject.name = world_.GpuUuid(rank);
  const auto add = [&batch](SignalId signal, double value) {
    batch.samples.push_back({signal, value});
  };
  add(SignalId::kEngineActivity, plan.gpu.gpm ? gpu.engine : std::round(gpu.engine * 100) / 100);
  if (plan.gpu.gpm) {
    add(SignalId::kSmActivity, gpu.sm);
    add(SignalId::kTensorActivity, gpu.tensor);
    add(SignalId::kDramActivity, gpu.dram);
  }
  add(SignalId::kFramebufferUsedBytes,
      std::floor(std::min(gpu.memory_used, plan.gpu.memory_bytes)));
  add(SignalId::kFramebufferTotalBytes, plan.gpu.memory_bytes);
  add(SignalId::kGpuPowerWatts, gpu.power);
  add(SignalId::kGpuPowerLimitWatts, gpu.power_limit);
  add(SignalId::kGpuTemperatureCelsius, gpu.temperature);
  add(SignalId::kGpuMemoryTemperatureCelsius, gpu.memory_temperature);
  add(SignalId::kSmClockHertz, std::floor(gpu.clock / 15e6) * 15e6);
  add(SignalId::kMemoryClockHertz, plan.gpu.memory_clock_hertz);
  add(SignalId::kThrottleReasons, gpu.throttle);
  add(SignalId::kEccCorrected, gpu.ecc_corrected);
  add(SignalId::kEccUncorrected, gpu.ecc_uncorrected);
  add(SignalId::kRowRemapsPending, gpu.remaps_pending);
  add(SignalId::kRowRemapsFailed, gpu.remaps_failed);
  add(SignalId::kRowRemapsUncorrectable, gpu.remaps_uncorrectable);
  add(SignalId::kNvlinkErrors, gpu.nvlink_errors);
  add(SignalId::kPcieReplays, gpu.pcie_replays);
  add(SignalId::kGpuEnergyJoules, state.energy);
  state.throttled += (gpu.throttle & 0xE8u) != 0 ? 1 : 0;
  add(SignalId::kThrottledSeconds, state.throttled);
  add(SignalId::kNvlinkReceivedBytes, state.nvlink);
  add(SignalId::kNvlinkSentBytes, state.nvlink);
  add(SignalId::kPcieReceivedBytes, state.pcie);
  add(SignalId::kPcieSentBytes, state.pcie / 3);
  world_.Tell(t + 0.01 + 0.001 * (rank % plan.per_node), Source::kNvml, std::move(batch));
}

// Identity and holders: at once when they change, and every 30 s.
void Sampler::GpuFacts(int rank, const Life* life, const GpuSecond& gpu, double t) {
  const Plan& plan = world_.plan;
  Gpu& state = gpus_[rank];
  const auto make = [&](EventType type) {
    Event event;
    event.type = WireType(type);
    event.str = {{"gpu_uuid", world_.GpuUuid(rank)},
                 {"bus_id", world_.BusId(rank)},
                 {"model", plan.gpu.name},
                 {"state", gpu.answers ? "up" : "lost"}};
    event.num = {{"index", rank % plan.per_node},
                 {"processes_told", gpu.answers ? 1 : 0},
                 {"mig", 0},
                 {"minor", rank % plan.per_node}};
    return event;
  };
  const bool changed = state.lost_told == gpu.answers;
  if (t - state.identity_told >= 30 || changed) {
    state.identity_told = t;
    state.lost_told = !gpu.answers;
    world_.MarkAs(gpu.answers ? Mark::kNone : Mark::kFault);
    world_.Tell(t + 0.005, Source::kNvml, make(EventType::kGpuIdentity));
    world_.MarkAs(Mark::kNone);
  }
  if (life == nullptr || !gpu.answers || t - life->born < plan.import_seconds) return;
  const double bytes = gpu.memory_used - 0.6 * kGiBytes;
  const bool other = state.holder != life->key.pid;
  if (!other && std::abs(bytes - state.holder_bytes) < 256 * 1048576.0 &&
      t - state.holder_told < 30)
    return;
  state.holder = life->key.pid;
  state.holder_bytes = bytes;
  state.holder_told = t;
  Event held = make(EventType::kGpuProcess);
  held.process = life->key;
  held.str.push_back({"name", "python3"});
  held.num.push_back({"bytes", static_cast<int64_t>(bytes)});
  world_.Tell(t + 0.006, Source::kNvml, std::move(held));
}

void Sampler::OfHost(double t) {
  const Plan& plan = world_.plan;
  HostSecond host;
  host.t = t;
  host.available = 900 * kGiBytes;
  host.job_memory = plan.locals() * 9 * kGiBytes;
  host.job_limit = plan.slurm ? plan.locals() * 120 * kGiBytes : 0;
  host.cpu_waiting = 0.01 * random_.Unit();
  for (const auto& hook : world_.on_host) hook(host);
  oom_kills_ += host.oom_kills;
  job_oom_kills_ += host.job_oom_kills;
  cpu_waiting_ += host.cpu_waiting;
  memory_waiting_ += host.memory_waiting;
  io_waiting_ += host.io_waiting;
  rdma_sent_ += plan.nodes > 1 ? 1e9 : 0;
  if (plan.nodes > 1) OfPorts(host, t);
  const auto tell = [this, t](Source source, Subject::Kind kind, std::vector<Sample> samples) {
    SampleBatch batch;
    batch.subject.kind = kind;
    if (kind == Subject::Kind::kJob) batch.subject.name = world_.plan.job_id;
    batch.samples = std::move(samples);
    world_.Tell(t + 0.02, source, std::move(batch));
  };
  tell(Source::kProcfs, Subject::Kind::kHost,
       {{SignalId::kHostMemoryAvailableBytes, std::floor(host.available)},
        {SignalId::kHostOomKills, oom_kills_}});
  if (world_.over() && t > world_.ended_at()) return;
  if (host.job_limit > 0)
    tell(Source::kProcfs, Subject::Kind::kJob,
         {{SignalId::kJobMemoryBytes, std::floor(host.job_memory)},
          {SignalId::kJobMemoryLimitBytes, host.job_limit},
          {SignalId::kJobOomKills, job_oom_kills_}});
  if (std::fmod(t, 5) != 0) return;
  tell(Source::kPressure, Subject::Kind::kHost,
       {{SignalId::kHostCpuWaitingSeconds, cpu_waiting_},
        {SignalId::kHostCpuStalledSeconds, 0},
        {SignalId::kHostMemoryWaitingSeconds, memory_waiting_},
        {SignalId::kHostMemoryStalledSeconds, memory_waiting_ / 3},
        {SignalId::kHostIoWaitingSeconds, io_waiting_},
        {SignalId::kHostIoStalledSeconds, io_waiting_ / 3}});
  // Those are errors of which a healthy port counts none; retries are a network's daily life.
  if (plan.nodes > 1)
    tell(Source::kInfiniband, Subject::Kind::kHost,
         {{SignalId::kRdmaReceivedBytes, rdma_sent_},
          {SignalId::kRdmaSentBytes, rdma_sent_},
          {SignalId::kRdmaErrors, ports_[0].request_errors + ports_[0].downs},
          {SignalId::kRdmaPortsDown, host.rdma_down}});
}

// Each port is told to the job's topmost process: exporter/infiniband. A fall of the link after 10
// s, faults once a minute, the rest every 20 minutes.
void Sampler::OfPorts(const HostSecond& host, double t) {
  Port& first = ports_[0];
  first.timeouts += host.port_timeouts;
  first.out_of_sequence += host.port_out_of_sequence;
  first.symbols += host.port_symbols;
  first.request_errors += host.port_request_errors;
  const bool up = host.rdma_down == 0;
  if (first.up && !up) ++first.downs;
  first.up = up;
  if (std::fmod(t, 5) != 0) return;
  for (size_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    const double since = t - port.told, faults = port.request_errors + port.downs;
    const bool due = since >= 1200 || (port.up != port.told_up && since >= 10) ||
                     (faults > port.told_faults && since >= 60);
    if (!due) continue;
    port.told = t;
    port.told_up = port.up;
    port.told_faults = faults;
    Event event;
    event.type = WireType(EventType::kPortCounters);
    event.process = world_.launcher_;
    event.str = {{"device", "mlx5_" + std::to_string(i)},
                 {"port", "1"},
                 {"link", "infiniband"},
                 {"state", port.up ? "4: ACTIVE" : "1: DOWN"}};
    const auto count = [&event](const char* name, double value) {
      event.num.push_back({name, static_cast<int64_t>(value)});
    };
    event.num = {{"up", port.up ? 1 : 0}};
    for (const char* const none :
         {"congestion_notifications", "discards", "integrity_errors", "link_error_recoveries"})
      count(none, 0);
    count("link_downs", port.downs);
    count("out_of_sequence", port.out_of_sequence);
    count("packet_sequence_errors", port.out_of_sequence / 3);
    count("rdma_request_errors", port.request_errors);
    count("symbol_errors", port.symbols);
    count("timeouts", port.timeouts);
    world_.Tell(t + 0.025, Source::kInfiniband, std::move(event));
  }
}

// NCCL's RAS answers every 30 s; what it says is passed on where it differs from before, and that
// is when a rank stays behind.
void Sampler::Ras(double t) {
  const Plan& plan = world_.plan;
  const Life* behind = nullptr;
  const Life* ahead = nullptr;
  int waiting = 0;
  for (const Life& life : world_.lives_) {
    if (!(life.born <= t && t < life.died)) continue;
    const auto index = static_cast<size_t>(std::max(0.0, t - 1 - std::floor(life.born)));
    if (index >= life.seconds.size()) continue;
    const Second& second = life.seconds[index];
    if (second.collective_open && second.collective_age > 25) {
      ++waiting;
      ahead = &life;
    } else if (second.age > 25) {
      behind = &life;
    }
  }
  if (waiting == 0 || behind == nullptr || ahead == nullptr) return;
  const auto count = static_cast<long long>(world_.collectives_);
  std::string text =
      Text("NCCL version 2.27.5+cuda12.9\n\nErrors\n======\n\n#0-0 (%016llx) MISMATCH\n",
           static_cast<unsigned long long>(plan.seed * 0x9E3779B97F4A7C15ull));
  text += "  Communicator ranks have different collective operation counts\n";
  text += Text("  %d ranks have launched up to operation %lld\n", plan.ranks - 1, count + 1);
  text += Text("  1 rank has launched up to operation %lld\n", count);
  text += Text("  Rank %d -- GPU %d managed by process %d on node %s\n", behind->rank,
               behind->rank % plan.per_node, behind->key.pid, plan.NodeOf(behind->rank).c_str());
  Event event;
  event.type = WireType(EventType::kRasReport);
  event.process = ahead->key;
  event.begin = {plan.boot_ns + static_cast<int64_t>(t * 1e9)};
  event.str = {{"address", "localhost:28028"}, {"text", text}};
  event.num = {{"microseconds", 210000}, {"cut", 0}};
  world_.Tell(t + 0.3, Source::kNcclRas, std::move(event));
}

// What the NCCL Inspector of each local rank has written since it was read before.
void Sampler::Inspect(double t) {
  const Plan& plan = world_.plan;
  const auto& factors = world_.comm_factors_;
  double factor = 0;
  int64_t steps = 0;
  for (; inspected_ < factors.size() && factors[inspected_].first < t; ++inspected_, ++steps)
    factor += factors[inspected_].second;
  if (steps == 0) return;
  factor /= static_cast<double>(steps);
  for (int i = 0; i < plan.locals(); ++i) {
    const Life* const life = Alive(plan.first_local() + i, t);
    if (life == nullptr) continue;
    Event event;
    event.type = WireType(EventType::kInspectorRecord);
    event.process = life->key;
    event.str = {{"communicator", "0x9f2c41d0a7"}, {"operation", "AllReduce"}};
    event.num = {{"rank", life->rank},
                 {"ranks", plan.ranks},
                 {"nodes", plan.nodes},
                 {"sequence", static_cast<int64_t>(inspected_) * plan.collectives_per_step},
                 {"bytes", static_cast<int64_t>(plan.bytes_per_step /
                                                std::max(1, plan.collectives_per_step))},
                 {"records", steps * plan.collectives_per_step},
                 {"dropped", 0},
                 {"dumped_us", world_.Wall(t) / 1000},
                 {"on_gpu", 1},
                 {"bus_bytes_per_second", static_cast<int64_t>(plan.bus_bandwidth / factor)}};
    world_.Tell(t + 0.2, Source::kNcclDumps, std::move(event));
  }
}

}  // namespace rankscope::generator
