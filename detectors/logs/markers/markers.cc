// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Sentences that say where in its life a run is. Each rule is a phrase; a sentence inside quotes is
// a program's source or configuration being printed, not the program speaking.
#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "detectors/logs/markers/marker_rules.h"
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/text/prefix.h"

namespace rankscope::logs {
namespace {

using marker_rules::Guard;
using marker_rules::kRules;
using marker_rules::Rule;
using marker_rules::Text;

constexpr size_t kRuleCount = std::size(kRules);

bool StartsWithAny(std::string_view text, std::span<const std::string_view> words) {
  for (const std::string_view word : words) {
    if (text.starts_with(word)) return true;
  }
  return false;
}

bool HoldsAny(std::string_view text, std::span<const std::string_view> words) {
  for (const std::string_view word : words) {
    if (text.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// The next word, without the quotes or punctuation around it.
std::string_view TakePath(std::string_view rest) {
  static constexpr std::string_view kWords[] = {":",    "checkpoint", "the",  "latest",    "path",
                                                "step", "to",         "at",   "in",        "from",
                                                "file", "as",         "into", "iteration", "model"};
  // "saved checkpoint at step 500 to out/5.pt"; not "out/latest, if trying to load".
  if (const size_t to = rest.find(" to ");
      to != std::string_view::npos && to < 40 && rest.find_first_of("/,") > to)
    rest.remove_prefix(to + 3);
  for (bool skipped = true; skipped;) {
    skipped = false;
    rest = LeftTrimmed(rest);
    for (const std::string_view word : kWords) {
      if (!rest.starts_with(word)) continue;
      std::string_view next = rest.substr(word.size());
      if (word != ":" && next.starts_with(':')) next.remove_prefix(1);
      if (word != ":" && !next.empty() && !IsBlank(next[0])) continue;
      rest = next;
      skipped = true;
      break;
    }
  }
  if (!rest.empty() && (rest[0] == '\'' || rest[0] == '"' || rest[0] == '`')) {
    const size_t close = rest.find(rest[0], 1);
    if (close != std::string_view::npos) return rest.substr(1, close - 1);
  }
  std::string_view path = rest.substr(0, rest.find_first_of(" \t"));
  while (!path.empty() && std::string_view(".,;:)!").find(path.back()) != std::string_view::npos)
    path.remove_suffix(1);
  const bool none = path.starts_with('(') || WholeNumber(path);  // "at step 500"
  return none ? std::string_view() : path;
}

std::string_view TakeVersion(std::string_view rest) {
  while (!rest.empty() && (IsBlank(rest[0]) || rest[0] == '.' || rest[0] == 'v'))
    rest.remove_prefix(1);
  size_t end = 0;
  while (end < rest.size() && (IsWordByte(rest[end]) || rest[end] == '.' || rest[end] == '+'))
    ++end;
  while (end > 0 && rest[end - 1] == '.') --end;
  const std::string_view version = rest.substr(0, end);
  return !version.empty() && IsDigit(version[0]) && version.find('.') != std::string_view::npos
             ? version
             : std::string_view();
}

double TakeNumber(std::string_view rest, std::string_view after) {
  while (true) {  // "at last step, step 500": the first that a number follows
    const size_t at = rest.find(after);
    if (at == std::string_view::npos) return kAbsent;
    rest.remove_prefix(at + after.size());
    std::string_view text = rest;
    while (!text.empty() && std::string_view(" \t:=").find(text[0]) != std::string_view::npos)
      text.remove_prefix(1);
    const Number number = ReadNumber(text, Ending::kDelimiter, Thousands::kYes);
    if (IsIndex(number)) return number.value;
    if (after.empty()) return kAbsent;
  }
}

// The step that a checkpoint's name says: "checkpoint-500", "global_step500", "iter_0000500",
// "model.ckpt-500", "step=500.ckpt".
double StepOfPath(std::string_view path) {
  static constexpr std::string_view kBefore[] = {
      "checkpoint-", "global_step", "iter_", "iter-", "ckpt-", "step_", "step-", "step=", "step"};
  for (const std::string_view before : kBefore) {
    const size_t at = path.rfind(before);
    if (at == std::string_view::npos) continue;
    const Number number = ReadNumber(path.substr(at + before.size()), Ending::kUnit);
    std::string_view digits = number.text.substr(0, number.text.find('.'));
    if (digits.empty() || digits.size() > 12) continue;
    const Number whole = WholeNumber(digits);
    if (IsIndex(whole)) return whole.value;
  }
  return kAbsent;
}

// What stands between the last separator before the phrase and the phrase's own first letter.
std::string_view SentenceBegin(std::string_view before) {
  for (const std::string_view separator : {"] ", ":", " - ", "| ", ">> "}) {
    if (const size_t at = before.rfind(separator); at != std::string_view::npos)
      before.remove_prefix(at + separator.size());
  }
  // decorations, and the first letter, which the phrase leaves out for its case
  while (!before.empty() && !IsLetter(before[0])) before.remove_prefix(1);
  return before;
}

// "Training complete", "Model training finished in 3 h!" and not "tokenizer training complete",
// "Epoch 3 training done", "Training is slow".
bool IsSentence(std::string_view before, std::string_view phrase, std::string_view rest) {
  static constexpr std::string_view kSubjects[] = {"",     "model ", "Model ", "the ", "The ",
                                                   "Pre-", "pre-",   "Pre",    "pre"};
  static constexpr std::string_view kParts[] = {"poch", "old ", "tage ", "Step ", "step "};
  std::string_view begin = SentenceBegin(before);
  if (!begin.empty()) begin.remove_suffix(1);
  bool subject = false;
  for (const std::string_view known : kSubjects) subject = subject || begin == known;
  if (!subject || HoldsAny(before, kParts)) return false;
  if (phrase.ends_with("is ") || phrase.ends_with("has ")) {
    static constexpr std::string_view kEnds[] = {"complete",     "done",  "finished", "over",
                                                 "now complete", "ended", "completed"};
    if (!StartsWithAny(rest, kEnds)) return false;
    rest.remove_prefix(std::min(rest.find_first_of(" .!,;", 4), rest.size()));
  }
  if (rest.starts_with("d ") || rest == "d" || rest.starts_with("d.") || rest.starts_with("d!") ||
      rest.starts_with("d,")) {
    rest.remove_prefix(1);  // "completed"
  }
  static constexpr std::string_view kNot[] = {" epoch", " data",  " for epoch", " on fold", " fold",
                                              " stage", " step",  " loss",      " time",    " file",
                                              " set",   " batch", " ***"};
  if (StartsWithAny(rest, kNot)) return false;
  return rest.empty() || !IsWordByte(rest[0]);
}

// Not "saving checkpoint every 500 steps", "skip saving checkpoint", "saving checkpoints took 5 s".
bool IsStatement(std::string_view before, std::string_view rest) {
  static constexpr std::string_view kRefusals[] = {
      "kip",  "ot ",  "isable",  "efore ", "fter ", "hould",       "f ",
      "ime ", "hen ", "ill be ", "--",     "retry", "uccessfully "};
  static constexpr std::string_view kPlans[] = {" every",  "_",     " interval", " frequency",
                                                "s every", " took", " time",     " is ",
                                                "=",       " will", " enabled",  " disabled"};
  return !HoldsAny(before, kRefusals) && !StartsWithAny(rest, kPlans);
}

bool LooksLikePath(std::string_view path) {
  static constexpr std::string_view kMarks[] = {"/", ".pt", ".ckpt", ".bin", ".safetensors"};
  return HoldsAny(path, kMarks);
}

// "ckpt/800.pt", and not "data/tokens.pt" or "plots/loss.png".
bool IsWeights(std::string_view path) {
  static constexpr std::string_view kParts[] = {"ckpt", "checkpoint", "step", "epoch",
                                                "iter", "model",      "last", "best"};
  return HoldsAny(path, kParts) && (path.ends_with(".pt") || path.ends_with(".pth") ||
                                    path.ends_with(".ckpt") || path.ends_with(".safetensors"));
}

bool Holds(Guard guard, std::string_view before, std::string_view phrase, std::string_view rest,
           std::string_view path) {
  switch (guard) {
    case Guard::kNone:
    case Guard::kQuoted:
      return true;
    case Guard::kSentence:
      return IsSentence(before, phrase, rest);
    case Guard::kStatement:
      return IsStatement(before, rest);
    case Guard::kPath:
      return IsStatement(before, rest) && LooksLikePath(path);
    case Guard::kResumed:
      return path.find("checkpoint") != std::string_view::npos;
    case Guard::kWeights:
      return rest.starts_with(path) && IsStatement(before, rest) && IsWeights(path);
    case Guard::kLineBegin:
      return Trimmed(before).empty();
    case Guard::kEpoch:
      return LeftTrimmed(before).starts_with("Epoch ");
  }
  return false;
}

// The program speaks, and no source or dump of a configuration is being printed.
bool Speaks(const Rule& rule, std::string_view before) {
  if (rule.guard == Guard::kQuoted || rule.guard == Guard::kEpoch) return true;
  if (rule.guard == Guard::kLineBegin && rule.kind == MarkerKind::kFact) return true;
  return before.find_first_of("\"'") == std::string_view::npos &&
         before.find("print") == std::string_view::npos;
}

// Words of one rule inside another's.
bool IsAnothers(const Rule& rule, std::string_view before, std::string_view rest) {
  if (rule.name == "megatron_load") {
    return !before.ends_with("loading") && !before.ends_with("loading release") &&
           !before.ends_with("loading distributed");
  }
  // Detectron2 says so wherever it was given nothing to load.
  if (rule.name == "no_checkpoint") return rest.starts_with(". Initializing model from scratch");
  if (rule.name == "model_save")
    return before.ends_with(" s") && LeftTrimmed(before).starts_with("Epoch ");
  if (rule.name == "fairseq_saved" || rule.name == "fairseq_loaded")
    return rest.find(" @ ") == std::string_view::npos;
  return false;
}

bool ParseRule(const Rule& rule, const CleanLine& line, RecordList& out) {
  // A sentence begins early; further in stands a dump of something.
  constexpr size_t kMaxBefore = 400;
  const size_t at = line.text.find(rule.phrase);
  if (at == std::string_view::npos || at > kMaxBefore) return false;
  std::string_view before = line.text.substr(0, at);
  if (rule.guard == Guard::kSentence) {
    const auto prefix = static_cast<size_t>(StripLoggerPrefix(line.text).data() - line.text.data());
    before.remove_prefix(std::min(prefix, at));
  }
  const std::string_view rest = line.text.substr(at + rule.phrase.size());
  if (!Speaks(rule, before) || IsAnothers(rule, before, rest)) return false;
  const std::string_view path = rule.text == Text::kPath ? TakePath(rest) : std::string_view();
  if (!Holds(rule.guard, before, rule.phrase, rest, path)) return false;
  const std::string_view version =
      rule.text == Text::kVersion ? TakeVersion(rest) : std::string_view();
  if (rule.kind == MarkerKind::kFact) {
    if (version.empty()) return false;
    out.push_back(MakeMarker(MarkerKind::kFact, rule.word, line, version));
    return true;
  }
  Marker marker = MakeMarker(rule.kind, rule.name, line, path);
  if (rule.kind == MarkerKind::kBanner) marker.text = rule.framework;
  if (rule.kind == MarkerKind::kSaveFailed) marker.text = LeftTrimmed(rest);
  if (rule.word != "-" && version.empty()) marker.number = TakeNumber(rest, rule.word);
  if (marker.number != marker.number && !path.empty()) marker.number = StepOfPath(path);
  const bool total = rule.kind == MarkerKind::kTrainBegin && rule.word.empty();
  if (total && marker.number != marker.number) return false;
  out.push_back(marker);
  if (!version.empty()) out.push_back(MakeMarker(MarkerKind::kFact, rule.word, line, version));
  // Who saves a final model has trained.
  if (rule.phrase.find("inal model") != std::string_view::npos)
    out.push_back(MakeMarker(MarkerKind::kTrainEnd, rule.name, line));
  return true;
}

template <size_t i>
bool ParseNth(const CleanLine& line, RecordList& out) {
  return ParseRule(kRules[i], line, out);
}

template <size_t... i>
constexpr std::array<FormatRow, kRuleCount> MakeRows(std::index_sequence<i...>) {
  return {FormatRow{kRules[i].name, kRules[i].framework.empty() ? "any" : kRules[i].framework,
                    std::span(&kRules[i].phrase, 1), ParseNth<i>, kRules[i].example}...};
}

constexpr std::array<FormatRow, kRuleCount> kRows =
    MakeRows(std::make_index_sequence<kRuleCount>());

}  // namespace

std::span<const FormatRow> MarkerRows() {
  return kRows;
}

}  // namespace rankscope::logs
