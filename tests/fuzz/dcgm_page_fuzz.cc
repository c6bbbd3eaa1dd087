// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as dcgm-exporter's page: what is read of it is a ratio or a rate of a card, and of no
// more cards than a node has.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "exporter/gpu/dcgm_page.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto page =
      collectors::ReadDcgmPage(std::string_view(reinterpret_cast<const char*>(data), size));
  if (page.cards.size() > collectors::kMaxDcgmCards) std::abort();
  if (page.dcgm_samples + page.part_samples > page.samples) std::abort();
  for (const collectors::DcgmCard& card : page.cards) {
    if (card.uuid.empty() || card.uuid.size() > 64) std::abort();
    const GpuProfile& values = card.values;
    for (const GpuValue value :
         {values.engine_active, values.sm_active, values.sm_occupancy, values.dram_active,
          values.tensor_active, values.fp64_active, values.fp32_active, values.fp16_active}) {
      if (value && !(*value >= 0 && *value <= 1)) std::abort();
    }
    for (const GpuValue rate : {values.pcie_received_bytes, values.pcie_sent_bytes,
                                values.nvlink_received_bytes, values.nvlink_sent_bytes}) {
      if (rate && !(std::isfinite(*rate) && *rate >= 0)) std::abort();
    }
  }
  return 0;
}
