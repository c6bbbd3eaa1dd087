// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A loss or a reward that a program prints in words of its own: without a step beside it, over
// several lines, as a tensor, in a table. No record, but a sign that something is being trained.
#include <algorithm>
#include <iterator>
#include <string>

#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/model/ascii.h"

namespace rankscope::logs {
namespace {

constexpr size_t kMaxLine = 2048;  // a dump of a configuration is longer
constexpr size_t kMaxName = 32;
constexpr size_t kMaxBetween = 40;  // a table's columns

// Names end in one of these. The first letter is left out, for its case.
struct Word {
  std::string_view tail;
  char first;        // in lower case
  bool inside;       // may follow a letter: "PiLoss"
  bool needs_other;  // says nothing alone: "return 0"
};
constexpr Word kWords[] = {
    {"oss", 'l', true, false},   {"osses", 'l', true, false},  {"OSS", 'l', true, false},
    {"eward", 'r', true, false}, {"ewards", 'r', true, false}, {"ew", 'r', false, false},
    {"eturn", 'r', false, true}, {"eturns", 'r', false, true}, {"erplexity", 'p', false, false},
    {"pl", 'p', false, false},   {"PL", 'p', false, false},
};
constexpr std::string_view kQualifiers[] = {"episodic", "episode", "ep",         "mean",
                                            "avg",      "average", "discounted", "undiscounted"};

// Behind the letter of a network, if one ends the name: "Loss_D", "loss_G".
size_t NameEnd(std::string_view text, size_t end) {
  const bool letter = end + 1 < text.size() && text[end] == '_' && IsLetter(text[end + 1]);
  return letter && (end + 2 == text.size() || !IsWordByte(text[end + 2])) ? end + 2 : end;
}

// Whether `word` stands at `at` (its tail; the first letter before it) as the end of a name.
bool EndsName(std::string_view text, size_t at, const Word& word) {
  if (at == 0 || (text[at - 1] | 0x20) != word.first) return false;
  const size_t end = NameEnd(text, at + word.tail.size());
  if (end < text.size() && IsWordByte(text[end])) return false;
  if (word.inside || at == 1) return true;
  // "EpRew" and "ep_rew", not "brew".
  const char before = text[at - 2];
  const bool capital = text[at - 1] < 'a';
  return !IsLetter(before) || (capital && before >= 'a');
}

// The name that ends at `end`: words with single blanks or joints between them.
std::string_view NameBefore(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && end - begin < kMaxName) {
    const char c = text[begin - 1];
    const bool joint =
        (c == ' ' || c == '-' || c == '/' || c == '.') && begin >= 2 && IsWordByte(text[begin - 2]);
    if (!IsWordByte(c) && !joint) break;
    --begin;
  }
  return text.substr(begin, end - begin);
}

bool IsQualified(std::string_view name, size_t word_size) {
  std::string_view rest = name.substr(0, name.size() - word_size);
  while (!rest.empty() && !IsLetter(rest.back())) rest.remove_suffix(1);
  size_t begin = rest.size();
  while (begin > 0 && IsLetter(rest[begin - 1])) --begin;
  const std::string last = LowerAscii(rest.substr(begin));
  return std::find(std::begin(kQualifiers), std::end(kQualifiers), last) != std::end(kQualifiers);
}

// The number that belongs to a name which ends at `end`, if one does.
Number ValueBehind(std::string_view text, size_t end) {
  size_t at = end;
  while (at < text.size() && at - end < kMaxBetween) {
    const char c = text[at];
    if (std::string_view(" \t:=[](|'\"").find(c) != std::string_view::npos) {
      ++at;
      continue;
    }
    static constexpr std::string_view kWrappers[] = {"tensor(", "array(", "np.float64(",
                                                     "np.float32("};
    bool wrapped = false;
    for (const std::string_view wrapper : kWrappers) {
      if (!text.substr(at).starts_with(wrapper)) continue;
      at += wrapper.size();
      wrapped = true;
      break;
    }
    if (wrapped) continue;
    break;
  }
  if (at == end || at >= text.size()) return {};
  const Number number = ReadNumber(text.substr(at), Ending::kUnit, Thousands::kYes);
  if (!number) return {};
  const size_t behind = at + number.text.size();
  return behind < text.size() && text[behind] == '%' ? Number{} : number;
}

// The name of a value that begins at `begin`: "'total': tensor(", "total = tensor(", "total
// tensor(".
std::string_view NameOfValueAt(std::string_view text, size_t begin) {
  while (begin > 0 &&
         std::string_view(" \t:=[(|'\"").find(text[begin - 1]) != std::string_view::npos)
    --begin;
  return NameBefore(text, begin);
}

// PyTorch prints a scalar with its graph as "tensor(0.5, device='cuda:0', grad_fn=<AddBackward0>)".
// The items of a dict of losses are such; each has a name of its own.
bool ParseGraphTensors(const CleanLine& line, RecordList& out) {
  constexpr std::string_view kTensor = "tensor(", kGraph = "grad_fn=<";
  constexpr size_t kMost = 8;  // of a line
  const std::string_view text = line.text.substr(0, kMaxLine);
  size_t found = 0;
  for (size_t at = text.find(kTensor); at != std::string_view::npos && found < kMost;
       at = text.find(kTensor, at + 1)) {
    const std::string_view inside = text.substr(at + kTensor.size());
    const Number value = ReadNumber(inside);
    const std::string_view rest = inside.substr(0, inside.find(')'));
    if (!value || rest.find(kGraph) == std::string_view::npos) continue;
    out.push_back(
        MakeMarker(MarkerKind::kMetric, kGraphMetric, line, NameOfValueAt(text, at), value.value));
    ++found;
  }
  return found > 0;
}

}  // namespace

bool ParseMetric(const CleanLine& line, RecordList& out) {
  if (ParseGraphTensors(line, out)) return true;
  const std::string_view text = line.text.substr(0, kMaxLine);
  for (const Word& word : kWords) {
    for (size_t at = text.find(word.tail); at != std::string_view::npos;
         at = text.find(word.tail, at + 1)) {
      if (!EndsName(text, at, word)) continue;
      const size_t end = NameEnd(text, at + word.tail.size());
      const std::string_view name = NameBefore(text, end);
      if (word.needs_other && !IsQualified(name, word.tail.size() + 1)) continue;
      const Number value = ValueBehind(text, end);
      if (!value) continue;
      out.push_back(MakeMarker(MarkerKind::kMetric, "metric", line, name, value.value));
      return true;
    }
  }
  return false;
}

}  // namespace rankscope::logs
