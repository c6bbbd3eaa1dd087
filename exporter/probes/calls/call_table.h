// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The functions of CUDA and NCCL that are probed, one row each: what kind of call it is and where
// among its arguments the numbers stand. The program gets the row as its cookie. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bpf/events/calls.h"

namespace rankscope::probes {

struct CallRow {
  std::string_view symbol;
  uint8_t op = 0;     // rs_cuda_op, rs_nccl_op
  uint8_t layer = 0;  // rs_layer
  // The other bytes of the cookie, as enum rs_cookie has them. Of cuda: bytes, direction, argument
  // with the direction; of nccl: elements, their type, communicator, ranks, rank.
  uint8_t size = 0;
  uint8_t b4 = 0;
  uint8_t b5 = 0;
  uint8_t b6 = 0;
  uint8_t b7 = 0;
  bool essential = true;  // probed where each probe takes long to detach, too
};

// What is counted at its entry alone.
constexpr bool IsLaunch(const CallRow& row) {
  return row.op == RS_CUDA_LAUNCH || row.op == RS_CUDA_GRAPH;
}

constexpr uint64_t CookieOf(const CallRow& row, size_t index) {
  uint64_t cookie = index << RS_COOKIE_FUNCTION | uint64_t{row.op} << RS_COOKIE_OP |
                    uint64_t{row.layer} << RS_COOKIE_LAYER | uint64_t{row.size} << RS_COOKIE_SIZE;
  cookie |= uint64_t{row.b4} << RS_COOKIE(4) | uint64_t{row.b5} << RS_COOKIE(5) |
            uint64_t{row.b6} << RS_COOKIE(6) | uint64_t{row.b7} << RS_COOKIE(7);
  return cookie;
}

std::span<const CallRow> CudaCalls();
std::span<const CallRow> NcclCalls();

}  // namespace rankscope::probes
