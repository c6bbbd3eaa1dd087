// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/json_records.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <utility>
#include <vector>

#include "detectors/model/utf8.h"

namespace rankscope::exporter::slurm {
namespace {

namespace ondemand = simdjson::ondemand;

// As it stands in the text: what has an escape in it is a name that nobody reads.
std::string_view NameOf(ondemand::raw_json_string key) {
  constexpr size_t kLongest = simdjson::SIMDJSON_PADDING;  // there are as many behind the text
  const void* const end = memchr(key.raw(), '"', kLongest);
  return {key.raw(),
          end == nullptr ? 0 : static_cast<size_t>(static_cast<const char*>(end) - key.raw())};
}

// The values of one record. Texts lie where the parser has put them, for as long as it lives.
class RecordValues {
 public:
  using Keep = bool (*)(std::string_view);
  using OnStep = std::function<void(const Json&)>;

  explicit RecordValues(Keep keep) : keep_(keep) {}

  // Valid until the next call. `on_step` (may be empty): takes the elements of "steps", which are
  // left out. False: it is no JSON, or too deep.
  bool Read(ondemand::object object, const OnStep& on_step, Json& record) {
    pool_.release();
    open_.clear();
    values_ = 0;
    record = {};
    return ReadObject(object, 0, on_step, record);
  }

 private:
  bool ReadValue(ondemand::value value, size_t depth, Json& out) {
    if (depth > kMaxJsonDepth) return false;
    ondemand::json_type type;
    if (value.type().get(type)) return IsNoNumber(value.raw_json_token());
    switch (type) {
      case ondemand::json_type::null:
        return !value.is_null().error();
      case ondemand::json_type::boolean:
        out.kind = Json::Kind::kBoolean;
        return !value.get_bool().get(out.truth);
      case ondemand::json_type::number:
        ReadNumber(value, out);
        return true;
      case ondemand::json_type::string:
        // A half of a surrogate pair is none, and is the name of a job all the same.
        if (!value.get_string().get(out.text)) out.kind = Json::Kind::kString;
        return true;
      case ondemand::json_type::array: {
        ondemand::array array;
        return !value.get_array().get(array) && ReadArray(array, depth, out);
      }
      case ondemand::json_type::object: {
        ondemand::object object;
        return !value.get_object().get(object) && ReadObject(object, depth, {}, out);
      }
    }
    return false;
  }

  // json-c, which prints for Slurm, has these words for doubles that JSON cannot say.
  static bool IsNoNumber(std::string_view token) {
    return token.starts_with("NaN") || token.starts_with("Infinity");
  }

  // What fits no number of the parser's is there, and is none of Slurm's.
  static void ReadNumber(ondemand::value value, Json& out) {
    out.kind = Json::Kind::kNumber;
    ondemand::number number;
    if (value.get_number().get(number)) return;
    if (number.is_int64()) {
      out.number = number.get_int64();
    } else if (number.is_double() && number.get_double() >= 0 && number.get_double() < 9e18) {
      out.number = static_cast<int64_t>(number.get_double());
    }
  }

  bool ReadArray(ondemand::array array, size_t depth, Json& out) {
    const size_t first = open_.size();
    for (auto element : array) {
      ondemand::value value;
      if (element.get(value)) return false;
      if (++values_ > kMaxRecordValues) continue;
      Json read;
      if (!ReadValue(value, depth + 1, read)) return false;
      open_.push_back(read);
    }
    out.kind = Json::Kind::kArray;
    Close(first, out);
    return true;
  }

  bool ReadObject(ondemand::object object, size_t depth, const OnStep& on_step, Json& out) {
    const size_t first = open_.size();
    for (auto member : object) {
      ondemand::raw_json_string key;
      ondemand::value value;
      if (member.key().get(key) || member.value().get(value)) return false;
      const std::string_view name = NameOf(key);
      if (!keep_(name)) continue;
      ondemand::array steps;
      if (on_step && name == "steps" && !value.get_array().get(steps)) {
        if (!ReadSteps(steps, on_step)) return false;
        continue;
      }
      if (++values_ > kMaxRecordValues) continue;
      Json read;
      read.name = name;
      if (!ReadValue(value, depth + 1, read)) return false;
      open_.push_back(read);
    }
    out.kind = Json::Kind::kObject;
    Close(first, out);
    return true;
  }

  bool ReadSteps(ondemand::array steps, const OnStep& on_step) {
    RecordValues values(keep_);
    for (auto element : steps) {
      ondemand::object object;
      if (element.error()) return false;
      if (element.get_object().get(object)) continue;
      Json step;
      if (!values.Read(object, {}, step)) return false;
      on_step(step);
    }
    return true;
  }

  void Close(size_t first, Json& out) {
    out.size = open_.size() - first;
    if (out.size == 0) return;
    Json* const place = static_cast<Json*>(pool_.allocate(out.size * sizeof(Json), alignof(Json)));
    std::uninitialized_copy(open_.begin() + static_cast<ptrdiff_t>(first), open_.end(), place);
    open_.resize(first);
    out.first = place;
  }

  const Keep keep_;
  size_t values_ = 0;
  std::vector<Json> open_;  // of the containers that are not read to their ends
  alignas(Json) std::byte buffer_[size_t{32} << 10];
  std::pmr::monotonic_buffer_resource pool_{buffer_, sizeof buffer_};
};

}  // namespace

bool ForEachJsonRecord(std::string text, bool (*keep)(std::string_view name),
                       const std::function<void(const JsonRecord&)>& take) {
  if (text.size() > kMaxJsonBytes) return false;
  // One byte that is no UTF-8 would cost the whole text, and Slurm passes on what a job was called.
  if (!simdjson::validate_utf8(text)) text = ToUtf8(text);
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object lists;
  if (parser.iterate(text).get(document) || document.get_object().get(lists)) return false;
  RecordValues values(keep);
  for (auto list : lists) {
    ondemand::raw_json_string key;
    ondemand::value under;
    if (list.key().get(key) || list.value().get(under)) return false;
    const std::string_view name = NameOf(key);
    const auto hand_out = [&](ondemand::object object) {
      Json record;
      const bool read = values.Read(
          object,
          [&](const Json& step) {
            take({name, true, step});
          },
          record);
      if (read) take({name, false, record});
      return read;
    };
    ondemand::json_type type;
    if (under.type().get(type)) return false;
    if (type == ondemand::json_type::object) {
      if (ondemand::object object; under.get_object().get(object) || !hand_out(object))
        return false;
    }
    if (type != ondemand::json_type::array) continue;
    ondemand::array elements;
    if (under.get_array().get(elements)) return false;
    for (auto element : elements) {
      if (element.error() || element.type().get(type)) return false;
      if (type != ondemand::json_type::object) continue;
      if (ondemand::object object; element.get_object().get(object) || !hand_out(object))
        return false;
    }
  }
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

}  // namespace rankscope::exporter::slurm
