// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace rankscope {
namespace {

std::string Raw(const FieldValue::Of& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) {
    std::array<char, 32> text{};
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), *real);
    return error == std::errc() ? std::string(text.data(), end) : std::string();
  }
  return {};
}

}  // namespace

bool IsAbsent(const FieldValue& value) {
  if (const auto* text = std::get_if<std::string>(&value.value)) return text->empty();
  if (const auto* real = std::get_if<double>(&value.value)) return !std::isfinite(*real);
  if (const auto* list = std::get_if<std::vector<int32_t>>(&value.value)) return list->empty();
  return false;
}

const FieldValue* FieldValues::Find(FieldId id) const {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [id](const FieldValue& value) { return value.id == id; });
  return found == values_.end() ? nullptr : &*found;
}

std::string_view FieldValues::Text(FieldId id) const {
  const FieldValue* const found = Find(id);
  const auto* const text = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

void FieldValues::Replace(FieldId id, FieldValue::Of value) {
  std::erase_if(values_, [id](const FieldValue& each) { return each.id == id; });
  Set(id, std::move(value));
}

std::optional<FieldValue> FromCaptured(std::string_view name, std::string_view text) {
  const std::optional<FieldId> id = FindField(name);
  if (!id || text.empty()) return std::nullopt;
  if (TypeOf(*id) != FieldType::kText) {
    int64_t whole = 0;
    std::from_chars(text.data(), text.data() + text.size(), whole);
    // "007" and "12 GiB" are no such numbers.
    if (std::to_string(whole) == text) return FieldValue{*id, whole};
  }
  return FieldValue{*id, std::string(text)};
}

FieldValues FromCaptured(const std::vector<KeyValue>& captured) {
  FieldValues values;
  for (const KeyValue& each : captured) {
    if (std::optional<FieldValue> value = FromCaptured(each.key, each.value))
      values.Set(std::move(*value));
  }
  return values;
}

std::vector<KeyValue> ToCaptured(const FieldValues& values) {
  std::vector<KeyValue> captured;
  for (const FieldValue& each : values) {
    if (std::string text = Raw(each.value); !text.empty())
      captured.push_back({std::string(FieldName(each.id)), std::move(text)});
  }
  return captured;
}

}  // namespace rankscope
