// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/standard_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <string>

namespace rankscope::probes {
namespace {

// include/linux/kdev_t.h: as the kernel has device numbers, and so our programs.
constexpr uint32_t kMinorBits = 20;
constexpr uint32_t kNullMajor = 1;
constexpr uint32_t kNullMinor = 3;

}  // namespace

std::optional<rs_standard> ReadStandardFiles(int32_t pid) {
  rs_standard standard{};
  bool any = false;
  for (int fd = 0; fd < 3; ++fd) {
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
    struct statx facts {};
    // The link leads to the open file itself: no path is walked.
    if (statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &facts) != 0) {
      continue;
    }
    any = true;
    rs_file& file = standard.file[fd];
    file.inode = facts.stx_ino;
    file.device = facts.stx_dev_major << kMinorBits | facts.stx_dev_minor;
    file.mode = facts.stx_mode;
    if (facts.stx_rdev_major == kNullMajor && facts.stx_rdev_minor == kNullMinor &&
        S_ISCHR(facts.stx_mode)) {
      file.mode |= RS_FILE_NULL;
    }
  }
  if (!any) return std::nullopt;
  return standard;
}

collectors::OutputFileId PlaceOf(const rs_file& file) {
  return {makedev(file.device >> kMinorBits, file.device & ((1u << kMinorBits) - 1)), file.inode};
}

}  // namespace rankscope::probes
