// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which GPUs a process was given and which of them it should use, by its device cgroup and its
// environment. Pure. Any thread.
//
// The same number means different cards in different variables:
//   SLURM_JOB_GPUS, SLURM_STEP_GPUS   numbers of the node's devices, constrained or not (sbatch(1),
//                                     srun(1)); of the batch script's node, where srun hands the
//                                     first on to the others
//   CUDA_VISIBLE_DEVICES, ordinals    of the cards that the process may open. Slurm counts them
//                                     anew where its cgroup leaves it a few (ConstrainDevices): two
//                                     ranks with a card each both have 0. So does a container
//   GPU_DEVICE_ORDINAL                what Slurm itself wrote into CUDA_VISIBLE_DEVICES; where it
//                                     has the numbers of SLURM_JOB_GPUS, nothing was counted anew
//   NVIDIA_VISIBLE_DEVICES            the node's numbers or uuids, for the container's runtime;
//                                     images of CUDA carry `all`, so that says nothing
// A uuid means the same card everywhere, so it is believed before any number. Ordinals are believed
// where neither Slurm nor a container may have counted anew, and where the device cgroup tells of
// which cards they are counted: CUDA counts those that it may open, of equal cards by their place
// on the bus, as the device nodes are. Else only the driver's list of processes tells who uses
// which card.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope::attribution {

// Who says that a card is the job's, the most trustworthy first.
enum class GpuWord : uint8_t {
  kNobody,
  kDevices,    // its cgroup lets no other card be opened
  kSlurm,      // SLURM_JOB_GPUS or SLURM_STEP_GPUS
  kContainer,  // NVIDIA_VISIBLE_DEVICES
  kUuid,       // CUDA_VISIBLE_DEVICES, by uuid
  kOrdinal,    // the same, by ordinals
  kMapping,    // a file of the prolog's, which tells of jobs without a process, too
};

// A card by one of its names.
struct GpuName {
  std::string uuid;    // as written: "GPU-" and the uuid, or the beginning of one; empty: by index
  int32_t index = -1;  // of the node, as the driver counts
  int32_t minor = -1;  // of the device node

  bool operator==(const GpuName&) const = default;
  template <class A>
  void Fields(A& a) {
    a(uuid, index, minor);
  }
};

struct GpuEnvironment {
  // What the job was given on this node, whoever of it uses which; empty: nobody says.
  std::vector<GpuName> given;
  GpuWord given_by = GpuWord::kNobody;
  // What this process should use: the card of its LOCAL_RANK, or all that it may see; empty: not
  // known.
  std::vector<GpuName> own;
  GpuWord own_by = GpuWord::kNobody;
  bool none = false;  // it is told to see no card
  bool mig = false;   // it is given instances, of whose cards other instances may be another's
};

constexpr size_t kMaxGpusNamed = 64;      // of one list; the rest of it is not read
constexpr size_t kGpuListCap = 4096;      // bytes of a value; a longer one says nothing
constexpr int32_t kMaxGpuIndex = 1023;    // a larger one is no card's
constexpr size_t kMinUuidCharacters = 8;  // behind "GPU-"; of less, two cards may have the same

// `contained`: the process has a pid namespace of its own. `allowed`: minor numbers of the cards
// that it may open, rising; empty: all, or not known.
GpuEnvironment ReadGpuEnvironment(const std::vector<KeyValue>& environment, bool contained,
                                  const std::vector<int32_t>& allowed = {});

// Whether the card of this uuid, index and minor number is the one that is meant.
bool IsNamed(const GpuName& name, std::string_view uuid, int32_t index, int32_t minor);

// devices | slurm | container | uuid | ordinal | mapping; empty for nobody.
std::string_view NameOf(GpuWord word);

// "0,1,2.3": cards by index, each with an instance or without, as a prolog's files are named.
std::vector<GpuName> ReadGpuMapping(std::string_view text);

}  // namespace rankscope::attribution
