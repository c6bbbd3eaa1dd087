// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the GPUs of the stand-in for NVML are and do, one thing a line:
//
//   driver 550.54.15
//   gpus 8 hopper                       # or ampere; keys and values as Preset() has them
//   error nvmlInit_v2 9                 # this function fails with this number, for every GPU
//   process_bytes 32                    # of an entry in the list of processes: 16, 24 or 32
//   gpu 3 power 612000 +250             # a value in NVML's unit, and what it rises by each second
//   gpu * ecc_1_0_2 none                # not supported;  nan: not a number
//   gpu 3 error nvmlDeviceGetFanSpeed 999
//   gpu 3 lost
//   gpu 3 hang                          # in every call, until the script says otherwise
//   gpu 3 hang nvmlDeviceGetPowerUsage  # in this one
//   gpu 0 process 4711 8589934592       # computes;  graphics: draws
//   gpu 0 mig MIG-7c1b 1073741824 10737418240           # the first is GPU instance 7, of 1g.10gb
//   gpu 0 mig MIG-7c1c 0 21474836480 2g.20gb 3 gpm_2 40  # or as said, with counters of its own
//   gpu 2 xid 79
//   at 2.5 gpu 2 xid 48                 # any line: from so many seconds after the library's load
//
// Later lines change earlier ones. A line that is not understood ends the process: a test shall not
// pass by a slip.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fake_nvml {

struct Number {
  uint64_t base = 0;
  double per_second = 0;
  bool nan = false;
};

struct Process {
  uint32_t pid = 0;
  uint64_t bytes = 0;
};

struct MigPart {
  std::string uuid;
  uint64_t used = 0;
  uint64_t total = 0;
  std::string profile = "1g.10gb";
  uint32_t gpu_instance = 0;
  std::map<std::string, double, std::less<>> counters;
};

struct Gpu {
  std::string uuid, name, serial, bus_id;
  std::map<std::string, Number, std::less<>> values;
  std::map<std::string, uint32_t, std::less<>> errors;  // by function
  std::set<std::string, std::less<>> hangs;             // functions; "" = all
  bool lost = false;
  std::vector<Process> compute, graphics;
  std::vector<MigPart> parts;
};

struct Xid {
  size_t gpu = 0;
  uint64_t code = 0;
};

struct Script {
  std::string driver = "550.54.15";
  std::vector<Gpu> gpus;
  std::map<std::string, uint32_t, std::less<>> errors;
  std::vector<Xid> xids;
  size_t process_bytes = 24;
  std::optional<double> next;  // when a line that waits for its time becomes true
};

// What holds `seconds` after the library's load.
Script Parse(std::string_view text, double seconds);

}  // namespace fake_nvml
