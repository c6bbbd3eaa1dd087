// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/log_file_blocks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace rankscope::replay {

LogBlocks::LogBlocks(std::string file, size_t block_bytes, bool keep_open)
    : file_(std::move(file)), block_bytes_(block_bytes), keep_open_(keep_open), fd_(-1) {}

Status LogBlocks::Open() {
  if (fd_.get() >= 0) return {};
  const bool standard_input = file_ == "-";
  // Not to wait for the writer of a FIFO that has none: it reads as empty.
  fd_ = OwnedFd(standard_input ? dup(STDIN_FILENO)
                               : open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  struct stat status = {};
  if (fd_.get() < 0 || fstat(fd_.get(), &status) != 0) return Error{std::strerror(errno)};
  if (S_ISDIR(status.st_mode))
    return Error{"is a directory; use --job to judge its files as one job"};
  regular_ = S_ISREG(status.st_mode) && !standard_input;
  if (!opened_once_ && regular_) end_ = 0;
  opened_once_ = true;
  return {};
}

// Moves end_ over a hole; file systems that know of none say so, and are read.
Status LogBlocks::SkipHole() {
  if (!regular_) return {};
  const off_t data = lseek(fd_.get(), end_, SEEK_DATA);
  if (data >= 0) {
    end_ = data;
    return {};
  }
  if (errno != ENXIO) return {};
  struct stat status = {};  // only a hole is left, or nothing
  if (fstat(fd_.get(), &status) == 0 && status.st_size > end_) end_ = status.st_size;
  return {};
}

Result<std::string_view> LogBlocks::ReadBlock(std::string& block, int64_t at) {
  block.resize(block_bytes_);
  ssize_t size = 0;
  do {
    size = regular_ ? pread(fd_.get(), block.data(), block.size(), at)
                    : read(fd_.get(), block.data(), block.size());
  } while (size < 0 && errno == EINTR);
  if (size < 0) return Error{std::strerror(errno)};
  if (regular_ && !keep_open_) fd_ = OwnedFd(-1);
  return std::string_view(block.data(), static_cast<size_t>(size));
}

Result<std::string_view> LogBlocks::Next() {
  if (unpacker_ != nullptr) return NextOfText();
  if (const Status opened = Open(); !opened) return Error{opened.error()};
  if (const Status skipped = SkipHole(); !skipped) return Error{skipped.error()};
  const Result<std::string_view> block = ReadBlock(block_, end_);
  if (!block) return block;
  begin_ = end_;
  end_ += static_cast<int64_t>(block->size());
  if (begin_ != 0) return block;
  const std::string_view packer = PackerOf(*block);
  if (packer.empty()) return block;
  if (packer != "gzip") {
    return Error{"is packed with " + std::string(packer) +
                 "; unpack it to standard input: " + std::string(packer) + " -dc"};
  }
  unpacker_ = std::make_unique<PackedText>();
  packed_end_ = end_;
  end_ = 0;
  const size_t size = block->size();
  packed_.swap(block_);
  rest_ = std::string_view(packed_).substr(0, size);
  return NextOfText();
}

Result<std::string_view> LogBlocks::NextOfText() {
  block_.resize(block_bytes_);
  size_t size = 0;
  while (size == 0 && !unpacker_->ended()) {
    if (rest_.empty()) {
      if (const Status opened = Open(); !opened) return Error{opened.error()};
      const Result<std::string_view> block = ReadBlock(packed_, packed_end_);
      if (!block) return block;
      packed_end_ += static_cast<int64_t>(block->size());
      rest_ = *block;
      if (rest_.empty()) unpacker_->Close();
    }
    size = unpacker_->Read(rest_, block_.data(), block_.size());
  }
  begin_ = end_;
  end_ += static_cast<int64_t>(size);
  if (size == 0 && end_ == 0 && !unpacker_->fault().empty())
    return Error{"gzip has packed it, and " + unpacker_->fault()};
  return std::string_view(block_.data(), size);
}

std::string LogBlocks::note() const {
  if (unpacker_ == nullptr) return {};
  const std::string fault = unpacker_->fault().empty() ? "" : "; " + unpacker_->fault();
  return "gzip has packed it: offsets count the bytes of its text" + fault;
}

bool LogLines::Next() {
  if (++at_ < pieces_.size()) return true;
  return Fill();
}

logs::AssembledLine LogLines::line() const {
  const Piece& piece = pieces_[at_];
  logs::AssembledLine line = piece.line;
  line.text = std::string_view(text_).substr(piece.begin, piece.size);
  return line;
}

bool LogLines::Fill() {
  pieces_.clear();
  text_.clear();
  at_ = 0;
  const auto keep = [this](const logs::AssembledLine& line) {
    pieces_.push_back({text_.size(), line.text.size(), line});
    text_ += line.text;
  };
  while (pieces_.empty() && !ended_) {
    const Result<std::string_view> block = blocks_.Next();
    if (!block) error_ = block.error();
    ended_ = !block || block->empty();
    if (ended_) {
      assembler_.Flush(LineEnd::kClosed, keep);
    } else {
      if (blocks_.begin() != assembler_.offset()) {  // behind a hole
        assembler_.Flush(LineEnd::kFlush, keep);
        assembler_ = logs::LineAssembler(blocks_.begin());
      }
      assembler_.Feed(*block, keep);
    }
  }
  return !pieces_.empty();
}

}  // namespace rankscope::replay
