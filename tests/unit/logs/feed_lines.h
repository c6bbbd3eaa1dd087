// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Feeds text to a Reader and keeps what it says, owned, for the tests of this folder.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "detectors/logs/reader.h"
#include "detectors/logs/text/assembler.h"

namespace rankscope::logs {

struct Row {
  std::string format;
  std::string step;
  std::string loss;
  std::string grad_norm;
  std::string learning_rate;
  Progress progress;  // for its doubles; its views are dead
};

struct Mark {
  MarkerKind kind;
  std::string name;
  std::string text;
  double number;
};

struct Records {
  std::vector<Row> rows;
  std::vector<Mark> marks;
  std::vector<Incident> incidents;
  std::string order;  // p, m, i
};

inline void Keep(std::span<const Record> records, Records& kept) {
  for (const Record& record : records) {
    if (const auto* p = std::get_if<Progress>(&record)) {
      kept.rows.push_back({std::string(p->format), std::string(p->step_text),
                           std::string(p->loss_text), std::string(p->grad_norm_text),
                           std::string(p->learning_rate_text), *p});
      kept.order.push_back('p');
    } else if (const auto* m = std::get_if<Marker>(&record)) {
      kept.marks.push_back({m->kind, std::string(m->name), std::string(m->text), m->number});
      kept.order.push_back('m');
    } else {
      kept.incidents.push_back(std::get<Incident>(record));
      kept.order.push_back('i');
    }
  }
}

inline void FeedText(Reader& reader, LineAssembler& assembler, std::string_view text,
                     Records& kept) {
  assembler.Feed(text, [&](const AssembledLine& line) {
    LogLine log_line;
    log_line.text = line.text;
    log_line.offset = line.offset;
    log_line.end = line.end;
    log_line.cut_bytes = line.cut_bytes;
    Keep(reader.Feed(log_line, Timestamp{line.offset}), kept);
  });
}

inline Records ReadText(std::string_view text) {
  Records kept;
  Reader reader;
  LineAssembler assembler;
  FeedText(reader, assembler, text, kept);
  if (assembler.has_open_line()) FeedText(reader, assembler, "\n", kept);
  Keep(reader.Flush(), kept);
  return kept;
}

}  // namespace rankscope::logs
