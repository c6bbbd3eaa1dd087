// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether probes may be placed in a file of this mount. While the kernel places one it keeps every
// fork of the machine waiting (dup_mmap_sem in kernel/events/uprobes.c) and reads the file's page:
// on a file system that a user serves, for as long as he likes. So only those are trusted that
// whoever has root has mounted, of the two kinds that a user can make and that read from elsewhere:
// FUSE and overlays. Reads /proc; may hang with the process: on the user's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rankscope::probes {

// A line of /proc/PID/mountinfo.
struct MountLine {
  int64_t id = 0;
  std::string_view device;  // of its file system, major:minor
  std::string_view type;
  std::string_view options;  // of its file system
};
std::optional<MountLine> ParseMountLine(std::string_view line);
std::optional<MountLine> FindMount(std::string_view mountinfo, int64_t id);
// Whether a file system of this kind was mounted by root: the kernel says who serves one by FUSE.
bool IsRoots(const MountLine& mount);

// `fd`: of a file that process `pid` has mapped.
bool MayProbe(const std::string& proc_root, int32_t pid, int fd);

}  // namespace rankscope::probes
