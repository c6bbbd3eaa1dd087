// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/logs/text/masked_line.h"

#include "detectors/logs/text/redactor.h"

namespace rankscope::logs {

void MaskText(LogLine& line, std::string& copy) {
  if (!MayHoldSecret(line.text)) return;
  copy.assign(line.text);
  line.redactions += Redact(copy);
  line.text = copy;
}

void FillLine(const AssembledLine& assembled, LogLine& line, std::string& copy) {
  line.offset = assembled.offset;
  line.text = assembled.text;
  line.end = assembled.end;
  line.cut_bytes = assembled.cut_bytes;
  line.lost_before = assembled.lost_before;
  line.redactions = 0;
  MaskText(line, copy);
}

}  // namespace rankscope::logs
