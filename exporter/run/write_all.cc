// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/write_all.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace rankscope::run {

Written WriteAll(int fd, std::string_view bytes) {
  Written result;
  while (result.written < bytes.size()) {
    const ssize_t size = write(fd, bytes.data() + result.written, bytes.size() - result.written);
    if (size >= 0) {
      result.written += static_cast<size_t>(size);
    } else if (errno == EAGAIN) {
      pollfd polled{fd, POLLOUT, 0};
      poll(&polled, 1, -1);
    } else if (errno != EINTR) {
      result.error = errno;
      break;
    }
  }
  return result;
}

}  // namespace rankscope::run
