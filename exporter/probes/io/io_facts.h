// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the programs of bpf/io.bpf.c tell, in the words of detectors/model. Of a file its own name
// and its directory's leave the process, never its whole path. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bpf/events/io.h"
#include "detectors/model/observation.h"

namespace rankscope::probes {

struct FileNames {
  std::string name;
  std::string directory;  // of it, the last component; may be empty
};
FileNames NamesOf(const rs_io_file& file);
FileNames NamesOf(const rs_io_failure& failure);

std::string_view FileSystemName(uint64_t magic);
std::string_view CallName(uint32_t number);

Event FailureEvent(const rs_io_failure_key& key, const rs_io_failure& failure,
                   const ProcessKey& process);
// A checkpoint that was closed; complete: nothing of it failed.
Event WrittenEvent(const rs_io_event& closed, const ProcessKey& process, bool complete);
// One that its process did not come to close.
Event AbandonedEvent(const rs_io_file& file, const ProcessKey& process, uint64_t now_ns);
Event ReadEvent(const rs_io_event& closed, const ProcessKey& process);
// `file_system`: checkpoint | shared_memory.
Event SpaceEvent(const ProcessKey& process, std::string_view file_system, int64_t free_bytes,
                 int64_t total_bytes, bool bus_error);
Event HangEvent(const ProcessKey& process, std::string_view call, double seconds);

}  // namespace rankscope::probes
