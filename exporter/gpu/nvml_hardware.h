// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Parts of a look at a GPU: what says how the hardware is, rather than what it does. Each fills its
// part of the reading and leaves absent what the GPU does not tell. The device's worker only.
#pragma once

#include <vector>

#include "detectors/model/gpu_reading.h"
#include "exporter/gpu/nvml_session.h"

namespace rankscope::collectors::nvml {

// Many fields by one call.
class FieldReader {
 public:
  void Add(Field field, uint32_t scope = 0);
  void Read(Session& session);
  // The first of this field; absent if the GPU does not have it.
  GpuValue Get(Field field) const;
  GpuValue Sum(Field field) const;

 private:
  std::vector<FieldValue> values_;
};

GpuValue ReadTemperature(Session& session);
void ReadLimits(Session& session, GpuReading& reading);  // of clocks, power, PCIe, temperatures
void ReadEcc(Session& session, GpuReading& reading);     // by location, row remaps
void ReadRetiredPages(Session& session, GpuReading& reading);
void ReadLinks(Session& session, GpuReading& reading);
void ReadModes(Session& session, GpuReading& reading);
GpuValue ReadLicence(Session& session);

}  // namespace rankscope::collectors::nvml
