// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Text that speaks of a worker process by its pid: whoever knows the job's processes adds whose it
// is in a field, and the window takes that over. Any thread.
#pragma once

#include <charconv>
#include <string>

#include "detectors/logs/record.h"

namespace rankscope::windows {

inline void NoteRankOfWorker(logs::Incident& said, int32_t rank) {
  said.fields.push_back({"worker_of", std::to_string(rank)});
}

inline void TakeRankOfWorker(logs::Incident& said) {
  for (KeyValue& field : said.fields) {
    if (field.key != "worker_of") continue;
    std::from_chars(field.value.data(), field.value.data() + field.value.size(), said.rank);
    field = {"worker", "yes"};
    return;
  }
}

}  // namespace rankscope::windows
