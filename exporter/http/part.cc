// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/part.h"

#include <utility>

#include "exporter/http/negotiation.h"

namespace rankscope::http {

Part::Part(std::string plain) : plain_(std::move(plain)), hash_(HashOf(plain_)) {}

const GzipPart& Part::Compressed() const {
  constexpr size_t kWorthIt = 256;  // zlib's state costs more than a few bytes can save
  std::call_once(once_, [this] {
    compressed_ = plain_.size() < kWorthIt ? StorePart(plain_) : CompressPart(plain_);
  });
  return compressed_;
}

std::string EntityTagOf(std::string_view content_type, const Parts& parts) {
  std::string hashes;
  for (const SharedPart& part : parts) hashes.append(std::to_string(part->hash())).push_back(' ');
  return EntityTag(content_type, hashes);
}

std::vector<Page> PlainPages(const Parts& parts) {
  std::vector<Page> pages;
  pages.reserve(parts.size());
  for (const SharedPart& part : parts) pages.emplace_back(part, &part->plain());
  return pages;
}

std::vector<Page> CompressedPages(const Parts& parts) {
  static const Page head = std::make_shared<const std::string>(GzipHead());
  std::vector<Page> pages = {head};
  pages.reserve(parts.size() + 2);
  GzipTail tail;
  for (const SharedPart& part : parts) {
    const GzipPart& compressed = part->Compressed();
    if (!compressed.whole) return {};
    tail.Add(compressed);
    pages.emplace_back(part, &compressed.bytes);
  }
  pages.push_back(std::make_shared<const std::string>(tail.Bytes()));
  return pages;
}

}  // namespace rankscope::http
