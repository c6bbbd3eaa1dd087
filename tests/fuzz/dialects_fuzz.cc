// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Every dialect and marker row is given every line, whether its anchors are in it or not: no crash,
// and views point into the line or at constants. The lines are the input's own, and the rows'
// examples with the input spliced into them, so that the deep ends of every grammar are reached.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "detectors/logs/progress/block_context.h"
#include "detectors/logs/progress/formats.h"
#include "detectors/logs/progress/headed_table.h"
#include "detectors/logs/progress/keras.h"
#include "detectors/logs/progress/plain_record.h"
#include "detectors/logs/progress/trial_table.h"

namespace {

using namespace rankscope;        // NOLINT: a fuzz target
using namespace rankscope::logs;  // NOLINT

void Require(bool holds) {
  if (!holds) std::abort();
}

bool Inside(std::string_view view, std::string_view text) {
  return view.empty() ||
         (view.data() >= text.data() && view.data() + view.size() <= text.data() + text.size());
}

// Touches what the views hold.
size_t Sum(std::string_view view) {
  size_t sum = 0;
  for (const char c : view) sum += static_cast<uint8_t>(c);
  return sum;
}

void Check(const RecordList& records, std::string_view text, bool borrowed) {
  size_t sum = 0;
  for (const Record& record : records) {
    if (const auto* p = std::get_if<Progress>(&record)) {
      Require(!p->format.empty());
      for (const std::string_view view :
           {p->step_text, p->loss_text, p->grad_norm_text, p->learning_rate_text}) {
        Require(!borrowed || Inside(view, text));
        sum += Sum(view);
      }
    } else if (const auto* m = std::get_if<Marker>(&record)) {
      const bool constant = m->kind == MarkerKind::kBanner || m->kind == MarkerKind::kFact;
      Require(constant || Inside(m->text, text));
      sum += Sum(m->name) + Sum(m->text);
    }
  }
  Require(sum != static_cast<size_t>(-1));
}

struct Contexts {
  BlockContext block;
  HeadedTable table;
  TrialTable trials;
  KerasContext keras;
  PlainReader plain;
};

void FeedLine(std::string_view text, Contexts& contexts) {
  CleanLine line;
  line.text = line.original = text;
  for (const FormatRow& row : Formats()) {
    RecordList records;
    const bool claimed = row.parse(line, records);
    Require(claimed || records.empty());
    Check(records, text, true);
    for (Record& record : records) {
      auto* progress = std::get_if<Progress>(&record);
      if (progress != nullptr && progress->format == "keras")
        contexts.keras.Complete(text, *progress);
    }
  }
  RecordList records;
  if (contexts.block.open()) contexts.block.Feed(line, records);
  Check(records, text, false);
  records.clear();
  if (contexts.table.open()) contexts.table.Feed(line, records);
  Check(records, text, true);
  records.clear();
  if (contexts.trials.open()) contexts.trials.Feed(line, records);
  Check(records, text, true);
  contexts.block.Observe(text);
  contexts.trials.Observe(text);
  contexts.table.Observe(text);
  contexts.keras.Observe(text);
  // What a line says does not depend on what was learned from lines before it.
  Progress learned;
  Progress fresh;
  PlainReader stranger;
  const bool taken = contexts.plain.Parse(text, learned);
  Require(taken == stranger.Parse(text, fresh));
  if (taken) {
    Require(learned.format == fresh.format && learned.loss_text == fresh.loss_text &&
            learned.step_text == fresh.step_text &&
            learned.grad_norm_text == fresh.grad_norm_text &&
            learned.learning_rate_text == fresh.learning_rate_text &&
            learned.loss_key_missing == fresh.loss_key_missing);
  }
}

void FeedText(std::string_view text, Contexts& contexts) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    FeedLine(text.substr(0, end), contexts);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 3, size - 3);
  const std::string_view example = Formats()[data[0] % Formats().size()].example;
  const size_t at = data[1] % (example.size() + 1);
  const size_t cut = data[2] % (example.size() - at + 1);
  std::string spliced(example.substr(0, at));
  spliced.append(bytes).append(example.substr(at + cut));
  Contexts contexts;
  FeedText(spliced, contexts);
  FeedText(example, contexts);
  FeedText(spliced, contexts);
  FeedText(bytes, contexts);
  return 0;
}
