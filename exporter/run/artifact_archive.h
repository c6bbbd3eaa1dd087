// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A tar archive, compressed, that grows file by file and never beyond its budget: each file is a
// gzip member of its own (RFC 1952, 2.2: members follow one another), so that one that does not fit
// is cut off again. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "exporter/run/artifact_search.h"

namespace rankscope::run {

class ArtifactArchive {
 public:
  // Of one file, uncompressed: what is larger is no log, and takes longer than there is.
  static constexpr int64_t kMostFile = int64_t{1} << 30;

  // `fd`: empty, borrowed.
  ArtifactArchive(int fd, int64_t budget, const std::function<bool()>& late);

  // Why the file is not in it; empty: it is.
  std::string Add(const FoundFile& file);
  // Its end. False: the disk has no room for it, and the archive is useless.
  bool Finish();
  int64_t size() const { return size_; }

 private:
  class Member;

  int fd_;
  int64_t budget_;
  const std::function<bool()>& late_;
  int64_t size_ = 0;
};

}  // namespace rankscope::run
