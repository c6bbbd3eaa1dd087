// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A stretch of an answer's body that many answers share: never copied, its hash and its compressed
// form made once. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "exporter/http/compression.h"
#include "exporter/http/exposition.h"

namespace rankscope::http {

class Part {
 public:
  explicit Part(std::string plain);

  const std::string& plain() const { return plain_; }
  uint64_t hash() const { return hash_; }
  const GzipPart& Compressed() const;

 private:
  const std::string plain_;
  const uint64_t hash_;
  mutable std::once_flag once_;
  mutable GzipPart compressed_;
};

using SharedPart = std::shared_ptr<const Part>;
using Parts = std::vector<SharedPart>;

// The strong entity tag of the content that the parts are, with its quotes.
std::string EntityTagOf(std::string_view content_type, const Parts& parts);

// The body as what is written one behind the other. Compressed: empty when that failed.
std::vector<Page> PlainPages(const Parts& parts);
std::vector<Page> CompressedPages(const Parts& parts);

// Made when it is first asked for, and then shared.
class LazyPart {
 public:
  template <typename Make>
  SharedPart Get(Make make) const {
    std::call_once(once_, [&] { part_ = std::make_shared<const Part>(make()); });
    return part_;
  }

 private:
  mutable std::once_flag once_;
  mutable SharedPart part_;
};

}  // namespace rankscope::http
