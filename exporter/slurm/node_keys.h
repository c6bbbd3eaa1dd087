// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The names that scontrol prints of a node, for text_reader.cc.
#pragma once

#include <span>

#include "exporter/slurm/key_value_text.h"
#include "exporter/slurm/records.h"

namespace rankscope::exporter::slurm {

std::span<const Key<SlurmNode>> NodeKeys();

}  // namespace rankscope::exporter::slurm
