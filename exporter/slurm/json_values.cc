// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/json_values.h"

#include <algorithm>
#include <limits>

#include "exporter/slurm/fields.h"
#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

constexpr size_t kMaxTexts = 1024;  // partitions of a node, states, nodes of a group

// NO_VAL, INFINITE; the 64-bit ones do not fit an int64_t.
constexpr int64_t kNoValue = 0xfffffffe;
constexpr int64_t kInfinite = 0xffffffff;

std::optional<int64_t> Counted(int64_t value) {
  if (value < 0 || value == kNoValue || value == kInfinite) return std::nullopt;
  return value;
}

}  // namespace

const Json& At(const Json& object, std::string_view name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto at = object.find(name);
  return at == object.end() ? kNone : *at;
}

std::optional<int64_t> Number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return Counted(static_cast<int64_t>(number));
  }
  if (value.is_number_integer()) return Counted(value.get<int64_t>());
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (!(number >= 0 && number < 9e18)) return std::nullopt;
    return Counted(static_cast<int64_t>(number));
  }
  if (value.is_string()) {
    const auto number = ReadInteger(value.get_ref<const std::string&>());
    return number ? Counted(*number) : std::nullopt;
  }
  if (!value.is_object()) return std::nullopt;
  const Json& set = At(value, "set");
  const Json& infinite = At(value, "infinite");
  if (set.is_boolean() && !set.get<bool>()) return std::nullopt;
  if (infinite.is_boolean() && infinite.get<bool>()) return std::nullopt;
  const Json& number = At(value, "number");
  return number.is_object() ? std::nullopt : Number(number);
}

int64_t Time(const Json& value) {
  const auto seconds = Number(value);
  return seconds ? ReadTime(std::to_string(*seconds)) : 0;
}

std::string Text(const Json& value, size_t most) {
  if (!value.is_string()) return {};
  return Bounded(Said(value.get_ref<const std::string&>()), most);
}

std::vector<std::string> Texts(const Json& value) {
  if (value.is_string()) return {Bounded(value.get_ref<const std::string&>())};
  std::vector<std::string> texts;
  if (!value.is_array()) return texts;
  for (const Json& element : value) {
    if (texts.size() >= kMaxTexts) break;
    if (element.is_string()) texts.push_back(Bounded(element.get_ref<const std::string&>()));
  }
  return texts;
}

std::optional<ExitStatus> Exit(const Json& value) {
  const Json& code_value = At(value, "return_code");
  const Json& signal_value = At(value, "signal");
  if (code_value.is_null() && signal_value.is_null()) {
    const auto status = Number(value);
    return status ? ExitOfWaitStatus(*status) : std::nullopt;
  }
  // What has not ended has a code that is not set, or in 22.05 a word alone.
  const auto code = Number(code_value);
  const Json& id = At(signal_value, "id");
  const auto signal = Number(id.is_null() ? At(signal_value, "signal_id") : id);
  if ((!code && !signal) || code.value_or(0) > 0xffff || signal.value_or(0) > 0xffff) {
    return std::nullopt;
  }
  return ExitStatus{static_cast<int32_t>(code.value_or(0)),
                    static_cast<int32_t>(signal.value_or(0))};
}

std::optional<int64_t> Gpus(const Json& tres) {
  if (tres.is_string()) return GpusOfTres(tres.get_ref<const std::string&>());
  if (!tres.is_array() || tres.empty()) return std::nullopt;
  int64_t all = 0, typed = 0;
  for (const Json& item : tres) {
    const auto count = Number(At(item, "count"));
    if (!count || *count > 1'000'000'000 || Text(At(item, "type"), 64) != "gres") continue;
    const std::string name = Text(At(item, "name"), 256);
    if (name == "gpu") all = *count;
    if (name.starts_with("gpu:")) typed += *count;
  }
  return std::max(all, typed);
}

}  // namespace rankscope::exporter::slurm
