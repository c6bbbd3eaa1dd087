// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The bytes of a log file, block by block, and its lines one at a time. Holes of sparse files are
// stepped over (a log that was truncated under its writer begins with one), so that ten gigabytes
// of nothing cost nothing. A thousand files can be read side by side: between blocks a regular file
// is closed. Blocks on files; any thread, one at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/logs/text/assembler.h"
#include "detectors/model/result.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/replay/packed_text.h"

namespace rankscope::replay {

class LogBlocks {
 public:
  // "-" is standard input. `keep_open`: where few files are read.
  LogBlocks(std::string file, size_t block_bytes, bool keep_open);

  // The next bytes, valid until the next call; none at the end. Of a file that gzip has packed, the
  // next of its text.
  Result<std::string_view> Next();
  // Where the last block begins in the file, or in its text.
  int64_t begin() const { return begin_; }
  // What is to be said of the file besides its text; empty where nothing is.
  std::string note() const;

  // Opens the file, or says why it cannot be read.
  Status Open();

 private:
  Status SkipHole();
  Result<std::string_view> ReadBlock(std::string& block, int64_t at);
  Result<std::string_view> NextOfText();

  std::string file_;
  size_t block_bytes_;
  bool keep_open_;
  bool regular_ = false;
  bool opened_once_ = false;
  OwnedFd fd_;
  int64_t begin_ = 0;
  int64_t end_ = 0;  // of the last block
  std::string block_;

  std::unique_ptr<PackedText> unpacker_;  // of a packed file
  std::string packed_;                    // a block of it
  std::string_view rest_;                 // of that block, which is not unpacked
  int64_t packed_end_ = 0;                // where the block ends in the file
};

// Lines one at a time.
class LogLines {
 public:
  LogLines(std::string file, size_t block_bytes) : blocks_(std::move(file), block_bytes, false) {}

  // Moves on to the next line; false at the end, or where the file cannot be read on.
  bool Next();
  logs::AssembledLine line() const;
  const std::string& error() const { return error_; }
  std::string note() const { return blocks_.note(); }

 private:
  struct Piece {
    size_t begin = 0;
    size_t size = 0;
    logs::AssembledLine line;
  };

  bool Fill();

  LogBlocks blocks_;
  logs::LineAssembler assembler_;
  std::string text_;  // of the pieces
  std::vector<Piece> pieces_;
  size_t at_ = 0;
  bool ended_ = false;
  std::string error_;
};

}  // namespace rankscope::replay
