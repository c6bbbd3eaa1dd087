// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Why a node is out of service, as one of a closed list, and whether it is. The list is a label;
// the reason itself is for people. Pure; any bytes; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

enum class NodeReason : uint8_t {
  kNone,  // none is given
  kNotResponding,
  kRebooted,  // without being asked to
  kPrologEpilog,
  kKillTask,  // processes of a job outlived SIGKILL
  kMemory,
  kGpu,
  kNetwork,
  kHardware,     // any other part of the machine, or a part that is not named
  kHealthCheck,  // a check failed, of what is not named
  kOperator,     // somebody wanted it so
  kOther,
};

// "not_responding"
std::string_view NodeReasonName(NodeReason reason);
std::span<const NodeReason> NodeReasons();

// What Slurm itself writes comes first, then the part of the machine that is named, then who says
// it: "[HC] GPU 3 lost" is the GPU's, "[HC] scratch" the health check's.
NodeReason ClassifyReason(std::string_view reason);

enum class NodeCondition : uint8_t {
  kUnknown,
  kUp,
  kDown,
  kFailed,    // it is expected to fail, and gets no new jobs
  kDraining,  // jobs run to their end
  kDrained,
  kMaintenance,
};

std::string_view NodeConditionName(NodeCondition condition);

// The worst that state and flags say together.
NodeCondition ConditionOf(const SlurmNode& node);

}  // namespace rankscope::exporter::slurm
