// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Series under dcgm-exporter's names, of what is known of a GPU.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "detectors/model/pci_card.h"
#include "detectors/model/xids.h"
#include "exporter/metrics/snapshot_impl.h"

namespace rankscope::metrics {
namespace {

struct ValueRow {
  MetricId metric;
  GpuValue (*value)(const GpuReading& r);
};

// DCGM's are whole numbers but for power and ratios.
GpuValue Whole(GpuValue value, double factor) {
  if (!value) return std::nullopt;
  return std::floor(*value * factor + 1e-9);
}

constexpr double kPerMiB = 1.0 / (1 << 20);
constexpr double kPerMega = 1e-6;
constexpr double kPerNano = 1e9;

template <size_t kPolicy>
GpuValue Violation(const GpuReading& r) {
  return Whole(r.violation_seconds[kPolicy], kPerNano);
}

template <size_t kKind, size_t kScope>
GpuValue EccErrors(const GpuReading& r) {
  return r.ecc_total[kKind][kScope];
}

template <size_t kKind>
GpuValue LinkErrors(const GpuReading& r) {
  return r.nvlink_errors[kKind];
}

// Both directions.
GpuValue LinkRate(const GpuReading& r) {
  if (!r.nvlink_received_rate || !r.nvlink_sent_rate) return std::nullopt;
  return Whole(*r.nvlink_received_rate + *r.nvlink_sent_rate, kPerMiB);
}

constexpr ValueRow kValueRows[] = {
    {MetricNamed("DCGM_FI_DEV_SM_CLOCK"),
     [](const GpuReading& r) { return Whole(r.clock_hertz[1], kPerMega); }},
    {MetricNamed("DCGM_FI_DEV_MEM_CLOCK"),
     [](const GpuReading& r) { return Whole(r.clock_hertz[2], kPerMega); }},
    {MetricNamed("DCGM_FI_DEV_MEMORY_TEMP"),
     [](const GpuReading& r) { return r.memory_temperature_celsius; }},
    {MetricNamed("DCGM_FI_DEV_GPU_TEMP"),
     [](const GpuReading& r) { return r.temperature_celsius; }},
    {MetricNamed("DCGM_FI_DEV_POWER_USAGE"), [](const GpuReading& r) { return r.power_watts; }},
    {MetricNamed("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"),
     [](const GpuReading& r) { return Whole(r.energy_joules, 1000); }},
    {MetricNamed("DCGM_FI_DEV_PCIE_REPLAY_COUNTER"),
     [](const GpuReading& r) { return r.pcie_replays; }},
    {MetricNamed("DCGM_FI_DEV_GPU_UTIL"),
     [](const GpuReading& r) { return Whole(r.engine_active, 100); }},
    {MetricNamed("DCGM_FI_DEV_MEM_COPY_UTIL"),
     [](const GpuReading& r) { return Whole(r.memory_busy, 100); }},
    {MetricNamed("DCGM_FI_DEV_ENC_UTIL"),
     [](const GpuReading& r) { return Whole(r.encoder_active, 100); }},
    {MetricNamed("DCGM_FI_DEV_DEC_UTIL"),
     [](const GpuReading& r) { return Whole(r.decoder_active, 100); }},
    {MetricNamed("DCGM_FI_DEV_FB_FREE"),
     [](const GpuReading& r) { return Whole(r.memory_free_bytes, kPerMiB); }},
    {MetricNamed("DCGM_FI_DEV_FB_USED"),
     [](const GpuReading& r) { return Whole(r.memory_used_bytes, kPerMiB); }},
    {MetricNamed("DCGM_FI_DEV_FB_RESERVED"),
     [](const GpuReading& r) { return Whole(r.memory_reserved_bytes, kPerMiB); }},
    {MetricNamed("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"),
     [](const GpuReading& r) { return r.remapped_uncorrectable; }},
    {MetricNamed("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"),
     [](const GpuReading& r) { return r.remapped_correctable; }},
    {MetricNamed("DCGM_FI_DEV_ROW_REMAP_FAILURE"),
     [](const GpuReading& r) { return r.remap_failed; }},
    // By place in kEccKinds and kEccScopes.
    {MetricNamed("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"), EccErrors<0, 0>},
    {MetricNamed("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL"), EccErrors<0, 1>},
    {MetricNamed("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"), EccErrors<1, 0>},
    {MetricNamed("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"), EccErrors<1, 1>},
    {MetricNamed("DCGM_FI_DEV_RETIRED_SBE"),
     [](const GpuReading& r) { return r.retired_single_bit; }},
    {MetricNamed("DCGM_FI_DEV_RETIRED_DBE"),
     [](const GpuReading& r) { return r.retired_double_bit; }},
    {MetricNamed("DCGM_FI_DEV_RETIRED_PENDING"),
     [](const GpuReading& r) { return r.retired_pending; }},
    // By place in kGpuViolations.
    {MetricNamed("DCGM_FI_DEV_POWER_VIOLATION"), Violation<0>},
    {MetricNamed("DCGM_FI_DEV_THERMAL_VIOLATION"), Violation<1>},
    {MetricNamed("DCGM_FI_DEV_SYNC_BOOST_VIOLATION"), Violation<2>},
    {MetricNamed("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION"), Violation<3>},
    {MetricNamed("DCGM_FI_DEV_LOW_UTIL_VIOLATION"), Violation<4>},
    {MetricNamed("DCGM_FI_DEV_RELIABILITY_VIOLATION"), Violation<5>},
    // By place in kGpuNvlinkErrors.
    {MetricNamed("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"), LinkErrors<0>},
    {MetricNamed("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"), LinkErrors<1>},
    {MetricNamed("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"), LinkErrors<2>},
    {MetricNamed("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"), LinkErrors<3>},
    {MetricNamed("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"), LinkRate},
    {MetricNamed("DCGM_FI_DEV_VGPU_LICENSE_STATUS"),
     [](const GpuReading& r) { return r.vgpu_licensed; }},
    {MetricNamed("DCGM_FI_PROF_PCIE_TX_BYTES"),
     [](const GpuReading& r) { return Whole(r.pcie_sent_rate, 1); }},
    {MetricNamed("DCGM_FI_PROF_PCIE_RX_BYTES"),
     [](const GpuReading& r) { return Whole(r.pcie_received_rate, 1); }},
    {MetricNamed("DCGM_FI_PROF_NVLINK_TX_BYTES"),
     [](const GpuReading& r) { return Whole(r.nvlink_sent_rate, 1); }},
    {MetricNamed("DCGM_FI_PROF_NVLINK_RX_BYTES"),
     [](const GpuReading& r) { return Whole(r.nvlink_received_rate, 1); }},
    // The driver's own sample is another number than the counter of this name.
    {MetricNamed("DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
     [](const GpuReading& r) { return r.gpm ? r.engine_active : std::nullopt; }},
    {MetricNamed("DCGM_FI_PROF_SM_ACTIVE"), [](const GpuReading& r) { return r.sm_active; }},
    {MetricNamed("DCGM_FI_PROF_SM_OCCUPANCY"), [](const GpuReading& r) { return r.sm_occupancy; }},
    {MetricNamed("DCGM_FI_PROF_DRAM_ACTIVE"), [](const GpuReading& r) { return r.dram_active; }},
    // By place in kGpuPipes.
    {MetricNamed("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
     [](const GpuReading& r) { return r.pipe_active[0]; }},
    {MetricNamed("DCGM_FI_PROF_PIPE_FP64_ACTIVE"),
     [](const GpuReading& r) { return r.pipe_active[4]; }},
    {MetricNamed("DCGM_FI_PROF_PIPE_FP32_ACTIVE"),
     [](const GpuReading& r) { return r.pipe_active[5]; }},
    {MetricNamed("DCGM_FI_PROF_PIPE_FP16_ACTIVE"),
     [](const GpuReading& r) { return r.pipe_active[6]; }},
};

// Absent where nobody reads the kernel's log.
GpuValue NewestXid(const AgentStatus& agent, const GpuStatus& gpu) {
  if (gpu.identity.bus_id.empty()) return std::nullopt;  // never polled: its address is not known
  const std::string card = PciCard(gpu.identity.bus_id);
  GpuValue code;
  double newest = -1;
  for (const SourceStatus& source : agent.sources) {
    if (source.name == "kmsg" && source.state == Availability::kUp && !code) code = 0;
    for (const XidStatus& xid : source.xids) {
      if (xid.card != card || !(xid.last_wall_seconds > newest)) continue;
      newest = xid.last_wall_seconds;
      code = xid.code;
    }
  }
  return code;
}

struct PartRow {
  MetricId metric;
  GpuValue (*value)(const GpuMigInstance& part);
};

// What a MIG instance has of its own; the rest is of the whole card.
constexpr PartRow kPartRows[] = {
    {MetricNamed("DCGM_FI_DEV_FB_FREE"),
     [](const GpuMigInstance& part) { return Whole(part.memory_free_bytes, kPerMiB); }},
    {MetricNamed("DCGM_FI_DEV_FB_USED"),
     [](const GpuMigInstance& part) { return Whole(part.memory_used_bytes, kPerMiB); }},
    {MetricNamed("DCGM_FI_PROF_GR_ENGINE_ACTIVE"),
     [](const GpuMigInstance& part) { return part.engine_active; }},
    {MetricNamed("DCGM_FI_PROF_SM_ACTIVE"),
     [](const GpuMigInstance& part) { return part.sm_active; }},
    {MetricNamed("DCGM_FI_PROF_SM_OCCUPANCY"),
     [](const GpuMigInstance& part) { return part.sm_occupancy; }},
    {MetricNamed("DCGM_FI_PROF_DRAM_ACTIVE"),
     [](const GpuMigInstance& part) { return part.dram_active; }},
    // By place in kGpuPipes.
    {MetricNamed("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
     [](const GpuMigInstance& part) { return part.pipe_active[0]; }},
    {MetricNamed("DCGM_FI_PROF_PIPE_FP64_ACTIVE"),
     [](const GpuMigInstance& part) { return part.pipe_active[4]; }},
    {MetricNamed("DCGM_FI_PROF_PIPE_FP32_ACTIVE"),
     [](const GpuMigInstance& part) { return part.pipe_active[5]; }},
    {MetricNamed("DCGM_FI_PROF_PIPE_FP16_ACTIVE"),
     [](const GpuMigInstance& part) { return part.pipe_active[6]; }},
};

bool IsOfParts(MetricId metric) {
  return std::any_of(std::begin(kPartRows), std::end(kPartRows),
                     [metric](const PartRow& row) { return row.metric == metric; });
}

// Each GPU instance once: several MIG devices may be compute instances of one.
std::vector<const GpuMigInstance*> PartsOf(const GpuReading& reading) {
  std::vector<const GpuMigInstance*> parts;
  for (const GpuMigInstance& part : reading.mig_instances) {
    const bool known = std::any_of(parts.begin(), parts.end(), [&part](const auto* other) {
      return other->gpu_instance == part.gpu_instance;
    });
    if (part.gpu_instance >= 0 && !known) parts.push_back(&part);
  }
  return parts;
}

// As dcgm-exporter says these two.
constexpr std::string_view kNoError = "No Error";
constexpr std::string_view kUnknownError = "Unknown Error";

std::string_view XidMessage(int64_t code) {
  if (code == 0) return kNoError;
  const std::string_view meaning = FindXid(code).meaning;
  return meaning.empty() ? kUnknownError : meaning;
}

// Whose a GPU or a part of it is: labels behind those that all have.
struct Owner {
  std::string names;
  std::vector<std::string> values;
};

// Each pod of each job; where there are none, nobody.
std::vector<Owner> OwnersOf(const std::vector<std::string>* jobs, const std::vector<GpuPod>* pods) {
  std::vector<Owner> by_job;
  if (jobs != nullptr) {
    for (const std::string& job : *jobs) by_job.push_back({std::string(kDcgmJobLabel), {job}});
  }
  if (by_job.empty()) by_job.emplace_back();
  if (pods == nullptr || pods->empty()) return by_job;
  std::vector<Owner> owners;
  for (const GpuPod& pod : *pods) {
    for (Owner owner : by_job) {
      owner.names += kDcgmPodLabels;
      for (const std::string* value : {&pod.container, &pod.name_space, &pod.pod})
        owner.values.push_back(*value);
      owners.push_back(std::move(owner));
    }
  }
  return owners;
}

template <class T>
const std::vector<T>* Find(const std::map<std::string, std::vector<T>, std::less<>>& all,
                           const std::string& key) {
  const auto found = all.find(key);
  return found == all.end() ? nullptr : &found->second;
}

// Label sets of one GPU, and of its parts.
class DcgmLabels {
 public:
  DcgmLabels(LabelCache& cache, const std::string& node, const GpuStatus& gpu)
      : cache_(cache), node_(node), who_(gpu.identity), index_(std::to_string(who_.index)) {
    // By the driver's order, which is that of the device files except on machines configured
    // otherwise.
    device_ = "nvidia" + (who_.minor < 0 ? index_ : std::to_string(who_.minor));
  }

  const std::string& device() const { return device_; }

  // With `names` and `values` behind those that all have.
  LabelPointer With(std::string_view names, std::initializer_list<std::string_view> values,
                    const Owner& owner) const {
    std::vector<std::string_view> all = {index_,     who_.uuid, who_.bus_id, device_,
                                         who_.model, node_,     who_.driver};
    all.insert(all.end(), values);
    all.insert(all.end(), owner.values.begin(), owner.values.end());
    return cache_.Get(std::string(kDcgmLabels).append(names).append(owner.names), all);
  }

 private:
  LabelCache& cache_;
  const std::string& node_;
  const GpuIdentity& who_;
  std::string index_, device_;
};

}  // namespace

SnapshotBuilder::Impl::GpuOwners SnapshotBuilder::Impl::GpuOwnersOf(const Published& published) {
  GpuOwners owners;
  bool reads_mapping = false;
  for (const SourceStatus& source : published.agent.sources) {
    reads_mapping =
        reads_mapping || (source.name == "job_mapping" && source.state == Availability::kUp);
    if (source.gpu_profiles == nullptr) continue;
    for (const GpuProfile& profile : *source.gpu_profiles) {
      if (!profile.pods.empty()) owners.pods[profile.uuid] = profile.pods;
    }
  }
  if (!reads_mapping) return owners;
  for (const auto& job : published.jobs) {
    if (!job->running) continue;
    for (const JobGpuStatus& gpu : job->gpus) {
      // What an environment claims is no prolog's word.
      const bool given =
          gpu.source == "mapping" || gpu.source == "slurm" || gpu.source == "devices";
      if (given) owners.jobs[gpu.uuid].push_back(job->job_id);
    }
  }
  return owners;
}

void SnapshotBuilder::Impl::AddDcgmNames(const AgentStatus& agent, const GpuStatus& gpu,
                                         const GpuOwners& owners) {
  const DcgmLabels labels(agent_labels, agent.node, gpu);
  const std::string& uuid = gpu.identity.uuid;
  const std::vector<std::string>* const given = Find(owners.jobs, uuid);
  const std::vector<GpuPod>* pods = Find(owners.pods, uuid);
  if (pods == nullptr) pods = Find(owners.pods, labels.device());
  const std::vector<const GpuMigInstance*> parts =
      gpu.state == GpuState::kUp ? PartsOf(gpu.reading) : std::vector<const GpuMigInstance*>();
  const GpuValue xid = NewestXid(agent, gpu);
  for (const Owner& owner : OwnersOf(given, pods)) {
    if (xid) {
      const auto code = static_cast<int64_t>(*xid);
      Add(MetricNamed("DCGM_FI_DEV_XID_ERRORS"),
          labels.With(",err_code,err_msg", {std::to_string(code), XidMessage(code)}, owner), *xid);
    }
    if (gpu.state != GpuState::kUp) continue;
    const LabelPointer whole = labels.With({}, {}, owner);
    for (const ValueRow& row : kValueRows) {
      if (!parts.empty() && IsOfParts(row.metric)) continue;
      if (const GpuValue value = row.value(gpu.reading)) Add(row.metric, whole, *value);
    }
  }
  for (const GpuMigInstance* part : parts) {
    for (const Owner& owner : OwnersOf(given, Find(owners.pods, part->uuid))) {
      const LabelPointer own =
          labels.With(kDcgmMigLabels, {part->profile, std::to_string(part->gpu_instance)}, owner);
      for (const PartRow& row : kPartRows) {
        if (const GpuValue value = row.value(*part)) Add(row.metric, own, *value);
      }
    }
  }
}

}  // namespace rankscope::metrics
