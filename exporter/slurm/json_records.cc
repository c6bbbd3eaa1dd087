// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/slurm/json_records.h"

#include <cstdint>
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
class Handler {
 public:
  Handler(bool (*keep)(std::string_view), const std::function<void(const JsonRecord&)>& take)
      : keep_(keep), take_(take) {}

  bool null() { return Put(json()); }
  bool boolean(bool value) { return Put(json(value)); }
  bool number_integer(json::number_integer_t value) { return Put(json(value)); }
  bool number_unsigned(json::number_unsigned_t value) { return Put(json(value)); }
  bool number_float(json::number_float_t value, const std::string&) { return Put(json(value)); }
  bool binary(json::binary_t&) { return Put(json()); }
  bool string(std::string& value) {
    if (open_.empty() || skipped_ > 0 || skip_next_) return Put(json());
    if (value.size() > kMaxSubmitLine) value.resize(kMaxSubmitLine);
    return Put(json(std::move(value)));
  }

  bool key(std::string& name) {
    if (skipped_ > 0) return true;
    if (depth_ == 1) {
      list_ = std::move(name);
    } else if (!open_.empty()) {
      skip_next_ = !keep_(name);
      if (!skip_next_) key_ = std::move(name);
    }
    return true;
  }

  bool start_object(size_t) { return Start(json::value_t::object); }
  bool start_array(size_t) { return Start(json::value_t::array); }
  bool end_object() { return End(); }
  bool end_array() { return End(); }

  // Whether there was an object to hold the lists.
  bool begun() const { return begun_; }

  template <class Exception>
  bool parse_error(size_t, const std::string&, const Exception&) {
    return false;
  }

 private:
  struct Open {
    json* value;
    bool steps;  // its elements are records of their own
  };

  // Where the next value goes; nullptr: nowhere.
  json* Place(json value) {
    if (skip_next_ || skipped_ > 0 || open_.empty() || values_ >= kMaxRecordValues) return nullptr;
    ++values_;
    json& parent = *open_.back().value;
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool Put(json value) {
    Place(std::move(value));
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
  std::string list_, key_;
  json record_;
  std::vector<Open> open_;
};

}  // namespace

bool ForEachJsonRecord(std::string_view text, bool (*keep)(std::string_view name),
                       const std::function<void(const JsonRecord&)>& take) {
  if (text.size() > kMaxJsonBytes) return false;
  Handler handler(keep, take);
  return json::sax_parse(text.begin(), text.end(), &handler) && handler.begun();
}

}  // namespace rankscope::exporter::slurm
