// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/progress/headed_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "detectors/logs/progress/keys.h"
#include "detectors/logs/progress/progress_fields.h"

namespace rankscope::logs {
namespace {

constexpr size_t kMaxColumns = 32;
constexpr size_t kMaxHeader = 600;  // kMaxColumns names
constexpr size_t kMaxText = 40;     // of a cell that holds a word or a time
constexpr int32_t kMaxStrays = 20;  // bars and warnings between two rows; more, and it is over

// Rows that have no loss which can be judged are records all the same.
constexpr Key kWatched = Key::kForeignLoss;

struct Cells {
  std::array<std::string_view, kMaxColumns> cell;
  size_t size = 0;
};

// The bars that tables are drawn with: tabulate, PrettyTable, Markdown, rich.
constexpr std::string_view kBars[] = {"|", "\xe2\x94\x82", "\xe2\x94\x83"};

size_t BarAt(std::string_view text) {
  for (const std::string_view bar : kBars) {
    if (text.starts_with(bar)) return bar.size();
  }
  return 0;
}

// "| step | loss |", "step | loss": bars between the cells and perhaps around them.
bool SplitBars(std::string_view text, Cells& cells) {
  cells.size = 0;
  text = Trimmed(text);
  text.remove_prefix(BarAt(text));
  while (!text.empty()) {
    if (cells.size == kMaxColumns) return false;
    size_t end = 0;
    while (end < text.size() && BarAt(text.substr(end)) == 0) ++end;
    cells.cell[cells.size++] = Trimmed(text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(BarAt(text));
  }
  return cells.size >= 2;
}

// False where there are too many or, with blanks between, one only.
bool Split(std::string_view text, char separator, Cells& cells) {
  if (separator == '|') return SplitBars(text, cells);
  cells.size = 0;
  if (separator == ' ' || separator == '#') text = Trimmed(text);
  const std::string_view between = separator == ' '   ? "  "
                                   : separator == '#' ? " "
                                                      : std::string_view(&separator, 1);
  while (true) {
    if (cells.size == kMaxColumns) return false;
    const size_t end = text.find(between);
    std::string_view cell = Trimmed(text.substr(0, end));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
      cell = cell.substr(1, cell.size() - 2);
    cells.cell[cells.size++] = cell;
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
    if (separator == ' ' || separator == '#') text = LeftTrimmed(text);
  }
  return cells.size >= 2;
}

bool IsName(std::string_view cell) {
  if (cell.empty() || !IsLetter(cell[0])) return false;
  for (const char c : cell) {
    if (!IsWordByte(c) && std::string_view(" /.-()%").find(c) == std::string_view::npos)
      return false;
  }
  return true;
}

// "0:01:23", in a column of times.
bool IsClock(std::string_view cell) {
  if (cell.size() > 12 || cell.find(':') == std::string_view::npos) return false;
  for (const char c : cell) {
    if (!IsDigit(c) && c != ':' && c != '.') return false;
  }
  return true;
}

// "[1.0e-02, 1.4e-01]": the parts of a loss, of which the sum is minimised (DeepXDE,
// utils/display.py). "[]" is a cell without a value.
bool IsList(std::string_view cell) {
  return cell.size() >= 2 && cell.front() == '[' && cell.back() == ']';
}

Number SumOfList(std::string_view cell) {
  Number sum = {cell, 0};
  std::string_view rest = Trimmed(cell.substr(1, cell.size() - 2));
  if (rest.empty()) return {};
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const Number part = WholeNumber(Trimmed(rest.substr(0, comma)));
    if (!part) return {};
    sum.value += part.value;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return sum;
}

// "41,234" too, where commas are no separators.
Number CellNumber(std::string_view cell) {
  const Number number = ReadNumber(cell, Ending::kDelimiter, Thousands::kYes);
  return number.text.size() == cell.size() ? number : Number{};
}

// A column of times, of which nothing is kept.
bool IsTimeColumn(std::string_view name) {
  for (const std::string_view known : {"time", "timestamp", "date", "datetime", "wall_time"}) {
    if (KeyIs(name, known)) return true;
  }
  return false;
}

Meaning MeaningOfColumn(std::string_view name) {
  // "lr-AdamW", "lr-SGD/pg1" (Lightning's LearningRateMonitor)
  if (name.starts_with("lr-")) return {Key::kLearningRate, 9};
  return MeaningOf(name);
}

// The keys of a header's columns, a byte each; empty where it is no header.
std::string KeysOf(const Cells& cells) {
  std::array<Meaning, kMaxColumns> meanings;
  std::array<size_t, kKeys> best;
  best.fill(kMaxColumns);
  for (size_t i = 0; i < cells.size; ++i) {
    if (!IsName(cells.cell[i])) return {};
    meanings[i] = MeaningOfColumn(cells.cell[i]);
    size_t& known = best[static_cast<size_t>(meanings[i].key)];
    if (known == kMaxColumns || meanings[i].rank < meanings[known].rank) known = i;
  }
  const auto has = [&best](Key key) { return best[static_cast<size_t>(key)] != kMaxColumns; };
  const size_t first = cells.size > 1 && IsTimeColumn(cells.cell[0]) ? 1 : 0;
  const bool indexed = meanings[first].key == Key::kStep || meanings[first].key == Key::kEpoch;
  const Key loss = has(Key::kLoss) ? Key::kLoss : Key::kObjective;
  if (!indexed || !has(loss) || has(Key::kForeignLoss)) return {};
  std::string keys;
  for (size_t i = 0; i < cells.size; ++i) {
    const Key key = i < first ? Key::kOther : meanings[i].key;
    const Key known = best[static_cast<size_t>(key)] == i ? key : Key::kOther;
    keys.push_back(static_cast<char>(known == loss ? Key::kLoss : known));
  }
  return keys;
}

// "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F ... SCORE": spaCy's table (training/loggers.py). Its
// losses are sums over the steps since the last row, of batches that grow.
std::string KeysOfSpacy(const Cells& cells) {
  if (cells.size < 4 || cells.cell[0] != "E" || cells.cell[1] != "#") return {};
  std::string keys = {static_cast<char>(Key::kEpoch), static_cast<char>(Key::kStep)};
  for (size_t i = 2; i < cells.size; ++i) {
    const bool loss = cells.cell[i].starts_with("LOSS ");
    keys.push_back(static_cast<char>(loss ? kWatched : Key::kOther));
  }
  return keys[2] == static_cast<char>(kWatched) ? keys : std::string();
}

// What stands behind the '#' of a header, as DeePMD-kit ("#  step      rmse_trn    lr") and NequIP
// ("  Train      #    Epoch      wal       LR       loss") write it; empty where there is none.
// NequIP's tables of batches and of an epoch look alike: of epochs alone there is one number.
std::string_view BehindHash(std::string_view text) {
  constexpr size_t kMaxWord = 24;
  const size_t hash = text.substr(0, kMaxWord).find("# ");
  if (hash == std::string_view::npos) return {};
  const std::string_view before = Trimmed(text.substr(0, hash));
  for (const char c : before) {
    if (!IsLetter(c) && c != ' ') return {};
  }
  return text.substr(hash + 2);
}

std::string KeysOfHashed(const Cells& cells) {
  const std::string keys = KeysOf(cells);
  const auto has = [&keys](Key key) {
    return keys.find(static_cast<char>(key)) != std::string::npos;
  };
  return has(Key::kStep) && has(Key::kEpoch) ? std::string() : keys;
}

void TakeCell(Key key, const Number& value, Progress& progress) {
  switch (key) {
    case Key::kStep:
      SetStep(progress, value);
      break;
    case Key::kLoss:
      SetLoss(progress, value);
      break;
    case kWatched:
      if (!std::isfinite(value.value)) SetLoss(progress, value);
      break;
    case Key::kGradNorm:
      SetGradNorm(progress, value);
      break;
    case Key::kLearningRate:
      SetLearningRate(progress, value);
      break;
    default:
      SetFact(progress, key, value.value);
  }
}

}  // namespace

void HeadedTable::Observe(std::string_view text) {
  const std::string_view trimmed = Trimmed(text);
  if (trimmed.empty() || trimmed.size() > kMaxHeader) return;
  if (const std::string_view hashed = BehindHash(trimmed); !hashed.empty()) {
    Cells cells;
    std::string keys = Split(hashed, '#', cells) ? KeysOfHashed(cells) : std::string();
    if (!keys.empty()) return Open(std::move(keys), '#');
  }
  if (!IsLetter(trimmed[0]) && trimmed[0] != '"' && BarAt(trimmed) == 0) return;
  const auto holds = [trimmed](char c) {
    return std::memchr(trimmed.data(), c, trimmed.size()) != nullptr;
  };
  const bool bars = holds('|') || trimmed.find(kBars[1]) != std::string_view::npos ||
                    trimmed.find(kBars[2]) != std::string_view::npos;
  const char separator = holds('\t')  ? '\t'
                         : bars       ? '|'
                         : holds(',') ? ','
                         : holds(';') ? ';'
                                      : ' ';
  Cells cells;
  if (!Split(trimmed, separator, cells)) return;
  std::string keys = KeysOf(cells);
  if (keys.empty()) keys = KeysOfSpacy(cells);
  if (!keys.empty()) Open(std::move(keys), separator);
}

void HeadedTable::Open(std::string keys, char separator) {
  keys_ = std::move(keys);
  separator_ = static_cast<unsigned char>(separator);
  strays_ = 0;
}

bool HeadedTable::Feed(const CleanLine& line, RecordList& out) {
  Cells cells;
  std::string_view text = line.text;
  if (separator_ == '#' && text.starts_with("! ")) {  // NequIP's; it validates in others
    constexpr std::string_view kTrain = "! Train ";
    if (!text.starts_with(kTrain)) return true;
    text.remove_prefix(kTrain.size());
  }
  bool row = !text.empty() && Split(text, static_cast<char>(separator_), cells) &&
             cells.size == keys_.size();
  Progress progress;
  progress.format = "headed_table";
  Number epoch;
  bool evaluation = false;  // a row of another split
  bool numbers = false;
  const Key first = row ? MeaningOf(cells.cell[0]).key : Key::kOther;
  for (size_t i = 0; row && i < cells.size; ++i) {
    const std::string_view cell = cells.cell[i];
    const Number value = i != 0 && IsList(cell) ? SumOfList(cell) : CellNumber(cell);
    const auto byte = static_cast<uint8_t>(keys_[i]);
    const Key key = byte < kKeys ? static_cast<Key>(byte) : Key::kOther;
    if (!value) {
      // A time or a word, where no number is kept: "train", "2026-02-03 04:05:06".
      const bool worded = key == Key::kOther && !cell.empty() && cell.size() <= kMaxText &&
                          separator_ != ' ' && separator_ != '#';
      evaluation = evaluation || (worded && MeaningOf(cell).key == Key::kEvaluation);
      row = cell.empty() || worded || (i != 0 && (IsClock(cell) || cell == "[]"));
      continue;
    }
    numbers = numbers || key != Key::kOther;
    if (key == Key::kEpoch) epoch = value;
    TakeCell(key, value, progress);
  }
  if (!row || !numbers) {
    // Another header ends the table.
    if (first == Key::kStep || first == Key::kEpoch || ++strays_ > kMaxStrays) keys_.clear();
    return false;
  }
  strays_ = 0;
  if (evaluation) return true;
  if (progress.step_text.empty() && IsIndex(epoch)) {
    SetStep(progress, epoch);
    progress.step_unit = StepUnit::kEpochs;
  }
  const bool watched = keys_.find(static_cast<char>(kWatched)) != std::string::npos;
  if ((watched || !progress.loss_text.empty()) && IsIndex({progress.step_text, progress.step}))
    out.emplace_back(progress);
  return true;
}

}  // namespace rankscope::logs
