// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/json_records.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

using nlohmann::json;

// The parser's events. It keeps no stack of ours: how deep a text is, costs it a bit a level.
//
//   depth   1        2         3
//           { "jobs" : [       {...}, {...} ],   a record each
//             "statistics" :   {...} }           a record
//
// A number of Slurm's from 23.02 on is {"set": true, "infinite": false, "number": 5}, twenty times
// a job: it is kept as that number, or as null where it is not set or is infinite.
class Handler {
 public:
  Handler(bool (*keep)(std::string_view), const std::function<void(const JsonRecord&)>& take)
      : keep_(keep), take_(take) {}

  using Size = rapidjson::SizeType;

  bool Null() { return Put(nullptr); }
  bool Bool(bool value) { return Put(value); }
  bool Int(int value) { return Put(value); }
  bool Uint(unsigned value) { return Put(value); }
  bool Int64(int64_t value) { return Put(value); }
  bool Uint64(uint64_t value) { return Put(value); }
  bool Double(double value) { return Put(value); }
  bool RawNumber(const char*, Size, bool) { return Put(nullptr); }  // for other flags than ours
  bool String(const char* text, Size size, bool) {
    return Put(std::string_view(text, std::min<size_t>(size, kMaxSubmitLine)));
  }

  bool Key(const char* text, Size size, bool) {
    if (skipped_ > 0) return true;
    const std::string_view name(text, size);
    if (depth_ == 1) {
      list_ = name;
    } else if (number_.open && (number_.next = Number::MemberOf(name)) == Number::kOther) {
      OpenAsObject();
      return Key(text, size, false);
    } else if (number_.open) {
      return true;
    } else if (!open_.empty()) {
      skip_next_ = !keep_(name);
      if (!skip_next_) key_ = name;
    }
    return true;
  }

  bool StartObject() { return Start(json::value_t::object); }
  bool StartArray() { return Start(json::value_t::array); }
  bool EndObject(Size) { return End(); }
  bool EndArray(Size) { return End(); }

  // Whether there was an object to hold the lists.
  bool begun() const { return begun_; }

 private:
  struct Open {
    json* value;
    bool steps;  // its elements are records of their own
  };

  // An object that has shown no members yet but those of a number.
  struct Number {
    enum Member : uint8_t { kSet, kInfinite, kNumber, kOther };
    static constexpr std::string_view kNames[] = {"set", "infinite", "number"};

    static Member MemberOf(std::string_view name) {
      return static_cast<Member>(std::find(std::begin(kNames), std::end(kNames), name) - kNames);
    }
    // nullopt: it is none.
    std::optional<json> Value() const {
      const auto& [set, infinite, number] = members;
      if (!number || !number->is_number()) return std::nullopt;
      if ((set && !set->is_boolean()) || (infinite && !infinite->is_boolean())) return std::nullopt;
      if ((set && !set->get<bool>()) || (infinite && infinite->get<bool>())) return json();
      return *number;
    }

    bool open = false;
    Member next = kOther;
    std::array<std::optional<json>, kOther> members;
  };

  // It is another object: what it has shown so far are its first members.
  void OpenAsObject() {
    const Number shown = std::exchange(number_, {});
    json* const place = Place(json::value_t::object);
    if (place == nullptr) {
      skipped_ = 1;
      return;
    }
    open_.push_back({place, false});
    for (size_t member = 0; member < shown.members.size(); ++member) {
      if (!shown.members[member] || !keep_(Number::kNames[member])) continue;
      key_ = Number::kNames[member];
      Place(*shown.members[member]);
    }
    if (shown.next == Number::kOther) return;
    key_ = Number::kNames[shown.next];
    skip_next_ = !keep_(key_);
  }

  // Where the next value goes; nullptr: nowhere.
  template <class Value>
  json* Place(const Value& value) {
    if (skip_next_ || skipped_ > 0 || open_.empty() || values_ >= kMaxRecordValues) return nullptr;
    ++values_;
    json& parent = *open_.back().value;
    if (parent.is_object()) return &(parent[key_] = value);
    parent.push_back(value);
    return &parent.back();
  }

  template <class Value>
  bool Put(const Value& value) {
    if (number_.open) {
      number_.members[number_.next] = value;
      return true;
    }
    Place(value);
    skip_next_ = false;
    return true;
  }

  bool Start(json::value_t type) {
    if (++depth_ > kMaxJsonDepth) return false;
    if (skipped_ > 0) {
      ++skipped_;
      return true;
    }
    if (open_.empty()) {
      const bool object = type == json::value_t::object;
      if (depth_ == 1) return begun_ = object;
      if (depth_ == 2 && !object) return true;  // a list of records
      if (!object) {
        skipped_ = 1;
        return true;
      }
      record_ = json(type);
      values_ = 0;
      open_.push_back({&record_, false});
      return true;
    }
    if (number_.open) {
      OpenAsObject();
      if (skipped_ > 0) return ++skipped_ > 0;
    }
    if (type == json::value_t::object && !skip_next_ && !open_.back().steps)
      return number_.open = true;
    const bool steps = open_.size() == 1 && type == json::value_t::array && key_ == "steps";
    json* const place = Place(json(type));
    skip_next_ = false;
    if (place == nullptr) {
      skipped_ = 1;
    } else {
      open_.push_back({place, steps});
    }
    return true;
  }

  bool End() {
    --depth_;
    if (skipped_ > 0) {
      --skipped_;
      return true;
    }
    if (open_.empty()) return true;
    if (number_.open) {
      if (const std::optional<json> value = number_.Value()) {
        number_ = {};
        return Put(*value);
      }
      OpenAsObject();
      if (skipped_ > 0) return skipped_-- > 0;
    }
    const json& ended = *open_.back().value;
    open_.pop_back();
    if (open_.empty()) {
      take_({list_, false, ended});
      record_ = json();
    } else if (open_.back().steps) {
      if (ended.is_object()) take_({list_, true, ended});
      open_.back().value->clear();
      values_ = 0;
    }
    return true;
  }

  bool (*keep_)(std::string_view);
  const std::function<void(const JsonRecord&)>& take_;
  bool begun_ = false;
  size_t depth_ = 0;
  size_t skipped_ = 0;  // containers open within one that is not kept
  bool skip_next_ = false;
  size_t values_ = 0;
  Number number_;
  std::string list_, key_;
  json record_;
  std::vector<Open> open_;
};

}  // namespace

bool ForEachJsonRecord(std::string_view text, bool (*keep)(std::string_view name),
                       const std::function<void(const JsonRecord&)>& take) {
  if (text.size() > kMaxJsonBytes) return false;
  Handler handler(keep, take);
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  const auto parsed = reader.Parse<rapidjson::kParseDefaultFlags>(stream, handler);
  // A NUL is its end of text.
  return !parsed.IsError() && stream.Tell() == text.size() && handler.begun();
}

}  // namespace rankscope::exporter::slurm
