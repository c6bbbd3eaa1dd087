// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/json.h"

#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rankscope::reports {
namespace {

using Id = Tree::Id;

constexpr size_t kMaxDepth = 64;  // a RAS report has 6, a Flight Recorder dump 5

// Writes a code point as UTF-8.
void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// A loop over tokens with a stack of open containers, instead of one call per level: what is in a
// stranger's file must not decide how deep our stack grows.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Document> Run() {
    SkipSpace();
    if (AtEnd() || (Peek() != '{' && Peek() != '['))
      return Error{"the text is no JSON: it begins with no bracket"};
    while (Step()) {
    }
    if (full_) {
      return Error{"the JSON holds more than " + std::to_string(Tree::kMaxValues) + " values"};
    }
    document_.cut = !open_.empty();
    return std::move(document_);
  }

 private:
  struct Open {
    Id id;
    bool dict;
    Id key = Tree::kNone;  // read, and its value is not
    bool comma = true;     // one stands behind the last value, or there was none yet
  };

  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return text_[at_]; }
  void SkipSpace() {
    while (!AtEnd() && (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' || Peek() == '\r')) ++at_;
  }

  // One token; false at the end of the outermost value, of the text, or of what can be made out.
  bool Step() {
    SkipSpace();
    if (AtEnd()) return false;
    const char c = Peek();
    if (c == '}' || c == ']') return Close();
    if (c == ',') {
      ++at_;
      if (open_.empty()) return false;
      if (open_.back().comma) ++document_.repaired;
      open_.back().comma = true;
      return true;
    }
    if (!open_.empty()) {
      Open& top = open_.back();
      if (!top.comma && top.key == Tree::kNone) {
        ++document_.repaired;  // a comma was forgotten
        top.comma = true;
      }
      if (top.dict && top.key == Tree::kNone) return Key(top);
    }
    if (c == '{' || c == '[') return OpenContainer(c == '{');
    const Id value = Scalar();
    return value != Tree::kNone && Put(value) && !open_.empty();
  }

  bool Close() {
    ++at_;
    if (open_.empty()) return false;
    open_.pop_back();
    if (!open_.empty()) open_.back().comma = false;
    return !open_.empty();
  }

  bool OpenContainer(bool dict) {
    ++at_;
    if (open_.size() >= kMaxDepth) return false;
    const Id id = dict ? document_.tree.AddDict() : document_.tree.AddList();
    if (id == Tree::kNone) return !(full_ = true);
    if (open_.empty()) {
      document_.root = id;
    } else if (!Put(id)) {
      return false;
    }
    open_.push_back({id, dict});
    return true;
  }

  bool Key(Open& top) {
    if (Peek() != '"') return false;
    const Id key = String();
    if (key == Tree::kNone) return false;
    SkipSpace();
    if (AtEnd() || Peek() != ':') return false;
    ++at_;
    top.key = key;
    return true;
  }

  bool Put(Id value) {
    if (open_.empty()) return false;
    Open& top = open_.back();
    const bool put = top.dict ? document_.tree.Insert(top.id, top.key, value)
                              : document_.tree.Append(top.id, value);
    top.key = Tree::kNone;
    top.comma = false;
    full_ = full_ || !put;
    return put;
  }

  Id Scalar() {
    if (Peek() == '"') return String();
    const size_t begin = at_;
    while (!AtEnd() && (std::string_view(",:]}[{\"").find(Peek()) == std::string_view::npos) &&
           static_cast<unsigned char>(Peek()) > ' ') {
      ++at_;
    }
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "true") return Checked(document_.tree.AddBool(true));
    if (word == "false") return Checked(document_.tree.AddBool(false));
    // NaN and Infinity are no JSON, and yet written; nobody here can use them.
    if (word == "null" || word == "NaN" || word == "nan" || word == "-nan" || word == "Infinity" ||
        word == "-Infinity" || word == "inf" || word == "-inf") {
      return Checked(document_.tree.AddNull());
    }
    int64_t integer = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), integer);
    if (error == std::errc{} && end == word.data() + word.size()) {
      return Checked(document_.tree.AddInt(integer));
    }
    double real = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), real);
    if (word.empty() || parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size()) {
      return Tree::kNone;
    }
    return Checked(document_.tree.AddFloat(real));
  }

  Id Checked(Id id) {
    full_ = full_ || id == Tree::kNone;
    return id;
  }

  Id String() {
    const size_t begin = ++at_;
    bool escaped = false;
    while (!AtEnd() && Peek() != '"') {
      if (Peek() == '\\') {
        escaped = true;
        ++at_;
      }
      ++at_;
    }
    if (AtEnd()) return Tree::kNone;
    const std::string_view raw = text_.substr(begin, at_ - begin);
    ++at_;
    return Checked(escaped ? document_.tree.AddOwnedString(Unescape(raw))
                           : document_.tree.AddString(raw));
  }

  static std::string Unescape(std::string_view raw) {
    std::string out;
    for (size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\' || i + 1 >= raw.size()) {
        out += raw[i];
        continue;
      }
      const char c = raw[++i];
      constexpr std::string_view kFrom = "ntrbf", kTo = "\n\t\r\b\f";
      if (c == 'u') {
        uint32_t code = 0;
        if (!Hex(raw, i + 1, code)) continue;
        i += 4;
        uint32_t low = 0;
        if (code >= 0xd800 && code < 0xdc00 && i + 2 < raw.size() && raw[i + 1] == '\\' &&
            raw[i + 2] == 'u' && Hex(raw, i + 3, low) && low >= 0xdc00 && low < 0xe000) {
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
          i += 6;
        }
        AppendUtf8(code >= 0xd800 && code < 0xe000 ? 0xfffd : code, out);
      } else if (const size_t known = kFrom.find(c); known != std::string_view::npos) {
        out += kTo[known];
      } else {
        out += c;
      }
    }
    return out;
  }

  static bool Hex(std::string_view raw, size_t from, uint32_t& code) {
    if (from + 4 > raw.size()) return false;
    const auto [end, error] = std::from_chars(raw.data() + from, raw.data() + from + 4, code, 16);
    return error == std::errc{} && end == raw.data() + from + 4;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool full_ = false;
  std::vector<Open> open_;
  Document document_;
};

}  // namespace

Result<Document> ReadJson(std::string_view text) {
  return Parser(text).Run();
}

}  // namespace rankscope::reports
