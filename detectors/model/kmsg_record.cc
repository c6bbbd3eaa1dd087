// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/kmsg_record.h"

#include "detectors/model/line_cursor.h"

namespace rankscope {

std::optional<KmsgRecord> ReadKmsgRecord(std::string_view text) {
  LineCursor cursor(text);
  KmsgRecord record;
  const std::optional<int64_t> priority = cursor.TakeNumber();
  if (!priority || *priority >> 3 > 1 || !cursor.Take(",")) return std::nullopt;
  record.by_kernel = *priority >> 3 == 0;
  const std::optional<int64_t> sequence = cursor.TakeNumber();
  if (!sequence || !cursor.Take(",")) return std::nullopt;
  record.sequence = *sequence;
  const std::optional<int64_t> microseconds = cursor.TakeNumber();
  if (!microseconds || !cursor.Take(",")) return std::nullopt;
  record.microseconds = *microseconds;
  record.continues = cursor.Take("c");
  // A hand cannot leave a line open.
  if (record.continues ? !record.by_kernel : !cursor.Take("-")) return std::nullopt;
  // ",caller=T1" and whatever a later kernel adds.
  const std::string_view rest = cursor.rest();
  const size_t end = rest.find(';');
  if (end == std::string_view::npos || (end > 0 && rest.front() != ',')) return std::nullopt;
  record.text = rest.substr(end + 1);
  const size_t line = record.text.find('\n');
  const std::string_view behind = line == std::string_view::npos ? "" : record.text.substr(line);
  record.text = record.text.substr(0, line);
  constexpr std::string_view kDevice = "\n DEVICE=";
  if (const size_t at = behind.find(kDevice); at != std::string_view::npos) {
    record.device = behind.substr(at + kDevice.size());
    record.device = record.device.substr(0, record.device.find('\n'));
  }
  return record;
}

}  // namespace rankscope
