// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Evidence -> the numbered `shows` of a verdict; a reference gets its number when it is first
// cited. One per verdict that is built; loop thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/features/job_features.h"
#include "detectors/proto/verdict.pb.h"
#include "detectors/verdict/assertion.h"

namespace rankscope::engine {

class EvidenceWriter {
 public:
  // `wall_offset_ns` turns times into wall time; 0 = not known, and then none are given.
  EvidenceWriter(const features::JobFeatures& f, int64_t wall_offset_ns, BuiltVerdict& built)
      : f_(f),
        wall_offset_ns_(wall_offset_ns),
        verdict_(built.document),
        assertions_(built.assertions) {}

  // The number, or -1 for a reference to nothing.
  int64_t Cite(features::EvidenceRef ref);

  // Evidence that no family has asked for, with a sentence of its own.
  uint32_t Add(const features::Evidence& evidence, std::string_view signal, std::string text);

 private:
  int64_t Wall(Timestamp t) const {
    return wall_offset_ns_ == 0 || t.ns == 0 ? 0 : t.ns + wall_offset_ns_;
  }
  void Write(const features::Evidence& evidence, std::string_view signal, std::string text,
             uint32_t number, proto::Evidence& out) const;

  const features::JobFeatures& f_;
  int64_t wall_offset_ns_;
  proto::Verdict& verdict_;
  std::map<features::EvidenceRef, uint32_t> numbers_;
  std::vector<Assertion>& assertions_;
};

}  // namespace rankscope::engine
