// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The part of NVML's C interface that is used, declared here because its header is not free to
// ship. What stands below has been stable since the driver that brought it; a structure that has
// grown carries a version, which the library refuses if it is not one that it knows. Checked
// against NVIDIA's nvml.h and pynvml of CUDA 12. For gpu/nvml* and the stand-in of the
// tests.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rankscope::collectors::nvml {

using Device = struct DeviceHandle*;
using EventSet = struct EventSetHandle*;
using GpmSample = struct GpmSampleHandle*;

enum Return : uint32_t {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kCorruptedInfoRom = 14,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kLibraryMismatch = 18,
  kMemory = 20,
  kNoData = 21,
  kArgumentVersionMismatch = 25,
  kGpuNotFound = 28,
  kUnknownError = 999,
};

// Stands in a number's place where there is none, as its widest unsigned value.
inline constexpr uint32_t kNotAvailable32 = 0xFFFFFFFF;

constexpr uint32_t StructVersion(size_t size, uint32_t version) {
  return static_cast<uint32_t>(size) | (version << 24);
}

inline constexpr size_t kTextBytes = 96;  // enough for every name, uuid and version
inline constexpr uint32_t kMaxLinks = 18;

struct PciInfo {
  char bus_id_legacy[16];
  uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Memory {
  uint64_t total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct MemoryV2 {
  uint32_t version;
  uint64_t total, reserved, free, used;
};
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8);
inline constexpr uint32_t kMemoryV2 = StructVersion(sizeof(MemoryV2), 2);

struct Bar1Memory {
  uint64_t total, free, used;
};

struct Utilization {
  uint32_t gpu, memory;  // percent
};

// The one structure that changed its size under the same symbol: 16, 24 or 32 bytes, see
// nvml_processes.h.
struct ProcessInfo {
  uint32_t pid;
  uint64_t used_gpu_memory;
  uint32_t gpu_instance;
  uint32_t compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24 && offsetof(ProcessInfo, used_gpu_memory) == 8);

struct RowRemapperHistogram {
  uint32_t max, high, partial, low, none;
};
static_assert(sizeof(RowRemapperHistogram) == 20);

struct ViolationTime {
  uint64_t reference_us, violation_ns;
};

enum ValueType : uint32_t {
  kDouble = 0,
  kUnsignedInt = 1,
  kUnsignedLong = 2,
  kUnsignedLongLong = 3,
  kSignedLongLong = 4,
  kSignedInt = 5,
};

union Value {
  double d;
  int32_t i;
  uint32_t u;
  uint64_t ull;
  int64_t sll;
};

struct FieldValue {
  uint32_t field;
  uint32_t scope;  // which link, for fields that are of one
  int64_t timestamp_us;
  int64_t latency_us;
  ValueType type;
  Return status;
  Value value;
};
static_assert(sizeof(FieldValue) == 40 && offsetof(FieldValue, value) == 32);
inline constexpr uint32_t kAllLinks = 0xFFFFFFFF;

enum Field : uint32_t {
  kFieldRetiredSingleBit = 29,
  kFieldRetiredDoubleBit = 30,
  kFieldRetiredPending = 31,
  kFieldFirstViolationNs = 74,  // in the order of kGpuViolations
  kFieldMemoryTemperature = 82,
  kFieldNvlinkSpeedCommon = 90,  // MB/s, of each link
  kFieldNvlinkSentKib = 138,     // data, without what the protocol adds
  kFieldNvlinkReceivedKib = 139,
  kFieldNvlinkSpeed = 164,  // MB/s, scope: the link
  kFieldPcieSentBytes = 197,
  kFieldPcieReceivedBytes = 198,
  kFieldNvlinkSentBytes = 202,  // scope: the link
  kFieldNvlinkReceivedBytes = 204,
  kFieldRecoveryAction = 230,
  kFieldSwThermalNs = 251,
  kFieldHwThermalNs = 252,
  kFieldHwPowerBrakeNs = 253,
};

struct TemperatureV1 {
  uint32_t version;
  uint32_t sensor;  // 0: the die
  int32_t celsius;
};
static_assert(sizeof(TemperatureV1) == 12);
inline constexpr uint32_t kTemperatureV1 = StructVersion(sizeof(TemperatureV1), 1);

struct MarginTemperatureV1 {
  uint32_t version;
  int32_t celsius;
};
inline constexpr uint32_t kMarginTemperatureV1 = StructVersion(sizeof(MarginTemperatureV1), 1);
static_assert(kMarginTemperatureV1 == 0x1000008);

struct FabricInfoV2 {
  uint32_t version;
  uint8_t cluster_uuid[16];
  Return status;
  uint32_t clique;
  uint8_t state;
  uint32_t health_mask;
};
inline constexpr uint32_t kFabricInfoV2 = StructVersion(sizeof(FabricInfoV2), 2);
static_assert(kFabricInfoV2 == 0x2000024);

// Counters of the hardware, on Hopper and later. As many entries as the smallest library has room
// for; it reads and fills `count` of them.
enum GpmMetricId : uint32_t {
  kGpmGraphics = 1,
  kGpmSm = 2,
  kGpmSmOccupancy = 3,
  kGpmInteger = 4,
  kGpmTensor = 5,
  kGpmDfma = 6,
  kGpmHmma = 7,
  kGpmImma = 9,
  kGpmDram = 10,
  kGpmFp64 = 11,
  kGpmFp32 = 12,
  kGpmFp16 = 13,
  kGpmPcieSentMibPerSecond = 20,
  kGpmPcieReceivedMibPerSecond = 21,
  kGpmNvlinkReceivedMibPerSecond = 60,
  kGpmNvlinkSentMibPerSecond = 61,
};

struct GpmMetric {
  uint32_t id;
  Return status;
  double value;  // percent, or MiB/s
  const char* short_name;
  const char* long_name;
  const char* unit;
};
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetric, value) == 8);

struct GpmMetricsGet {
  uint32_t version;  // 1
  uint32_t count;
  GpmSample first, second;
  GpmMetric metrics[98];
};
static_assert(offsetof(GpmMetricsGet, metrics) == 24);
inline constexpr uint32_t kGpmMetricsVersion = 1;

struct GpmSupport {
  uint32_t version;  // 1
  uint32_t supported;
};
inline constexpr uint32_t kGpmSupportVersion = 1;

struct EventData {
  Device device;
  uint64_t type;
  uint64_t data;  // the number, for an Xid
  uint32_t gpu_instance;
  uint32_t compute_instance;
};
static_assert(sizeof(EventData) == 32);
inline constexpr uint64_t kEventXid = 0x8;

// Of a vGPU, in the guest: what NVIDIA's licence allows. The whole since driver 510.
struct LicensableFeature {
  uint32_t code;
  uint32_t licensed;
  char info[128];
  char product[128];
  uint32_t enabled;
  struct {
    uint32_t year;
    uint16_t month, day, hour, minute, second;
    uint8_t status;
  } expiry;
};
static_assert(sizeof(LicensableFeature) == 284);
struct LicensableFeatures {
  int32_t supported;
  uint32_t count;
  LicensableFeature features[3];
};
static_assert(sizeof(LicensableFeatures) == 860);

enum MemoryErrorType : uint32_t { kCorrected = 0, kUncorrected = 1 };
enum EccCounter : uint32_t { kVolatile = 0, kAggregate = 1 };
enum TemperatureThreshold : uint32_t { kShutdown = 0, kSlowdown = 1, kMemoryMax = 2 };
enum PerfPolicy : uint32_t { kPolicyPower = 0, kPolicyThermal = 1, kPolicySyncBoost = 2 };
inline constexpr uint32_t kPerformanceStateUnknown = 32;
inline constexpr uint32_t kComputeExclusiveProcess = 3;

}  // namespace rankscope::collectors::nvml
