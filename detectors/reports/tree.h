// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Data that a job's own libraries wrote, as a tree of values: what the readers of JSON and of
// Python's pickles fill and the readers of reports ask. Values live in one arena and name each
// other by number, because a pickle may mention one value many times (stack frames), and even
// within itself: whoever walks the tree asks for named members and never recurses blindly. Strings
// are borrowed from the text that was read. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::reports {

class Tree {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = 0xffffffff;
  // A recorder of 20,000 operations writes some 800,000 values of 24 bytes and as many links of 12:
  // below 40 MB while it is read.
  static constexpr size_t kMaxValues = size_t{1} << 20;

  // Named members are looked for among so many; a report's objects have some dozen.
  static constexpr size_t kMaxMembers = 256;

  enum class Kind : uint8_t { kNull, kBool, kInt, kFloat, kString, kList, kDict, kMark };

  // All Add... give kNone when the tree is full.
  Id AddNull() { return Add(Kind::kNull, 0, {}); }
  Id AddBool(bool value) { return Add(Kind::kBool, value ? 1 : 0, {}); }
  Id AddInt(int64_t value) { return Add(Kind::kInt, value, {}); }
  Id AddFloat(double value);
  Id AddString(std::string_view borrowed) { return Add(Kind::kString, 0, borrowed); }
  Id AddOwnedString(std::string_view text);  // copied into the tree
  Id AddList() { return Add(Kind::kList, 0, {}); }
  Id AddDict() { return Add(Kind::kDict, 0, {}); }
  Id AddMark() { return Add(Kind::kMark, 0, {}); }

  // False when the tree is full.
  bool Append(Id list, Id value);
  bool Insert(Id dict, Id key, Id value);

  bool valid(Id id) const { return id < values_.size(); }
  Kind kind(Id id) const { return valid(id) ? values_[id].kind : Kind::kNull; }
  bool is_list(Id id) const { return kind(id) == Kind::kList; }
  bool is_dict(Id id) const { return kind(id) == Kind::kDict; }

  // A number, also where it is written as a string of digits, as PyTorch's JSON has them.
  std::optional<int64_t> Int(Id id) const;
  std::optional<double> Number(Id id) const;
  std::optional<bool> Bool(Id id) const;
  std::string_view String(Id id) const;  // empty unless it is a string

  // The newest member of that name; kNone where there is none.
  Id Get(Id dict, std::string_view key) const;
  Id At(Id list, size_t index) const;
  size_t size(Id container) const { return valid(container) ? values_[container].size : 0; }

  // Elements of a list, or keys and values of a dict, in order.
  struct Element {
    Id key = kNone;  // of a dict
    Id value = kNone;
  };
  class Walk {
   public:
    Walk(const Tree& tree, Id container);
    bool Next(Element& element);

   private:
    const Tree& tree_;
    uint32_t link_;
  };

  size_t values() const { return values_.size(); }

 private:
  struct Value {
    Kind kind = Kind::kNull;
    uint32_t size = 0;  // elements, or bytes of a string
    struct Links {
      uint32_t first, last;
    };
    union {
      int64_t integer;
      double real;
      const char* text;
      Links links;
    };
  };
  struct Link {
    Id key, value;
    uint32_t next;
  };

  Id Add(Kind kind, int64_t integer, std::string_view text);
  bool AddLink(Id container, Id key, Id value);

  std::vector<Value> values_;
  std::vector<Link> links_;
  std::vector<std::vector<char>> owned_;  // stable memory behind AddOwnedString
};

}  // namespace rankscope::reports
