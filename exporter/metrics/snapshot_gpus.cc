// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Series of the node's GPUs. One that is not up has no numbers: older ones would look
// current.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/model/pci_card.h"
#include "exporter/metrics/snapshot_impl.h"

namespace rankscope::metrics {
namespace {

struct ValueRow {
  MetricId metric;
  GpuValue GpuReading::*value;
};

// Those without a label of their own.
constexpr ValueRow kValueRows[] = {
    {MetricNamed("rankscope_gpu_bar1_used_bytes"), &GpuReading::bar1_used_bytes},
    {MetricNamed("rankscope_gpu_decoder_active_ratio"), &GpuReading::decoder_active},
    {MetricNamed("rankscope_gpu_dram_active_ratio"), &GpuReading::dram_active},
    {MetricNamed("rankscope_gpu_encoder_active_ratio"), &GpuReading::encoder_active},
    {MetricNamed("rankscope_gpu_energy_joules_total"), &GpuReading::energy_joules},
    {MetricNamed("rankscope_gpu_engine_active_ratio"), &GpuReading::engine_active},
    {MetricNamed("rankscope_gpu_fan_speed_ratio"), &GpuReading::fan_ratio},
    {MetricNamed("rankscope_gpu_memory_busy_ratio"), &GpuReading::memory_busy},
    {MetricNamed("rankscope_gpu_memory_free_bytes"), &GpuReading::memory_free_bytes},
    {MetricNamed("rankscope_gpu_memory_reserved_bytes"), &GpuReading::memory_reserved_bytes},
    {MetricNamed("rankscope_gpu_memory_total_bytes"), &GpuReading::memory_total_bytes},
    {MetricNamed("rankscope_gpu_memory_used_bytes"), &GpuReading::memory_used_bytes},
    {MetricNamed("rankscope_gpu_nvlink_receive_bytes_total"), &GpuReading::nvlink_received_bytes},
    {MetricNamed("rankscope_gpu_nvlink_transmit_bytes_total"), &GpuReading::nvlink_sent_bytes},
    {MetricNamed("rankscope_gpu_pcie_link_generation"), &GpuReading::pcie_generation},
    {MetricNamed("rankscope_gpu_pcie_link_generation_max"), &GpuReading::pcie_generation_max},
    {MetricNamed("rankscope_gpu_pcie_link_width"), &GpuReading::pcie_width},
    {MetricNamed("rankscope_gpu_pcie_link_width_max"), &GpuReading::pcie_width_max},
    {MetricNamed("rankscope_gpu_pcie_receive_bytes_total"), &GpuReading::pcie_received_bytes},
    {MetricNamed("rankscope_gpu_pcie_replays_total"), &GpuReading::pcie_replays},
    {MetricNamed("rankscope_gpu_pcie_transmit_bytes_total"), &GpuReading::pcie_sent_bytes},
    {MetricNamed("rankscope_gpu_performance_state"), &GpuReading::performance_state},
    {MetricNamed("rankscope_gpu_power_watts"), &GpuReading::power_watts},
    {MetricNamed("rankscope_gpu_retired_pages_pending"), &GpuReading::retired_pending},
    {MetricNamed("rankscope_gpu_row_remap_failed"), &GpuReading::remap_failed},
    {MetricNamed("rankscope_gpu_row_remap_pending"), &GpuReading::remap_pending},
    {MetricNamed("rankscope_gpu_sm_active_ratio"), &GpuReading::sm_active},
    {MetricNamed("rankscope_gpu_sm_occupancy_ratio"), &GpuReading::sm_occupancy},
    {MetricNamed("rankscope_gpu_temperature_margin_celsius"),
     &GpuReading::temperature_margin_celsius},
};

constexpr std::array<std::string_view, 5> kRecoveryActions = {"none", "gpu_reset", "reboot",
                                                              "drain", "drain_and_reset"};
// The label where a family has one series for all links, or for all locations.
constexpr std::string_view kAll = "all";

// Job and rank.
using RankOfJob = std::pair<std::string_view, int32_t>;

// By process, of those that live.
std::map<int32_t, RankOfJob> RanksByProcess(const JobList& jobs) {
  std::map<int32_t, RankOfJob> ranks;
  for (const auto& job : jobs) {
    for (const RankStatus& rank : job->ranks) {
      if (rank.alive && rank.process.pid > 0)
        ranks.try_emplace(rank.process.pid, job->job_id, rank.rank);
    }
  }
  return ranks;
}

}  // namespace

// Adds series of one GPU.
class SnapshotBuilder::Impl::GpuSeries {
 public:
  GpuSeries(Impl& impl, const GpuStatus& gpu)
      : impl_(impl), gpu_(gpu), index_(std::to_string(gpu.identity.index)) {}

  void AddAll() {
    AddState();
    if (gpu_.state != GpuState::kUp) return;
    const LabelPointer labels = Labels(MetricNamed("rankscope_gpu_up"), {});
    for (const ValueRow& row : kValueRows) {
      if (const GpuValue value = gpu_.reading.*row.value) impl_.Add(row.metric, labels, *value);
    }
    AddActivity();
    AddErrors();
    AddLinks();
    AddClocksAndPower();
    AddThrottling();
    AddModes();
  }

  // Of the ranks that compute on it; what others have is the rest of what is used.
  void AddRankMemory(const std::map<int32_t, RankOfJob>& ranks) {
    constexpr MetricId kMemory = MetricNamed("rankscope_gpu_process_memory_used_bytes");
    if (gpu_.state != GpuState::kUp || !gpu_.reading.compute_processes) return;
    std::map<RankOfJob, double> held;  // a process of several MIG instances stands there twice
    for (const GpuProcess& holder : *gpu_.reading.compute_processes) {
      const auto rank = ranks.find(holder.pid);
      if (rank != ranks.end() && holder.memory_bytes) held[rank->second] += *holder.memory_bytes;
    }
    for (const auto& [rank, bytes] : held) {
      Add(kMemory, {rank.first, std::to_string(rank.second)}, bytes);
    }
  }

  // Of a GPU that does not answer, too: that is when they matter.
  void AddXids(const SourceStatus& source) {
    const std::string card = PciCard(gpu_.identity.bus_id);
    if (source.xids_heard) AddPending(source, card);
    for (const XidStatus& xid : source.xids) {
      if (xid.card != card) continue;
      const std::string code = std::to_string(xid.code);
      Add(MetricNamed("rankscope_gpu_xid_errors_total"), {code}, static_cast<double>(xid.count));
      Add(MetricNamed("rankscope_gpu_last_xid_timestamp_seconds"), {code}, xid.last_wall_seconds);
    }
  }

 private:
  bool full() const { return impl_.options.profile == Profile::kFull; }

  LabelPointer Labels(MetricId id, std::initializer_list<std::string_view> own) {
    const std::string& uuid = gpu_.identity.uuid;
    const auto* value = own.begin();
    LabelCache& cache = impl_.agent_labels;
    const std::string_view names = kCatalog[id].labels;
    switch (own.size()) {
      case 0:
        return cache.Get(names, {index_, uuid});
      case 1:
        return cache.Get(names, {index_, uuid, value[0]});
      case 2:
        return cache.Get(names, {index_, uuid, value[0], value[1]});
      default:
        return cache.Get(names, {index_, uuid, value[0], value[1], value[2]});
    }
  }

  void Add(MetricId id, std::initializer_list<std::string_view> own, GpuValue value) {
    if (value) impl_.Add(id, Labels(id, own), *value);
  }
  // One for each name that has a value.
  void AddEach(MetricId id, std::span<const std::string_view> names,
               std::span<const GpuValue> values) {
    for (size_t i = 0; i < names.size(); ++i) Add(id, {names[i]}, values[i]);
  }
  // All names, one of them 1.
  void AddStates(MetricId id, std::span<const std::string_view> names, size_t now) {
    if (!impl_.Room(id, names.size())) return;
    for (size_t i = 0; i < names.size(); ++i) {
      impl_.Put(id, Labels(id, {names[i]}), Flag(i == now));
    }
  }

  void AddState() {
    Add(MetricNamed("rankscope_gpu_up"), {}, Flag(gpu_.state == GpuState::kUp));
    if (gpu_.state != GpuState::kDenied) {  // else nothing is known
      AddStates(MetricNamed("rankscope_gpu_health"), kGpuHealthNames,
                static_cast<size_t>(HealthOf(gpu_)));
    }
    constexpr MetricId kInfo = MetricNamed("rankscope_gpu_info");
    const GpuIdentity& who = gpu_.identity;
    impl_.Add(kInfo,
              impl_.agent_labels.Get(kCatalog[kInfo].labels, {index_, who.uuid, who.model,
                                                              who.bus_id, who.serial, who.driver}),
              1);
  }

  void AddActivity() {
    const GpuReading& r = gpu_.reading;
    constexpr MetricId kPipe = MetricNamed("rankscope_gpu_pipe_active_ratio");
    const size_t pipes = full() ? kGpuPipes.size() : 1;
    AddEach(kPipe, std::span(kGpuPipes).first(pipes), r.pipe_active);
    if (r.engine_active) {
      Add(MetricNamed("rankscope_gpu_utilization_source_info"),
          {r.gpm    ? "gpm"
           : r.dcgm ? "dcgm"
                    : "nvml"},
          1);
    }
    constexpr MetricId kProcesses = MetricNamed("rankscope_gpu_processes");
    if (r.compute_processes)
      Add(kProcesses, {"compute"}, static_cast<double>(r.compute_processes->size()));
    Add(kProcesses, {"graphics"}, r.graphics_processes);
  }

  void AddErrors() {
    const GpuReading& r = gpu_.reading;
    constexpr MetricId kEcc = MetricNamed("rankscope_gpu_ecc_errors_total");
    for (size_t type = 0; type < kEccKinds.size(); ++type) {
      for (size_t scope = 0; scope < kEccScopes.size(); ++scope) {
        if (!full())
          Add(kEcc, {kEccKinds[type], kEccScopes[scope], kAll}, r.ecc_total[type][scope]);
        for (size_t at = 0; full() && at < kEccLocations.size(); ++at) {
          Add(kEcc, {kEccKinds[type], kEccScopes[scope], kEccLocations[at]},
              r.ecc[type][scope][at]);
        }
      }
    }
    constexpr MetricId kRemaps = MetricNamed("rankscope_gpu_row_remaps");
    Add(kRemaps, {"correctable"}, r.remapped_correctable);
    Add(kRemaps, {"uncorrectable"}, r.remapped_uncorrectable);
    AddEach(MetricNamed("rankscope_gpu_row_remap_available_banks"), kRemapBanks, r.remap_banks);
    constexpr MetricId kRetired = MetricNamed("rankscope_gpu_retired_pages");
    Add(kRetired, {"single_bit"}, r.retired_single_bit);
    Add(kRetired, {"double_bit"}, r.retired_double_bit);
    if (r.recovery_action && *r.recovery_action < kRecoveryActions.size()) {
      AddStates(MetricNamed("rankscope_gpu_recovery_action"), kRecoveryActions,
                static_cast<size_t>(*r.recovery_action));
    }
  }

  void AddLinks() {
    const GpuReading& r = gpu_.reading;
    if (r.links.empty()) return;
    const auto up =
        std::count_if(r.links.begin(), r.links.end(), [](const GpuLink& link) { return link.up; });
    Add(MetricNamed("rankscope_gpu_nvlink_active_links"), {}, static_cast<double>(up));
    constexpr MetricId kErrors = MetricNamed("rankscope_gpu_nvlink_errors_total");
    if (!full()) {
      for (size_t i = 0; i < kGpuNvlinkErrors.size(); ++i) {
        Add(kErrors, {kAll, kGpuNvlinkErrors[i]}, r.nvlink_errors[i]);
      }
      return;
    }
    for (const GpuLink& link : r.links) {
      const std::string number = std::to_string(link.link);
      for (size_t i = 0; i < kGpuNvlinkErrors.size(); ++i) {
        Add(kErrors, {number, kGpuNvlinkErrors[i]}, link.errors[i]);
      }
      Add(MetricNamed("rankscope_gpu_nvlink_up"), {number}, Flag(link.up));
      Add(MetricNamed("rankscope_gpu_nvlink_speed_bytes_per_second"), {number},
          link.bytes_per_second);
    }
  }

  void AddClocksAndPower() {
    const GpuReading& r = gpu_.reading;
    AddEach(MetricNamed("rankscope_gpu_clock_hertz"), kClockDomains, r.clock_hertz);
    AddEach(MetricNamed("rankscope_gpu_clock_max_hertz"), kClockDomains, r.clock_max_hertz);
    AddEach(MetricNamed("rankscope_gpu_power_limit_watts"), kPowerLimits, r.power_limit_watts);
    AddEach(MetricNamed("rankscope_gpu_temperature_threshold_celsius"), kTemperatureThresholds,
            r.temperature_threshold_celsius);
    constexpr MetricId kTemperature = MetricNamed("rankscope_gpu_temperature_celsius");
    Add(kTemperature, {"core"}, r.temperature_celsius);
    Add(kTemperature, {"memory"}, r.memory_temperature_celsius);
  }

  void AddThrottling() {
    const GpuReading& r = gpu_.reading;
    constexpr MetricId kActive = MetricNamed("rankscope_gpu_throttle_active");
    constexpr MetricId kSeconds = MetricNamed("rankscope_gpu_throttled_seconds_total");
    const bool told = r.throttle_bits && impl_.Room(kActive, kGpuThrottleReasons.size());
    for (size_t i = 0; i < kGpuThrottleReasons.size(); ++i) {
      const ThrottleReason& reason = kGpuThrottleReasons[i];
      if (told) {
        impl_.Put(kActive, Labels(kActive, {reason.name}),
                  Flag((*r.throttle_bits & reason.bit) != 0));
      }
      Add(kSeconds, {reason.name}, r.throttled_seconds[i]);
    }
    Add(kSeconds, {"thermal"}, r.thermal_throttled_seconds);
    constexpr MetricId kSource = MetricNamed("rankscope_gpu_throttled_source_info");
    for (size_t i = 0; i < kGpuThrottleReasons.size(); ++i) {
      if (r.throttled_seconds[i])
        Add(kSource, {kGpuThrottleReasons[i].name, r.throttled_by_card[i] ? "card" : "looks"}, 1);
    }
    if (r.thermal_throttled_seconds) Add(kSource, {"thermal", "card"}, 1);
  }

  void AddPending(const SourceStatus& source, std::string_view card) {
    constexpr MetricId kPending = MetricNamed("rankscope_gpu_xid_pending_action");
    if (!impl_.Room(kPending, 1 + kXidNeedNames.size())) return;
    const auto found = std::find_if(source.xids_pending.begin(), source.xids_pending.end(),
                                    [card](const XidPending& each) { return each.card == card; });
    const bool waits = found != source.xids_pending.end();
    impl_.Put(kPending, Labels(kPending, {"none"}), Flag(!waits));
    for (size_t i = 0; i < kXidNeedNames.size(); ++i)
      impl_.Put(kPending, Labels(kPending, {kXidNeedNames[i]}), Flag(waits && found->needs[i]));
  }

  void AddModes() {
    const GpuReading& r = gpu_.reading;
    constexpr MetricId kMode = MetricNamed("rankscope_gpu_mode");
    Add(kMode, {"ecc"}, r.ecc_enabled);
    Add(kMode, {"exclusive"}, r.exclusive);
    Add(kMode, {"mig"}, r.mig_enabled);
    Add(kMode, {"persistence"}, r.persistence_enabled);
    if (r.mig_enabled == 1) {
      Add(MetricNamed("rankscope_gpu_mig_instances"), {},
          static_cast<double>(r.mig_instances.size()));
      for (const GpuMigInstance& part : r.mig_instances) {
        Add(MetricNamed("rankscope_gpu_mig_memory_total_bytes"), {part.uuid},
            part.memory_total_bytes);
        Add(MetricNamed("rankscope_gpu_mig_memory_used_bytes"), {part.uuid},
            part.memory_used_bytes);
      }
    }
    if (r.fabric_state) {
      AddStates(MetricNamed("rankscope_gpu_fabric_state"), kFabricStates,
                static_cast<size_t>(*r.fabric_state));
    }
  }

  Impl& impl_;
  const GpuStatus& gpu_;
  const std::string index_;
};

void SnapshotBuilder::Impl::CountGpuJobs(const std::vector<ShownJob>& shown) {
  gpu_jobs.clear();
  for (const ShownJob& one : shown) {
    if (!one.job->running) continue;
    for (const JobGpuStatus& gpu : one.job->gpus) ++gpu_jobs[gpu.uuid];
  }
}

// Until the job ends: then the GPU is another's.
void SnapshotBuilder::Impl::AddJobGpus(const JobStatus& job) {
  if (!job.running) return;
  LabelCache& cache = jobs[job.job_id].labels;
  for (const JobGpuStatus& gpu : job.gpus) {
    const std::string index = std::to_string(gpu.index);
    constexpr MetricId kGpu = MetricNamed("rankscope_job_gpu");
    constexpr MetricId kAttached = MetricNamed("rankscope_job_gpu_attached");
    Add(kGpu, cache.Get(kCatalog[kGpu].labels, {job.job_id, index, gpu.uuid, gpu.source}), 1);
    const LabelPointer& labels =
        cache.Get(kCatalog[kAttached].labels, {job.job_id, index, gpu.uuid});
    Add(kAttached, labels, Flag(gpu.attached));
    Add(MetricNamed("rankscope_job_gpu_share_ratio"), labels,
        1.0 / std::max(1, gpu_jobs[gpu.uuid]));
  }
}

void SnapshotBuilder::Impl::AddRankGpus(const JobStatus& job) {
  if (!job.running) return;
  constexpr MetricId kInfo = MetricNamed("rankscope_rank_gpu_info");
  LabelCache& cache = jobs[job.job_id].labels;
  for (const JobGpuStatus& gpu : job.gpus) {
    for (const int32_t rank : gpu.ranks) {
      Add(kInfo,
          cache.Get(kCatalog[kInfo].labels,
                    {job.job_id, std::to_string(rank), std::to_string(gpu.index), gpu.uuid}),
          1);
    }
  }
}

void SnapshotBuilder::Impl::AddSwitches(const SourceStatus& source) {
  for (const SxidCount& sxid : source.sxids) {
    Add(MetricNamed("rankscope_nvswitch_sxid_errors_total"),
        agent_labels.Get("sxid,fatal", {std::to_string(sxid.code), sxid.fatal ? "true" : "false"}),
        Count(sxid.count));
  }
}

namespace {

// What another program counts of the GPU with this uuid; null: no program does.
const GpuProfile* ProfileOf(const AgentStatus& agent, const std::string& uuid) {
  for (const SourceStatus& source : agent.sources) {
    if (source.gpu_profiles == nullptr) continue;
    for (const GpuProfile& profile : *source.gpu_profiles) {
      if (profile.uuid == uuid && profile.pods.empty()) return &profile;
    }
  }
  return nullptr;
}

}  // namespace

void SnapshotBuilder::Impl::AddLibraryCalls(const std::vector<LibraryCall>& calls) {
  constexpr MetricId kSeconds = MetricNamed("rankscope_nvml_call_seconds");
  constexpr MetricId kErrors = MetricNamed("rankscope_nvml_errors_total");
  for (const LibraryCall& call : calls) {
    for (const auto& [code, count] : call.errors) {
      Add(kErrors, agent_labels.Get(kCatalog[kErrors].labels, {call.function, code}), Count(count));
    }
    AddCallSeconds(kSeconds, call);
  }
}

void SnapshotBuilder::Impl::AddCallSeconds(MetricId id, const LibraryCall& call) {
  if (!Room(id, SeriesOf(kCatalog[id]))) return;
  Histogram histogram{agent_labels.Get(kCatalog[id].labels, {call.function}), {}, call.seconds};
  double all = 0;
  for (const int64_t count : call.counts) {
    histogram.counts.push_back(all += static_cast<double>(count));
  }
  histograms[id].push_back(std::move(histogram));
}

void SnapshotBuilder::Impl::StageGpus(const Published& published) {
  const AgentStatus& agent = published.agent;
  const GpuOwners owners = options.dcgm_names ? GpuOwnersOf(published) : GpuOwners();
  Stage();
  for (const SourceStatus& source : agent.sources) {
    AddSwitches(source);
    if (source.gpus == nullptr) continue;
    for (const GpuStatus& polled : *source.gpus) {
      constexpr size_t kMaxRemembered = 256;  // a node has 16; whoever replaces GPUs starts anew
      if (TellsBytes(polled.reading)) {
        if (count_own_bytes.size() >= kMaxRemembered) count_own_bytes.clear();
        count_own_bytes.insert(polled.identity.uuid);
      }
      GpuStatus filled;
      const GpuProfile* const profile = ProfileOf(agent, polled.identity.uuid);
      if (profile != nullptr) {
        filled = polled;
        FillFrom(*profile, !count_own_bytes.contains(filled.identity.uuid), filled.reading);
      }
      const GpuStatus& gpu = profile == nullptr ? polled : filled;
      GpuSeries shown(*this, gpu);
      shown.AddAll();
      for (const SourceStatus& reporter : agent.sources) shown.AddXids(reporter);
      if (options.dcgm_names) AddDcgmNames(agent, gpu, owners);
    }
  }
  EndStage();
}

void SnapshotBuilder::Impl::AddRankMemory(const Published& published) {
  const std::map<int32_t, RankOfJob> ranks = RanksByProcess(published.jobs);
  Stage();
  for (const SourceStatus& source : published.agent.sources) {
    if (source.gpus == nullptr) continue;
    for (const GpuStatus& gpu : *source.gpus) GpuSeries(*this, gpu).AddRankMemory(ranks);
  }
  EndStage();
  Settle(Keep::kRankDetail);
}

void SnapshotBuilder::Impl::AddNvmlCalls(const AgentStatus& agent) {
  for (const SourceStatus& source : agent.sources) {
    if (source.gpus != nullptr) AddLibraryCalls(source.library_calls);
  }
}

}  // namespace rankscope::metrics
