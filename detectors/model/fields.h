// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The values that an observation carries and that sentences quote: each field by name and type, and
// one value of it. A value travels as what it is, a number as a number; only detectors/sentences
// prints it. Any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "detectors/model/observation.h"

namespace rankscope {

enum class FieldType : uint8_t {
  kText,
  kCount,
  kNumber,   // six significant digits
  kMeasure,  // three significant digits
  kShare,    // 0 to 1
  kPercent,  // the same, printed as "12 %"
  kSeconds,
  kDuration,  // the same, printed as "12 min"
  kBytes,
  kHertz,
};

enum class FieldId : uint16_t {
#define FIELD(id, name, type) id,
#include "detectors/model/fields.inc"
#undef FIELD
};

struct FieldRow {
  std::string_view name;
  FieldType type;
};
inline constexpr std::array kFields = {
#define FIELD(id, name, type) FieldRow{name, FieldType::type},
#include "detectors/model/fields.inc"
#undef FIELD
};

constexpr std::string_view FieldName(FieldId id) {
  return kFields[static_cast<size_t>(id)].name;
}

constexpr FieldType TypeOf(FieldId id) {
  return kFields[static_cast<size_t>(id)].type;
}

// By name, for the search.
inline constexpr std::array kFieldOrder = [] {
  std::array<uint16_t, kFields.size()> order{};
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint16_t>(i);
  std::sort(order.begin(), order.end(),
            [](uint16_t a, uint16_t b) { return kFields[a].name < kFields[b].name; });
  return order;
}();
static_assert(std::adjacent_find(kFieldOrder.begin(), kFieldOrder.end(), [](auto a, auto b) {
                return kFields[a].name == kFields[b].name;
              }) == kFieldOrder.end());

constexpr std::optional<FieldId> FindField(std::string_view name) {
  const auto found =
      std::lower_bound(kFieldOrder.begin(), kFieldOrder.end(), name,
                       [](uint16_t at, std::string_view of) { return kFields[at].name < of; });
  if (found == kFieldOrder.end() || kFields[*found].name != name) return std::nullopt;
  return static_cast<FieldId>(*found);
}

struct FieldValue {
  using Of = std::variant<int64_t, double, std::string, std::vector<int32_t>>;
  FieldId id{};
  Of value;

  bool operator==(const FieldValue&) const = default;
};

// An empty text, an empty list and a number that is none say that there is no value.
bool IsAbsent(const FieldValue& value);

// Values in order; of two of one field the first counts.
class FieldValues {
 public:
  FieldValues() = default;
  FieldValues(std::initializer_list<FieldValue> values) {
    for (const FieldValue& value : values) Set(value);
  }

  FieldValues& Set(FieldValue value) {
    if (!IsAbsent(value)) values_.push_back(std::move(value));
    return *this;
  }
  FieldValues& Set(FieldId id, FieldValue::Of value) {
    return Set(FieldValue{id, std::move(value)});
  }
  FieldValues& Set(FieldId id, std::string_view text) { return Set(id, std::string(text)); }
  FieldValues& Set(FieldId id, const char* text) { return Set(id, std::string(text)); }
  FieldValues& Set(FieldId id, std::string text) {
    return Set(FieldValue{id, FieldValue::Of(std::move(text))});
  }
  void Append(const FieldValues& others) {
    values_.insert(values_.end(), others.values_.begin(), others.values_.end());
  }
  void Replace(FieldId id, FieldValue::Of value);

  const FieldValue* Find(FieldId id) const;
  // Empty unless it has a text.
  std::string_view Text(FieldId id) const;
  bool Has(FieldId id) const { return Find(id) != nullptr; }

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  bool empty() const { return values_.empty(); }

  bool operator==(const FieldValues&) const = default;

 private:
  std::vector<FieldValue> values_;
};

// What a parser captured by name, of which only this text is known: a number where it is written as
// one and the field is a number, else the text. Absent where there is no field of that name.
std::optional<FieldValue> FromCaptured(std::string_view name, std::string_view text);
FieldValues FromCaptured(const std::vector<KeyValue>& captured);

// And back, for what is inferred from an observation and kept as an incident of a text would be.
std::vector<KeyValue> ToCaptured(const FieldValues& values);

}  // namespace rankscope
