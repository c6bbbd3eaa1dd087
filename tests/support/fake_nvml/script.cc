// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/fake_nvml/script.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace fake_nvml {
namespace {

struct PresetRow {
  const char* key;
  uint64_t value;
};

// In NVML's units: bytes, percent, MHz, mW, mJ. ecc_TYPE_SCOPE_LOCATION, clock_DOMAIN, field_ID,
// gpm_ID and so on, numbered as in NVML.
constexpr PresetRow kEveryCard[] = {
    {"memory_reserved", 629145600},
    {"memory_used", 1073741824},
    {"bar1_used", 1048576},
    {"gpu_utilization", 0},
    {"memory_utilization", 0},
    {"encoder_utilization", 0},
    {"decoder_utilization", 0},
    {"ecc_mode", 1},
    {"remapped_correctable", 0},
    {"remapped_uncorrectable", 0},
    {"remap_pending", 0},
    {"remap_failed", 0},
    {"remap_bank_0", 640},
    {"remap_bank_1", 0},
    {"remap_bank_2", 0},
    {"remap_bank_3", 0},
    {"remap_bank_4", 0},
    {"pcie_generation", 4},
    {"pcie_generation_max", 4},
    {"pcie_width", 16},
    {"pcie_width_max", 16},
    {"pcie_replays", 0},
    {"clock_0", 1410},
    {"clock_1", 1410},
    {"clock_3", 1275},
    {"throttle_bits", 1},
    {"violation_0", 0},
    {"violation_1", 0},
    {"violation_2", 0},
    {"temperature", 34},
    {"threshold_0", 92},
    {"threshold_1", 89},
    {"threshold_2", 95},
    {"field_82", 41},
    {"power", 72000},
    {"power_limit_enforced", 400000},
    {"power_limit_default", 400000},
    {"power_limit_max", 400000},
    {"energy", 86400000},
    {"performance_state", 0},
    {"persistence", 1},
    {"compute_mode", 0},
    {"mig_mode", 0},
    {"event_types", 31},
};
constexpr PresetRow kAmpere[] = {
    {"memory_total", 42949672960}, {"clock_2", 1215},     {"clock_max_0", 1410},
    {"clock_max_1", 1410},         {"clock_max_2", 1215}, {"clock_max_3", 1290},
};
constexpr PresetRow kHopper[] = {
    {"memory_total", 85520809984},
    {"clock_2", 2619},
    {"clock_max_0", 1980},
    {"clock_max_1", 1980},
    {"clock_max_2", 2619},
    {"clock_max_3", 1545},
    {"pcie_generation", 5},
    {"pcie_generation_max", 5},
    {"power_limit_enforced", 700000},
    {"power_limit_default", 700000},
    {"power_limit_max", 700000},
    {"fabric_state", 3},
    {"margin", 53},
    {"gpm_1", 0},
    {"gpm_2", 0},
    {"gpm_3", 0},
    {"gpm_4", 0},
    {"gpm_5", 0},
    {"gpm_6", 0},
    {"gpm_7", 0},
    {"gpm_9", 0},
    {"gpm_10", 0},
    {"gpm_11", 0},
    {"gpm_12", 0},
    {"gpm_13", 0},
    {"gpm_20", 0},
    {"gpm_21", 0},
    {"field_138", 0},
    {"field_139", 0},
    {"field_197", 0},
    {"field_198", 0},
    {"field_230", 0},
    {"field_251", 0},
    {"field_252", 0},
    {"field_253", 0},
};
// What each keeps apart when it counts errors of memory.
constexpr int kAmpereLocations[] = {0, 1, 2, 3, 5, 6};
constexpr int kHopperLocations[] = {2, 7};
constexpr int kAmpereLinks = 12;
constexpr int kHopperLinks = 18;
constexpr double kLinkMegabytesPerSecond[] = {25000, 26562};

std::string Key(const char* prefix, std::initializer_list<int> numbers) {
  std::string key = prefix;
  for (const int number : numbers) key += '_' + std::to_string(number);
  return key;
}

Gpu Preset(const std::string& card, size_t index) {
  const bool hopper = card == "hopper";
  Gpu gpu;
  for (const PresetRow& row : kEveryCard) gpu.values[row.key] = {row.value};
  if (hopper) {
    for (const PresetRow& row : kHopper) gpu.values[row.key] = {row.value};
    for (const int place : kHopperLocations) {
      for (const int type : {0, 1}) {
        for (const int scope : {0, 1}) gpu.values[Key("ecc", {type, scope, place})] = {};
      }
    }
  } else {
    for (const PresetRow& row : kAmpere) gpu.values[row.key] = {row.value};
    for (const int place : kAmpereLocations) {
      for (const int type : {0, 1}) {
        for (const int scope : {0, 1}) gpu.values[Key("ecc", {type, scope, place})] = {};
      }
    }
  }
  for (int link = 0; link < (hopper ? kHopperLinks : kAmpereLinks); ++link) {
    gpu.values[Key("nvlink_state", {link})] = {1};
    for (int kind = 0; kind < (hopper ? 3 : 5); ++kind) {
      gpu.values[Key("nvlink_error", {link, kind})] = {};
    }
    gpu.values[Key("field_164", {link})] = {
        static_cast<uint64_t>(kLinkMegabytesPerSecond[hopper ? 1 : 0])};
  }
  char text[64];
  std::snprintf(text, sizeof text, "GPU-%08zx-0000-4000-8000-000000000000", 0xfa4e0000 + index);
  gpu.uuid = text;
  std::snprintf(text, sizeof text, "00000000:%02zX:00.0", 0x18 + 8 * index);
  gpu.bus_id = text;
  gpu.serial = "16511230" + std::to_string(10000 + index);
  gpu.name = hopper ? "NVIDIA H100 80GB HBM3" : "NVIDIA A100-SXM4-40GB";
  return gpu;
}

[[noreturn]] void Refuse(const std::string& line) {
  std::fprintf(stderr, "fake libnvidia-ml: not understood: %s\n", line.c_str());
  std::abort();
}

void ReadValue(const std::string& key, std::istringstream& words, Gpu& gpu,
               const std::string& line) {
  std::string value;
  std::string rate;
  if (!(words >> value)) Refuse(line);
  if (value == "none") {
    gpu.values.erase(key);
    return;
  }
  Number number;
  number.nan = value == "nan";
  if (!number.nan) number.base = std::strtoull(value.c_str(), nullptr, 10);
  if (words >> rate) {
    if (rate.front() != '+') Refuse(line);
    number.per_second = std::strtod(rate.c_str() + 1, nullptr);
  }
  gpu.values[key] = number;
}

void ReadGpuLine(Script& script, size_t index, const std::string& what, std::istringstream words,
                 const std::string& line) {
  Gpu& gpu = script.gpus[index];
  if (what == "lost") {
    gpu.lost = true;
  } else if (what == "hang") {
    std::string function;
    words >> function;
    gpu.hangs.insert(function);
  } else if (what == "error") {
    std::string function;
    uint32_t code = 0;
    if (!(words >> function >> code)) Refuse(line);
    gpu.errors[function] = code;
  } else if (what == "process" || what == "graphics") {
    Process process;
    if (!(words >> process.pid >> process.bytes)) Refuse(line);
    (what == "process" ? gpu.compute : gpu.graphics).push_back(process);
  } else if (what == "mig") {
    MigPart part;
    if (!(words >> part.uuid >> part.used >> part.total)) Refuse(line);
    part.gpu_instance = static_cast<uint32_t>(7 + gpu.parts.size());
    if (words >> part.profile && !(words >> part.gpu_instance)) Refuse(line);
    double value = 0;
    for (std::string counter; words >> counter >> value;) part.counters[counter] = value;
    gpu.parts.push_back(part);
    gpu.values["mig_mode"] = {1};
  } else if (what == "xid") {
    Xid xid{index, 0};
    if (!(words >> xid.code)) Refuse(line);
    script.xids.push_back(xid);
  } else {
    ReadValue(what, words, gpu, line);
  }
}

void ReadLine(Script& script, std::istringstream& words, const std::string& line) {
  std::string what;
  if (!(words >> what)) return;
  if (what == "driver") {
    words >> script.driver;
  } else if (what == "gpus") {
    size_t count = 0;
    std::string card;
    if (!(words >> count >> card)) Refuse(line);
    script.gpus.clear();
    for (size_t i = 0; i < count; ++i) script.gpus.push_back(Preset(card, i));
  } else if (what == "error") {
    std::string function;
    uint32_t code = 0;
    if (!(words >> function >> code)) Refuse(line);
    script.errors[function] = code;
  } else if (what == "process_bytes") {
    words >> script.process_bytes;
  } else if (what == "gpu") {
    std::string which;
    std::string key;
    if (!(words >> which >> key)) Refuse(line);
    std::string rest;
    std::getline(words, rest);
    for (size_t i = 0; i < script.gpus.size(); ++i) {
      if (which == "*" || which == std::to_string(i)) {
        ReadGpuLine(script, i, key, std::istringstream(rest), line);
      }
    }
  } else {
    Refuse(line);
  }
}

}  // namespace

Script Parse(std::string_view text, double seconds) {
  Script script;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    const auto start = words.tellg();
    std::string at;
    double when = 0;
    if (words >> at && at == "at") {
      if (!(words >> when)) Refuse(line);
      if (when > seconds) {
        script.next = std::min(script.next.value_or(when), when);
        continue;
      }
    } else {
      words.clear();
      words.seekg(start);
    }
    ReadLine(script, words, line);
  }
  return script;
}

}  // namespace fake_nvml
