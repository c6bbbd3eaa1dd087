// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a simulated rank does in each second of its life, and what sources report of the job. A
// discrete-event simulation fills both; the sampling reads them. Single thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::generator {

inline constexpr double kForever = std::numeric_limits<double>::infinity();

enum class Doing : uint8_t {
  kIdle,       // waits in select() for nothing in particular
  kImport,     // host code on a CPU, before any GPU work
  kRead,       // reads files
  kCompile,    // waits for compilers that it started
  kData,       // waits for its data loader
  kHost,       // host code on a CPU: the GPU has nothing to do
  kCompute,    // launches, and its GPU computes
  kSpin,       // its GPU waits inside a collective
  kWrite,      // writes files
  kStuckFile,  // uninterruptible, in a network file system
  kStuckGpu,   // uninterruptible, in the GPU's driver
  kStopped,    // by SIGSTOP
  kSleep,
  kLock,    // of a file
  kFutex,   // a lock that nobody releases
  kSocket,  // waits for a peer's bytes
  kPaused,  // the machine stands still
};
inline constexpr size_t kDoings = 17;

// Whether only SIGKILL ends it, or nothing does.
inline bool CannotDie(Doing doing) {
  return doing == Doing::kStuckFile || doing == Doing::kStuckGpu || doing == Doing::kStopped;
}

struct Second {
  std::array<float, kDoings> seconds{};
  Doing last = Doing::kIdle;  // at its end
  float age = 0;              // of `last`, at its end
  float launches = 0;
  float largest_gap = 0;
  uint32_t enqueued = 0;
  uint32_t completed = 0;
  float written = 0, read = 0;  // bytes of checkpoints
  float data_read = 0;
  float sync = 0;                   // seconds in synchronisations
  float sync_age = 0;               // at its end; 0 = in none
  float blocked = 0;                // seconds in launches that wait for room
  float silent = 0;                 // seconds on a CPU in stretches of half a second or more
  double launched = 0;              // when the newest launch was; 0 = none in this second
  std::array<uint16_t, 19> gaps{};  // between launches that ended in it, by length
  bool collective_open = false;
  float collective_age = 0;

  float of(Doing doing) const { return seconds[static_cast<size_t>(doing)]; }
};

// One process of a rank.
struct Life {
  int rank = 0;
  ProcessKey key;
  double born = 0;
  double died = kForever;
  double grouped = kForever;  // its communicator exists since
  double newest_launch = 0;
  std::vector<Second> seconds;  // from floor(born)

  Second& At(double t);
  // Records that it does this in [from, to), which are after all that was recorded before.
  void Do(Doing doing, double from, double to);
  // Adds the part of [from, to) that lies in each second to this member of it.
  void Add(float Second::*member, double from, double to);
  // Launches so many kernels in [from, to), evenly.
  void LaunchAll(double kernels, double from, double to);
};

// In the order of exporter/daemon/sources.cc.
enum class Source : uint8_t {
  kAgent,
  kRun,
  kProcfs,
  kProcConnector,
  kProcess,
  kStdio,
  kStdoutTail,
  kWait,
  kNetwork,
  kIo,
  kCuda,
  kNccl,
  kNcclRas,
  kNcclDumps,
  kInfiniband,
  kPressure,
  kKmsg,
  kNvml,
  kDcgm,
  kSlurm,
  kJobMapping,
};
inline constexpr std::array<const char*, 21> kSourceNames = {
    "agent",      "run",      "procfs", "proc_connector", "process", "stdio",    "stdout_tail",
    "wait",       "network",  "io",     "cuda",           "nccl",    "nccl_ras", "nccl_dumps",
    "infiniband", "pressure", "kmsg",   "nvml",           "dcgm",    "slurm",    "job_mapping"};

// What an observation is, for whoever asks whether the recording shows the fault.
enum class Mark : uint8_t {
  kNone,
  kFault,   // by the fault's own mechanism: an error, a kernel's line, a failed connection
  kRecord,  // of training
  kSave,
  kEnd,  // who ended the job: the scheduler's record and line, signals from outside
};

// An observation with the text that it borrows.
struct Item {
  Mark mark = Mark::kNone;
  double t = 0;
  Source source = Source::kAgent;
  Observation observation;
  std::string text;         // of a line
  std::string stream_name;  // of a line
};

}  // namespace rankscope::generator
