// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Files of the kernel's (/proc, /sys, cgroups), which are read whole. Any thread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "exporter/loop/owned_fd.h"

namespace rankscope {

// At most `cap` bytes of a file. What cannot be opened or read is empty.
inline std::string ReadSmallFile(const std::string& path, size_t cap = 64 << 10) {
  std::string text;
  const OwnedFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return text;
  char piece[4096];
  while (text.size() < cap) {
    const ssize_t size = read(file.get(), piece, sizeof piece);
    if (size <= 0) break;
    text.append(piece, static_cast<size_t>(size));
  }
  if (text.size() > cap) text.resize(cap);
  return text;
}

}  // namespace rankscope
