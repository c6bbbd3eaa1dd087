// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/kernel_log/kernel_line.h"

#include <algorithm>
#include <charconv>

#include "detectors/model/kmsg_record.h"
#include "detectors/model/line_cursor.h"
#include "detectors/model/nvlink_error.h"
#include "detectors/model/pci_card.h"
#include "detectors/model/xid_line.h"
#include "exporter/kernel_log/kernel_line_forms.h"

namespace rankscope::collectors {
namespace {

template <class T>
std::optional<T> Leading(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// What stands behind the first `mark`; empty where there is none.
std::string_view After(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
}

// "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"
RecoveryAction ActionOf(std::string_view detail) {
  constexpr std::string_view kBegin = "GPU recovery action changed from 0x";
  if (!detail.starts_with(kBegin)) return RecoveryAction::kUntold;
  const std::string_view to = After(detail, " to 0x");
  if (to.empty() || to.front() < '0' || to.front() > '4') return RecoveryAction::kUntold;
  return static_cast<RecoveryAction>(to.front() - '0');
}

bool ReadXid(std::string_view text, KernelLine& line) {
  const std::optional<XidLine> xid = ReadXidLine(text);
  if (!xid) return false;
  line.kind = KernelEventType::kXid;
  line.bus_id = xid->bus_id;
  line.code = xid->code;
  line.pid = xid->pid;
  if (line.code == 154) line.recovery = ActionOf(xid->detail);
  if (line.code < kFirstNvlinkXid || line.code > kLastNvlinkXid) return true;
  const std::optional<NvlinkError> error = ReadNvlinkError(xid->detail);
  line.nonfatal = error && !error->fatal;
  return true;
}

// "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 28 sourcing buffer", and then
// lines of the same code with "Severity 1 Engine instance 28 .." and "Data {..}".
bool ReadSwitch(std::string_view text, KernelLine& line) {
  LineCursor cursor(text);
  if (!cursor.Take("nvidia-nvswitch")) return false;
  cursor.TakeNumber();
  if (!cursor.Take(": SXid (")) return false;
  line.kind = KernelEventType::kSxid;
  line.bus_id = PciCard(cursor.rest());
  cursor.Take("PCI:");
  if (!cursor.TakePciPlace() || !cursor.Take("): ")) return false;
  const std::optional<int64_t> code = cursor.TakeNumber();
  constexpr int64_t kMaxCode = 99999;
  if (!code || *code > kMaxCode || !cursor.Take(", ")) return false;
  line.code = static_cast<int32_t>(*code);
  line.nonfatal = cursor.Take("Non-fatal");
  line.detail = !line.nonfatal && !cursor.Take("Fatal");
  return true;
}

// "NVRM: GPU 0000:b1:00.0: GPU has fallen off the bus.", and the last of the three lines that
// CardOfLongLoss tells of, which newer kernels keep in one record.
bool ReadLoss(std::string_view text, KernelLine& line) {
  LineCursor cursor(text);
  if (!cursor.Take("NVRM: ")) return false;
  line.kind = KernelEventType::kGpuLost;
  if (cursor.Take("fallen off the bus")) return true;
  if (cursor.Take("The NVIDIA GPU ")) {
    line.bus_id = PciCard(cursor.rest());
    return cursor.TakePciPlace() && cursor.rest().starts_with(" (PCI ID: ") &&
           cursor.rest().find("\\x0aNVRM: fallen off the bus") != std::string_view::npos;
  }
  if (!cursor.Take("GPU ")) return false;
  line.bus_id = PciCard(cursor.rest());
  return cursor.TakePciPlace() && cursor.Take(": GPU has fallen off the bus");
}

}  // namespace

std::optional<int64_t> SequenceOf(std::string_view record) {
  const size_t comma = record.find(',');
  if (comma == std::string_view::npos) return std::nullopt;
  return Leading<int64_t>(record.substr(comma + 1));
}

std::string CardOfLongLoss(std::string_view text) {
  const std::optional<KmsgRecord> record = ReadKmsgRecord(text);
  LineCursor cursor(record ? record->text : std::string_view());
  if (!cursor.Take("NVRM: The NVIDIA GPU ")) return {};
  std::string card = PciCard(cursor.rest());
  return cursor.TakePciPlace() && cursor.Take(" (PCI ID: ") ? card : std::string();
}

std::optional<KernelLine> ParseKernelRecord(std::string_view text) {
  const std::optional<KmsgRecord> record = ReadKmsgRecord(text);
  if (!record) return std::nullopt;
  KernelLine line;
  const auto read = [&line](auto form, const auto& from) {
    line = {};
    return form(from, line);
  };
  if (!read(ReadXid, record->text) && !read(ReadLoss, record->text) &&
      (record->continues || (!read(ReadSwitch, record->text) && !read(ReadHostLine, *record)))) {
    return std::nullopt;
  }
  line.continues = record->continues;
  line.sequence = record->sequence;
  line.microseconds = record->microseconds;
  line.text = record->text.substr(0, KernelLine::kTextCap);
  return line;
}

}  // namespace rankscope::collectors
