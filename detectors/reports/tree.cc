// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/reports/tree.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace rankscope::reports {
namespace {

constexpr uint32_t kNoLink = 0xffffffff;
// Small texts share blocks; a long one has its own.
constexpr size_t kBlock = 4096;

}  // namespace

Tree::Id Tree::Add(Kind kind, int64_t integer, std::string_view text) {
  if (values_.size() >= kMaxValues || text.size() >= kNoLink) return kNone;
  Value value;
  value.kind = kind;
  value.integer = integer;
  if (kind == Kind::kString) {
    value.text = text.data();
    value.size = static_cast<uint32_t>(text.size());
  } else if (kind == Kind::kList || kind == Kind::kDict) {
    value.links = {kNoLink, kNoLink};
  }
  values_.push_back(value);
  return static_cast<Id>(values_.size() - 1);
}

Tree::Id Tree::AddFloat(double number) {
  const Id id = Add(Kind::kFloat, 0, {});
  if (id != kNone) values_[id].real = number;
  return id;
}

Tree::Id Tree::AddOwnedString(std::string_view text) {
  if (values_.size() >= kMaxValues) return kNone;
  if (owned_.empty() || owned_.back().capacity() - owned_.back().size() < text.size()) {
    owned_.emplace_back();
    owned_.back().reserve(std::max(kBlock, text.size()));
  }
  std::vector<char>& block = owned_.back();
  const size_t begin = block.size();
  block.insert(block.end(), text.begin(), text.end());
  return AddString({block.data() + begin, text.size()});
}

bool Tree::AddLink(Id container, Id key, Id value) {
  if (!valid(container) || !valid(value) || links_.size() >= kMaxValues) return false;
  links_.push_back({key, value, kNoLink});
  const auto link = static_cast<uint32_t>(links_.size() - 1);
  Value& owner = values_[container];
  if (owner.links.last == kNoLink) {
    owner.links.first = link;
  } else {
    links_[owner.links.last].next = link;
  }
  owner.links.last = link;
  ++owner.size;
  return true;
}

bool Tree::Append(Id list, Id value) {
  return is_list(list) && AddLink(list, kNone, value);
}

bool Tree::Insert(Id dict, Id key, Id value) {
  return is_dict(dict) && valid(key) && AddLink(dict, key, value);
}

std::optional<int64_t> Tree::Int(Id id) const {
  if (!valid(id)) return std::nullopt;
  const Value& value = values_[id];
  switch (value.kind) {
    case Kind::kInt:
    case Kind::kBool:
      return value.integer;
    case Kind::kFloat:
      // Beyond 2^53 a double names no integer.
      if (!(std::fabs(value.real) <= 9007199254740992.0)) return std::nullopt;
      return static_cast<int64_t>(value.real);
    case Kind::kString: {
      const std::string_view text = String(id);
      int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
      return number;
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> Tree::Number(Id id) const {
  if (valid(id) && values_[id].kind == Kind::kFloat) return values_[id].real;
  if (const auto number = Int(id)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<bool> Tree::Bool(Id id) const {
  if (const auto number = Int(id)) return *number != 0;
  return std::nullopt;
}

std::string_view Tree::String(Id id) const {
  if (!valid(id) || values_[id].kind != Kind::kString) return {};
  return {values_[id].text, values_[id].size};
}

Tree::Id Tree::Get(Id dict, std::string_view key) const {
  Id found = kNone;
  if (!is_dict(dict)) return found;
  Walk walk(*this, dict);
  size_t looked_at = 0;
  for (Element element; looked_at < kMaxMembers && walk.Next(element); ++looked_at) {
    if (String(element.key) == key) found = element.value;
  }
  return found;
}

Tree::Id Tree::At(Id list, size_t index) const {
  if (!is_list(list)) return kNone;
  Walk walk(*this, list);
  for (Element element; walk.Next(element);) {
    if (index-- == 0) return element.value;
  }
  return kNone;
}

Tree::Walk::Walk(const Tree& tree, Id container) : tree_(tree), link_(kNoLink) {
  if (tree.is_list(container) || tree.is_dict(container)) {
    link_ = tree.values_[container].links.first;
  }
}

bool Tree::Walk::Next(Element& element) {
  if (link_ == kNoLink) return false;
  const Link& link = tree_.links_[link_];
  element = {link.key, link.value};
  link_ = link.next;
  return true;
}

}  // namespace rankscope::reports
