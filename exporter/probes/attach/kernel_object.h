// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Owners of what libbpf hands out, and the words for what the kernel refuses. Any thread.
#pragma once

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstring>
#include <functional>
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

// Opens an object and loads it into the kernel with `tracked`, the map of bpf/tracked.h, as its
// own. `prepare` runs between the two.
template <auto kOpen, auto kLoad, typename Skeleton>
Status LoadObject(std::string_view source, Skeleton& skeleton, int tracked,
                  const std::function<void(decltype(*skeleton)&)>& prepare = {}) {
  // libbpf writes the verifier's log to stderr by itself; `rankscope check` says what is missing.
  libbpf_set_print(nullptr);
  skeleton.reset(kOpen());
  if (!skeleton) return KernelRefusal(source, "cannot open the BPF programs", errno);
  bpf_map__reuse_fd(skeleton->maps.rs_tracked, tracked);
  if (prepare) prepare(*skeleton);
  if (const int error = kLoad(skeleton.get()); error != 0)
    return KernelRefusal(source, "the kernel rejects the BPF programs", -error);
  return {};
}

// `take` as libbpf calls it; an error: the handle is empty.
inline Status OpenRing(std::string_view source, RingHandle& ring, const bpf_map* map,
                       ring_buffer_sample_fn take, void* context) {
  ring.reset(ring_buffer__new(bpf_map__fd(map), take, context, nullptr));
  if (!ring) return KernelRefusal(source, "cannot create the ring buffer", errno);
  return {};
}

}  // namespace rankscope::probes
