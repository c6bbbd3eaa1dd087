// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is told of a job's text besides the text itself. That it was written some time before it is
// told: when it arrives says nothing of when it was said, nor of how long anything took; told
// before that text. And whether files are still to be read. Any thread.
#pragma once

#include <cstdint>
#include <string>

#include "detectors/model/event_types.h"
#include "detectors/model/observation.h"

namespace rankscope::collectors {

// `end`: up to this offset of the stream. `written`: when its file was last written; 0 = not known.
inline Event PastText(const std::string& job_id, uint32_t stream, int64_t end,
                      Timestamp written = {}) {
  Event event;
  event.rank.job_id = job_id;
  event.rank.rank = -1;
  event.type = WireType(EventType::kOutputRead);
  event.num = {{"stream", stream}, {"end", end}};
  if (written.ns != 0) event.num.push_back({"written", written.ns});
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

// Files that the job writes to are followed from now on, or were all read to their end after its
// processes had ended. `unread`: one was given up before.
inline Event OutputFollowed(const std::string& job_id, bool open, bool unread = false) {
  Event event;
  event.rank.job_id = job_id;
  event.rank.rank = -1;
  event.type = WireType(EventType::kOutputRead);
  event.num = {{"open", open ? 1 : 0}};
  if (unread) event.num.push_back({"unread", 1});
  return event;
}

}  // namespace rankscope::collectors
