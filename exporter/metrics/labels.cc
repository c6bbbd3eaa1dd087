// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/metrics/labels.h"

#include <algorithm>
#include <cassert>

#include "detectors/model/utf8.h"
#include "exporter/metrics/encoder.h"

namespace rankscope::metrics {
namespace {

// Valid UTF-8, cut between characters.
std::string Clean(std::string_view value) {
  std::string out;
  while (!value.empty()) {
    const size_t length = Utf8Sequence(value);
    const std::string_view next =
        length == 0 ? std::string_view("\xEF\xBF\xBD") : value.substr(0, length);
    if (out.size() + next.size() > kMaxLabelValueBytes) break;
    out.append(next);
    value.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

}  // namespace

LabelPointer MakeLabels(std::string_view names, std::span<const std::string_view> values) {
  if (names.empty()) return nullptr;
  auto labels = std::make_shared<LabelSet>();
  labels->values.reserve(values.size());
  labels->text.push_back('{');
  for (const std::string_view value : values) {
    assert(!names.empty() && "more label values than the row has names");
    const size_t comma = names.find(',');
    if (labels->text.size() > 1) labels->text.push_back(',');
    labels->text.append(names.substr(0, comma)).append("=\"");
    labels->values.push_back(Clean(value));
    AppendLabelValue(labels->values.back(), labels->text);
    labels->text.push_back('"');
    AppendLabelPair(names.substr(0, comma), labels->values.back(), labels->wire);
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
  }
  assert(names.empty() && "fewer label values than the row has names");
  labels->text.push_back('}');
  return labels;
}

const LabelPointer& LabelCache::Get(std::string_view names,
                                    std::span<const std::string_view> values) {
  key_.assign(names);
  for (const std::string_view value : values) {
    key_.push_back('\xFF');  // in no UTF-8 text
    key_.append(value);
  }
  auto found = entries_.find(key_);
  if (found == entries_.end()) {
    found = entries_.emplace(key_, Entry{MakeLabels(names, values)}).first;
  }
  found->second.used = true;
  return found->second.labels;
}

void LabelCache::Sweep() {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->second.used) {
      entry->second.used = false;
      ++entry;
    } else {
      entry = entries_.erase(entry);
    }
  }
}

}  // namespace rankscope::metrics
