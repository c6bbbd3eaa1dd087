// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Label sets, rendered once and shared for as long as their subject is shown. Loop thread.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "exporter/metrics/catalog.h"
#include "exporter/metrics/snapshot.h"

namespace rankscope::metrics {

using LabelPointer = std::shared_ptr<const LabelSet>;

// Values longer than this are cut: scrapers limit the length, and nothing that we show needs more.
inline constexpr size_t kMaxLabelValueBytes = 200;

// `names` as in MetricRow::labels; as many values as names.
LabelPointer MakeLabels(std::string_view names, std::span<const std::string_view> values);

// Label sets of one subject (a job, the sources), found by their names and values. Bounded by its
// caller: values come from closed lists or from a job's bounded state. What was not asked for since
// the last Sweep is forgotten by the next.
class LabelCache {
 public:
  const LabelPointer& Get(std::string_view names, std::initializer_list<std::string_view> values) {
    return Get(names, std::span(values.begin(), values.size()));
  }
  const LabelPointer& Get(std::string_view names, std::span<const std::string_view> values);
  void Sweep();

 private:
  struct Entry {
    LabelPointer labels;
    bool used = true;
  };
  std::unordered_map<std::string, Entry> entries_;
  std::string key_;  // scratch: no allocation per lookup
};

}  // namespace rankscope::metrics
