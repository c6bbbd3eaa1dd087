// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Writes one JSON text from left to right with the keys in the order given: the verdicts of
// detectors/ and the documents of the exporter. Any thread, one object per text.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "detectors/document/verdict_json.h"

namespace rankscope {

// Shortest text that reads back as the same double; plain digits where a person would write them;
// "nan", "inf" and "-inf" as strings, because JSON has no such numbers.
std::string JsonNumber(double value);

// Rounded to 6 significant digits: what evidence prints.
double SixDigits(double value);

// Commas come by themselves; brackets are the caller's to match.
class JsonWriter {
 public:
  void Open(char bracket) {
    Separate();
    out_.push_back(bracket);
    comma_ = false;
  }
  void Close(char bracket) {
    out_.push_back(bracket);
    comma_ = true;
  }
  void Key(std::string_view name) {
    Separate();
    AppendJsonString(name, out_);
    out_.push_back(':');
    comma_ = false;
  }
  void Raw(std::string_view token) {
    Separate();
    out_.append(token);
    comma_ = true;
  }
  void String(std::string_view text) {
    Separate();
    AppendJsonString(text, out_);
    comma_ = true;
  }

  void Text(std::string_view key, std::string_view text) {
    Key(key);
    String(text);
  }
  void TextOrNull(std::string_view key, std::string_view text) {
    Key(key);
    if (text.empty()) {
      Raw("null");
    } else {
      String(text);
    }
  }
  void TextIfAny(std::string_view key, std::string_view text) {
    if (!text.empty()) Text(key, text);
  }
  void Integer(std::string_view key, int64_t value) {
    Key(key);
    Raw(std::to_string(value));
  }
  void Real(std::string_view key, double value) {
    Key(key);
    Raw(JsonNumber(value));
  }
  // For a value that is not known: what is not finite becomes null.
  void RealOrNull(std::string_view key, double value) {
    Key(key);
    Raw(std::isfinite(value) ? JsonNumber(value) : "null");
  }
  void IntegerOrNull(std::string_view key, bool known, int64_t value) {
    if (known) {
      Integer(key, value);
    } else {
      Null(key);
    }
  }
  void Null(std::string_view key) {
    Key(key);
    Raw("null");
  }
  void Bool(std::string_view key, bool value) {
    Key(key);
    Raw(value ? "true" : "false");
  }
  template <typename Range>
  void Integers(std::string_view key, const Range& values) {
    Key(key);
    Open('[');
    for (const auto value : values) Raw(std::to_string(value));
    Close(']');
  }
  template <typename Range>
  void Texts(std::string_view key, const Range& values) {
    Key(key);
    Open('[');
    for (const auto& value : values) String(value);
    Close(']');
  }
  void Time(std::string_view key, int64_t wall_ns) {
    Key(key);
    if (wall_ns == 0) {
      Raw("null");
    } else {
      String(Rfc3339(wall_ns));
    }
  }

  std::string Take() { return std::move(out_); }

 private:
  void Separate() {
    if (comma_) out_.push_back(',');
  }

  std::string out_;
  bool comma_ = false;
};

}  // namespace rankscope
