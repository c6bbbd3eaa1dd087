// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What one process writes to one file as its standard output or error: pieces and gaps become
// lines, masked. A gap takes the line that it stands in with it: half a number is another number.
// Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "detectors/logs/text/assembler.h"
#include "detectors/model/observation.h"

namespace rankscope::probes {

// Whose stream it is: what each of its lines says.
struct StreamLabel {
  uint32_t number = 0;
  std::string name;  // "rank 3 stdout"
  std::string job_id;
  ProcessKey writer;
  int32_t rank = -1;
  int32_t local_rank = -1;
  int32_t restart = -1;
  FilePlace file = {};  // which regular file it is; `end` says nothing
};

class OutputStream {
 public:
  // Text valid during the call; false: the line was no news, and the next one tells what was lost.
  using Emit = std::function<bool(const LogLine& line, Timestamp t)>;

  explicit OutputStream(StreamLabel label) : label_(std::move(label)) {}

  // `begins_line`: the byte before these, heard or not, ended a line. `position`: of the first byte
  // in the file; below zero: not known.
  void Hear(std::string_view bytes, bool begins_line, Timestamp t, const Emit& emit,
            int64_t position = -1);
  void Lose(int64_t bytes);
  // The last line without an end, and the loss after the last line.
  void Close(Timestamp t, const Emit& emit);
  // Nobody hears it any more, though it may go on: what is open is read from the file by whoever
  // comes next, and told where there is none.
  void Leave(Timestamp t, const Emit& emit);

  const StreamLabel& label() const { return label_; }
  int64_t offset() const { return offset_; }
  // Bytes that were lost, and those of lines that a gap has spoilt.
  int64_t lost() const { return lost_; }

 private:
  void Say(const logs::AssembledLine& assembled, Timestamp t, const Emit& emit);

  StreamLabel label_;
  logs::LineAssembler lines_;
  int64_t offset_ = 0;      // of the next byte
  int64_t open_bytes_ = 0;  // since the last end of a line
  int64_t lost_ = 0;
  bool placed_ = false;     // where the newest piece stands in the file is known
  int64_t file_shift_ = 0;  // then: positions in the file are above offsets by this
  int64_t unsaid_ = 0;      // lost, and no line has said so yet
  bool in_gap_ = false;     // up to the end of the line
  std::string masked_;
};

}  // namespace rankscope::probes
