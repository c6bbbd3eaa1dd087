// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Owners of what libbpf hands out, and the words for what the kernel refuses. Any thread.
#pragma once

#include <bpf/libbpf.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "detectors/model/result.h"

namespace rankscope::probes {

// Destroys by a function of libbpf's, or of a generated skeleton.
template <auto kDestroy>
struct DestroyBy {
  void operator()(auto* object) const { kDestroy(object); }
};

using RingHandle = std::unique_ptr<ring_buffer, DestroyBy<ring_buffer__free>>;
using LinkHandle = std::unique_ptr<bpf_link, DestroyBy<bpf_link__destroy>>;

// `error`: errno; `source` begins the sentence.
inline Error KernelRefusal(std::string_view source, const char* what, int error) {
  return Error{std::string(source) + ": " + what + ": " + std::strerror(error) +
               "; `rankscope check` reports what this kernel supports"};
}

}  // namespace rankscope::probes
