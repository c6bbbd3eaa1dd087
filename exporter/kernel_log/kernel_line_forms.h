// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The forms of kernel_line's lines, each read from its first byte on: the kernel also logs texts
// that begin with, or hold, the names of processes and files. Pure, any thread.
#pragma once

#include "detectors/model/kmsg_record.h"
#include "exporter/kernel_log/kernel_line.h"

namespace rankscope::collectors {

// Of PCIe, the processor, memory, disks, file servers and tasks.
bool ReadHostLine(const KmsgRecord& record, KernelLine& line);

}  // namespace rankscope::collectors
