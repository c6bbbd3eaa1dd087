// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/dcgm_page.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

namespace rankscope::collectors {
namespace {

constexpr size_t kMaxUuid = 64;

// A ratio of a mean over DCGM's period may be a little above 1 by rounding.
constexpr double kMostRatio = 1.01;
// Ten times what the widest NVLink of a GPU carries; blank values of DCGM (2^47, 2^63-16) are
// above.
constexpr double kMostRate = 1e13;

struct ValueRow {
  std::string_view name;  // behind DCGM_FI_PROF_
  GpuValue GpuProfile::*value;
  double most;
};

constexpr ValueRow kValueRows[] = {
    {"GR_ENGINE_ACTIVE", &GpuProfile::engine_active, kMostRatio},
    {"SM_ACTIVE", &GpuProfile::sm_active, kMostRatio},
    {"SM_OCCUPANCY", &GpuProfile::sm_occupancy, kMostRatio},
    {"DRAM_ACTIVE", &GpuProfile::dram_active, kMostRatio},
    {"PIPE_TENSOR_ACTIVE", &GpuProfile::tensor_active, kMostRatio},
    {"PIPE_FP64_ACTIVE", &GpuProfile::fp64_active, kMostRatio},
    {"PIPE_FP32_ACTIVE", &GpuProfile::fp32_active, kMostRatio},
    {"PIPE_FP16_ACTIVE", &GpuProfile::fp16_active, kMostRatio},
    {"PCIE_RX_BYTES", &GpuProfile::pcie_received_bytes, kMostRate},
    {"PCIE_TX_BYTES", &GpuProfile::pcie_sent_bytes, kMostRate},
    {"NVLINK_RX_BYTES", &GpuProfile::nvlink_received_bytes, kMostRate},
    {"NVLINK_TX_BYTES", &GpuProfile::nvlink_sent_bytes, kMostRate},
};

constexpr std::string_view kAny = "DCGM_FI_";
constexpr std::string_view kCounters = "DCGM_FI_PROF_";

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':';
}

void SkipBlanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

std::string_view TakeName(std::string_view& text) {
  size_t size = 0;
  while (size < text.size() && IsNameByte(text[size])) ++size;
  const std::string_view name = text.substr(0, size);
  text.remove_prefix(size);
  return name;
}

bool Take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// What stands between quotes, still escaped; text behind the closing one.
std::optional<std::string_view> TakeQuoted(std::string_view& text) {
  if (!Take(text, '"')) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      const std::string_view value = text.substr(0, i);
      text.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

struct Labels {
  std::string_view uuid;
  bool part = false;  // of a MIG instance, of a link, of a switch
};

// nullopt: they are none. No uuid has a sign that is escaped.
std::optional<Labels> TakeLabels(std::string_view& text) {
  Labels labels;
  if (!Take(text, '{')) return labels;
  for (;;) {
    SkipBlanks(text);
    if (Take(text, '}')) return labels;
    const std::string_view name = TakeName(text);
    SkipBlanks(text);
    if (name.empty() || !Take(text, '=')) return std::nullopt;
    SkipBlanks(text);
    const auto value = TakeQuoted(text);
    if (!value) return std::nullopt;
    if (name == "UUID" || name == "gpu_uuid" || name == "uuid") labels.uuid = *value;
    const bool of_part =
        name == "GPU_I_ID" || name == "nvlink" || name == "nvswitch" || name == "vgpu";
    if (of_part && !value->empty()) labels.part = true;
    SkipBlanks(text);
    if (!Take(text, ',') && (text.empty() || text.front() != '}')) return std::nullopt;
  }
}

// A number as Prometheus spells it; a time may stand behind it. from_chars knows nan and inf in any
// case, and no sign before a positive one.
std::optional<double> TakeValue(std::string_view text) {
  SkipBlanks(text);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty()) return value;
  if (text.front() != ' ' && text.front() != '\t') return std::nullopt;
  SkipBlanks(text);
  if (text.empty()) return value;
  int64_t time = 0;
  const auto [last, wrong] = std::from_chars(text.data(), text.data() + text.size(), time);
  text.remove_prefix(static_cast<size_t>(last - text.data()));
  SkipBlanks(text);
  if (wrong != std::errc() || !text.empty()) return std::nullopt;
  return value;
}

bool IsUuid(std::string_view text) {
  return !text.empty() && text.size() <= kMaxUuid &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsNameByte(c) || c == '-' || c == '.' || c == '/'; });
}

// FNV-1a.
uint64_t Mixed(uint64_t mark, std::string_view text) {
  for (const char c : text) mark = (mark ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return mark;
}

DcgmCard* FindOrAdd(std::vector<DcgmCard>& cards, std::string_view uuid) {
  const auto found = std::find_if(cards.begin(), cards.end(),
                                  [uuid](const DcgmCard& card) { return card.uuid == uuid; });
  if (found != cards.end()) return &*found;
  if (cards.size() >= kMaxDcgmCards) return nullptr;
  DcgmCard& card = cards.emplace_back();
  card.uuid = uuid;
  card.mark = 14695981039346656037ULL;
  return &card;
}

void Note(std::string_view name, double value, DcgmCard& card) {
  if (!name.starts_with(kCounters)) return;
  name.remove_prefix(kCounters.size());
  for (const ValueRow& row : kValueRows) {
    if (row.name != name) continue;
    GpuValue& known = card.values.*row.value;
    // Where pods share a GPU, it stands there once for each of them, with the same value.
    if (known || !std::isfinite(value) || value < 0 || value > row.most) return;
    known = row.most == kMostRatio ? std::min(value, 1.0) : value;
    card.any = true;
  }
}

void ReadLine(std::string_view line, DcgmPage& page) {
  const std::string_view whole = line;
  const std::string_view name = TakeName(line);
  const auto labels = name.empty() ? std::nullopt : TakeLabels(line);
  const auto value = labels ? TakeValue(line) : std::nullopt;
  if (!value) {
    ++page.malformed;
    return;
  }
  ++page.samples;
  if (!name.starts_with(kAny)) return;
  if (labels->part) {
    ++page.part_samples;
    return;
  }
  if (!IsUuid(labels->uuid)) return;
  DcgmCard* const card = FindOrAdd(page.cards, labels->uuid);
  if (card == nullptr) return;
  ++page.dcgm_samples;
  // Not with a time behind it, which may be that of the request.
  card->mark = Mixed(card->mark, whole.substr(0, whole.size() - line.size()));
  card->mark = Mixed(card->mark, std::to_string(*value));
  Note(name, *value, *card);
}

}  // namespace

DcgmPage ReadDcgmPage(std::string_view text) {
  DcgmPage page;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.ends_with('\r')) line.remove_suffix(1);
    SkipBlanks(line);
    if (!line.empty() && line.front() != '#') ReadLine(line, page);
  }
  return page;
}

}  // namespace rankscope::collectors
