// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/written_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <vector>

namespace rankscope::replay {
namespace {

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return text.starts_with(word); });
}

// Python's statements at a module's level that no program prints as a line.
bool IsStatement(std::string_view line) {
  if (StartsWithAny(line, {"import ", "def ", "class ", "async def ", "if __name__", "@", "\"\"\"",
                           "#!", "with ", "for ", "try:", "return ", "else:", "except"}))
    return true;
  return line.starts_with("from ") && line.find(" import ") != std::string_view::npos;
}

// Indented, a comment or a statement: what most lines of a program are.
bool IsCode(std::string_view line) {
  return line.front() == ' ' || line.front() == '\t' || line.front() == '#' || IsStatement(line);
}

bool IsHeading(std::string_view line) {
  const size_t marks = line.find_first_not_of('#');
  return marks != 0 && marks != std::string_view::npos && marks <= 6 && line[marks] == ' ';
}

bool IsFence(std::string_view line) {
  return line.starts_with("```");
}

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

// Takes the next line, without its end, from `text`.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// What a heading says, in lower case and without its marks, digits and emoji.
std::string Title(std::string_view heading) {
  std::string title;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte) != 0) title += static_cast<char>(std::tolower(byte));
    if (c == ' ' && !title.empty() && title.back() != ' ') title += c;
  }
  while (title.ends_with(' ')) title.pop_back();
  return title;
}

// The forms of issue trackers ask for these, and nobody else writes them.
bool AsksAboutBug(std::string_view title) {
  static constexpr std::array kWords = {
      "describe the bug",    "bug description",        "expected behavio",
      "current behavio",     "actual behavio",         "what happened",
      "system info",         "steps to reproduce",     "reproduce the bug",
      "to reproduce",        "standalone code to rep", "error message",
      "relevant log output", "who can help",           "issue type",
      "issue severity",      "your current environ"};
  if (title == "bug" || title == "the bug") return true;
  return std::any_of(kWords.begin(), kWords.end(), [title](std::string_view word) {
    return title.find(word) != std::string_view::npos;
  });
}

// Reports have these headings, and manuals may.
bool IsOfReport(std::string_view title) {
  static constexpr std::array kTitles = {"environment", "reproduction", "log",       "logs",
                                         "error",       "versions",     "traceback", "stack trace",
                                         "output",      "problem",      "issue",     "full log",
                                         "full logs",   "error log",    "version",   "error logs"};
  return std::find(kTitles.begin(), kTitles.end(), title) != kTitles.end();
}

// Instructions and presentations have these.
bool IsOfManual(std::string_view title) {
  static constexpr std::array kTitles = {"training", "results",  "evaluation", "examples",
                                         "example",  "features", "citation",   "running"};
  return StartsWithAny(title, {"install",
                               "usage",
                               "license",
                               "getting started",
                               "quick",
                               "how to",
                               "faq",
                               "frequently",
                               "troubleshoot",
                               "common ",
                               "known ",
                               "contribut",
                               "table of contents",
                               "requirements",
                               "acknowledg",
                               "prerequisite",
                               "tutorial",
                               "setup",
                               "model zoo",
                               "changelog"}) ||
         std::find(kTitles.begin(), kTitles.end(), title) != kTitles.end();
}

// The line with each number as one mark; empty where it holds fewer than two.
std::string Shape(std::string_view line) {
  std::string shape;
  int numbers = 0;
  for (size_t i = 0; i < line.size();) {
    const bool word = i > 0 && std::isalpha(static_cast<unsigned char>(line[i - 1])) != 0;
    const std::string_view rest = line.substr(i);
    if (!word && (rest.starts_with("nan") || rest.starts_with("inf"))) {
      shape += '#';
      ++numbers;
      i += 3;
    } else if (std::isdigit(static_cast<unsigned char>(line[i])) != 0) {
      i = std::min(line.find_first_not_of("0123456789.:eE+-", i), line.size());
      shape += '#';
      ++numbers;
    } else {
      shape += line[i++];
    }
  }
  return numbers >= 2 ? shape : std::string();
}

constexpr int kRecords = 5;  // people write no five lines that differ by their numbers alone

// Whether a program printed some of these lines: a traceback, a launcher's words, records.
struct Printed {
  bool failure = false;
  bool records = false;
};

Printed WhatIsPrinted(const std::vector<std::string_view>& lines) {
  Printed printed;
  std::map<std::string, int> shapes;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    // Lists, tables, links, quotes and indented text are laid out by hand.
    if (line.empty() || StartsWithAny(line, {"- ", "* ", "+ ", "|", ">", "![", "[![", " ", "\t"}))
      continue;
    // A whole traceback has a frame below its head.
    if (line.ends_with("Traceback (most recent call last):"))
      printed.failure |=
          i + 1 < lines.size() && lines[i + 1].find("  File \"") != std::string_view::npos;
    printed.failure |= StartsWithAny(
        line, {"srun: error: ", "slurmstepd: error: ", "Root Cause (first observed failure)",
               "torch.distributed.elastic.multiprocessing.errors.ChildFailedError"});
    const std::string shape = Shape(line);
    if (!shape.empty()) printed.records |= ++shapes[shape] >= kRecords;
  }
  return printed;
}

struct Counts {
  std::string_view first, last;
  int64_t lines = 0;
  int64_t code = 0;
  int64_t statements = 0;
  int64_t fences = 0;
  int64_t headings = 0;
};

Counts Count(std::string_view text) {
  Counts counts;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (IsBlank(line)) continue;
    if (counts.first.empty()) counts.first = line;
    counts.last = line;
    ++counts.lines;
    counts.code += IsCode(line) ? 1 : 0;
    counts.statements += IsStatement(line) ? 1 : 0;
    counts.fences += IsFence(line) ? 1 : 0;
    counts.headings += counts.fences % 2 == 0 && IsHeading(line) ? 1 : 0;
  }
  return counts;
}

bool IsProgram(const Counts& counts) {
  // Output that follows a program's text ends with what was printed.
  return !counts.first.empty() && counts.statements >= 2 && IsCode(counts.first) &&
         IsCode(counts.last) && 2 * counts.code > counts.lines;
}

// "This page lists common errors.": words alone, and a full stop.
bool IsSentence(std::string_view line) {
  const auto of_words = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == ' ' || c == ',' || c == '\'' ||
           c == '.' || c == ':' || c == '!';
  };
  return !line.empty() && std::isupper(static_cast<unsigned char>(line.front())) != 0 &&
         (line.back() == '.' || line.back() == ':' || line.back() == '!') &&
         std::count(line.begin(), line.end(), ' ') >= 2 &&
         std::all_of(line.begin(), line.end(), of_words);
}

// Fences stand in pairs. Where a sentence comes first, the page has sections below it.
bool HasMarkdown(const Counts& counts) {
  if (counts.first.empty() || counts.fences < 2 || counts.fences % 2 != 0) return false;
  return IsHeading(counts.first) ||
         (IsSentence(counts.first) && counts.headings >= 2 && counts.fences >= 4);
}

enum class Kind : uint8_t { kOutput, kReport, kManual };

// Of a text with a heading first and pairs of fences.
Kind KindOf(std::string_view text, int64_t lines) {
  std::vector<std::string_view> outside, inside;
  int64_t forms = 0, reports = 0, manuals = 0;
  bool open = false, quoted = false;  // quoted: a fence holds most lines, and a failure
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (IsFence(line)) {
      if (open && 2 * static_cast<int64_t>(inside.size()) > lines)
        quoted |= WhatIsPrinted(inside).failure;
      inside.clear();
      open = !open;
    } else if (open) {
      if (!IsBlank(line)) inside.push_back(line);
    } else if (IsHeading(line)) {
      const std::string title = Title(line);
      if (AsksAboutBug(title))
        ++forms;
      else if (IsOfReport(title))
        ++reports;
      else if (IsOfManual(title))
        ++manuals;
    } else {
      outside.push_back(line);
    }
  }
  // A job may print a generated text with fences, and its own lines stand around it.
  const Printed printed = WhatIsPrinted(outside);
  if (printed.failure || printed.records) return Kind::kOutput;
  if (forms > manuals) return Kind::kReport;
  return manuals == 0 && (reports >= 2 || quoted) ? Kind::kReport : Kind::kManual;
}

}  // namespace

std::string_view WrittenByHand(std::string_view text) {
  const Counts counts = Count(text);
  if (IsProgram(counts)) return "a program's source";
  if (HasMarkdown(counts) && KindOf(text, counts.lines) == Kind::kManual) return "a document";
  return {};
}

std::string QuotedOutput(std::string_view text) {
  const Counts counts = Count(text);
  if (!HasMarkdown(counts) || KindOf(text, counts.lines) != Kind::kReport) return {};
  std::string quoted(text);
  const auto blank = [&quoted](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i)
      if (quoted[i] != '\n') quoted[i] = ' ';
  };
  std::string_view rest = text;
  bool open = false;
  size_t begin = 0;  // of what the open fence holds
  while (!rest.empty()) {
    const size_t at = text.size() - rest.size();
    const std::string_view line = TakeLine(rest);
    const size_t next = text.size() - rest.size();
    if (!IsFence(line)) {
      if (!open) blank(at, next);
      continue;
    }
    blank(at, next);
    // The script that shows the bug is no output.
    if (open && IsProgram(Count(text.substr(begin, at - begin)))) blank(begin, at);
    begin = next;
    open = !open;
  }
  return quoted;
}

}  // namespace rankscope::replay
