// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// State <-> bytes, for EngineState. A type takes part by listing its members once:
//
//     template <class A> void Fields(A& a) { a(step_, loss_, ring_); }
//
// The bytes are exact only for the same build (no tags, native endianness); a length prefix and
// bounds checks keep a damaged blob from doing more than failing. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rankscope {

template <typename T>
concept PlainBytes = std::is_arithmetic_v<T> || std::is_enum_v<T>;

// Sealed bytes end with a check of all before: damage is found before anything is believed. FNV-1a
// over 64 bits; against accidents, not against an author.
inline uint64_t ArchiveCheck(std::string_view bytes) {
  uint64_t hash = 14695981039346656037ull;
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 1099511628211ull;
  return hash;
}

class ArchiveWriter {
 public:
  template <typename... T>
  void operator()(const T&... values) {
    (Put(values), ...);
  }
  std::string Take() { return std::move(bytes_); }
  std::string TakeSealed() {
    Put(ArchiveCheck(bytes_));
    return Take();
  }

 private:
  template <PlainBytes T>
  void Put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void Put(const std::string& value) {
    Put(static_cast<uint64_t>(value.size()));
    bytes_.append(value);
  }
  template <typename T>
  void Put(const std::optional<T>& value) {
    Put(value.has_value());
    if (value) Put(*value);
  }
  template <typename A, typename B>
  void Put(const std::pair<A, B>& value) {
    Put(value.first);
    Put(value.second);
  }
  template <typename T, size_t n>
  void Put(const std::array<T, n>& values) {
    for (const T& value : values) Put(value);
  }
  template <typename T>
  void Put(const std::vector<T>& values) {
    PutRange(values);
  }
  template <typename T>
  void Put(const std::deque<T>& values) {
    PutRange(values);
  }
  template <typename K, typename V>
  void Put(const std::map<K, V>& values) {
    PutRange(values);
  }
  template <typename T>
  requires requires(T& t, ArchiveWriter& a) { t.Fields(a); }
  void Put(const T& value) {
    const_cast<T&>(value).Fields(*this);  // Fields only reads here
  }
  template <typename R>
  void PutRange(const R& values) {
    Put(static_cast<uint64_t>(values.size()));
    for (const auto& value : values) Put(value);
  }

  std::string bytes_;
};

class ArchiveReader {
 public:
  explicit ArchiveReader(std::string_view bytes) : rest_(bytes) {}

  // The content of sealed bytes; nullopt when they are damaged.
  static std::optional<std::string_view> Unseal(std::string_view bytes) {
    uint64_t check = 0;
    if (bytes.size() < sizeof check) return std::nullopt;
    const std::string_view content = bytes.substr(0, bytes.size() - sizeof check);
    std::memcpy(&check, bytes.data() + content.size(), sizeof check);
    if (check != ArchiveCheck(content)) return std::nullopt;
    return content;
  }

  template <typename... T>
  void operator()(T&... values) {
    (Get(values), ...);
  }
  // Whether everything so far was there and nothing is left over.
  bool Complete() const { return ok_ && rest_.empty(); }
  bool ok() const { return ok_; }

 private:
  template <PlainBytes T>
  void Get(T& value) {
    if (rest_.size() < sizeof(T)) {
      ok_ = false;
      rest_ = {};
      return;
    }
    if constexpr (std::is_same_v<T, bool>) {
      value = rest_[0] != 0;  // a damaged byte is no bool
    } else {
      std::memcpy(&value, rest_.data(), sizeof(T));
    }
    rest_.remove_prefix(sizeof(T));
  }
  uint64_t GetSize() {
    uint64_t size = 0;
    Get(size);
    if (size > rest_.size()) {  // every element takes at least a byte
      ok_ = false;
      rest_ = {};
      return 0;
    }
    return size;
  }
  void Get(std::string& value) {
    const uint64_t size = GetSize();
    value.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  template <typename T>
  void Get(std::optional<T>& value) {
    bool present = false;
    Get(present);
    value.reset();
    if (present) Get(value.emplace());
  }
  template <typename A, typename B>
  void Get(std::pair<A, B>& value) {
    Get(value.first);
    Get(value.second);
  }
  template <typename T, size_t n>
  void Get(std::array<T, n>& values) {
    for (T& value : values) Get(value);
  }
  template <typename T>
  void Get(std::vector<T>& values) {
    GetSequence(values);
  }
  template <typename T>
  void Get(std::deque<T>& values) {
    GetSequence(values);
  }
  template <typename T>
  void GetSequence(T& values) {
    const uint64_t size = GetSize();
    values.clear();
    for (uint64_t i = 0; i < size && ok_; ++i) Get(values.emplace_back());
  }
  template <typename K, typename V>
  void Get(std::map<K, V>& values) {
    const uint64_t size = GetSize();
    values.clear();
    for (uint64_t i = 0; i < size && ok_; ++i) {
      K key{};
      Get(key);
      Get(values[std::move(key)]);
    }
  }
  template <typename T>
  requires requires(T& t, ArchiveReader& a) { t.Fields(a); }
  void Get(T& value) { value.Fields(*this); }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace rankscope
