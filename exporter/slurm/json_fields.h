// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// For the readers of JSON: how one value becomes one field of a record, so that a reader is a table
// of names beside fields (fields.h is the same of texts). What is absent leaves the field as it is.
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "exporter/slurm/fields.h"
#include "exporter/slurm/json_values.h"

namespace rankscope::exporter::slurm {

// Whether a value under this name, at any depth of a job, a step or a node, is read.
bool IsReadName(std::string_view name);

template <class Record>
struct Field {
  std::string_view name;
  void (*set)(const Json& value, Record& record);
};

template <auto kMember>
void SetText(const Json& value, OwnerOf<kMember>& record) {
  if (auto text = Text(value, kMaxField); !text.empty()) record.*kMember = std::move(text);
}
template <auto kMember>
void SetNumber(const Json& value, OwnerOf<kMember>& record) {
  if (const auto number = Number(value)) record.*kMember = number;
}
template <auto kMember>
void SetMegabytes(const Json& value, OwnerOf<kMember>& record) {
  const auto number = Number(value);
  if (number && *number < (int64_t{1} << 40)) record.*kMember = *number * 1024 * 1024;
}
template <auto kMember>
void SetTime(const Json& value, OwnerOf<kMember>& record) {
  if (const int64_t time = Time(value)) record.*kMember = time;
}
template <auto kMember>
void SetExit(const Json& value, OwnerOf<kMember>& record) {
  record.*kMember = Exit(value);
}
// An id is a number; 0 = none.
template <auto kMember>
void SetId(const Json& value, OwnerOf<kMember>& record) {
  const auto id = Number(value);
  if (id && *id > 0 && *id <= 0xffffffff) record.*kMember = std::to_string(*id);
}

template <class Record, size_t kSize>
void SetFields(const Json& object, const Field<Record> (&fields)[kSize], Record& record) {
  for (const Field<Record>& field : fields) {
    const Json& value = At(object, field.name);
    if (!value.Is(Json::Kind::kNull)) field.set(value, record);
  }
}

}  // namespace rankscope::exporter::slurm
