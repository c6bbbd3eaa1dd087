// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// One append-only file of a recording. Buffers whole frames, so that what is on disk ends at a
// frame's end; a write that fails (a full disk, a quota) is counted, taken back and never thrown.
// One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "exporter/loop/owned_fd.h"

namespace rankscope::replay {

class Lane {
 public:
  explicit Lane(size_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}

  // Creates the file `name` in the directory (mode 0600); it must not be there. False with errno
  // where it cannot.
  bool Create(int directory_fd, const std::string& name);
  // Opens it, or creates it where it is not; keeps what can be read as frames and takes a torn end
  // away.
  bool Continue(int directory_fd, const std::string& name);

  // Opens it again as Close left it. False where it is another file or has another size: nothing is
  // read.
  bool Reopen(int directory_fd, const std::string& name);

  // Takes whole frames. False where the lane is closed, or a write failed and everything not yet
  // written is lost.
  bool Append(std::string_view frames);
  bool Flush();
  bool Sync();
  void Close();

  bool open() const { return static_cast<bool>(fd_); }
  // Written and buffered.
  int64_t size() const { return written_ + static_cast<int64_t>(buffer_.size()); }
  size_t buffered() const { return buffer_.size(); }
  int64_t errors() const { return errors_; }
  int last_error() const { return last_error_; }  // errno

 private:
  bool Failed();

  size_t buffer_bytes_;
  OwnedFd fd_;
  std::string buffer_;
  int64_t written_ = 0;
  int64_t errors_ = 0;
  int last_error_ = 0;
};

}  // namespace rankscope::replay
