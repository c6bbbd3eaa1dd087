// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/json_values.h"

#include <algorithm>

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
  if (!object.Is(Json::Kind::kObject)) return kNone;
  const auto members = object.items();
  const auto at = std::find_if(members.rbegin(), members.rend(),
                               [name](const Json& member) { return member.name == name; });
  return at == members.rend() ? kNone : *at;
}

std::optional<int64_t> Number(const Json& value) {
  switch (value.kind) {
    case Json::Kind::kNumber:
      return Counted(value.number);
    case Json::Kind::kString: {
      const auto number = ReadInteger(value.text);
      return number ? Counted(*number) : std::nullopt;
    }
    case Json::Kind::kObject: {
      const Json& set = At(value, "set");
      const Json& infinite = At(value, "infinite");
      if (set.Is(Json::Kind::kBoolean) && !set.truth) return std::nullopt;
      if (infinite.Is(Json::Kind::kBoolean) && infinite.truth) return std::nullopt;
      const Json& number = At(value, "number");
      return number.Is(Json::Kind::kObject) ? std::nullopt : Number(number);
    }
    default:
      return std::nullopt;
  }
}

int64_t Time(const Json& value) {
  const auto seconds = Number(value);
  return seconds ? ReadTime(std::to_string(*seconds)) : 0;
}

std::string Text(const Json& value, size_t most) {
  return value.Is(Json::Kind::kString) ? Bounded(Said(value.text), most) : std::string();
}

std::vector<std::string> Texts(const Json& value) {
  if (value.Is(Json::Kind::kString)) return {Bounded(value.text)};
  std::vector<std::string> texts;
  if (!value.Is(Json::Kind::kArray)) return texts;
  for (const Json& element : value.items()) {
    if (texts.size() >= kMaxTexts) break;
    if (element.Is(Json::Kind::kString)) texts.push_back(Bounded(element.text));
  }
  return texts;
}

std::optional<ExitStatus> Exit(const Json& value) {
  const Json& code_value = At(value, "return_code");
  const Json& signal_value = At(value, "signal");
  if (code_value.Is(Json::Kind::kNull) && signal_value.Is(Json::Kind::kNull)) {
    const auto status = Number(value);
    return status ? ExitOfWaitStatus(*status) : std::nullopt;
  }
  // What has not ended has a code that is not set, or in 22.05 a word alone.
  const auto code = Number(code_value);
  const Json& id = At(signal_value, "id");
  const auto signal = Number(id.Is(Json::Kind::kNull) ? At(signal_value, "signal_id") : id);
  if ((!code && !signal) || code.value_or(0) > 0xffff || signal.value_or(0) > 0xffff) {
    return std::nullopt;
  }
  return ExitStatus{static_cast<int32_t>(code.value_or(0)),
                    static_cast<int32_t>(signal.value_or(0))};
}

std::optional<int64_t> Gpus(const Json& tres) {
  if (tres.Is(Json::Kind::kString)) return GpusOfTres(tres.text);
  if (!tres.Is(Json::Kind::kArray) || tres.size == 0) return std::nullopt;
  int64_t all = 0, typed = 0;
  for (const Json& item : tres.items()) {
    const auto count = Number(At(item, "count"));
    if (!count || *count > 1'000'000'000 || Text(At(item, "type"), 64) != "gres") continue;
    const std::string name = Text(At(item, "name"), 256);
    if (name == "gpu") all = *count;
    if (name.starts_with("gpu:")) typed += *count;
  }
  return std::max(all, typed);
}

}  // namespace rankscope::exporter::slurm
