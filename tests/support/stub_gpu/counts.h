// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the stub libraries were asked to do, counted by themselves: the oracle that probes are held
// against. Rows live in a file of their own for each process and library,
// STUB_GPU_COUNTS/<pid>.<library>, mapped shared: exact at any moment and after a SIGKILL. Any
// thread.
//
// A row of the file: 56 bytes of name, padded with zeros, and the count as 8 bytes, little-endian.
#pragma once

#include <cstdint>

namespace stub_gpu {

// `name` is a literal: rows are told apart by its address.
void Count(const char* name, uint64_t by = 1);

}  // namespace stub_gpu
