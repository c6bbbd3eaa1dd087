// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Says that text of a stream was written some time before it is told: when it arrives says nothing
// of when it was said, nor of how long anything took. Told before that text. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "detectors/model/event_types.h"
#include "detectors/model/observation.h"

namespace rankscope::collectors {

// `end`: up to this offset of the stream.
inline Event PastText(const std::string& job_id, uint32_t stream, int64_t end) {
  Event event;
  event.rank.job_id = job_id;
  event.rank.rank = -1;
  event.type = WireType(EventType::kOutputRead);
  event.num = {{"stream", stream}, {"end", end}};
  return event;
}

// All that the job wrote before it was observed has been told.
inline Event AllTextRead(const std::string& job_id) {
  Event event;
  event.rank.job_id = job_id;
  event.rank.rank = -1;
  event.type = WireType(EventType::kOutputRead);
  return event;
}

}  // namespace rankscope::collectors
