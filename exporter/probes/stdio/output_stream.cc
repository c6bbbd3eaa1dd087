// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/stdio/output_stream.h"

#include "detectors/logs/text/masked_line.h"

namespace rankscope::probes {

void OutputStream::Hear(std::string_view bytes, bool begins_line, Timestamp t, const Emit& emit,
                        int64_t position) {
  placed_ = position >= 0 && label_.file.inode != 0;
  file_shift_ = position - offset_;
  if (in_gap_) {
    const size_t end = begins_line ? 0 : bytes.find_first_of("\r\n");
    const size_t spoilt = begins_line ? 0 : end == std::string_view::npos ? bytes.size() : end + 1;
    offset_ += static_cast<int64_t>(spoilt);
    lost_ += static_cast<int64_t>(spoilt);
    unsaid_ += static_cast<int64_t>(spoilt);
    bytes.remove_prefix(spoilt);
    if (end == std::string_view::npos) return;
    in_gap_ = false;
    lines_ = logs::LineAssembler(offset_);
    open_bytes_ = 0;
  }
  offset_ += static_cast<int64_t>(bytes.size());
  const size_t end = bytes.find_last_of("\r\n");
  open_bytes_ = end == std::string_view::npos ? open_bytes_ + static_cast<int64_t>(bytes.size())
                                              : static_cast<int64_t>(bytes.size() - end - 1);
  lines_.Feed(bytes, [&](const logs::AssembledLine& line) { Say(line, t, emit); });
}

void OutputStream::Lose(int64_t bytes) {
  if (bytes <= 0) return;
  const int64_t spoilt = bytes + open_bytes_;
  offset_ += bytes;
  lost_ += spoilt;
  unsaid_ += spoilt;
  open_bytes_ = 0;
  in_gap_ = true;
}

void OutputStream::Close(Timestamp t, const Emit& emit) {
  if (!in_gap_) {
    lines_.Flush(LineEnd::kClosed, [&](const logs::AssembledLine& line) { Say(line, t, emit); });
  }
  if (unsaid_ > 0) Say({{}, offset_, LineEnd::kClosed, 0, 0}, t, emit);
  open_bytes_ = 0;
}

void OutputStream::Leave(Timestamp t, const Emit& emit) {
  if (!placed_) Close(t, emit);
}

void OutputStream::Say(const logs::AssembledLine& assembled, Timestamp t, const Emit& emit) {
  LogLine line;
  line.stream = label_.number;
  line.stream_name = label_.name;
  line.job_id = label_.job_id;
  line.writer = label_.writer;
  line.rank = label_.rank;
  line.local_rank = label_.local_rank;
  line.restart = label_.restart;
  logs::FillLine(assembled, line, masked_);
  line.lost_before = unsaid_;
  if (placed_ && !in_gap_) {
    line.file = label_.file;
    line.file.end = lines_.offset() + file_shift_;
  }
  if (emit(line, t)) unsaid_ = 0;
}

}  // namespace rankscope::probes
