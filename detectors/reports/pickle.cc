// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/pickle.h"

#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rankscope::reports {
namespace {

using Id = Tree::Id;

// Open containers of a dump: entries, an entry, its frames, a frame; a hundred times as deep is not
// data of ours.
constexpr size_t kMaxStack = 1 << 16;
// Every string and shared container of a dump is memorised.
constexpr size_t kMaxMemo = Tree::kMaxValues;

enum Op : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kShortBinString = 'U',
  kBinString = 'T',
  kBinUnicode = 'X',
  kAppend = 'a',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kDict = 'd',
  kList = 'l',
  kTuple = 't',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kMemoize = 0x94,
  kFrame = 0x95,
};

struct RefusedRow {
  uint8_t op;
  const char* name;
};
// Instructions that do more than hold data, by name for the reason.
constexpr RefusedRow kRefused[] = {
    {'c', "GLOBAL"},        {'R', "REDUCE"},       {'i', "INST"},
    {'o', "OBJ"},           {'b', "BUILD"},        {'P', "PERSID"},
    {'Q', "BINPERSID"},     {0x81, "NEWOBJ"},      {0x82, "EXT1"},
    {0x83, "EXT2"},         {0x84, "EXT4"},        {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"}, {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
};

class Machine {
 public:
  explicit Machine(std::string_view bytes) : bytes_(bytes) {}

  Result<Document> Run() {
    while (!done_) {
      uint8_t op = 0;
      if (!Byte(op)) return Bad("ends without STOP");
      if (!Step(op)) return Bad(reason_.empty() ? "is damaged" : reason_);
    }
    if (stack_.size() != 1) return Bad("leaves more than one value");
    document_.root = stack_.back();
    if (document_.tree.kind(document_.root) == Tree::Kind::kMark) return Bad("is damaged");
    return std::move(document_);
  }

 private:
  Error Bad(const std::string& why) const {
    return Error{"the pickle " + why + ", at byte " + std::to_string(op_at_)};
  }

  bool Byte(uint8_t& byte) {
    op_at_ = at_;
    return Take(1, byte);
  }
  template <typename T>
  bool Take(size_t count, T& number) {
    if (bytes_.size() - at_ < count) return Fail("ends within a value");
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value |= uint64_t{static_cast<uint8_t>(bytes_[at_ + i])} << (8 * i);
    }
    at_ += count;
    number = static_cast<T>(value);
    return true;
  }
  bool TakeText(size_t length_bytes, std::string_view& text) {
    uint64_t length = 0;
    if (!Take(length_bytes, length)) return false;
    if (length > bytes_.size() - at_) return Fail("ends within a text");
    text = bytes_.substr(at_, length);
    at_ += length;
    return true;
  }
  bool Fail(std::string why) {
    if (reason_.empty()) reason_ = std::move(why);
    return false;
  }

  bool Push(Id id) {
    if (id == Tree::kNone)
      return Fail("holds more than " + std::to_string(Tree::kMaxValues) + " values");
    if (stack_.size() >= kMaxStack) return Fail("is nested too deeply");
    stack_.push_back(id);
    return true;
  }
  bool Memorise(size_t index) {
    if (stack_.empty()) return Fail("memorises nothing");
    if (index >= kMaxMemo || index > memo_.size() + kMaxStack) return Fail("has a memo too large");
    if (memo_.size() <= index) memo_.resize(index + 1, Tree::kNone);
    memo_[index] = stack_.back();
    return true;
  }
  bool Recall(size_t index) {
    if (index >= memo_.size() || memo_[index] == Tree::kNone)
      return Fail("recalls what it never memorised");
    return Push(memo_[index]);
  }

  // Index of the topmost mark, or npos.
  size_t TopMark() const {
    for (size_t i = stack_.size(); i > 0; --i) {
      if (document_.tree.kind(stack_[i - 1]) == Tree::Kind::kMark) return i - 1;
    }
    return std::string::npos;
  }
  bool TakeList(size_t from, size_t marks) {
    const Id list = document_.tree.AddList();
    for (size_t i = from + marks; i < stack_.size(); ++i) {
      if (!document_.tree.Append(list, stack_[i])) return Fail("holds too many values");
    }
    stack_.resize(from);
    return Push(list);
  }
  bool TakeTuple(size_t count) {
    if (stack_.size() < count) return Fail("has a tuple of nothing");
    return TakeList(stack_.size() - count, 0);
  }
  bool Append(size_t from, size_t marks) {
    if (from == 0 || from == std::string::npos) return Fail("appends to nothing");
    const Id list = stack_[from - 1];
    for (size_t i = from + marks; i < stack_.size(); ++i) {
      if (!document_.tree.Append(list, stack_[i])) return Fail("appends to no list");
    }
    stack_.resize(from);
    return true;
  }
  bool SetItems(Id dict, size_t from, size_t end) {
    if ((end - from) % 2 != 0) return Fail("has a key without a value");
    for (size_t i = from; i + 1 < end; i += 2) {
      if (!document_.tree.Insert(dict, stack_[i], stack_[i + 1]))
        return Fail("sets an item of no dict");
    }
    return true;
  }
  bool AddItems(size_t from, size_t marks) {
    if (from == 0 || from == std::string::npos) return Fail("sets an item of nothing");
    if (!SetItems(stack_[from - 1], from + marks, stack_.size())) return false;
    stack_.resize(from);
    return true;
  }

  bool Long1() {
    uint8_t length = 0;
    if (!Take(1, length)) return false;
    if (length > 8) return Fail("holds an integer beyond 64 bits");
    uint64_t value = 0;
    if (!Take(length, value)) return false;
    if (length > 0 && length < 8 && ((value >> (8 * length - 1)) & 1) != 0) {
      value |= ~uint64_t{0} << (8 * length);  // two's complement
    }
    return Push(document_.tree.AddInt(static_cast<int64_t>(value)));
  }
  bool BinFloat() {
    if (bytes_.size() - at_ < 8) return Fail("ends within a value");
    uint64_t bits = 0;  // big endian, unlike everything else
    for (int i = 0; i < 8; ++i) bits = (bits << 8) | static_cast<uint8_t>(bytes_[at_++]);
    return Push(document_.tree.AddFloat(std::bit_cast<double>(bits)));
  }
  bool Text(size_t length_bytes) {
    std::string_view text;
    return TakeText(length_bytes, text) && Push(document_.tree.AddString(text));
  }
  template <typename T>
  bool Integer(size_t bytes) {
    T value = 0;
    return Take(bytes, value) && Push(document_.tree.AddInt(value));
  }
  template <typename T>
  bool Index(size_t bytes, bool (Machine::*use)(size_t)) {
    T index = 0;
    return Take(bytes, index) && (this->*use)(index);
  }

  bool Step(uint8_t op) {
    Tree& tree = document_.tree;
    switch (op) {
      case kProto: {
        uint8_t version = 0;
        return Take(1, version) && (version <= 5 || Fail("is of an unknown protocol"));
      }
      case kFrame: {
        uint64_t length = 0;
        return Take(8, length);
      }
      case kStop:
        done_ = true;
        return true;
      case kMark:
        return Push(tree.AddMark());
      case kPop:
        if (stack_.empty()) return Fail("pops nothing");
        stack_.pop_back();
        return true;
      case kPopMark: {
        const size_t mark = TopMark();
        if (mark == std::string::npos) return Fail("pops no mark");
        stack_.resize(mark);
        return true;
      }
      case kNone:
        return Push(tree.AddNull());
      case kNewTrue:
        return Push(tree.AddBool(true));
      case kNewFalse:
        return Push(tree.AddBool(false));
      case kBinInt:
        return Integer<int32_t>(4);
      case kBinInt1:
        return Integer<uint8_t>(1);
      case kBinInt2:
        return Integer<uint16_t>(2);
      case kLong1:
        return Long1();
      case kBinFloat:
        return BinFloat();
      case kShortBinUnicode:
      case kShortBinBytes:
      case kShortBinString:
        return Text(1);
      case kBinUnicode:
      case kBinBytes:
      case kBinString:
        return Text(4);
      case kBinUnicode8:
      case kBinBytes8:
        return Text(8);
      case kEmptyList:
      case kEmptyTuple:
        return Push(tree.AddList());
      case kEmptyDict:
        return Push(tree.AddDict());
      case kList:
      case kTuple: {
        const size_t mark = TopMark();
        return mark == std::string::npos ? Fail("has no mark") : TakeList(mark, 1);
      }
      case kTuple1:
      case kTuple2:
      case kTuple3:
        return TakeTuple(static_cast<size_t>(op - kTuple1) + 1);
      case kDict: {
        const size_t mark = TopMark();
        if (mark == std::string::npos) return Fail("has no mark");
        const Id dict = tree.AddDict();
        if (!SetItems(dict, mark + 1, stack_.size())) return false;
        stack_.resize(mark);
        return Push(dict);
      }
      case kAppend:
        return stack_.size() < 2 ? Fail("appends to nothing") : Append(stack_.size() - 1, 0);
      case kAppends:
        return Append(TopMark(), 1);
      case kSetItem:
        return stack_.size() < 3 ? Fail("sets an item of nothing") : AddItems(stack_.size() - 2, 0);
      case kSetItems:
        return AddItems(TopMark(), 1);
      case kBinPut:
        return Index<uint8_t>(1, &Machine::Memorise);
      case kLongBinPut:
        return Index<uint32_t>(4, &Machine::Memorise);
      case kMemoize:
        return Memorise(memoized_++);
      case kBinGet:
        return Index<uint8_t>(1, &Machine::Recall);
      case kLongBinGet:
        return Index<uint32_t>(4, &Machine::Recall);
      default:
        return Refuse(op);
    }
  }

  bool Refuse(uint8_t op) {
    for (const RefusedRow& row : kRefused) {
      if (row.op == op) return Fail("does more than hold data (" + std::string(row.name) + ")");
    }
    constexpr char kHex[] = "0123456789abcdef";
    return Fail(std::string("has an instruction that no data needs (0x") + kHex[op >> 4] +
                kHex[op & 15] + ")");
  }

  std::string_view bytes_;
  size_t at_ = 0;
  size_t op_at_ = 0;
  bool done_ = false;
  std::string reason_;
  std::vector<Id> stack_;
  std::vector<Id> memo_;
  size_t memoized_ = 0;
  Document document_;
};

}  // namespace

Result<Document> ReadPickle(std::string_view bytes) {
  return Machine(bytes).Run();
}

bool IsPickle(std::string_view bytes) {
  return bytes.size() >= 2 && static_cast<uint8_t>(bytes[0]) == kProto &&
         static_cast<uint8_t>(bytes[1]) >= 2 && static_cast<uint8_t>(bytes[1]) <= 5;
}

}  // namespace rankscope::reports
