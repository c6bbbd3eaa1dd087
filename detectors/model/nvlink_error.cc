// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/nvlink_error.h"

#include <charconv>

namespace rankscope {
namespace {

// Words of a line, from its front.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}
  std::string_view Next() {
    const size_t begin = rest_.find_first_not_of(' ');
    rest_ = begin == std::string_view::npos ? std::string_view() : rest_.substr(begin);
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }

 private:
  std::string_view rest_;
};

template <class T>
std::optional<T> Whole(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool IsUnit(std::string_view word) {
  return !word.empty() && word.size() <= NvlinkError::kUnitCap &&
         word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/") ==
             std::string_view::npos &&
         word.front() >= 'A' && word.front() <= 'Z';
}

// A register's value: "0x0409a0c2", the first with "(" before it and the last with ")" behind.
std::optional<uint32_t> Register(std::string_view word) {
  if (word.starts_with('(')) word.remove_prefix(1);
  if (word.ends_with(')')) word.remove_suffix(1);
  if (!word.starts_with("0x")) return std::nullopt;
  return Whole<uint32_t>(word.substr(2), 16);
}

std::optional<NvlinkError> ReadPart(std::string_view part) {
  Words words(part);
  NvlinkError error;
  const std::string_view unit = words.Next();
  const std::string_view severity = words.Next();
  if (!IsUnit(unit) || (severity != "Fatal" && severity != "Nonfatal")) return std::nullopt;
  error.unit = unit;
  error.fatal = severity == "Fatal";
  // "XC0 i0" stand between and are not read.
  std::string_view word = words.Next();
  for (int i = 0; i < 2 && word != "Link"; ++i) word = words.Next();
  if (word != "Link") return error;
  const std::optional<int32_t> link = Whole<int32_t>(words.Next());
  constexpr int32_t kMaxLink = 255;
  if (link && *link >= 0 && *link <= kMaxLink) error.link = *link;
  const std::string_view first = words.Next();
  if (!first.starts_with('(')) return error;
  const std::optional<uint32_t> info = Register(first);
  if (!info) return error;
  error.subcode = static_cast<int32_t>(*info >> 20 & 0x3f);
  if (first.ends_with(')')) return error;
  if (const std::optional<uint32_t> status = Register(words.Next())) error.status = *status;
  return error;
}

}  // namespace

std::optional<NvlinkError> ReadNvlinkError(std::string_view text) {
  // A line of the kernel has no more; a text of somebody's own may have thousands of commas.
  constexpr size_t kTextCap = 512;
  text = text.substr(0, kTextCap);
  // From the back: nothing that somebody could choose stands behind it.
  for (size_t end = text.size();;) {
    const size_t comma = text.substr(0, end).rfind(',');
    const size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
    if (std::optional<NvlinkError> error = ReadPart(text.substr(begin))) return error;
    if (comma == std::string_view::npos) return std::nullopt;
    end = comma;
  }
}

}  // namespace rankscope
