// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/reader.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "detectors/logs/failures/elastic_summary.h"
#include "detectors/logs/failures/named_process.h"
#include "detectors/logs/failures/traceback.h"
#include "detectors/logs/progress/block_context.h"
#include "detectors/logs/progress/dialects.h"
#include "detectors/logs/progress/formats.h"
#include "detectors/logs/progress/headed_table.h"
#include "detectors/logs/progress/keras.h"
#include "detectors/logs/progress/own_line.h"
#include "detectors/logs/progress/plain_record.h"
#include "detectors/logs/progress/progress_fields.h"
#include "detectors/logs/progress/trial_table.h"
#include "detectors/logs/reader_tables.h"
#include "detectors/logs/text/json_text.h"
#include "detectors/logs/text/prefix.h"
#include "detectors/logs/text/relayed_prefix.h"
#include "detectors/logs/text/scanner.h"
#include "detectors/model/archive.h"

namespace rankscope::logs {
namespace {

// A node's ranks; a stream with more speakers than that shares the last machine among the rest.
constexpr size_t kMaxSpeakers = 16;

// Progress records of other writers between the lines of a traceback, before it is taken to be
// over.
constexpr int32_t kInterleavedRecords = 4;

constexpr size_t kShortestTail = 6;  // "Killed"

// One writer within the stream, as far as launcher prefixes tell writers apart.
struct Speaker {
  int32_t rank = -1;
  bool local_rank = false;
  int32_t foreign_records = 0;
  TracebackMachine traceback;
  ElasticSummaryMachine summary;

  bool open() const { return traceback.open() || summary.open(); }
  template <class A>
  void Fields(A& a) {
    a(rank, local_rank, foreign_records, traceback, summary);
  }
};

}  // namespace

struct Reader::State {
  const Tables& tables = SharedTables();
  std::vector<Speaker> speakers;
  KerasContext keras;
  BlockContext block;
  HeadedTable table;
  TrialTable trials;
  RelayedPrefix relayed;
  NamedProcess named;
  int32_t strength = 0;      // of the strongest dialect so far
  bool by_node = false;      // a launcher of the node starts its ranks
  PlainReader plain_reader;  // learns again after a restart
  RecordList records;
  RowSet anchored = RowSet(tables.words);  // rows of which the line holds an anchor
  std::string plain;                       // the line without ANSI sequences
  std::string unwrapped;                   // of a record of Docker
  std::string unescaped;                   // of a traceback inside a record of JSON
  std::string number_text;  // numbers without their thousands separators; views point into it

  template <class A>
  void Fields(A& a) {
    a(speakers, keras, block, table, trials, relayed, named, strength, by_node);
  }

  bool SpansOpen() const { return block.open() || table.open() || trials.open(); }
  Speaker* FindSpeaker(const CleanLine& line);
  Speaker& NeedSpeaker(const CleanLine& line);
  bool FeedMachines(const CleanLine& line, const RowSet& rows);
  bool FeedFrame(const LogLine& line, Timestamp t);
  bool FeedJson(const CleanLine& line);
  bool FindAnchors(std::string_view text);
  void ParseShapes(const CleanLine& line);
  void FeedText(const CleanLine& line);
  void FeedWritten(std::string_view text, const LogLine& line, Timestamp t);
  void FeedRedrawn(std::string_view text, const LogLine& line, Timestamp t);
  void FeedShapes(const CleanLine& tail);
  std::string_view Unrelayed(std::string_view text);
  bool ParsePlain(std::string_view text);
  void ObserveSpans(std::string_view text) {
    block.Observe(text);
    table.Observe(text);
    trials.Observe(text);
  }
  bool ParseSpanning(OwnText& text, const RowSet& rows);
  bool AdoptFrom(const CleanLine& line, size_t from);
  bool ParseFormats(const CleanLine& line, const RowSet& rows);
  bool Adopt(const CleanLine& line, Progress& progress);
  void Normalise(std::string_view& text);
  void Finish(const CleanLine& line, size_t from);
};

Speaker* Reader::State::FindSpeaker(const CleanLine& line) {
  for (Speaker& speaker : speakers) {
    if (speaker.rank == line.rank && speaker.local_rank == line.local_rank) return &speaker;
  }
  return nullptr;
}

Speaker& Reader::State::NeedSpeaker(const CleanLine& line) {
  if (Speaker* known = FindSpeaker(line)) return *known;
  if (speakers.size() == kMaxSpeakers) {
    for (Speaker& speaker : speakers) {
      if (speaker.open()) continue;
      speaker.rank = line.rank;
      speaker.local_rank = line.local_rank;
      speaker.foreign_records = 0;
      return speaker;
    }
    return speakers.back();
  }
  Speaker& speaker = speakers.emplace_back();
  speaker.rank = line.rank;
  speaker.local_rank = line.local_rank;
  return speaker;
}

// Offers the line to what spans lines; true where it belongs there.
bool Reader::State::FeedMachines(const CleanLine& line, const RowSet& rows) {
  const bool begins_traceback = Has(rows, tables.traceback_row);
  const bool begins_summary = Has(rows, tables.summary_row);
  if (speakers.empty() && !begins_traceback && !begins_summary) return false;
  Speaker* speaker = begins_traceback || begins_summary ? &NeedSpeaker(line) : FindSpeaker(line);
  if (speaker == nullptr) return false;
  if ((speaker->summary.open() || begins_summary) && speaker->summary.Feed(line, records))
    return true;
  if (!speaker->traceback.open() && !begins_traceback) return false;
  // A clear progress record is nobody's message, however it is indented: another process of the
  // stream goes on.
  if (!begins_traceback && ParseFormats(line, rows) && !records.empty()) {
    const Progress* progress = std::get_if<Progress>(&records.back());
    if (progress != nullptr && !progress->generic) {
      if (speaker->traceback.interrupted()) {  // the record is of another program, so it comes last
        const auto parsed = static_cast<std::ptrdiff_t>(records.size());
        speaker->traceback.Flush(records);
        std::rotate(records.begin(), records.begin() + parsed, records.end());
      } else if (++speaker->foreign_records >= kInterleavedRecords) {
        speaker->traceback.Flush(records);
        speaker->foreign_records = 0;
      }
      return true;
    }
    records.clear();
  }
  speaker->foreign_records = 0;
  return speaker->traceback.Feed(line, records);
}

std::string_view Reader::State::Unrelayed(std::string_view text) {
  const bool open = std::any_of(speakers.begin(), speakers.end(),
                                [](const Speaker& speaker) { return speaker.traceback.open(); });
  return relayed.Strip(text, open);
}

// A frame of an open traceback, and the source line below it, are nothing else: they need not be
// searched for what other lines hold. Neither begins like a launcher's prefix.
bool Reader::State::FeedFrame(const LogLine& line, Timestamp t) {
  const std::string_view text = line.text;
  if (speakers.empty() || !text.starts_with("  ") || SpansOpen() || relayed.expects()) return false;
  CleanLine clean = {text, text, line.offset, -1, false, line.end, t};
  Speaker* speaker = FindSpeaker(clean);
  if (speaker == nullptr || speaker->summary.open() ||
      std::memchr(text.data(), 0x1b, text.size()) != nullptr)
    return false;
  if (!speaker->traceback.FeedPlainFrame(clean)) return false;
  speaker->foreign_records = 0;
  return true;
}

// A logger that prints its records as JSON puts a whole traceback into one of their texts. It is
// over where the record is.
bool Reader::State::FeedJson(const CleanLine& line) {
  std::string_view rest = TracebackInJson(line.text, unescaped);
  if (rest.empty()) return false;
  TracebackMachine machine;
  while (!rest.empty()) {
    CleanLine part = line;
    part.text = rest.substr(0, rest.find('\n'));
    machine.Feed(part, records);
    rest.remove_prefix(std::min(part.text.size() + 1, rest.size()));
  }
  machine.Flush(records);
  return true;
}

// Removes thousands separators; the text then lies in number_text, which Feed has given room for
// all four numbers.
void Reader::State::Normalise(std::string_view& text) {
  constexpr size_t kShortest = 5;  // "1,000"
  if (text.size() < kShortest || std::find(text.begin(), text.end(), ',') == text.end()) return;
  const size_t begin = number_text.size();
  if (begin + text.size() > number_text.capacity()) return;
  for (const char c : text) {
    if (c != ',') number_text.push_back(c);
  }
  text = std::string_view(number_text).substr(begin);
}

// Decides whether the record counts in this stream, and completes it.
bool Reader::State::Adopt(const CleanLine& line, Progress& progress) {
  if (progress.format == "keras" && !keras.Complete(line.text, progress)) return false;
  if (DialectStrength(progress) < strength) return false;
  strength = DialectStrength(progress);
  Normalise(progress.step_text);
  Normalise(progress.loss_text);
  Normalise(progress.grad_norm_text);
  Normalise(progress.learning_rate_text);
  return true;
}

// A line that can be nothing but a training record need not be searched for anything else; its
// record goes where the last one lies.
bool Reader::State::ParsePlain(std::string_view text) {
  const auto open = [](const Speaker& speaker) { return speaker.open(); };
  if (std::any_of(speakers.begin(), speakers.end(), open)) return false;
  const bool reuse = records.size() == 1 && std::holds_alternative<Progress>(records.front());
  if (!reuse) {
    records.clear();
    records.emplace_back(std::in_place_type<Progress>);
  }
  auto& progress = std::get<Progress>(records.front());
  if (!plain_reader.Parse(text, progress)) return false;
  strength = std::max(strength, DialectStrength(progress));
  return true;
}

// Keeps those of the records from `from` on that count in this stream.
bool Reader::State::AdoptFrom(const CleanLine& line, size_t from) {
  for (size_t i = from; i < records.size();) {
    if (auto* progress = std::get_if<Progress>(&records[i])) {
      if (!Adopt(line, *progress)) {
        records.erase(records.begin() + static_cast<ptrdiff_t>(i));
        continue;
      }
    } else if (const auto* marker = std::get_if<Marker>(&records[i]);
               marker != nullptr && marker->kind == MarkerKind::kTrainEnd &&
               marker->name == "hf_trainer") {
      // The Trainer's last dict: DeepSpeed's lines beside it were not records.
      strength = kStrongestDialect;
    }
    ++i;
  }
  return true;
}

// Offers the line to what is open of the dialects that span lines, and lets it open another.
bool Reader::State::ParseSpanning(OwnText& text, const RowSet& rows) {
  const size_t before = records.size();
  if (SpansOpen()) {
    const CleanLine& line = text.own();
    const bool taken = (block.open() && block.Feed(line, records)) ||
                       (table.open() && table.Feed(line, records)) ||
                       (trials.open() && trials.Feed(line, records));
    if (taken) return AdoptFrom(line, before);
  }
  if (Overlap(rows, tables.spanning)) {
    ObserveSpans(text.line().text);
    if (!SpansOpen() && text.prefixed()) ObserveSpans(text.own().text);
  }
  return false;
}

// Offers the line to the dialects and markers; true where one of them claims it.
bool Reader::State::ParseFormats(const CleanLine& line, const RowSet& rows) {
  const auto count = static_cast<uint32_t>(tables.formats.size());
  OwnText text(line);
  if (Has(rows, tables.keras_row)) keras.Observe(text.own().text);
  if (ParseSpanning(text, rows)) return true;
  const size_t before = records.size();
  return AnyRow(rows, 0, count, [&](uint32_t row) {
    return ParseRow(row, text, records) && AdoptFrom(line, before);
  });
}

// Marks the rows of which the text holds an anchor. Whether it holds any.
bool Reader::State::FindAnchors(std::string_view text) {
  std::fill(anchored.begin(), anchored.end(), 0);
  uint64_t any = 0;
  tables.scanner.Scan(text, [&](uint32_t row, size_t) {
    const uint64_t bit = uint64_t{1} << (row % 64);
    anchored[row / 64] |= bit;
    any |= bit;
    return true;
  });
  return any != 0;
}

void Reader::State::ParseShapes(const CleanLine& line) {
  const auto first = static_cast<uint32_t>(tables.formats.size());
  AnyRow(anchored, first, tables.traceback_row, [&](uint32_t row) {
    tables.shapes[row - first].parse(line, records);
    return false;
  });
}

void Reader::State::FeedText(const CleanLine& line) {
  const bool any = FindAnchors(line.text);
  const bool spans = SpansOpen();
  by_node = by_node || (any && Has(anchored, tables.node_row));
  if (!any && speakers.empty() && !spans) return;
  if (FeedMachines(line, anchored) || (!any && !spans)) return;
  ParseFormats(line, anchored);
  ParseShapes(line);
}

// What stands behind a bar: a death that the shell reports, the end of a training. Whatever was
// read of the whole line is not read twice.
void Reader::State::FeedShapes(const CleanLine& tail) {
  const bool told = std::any_of(records.begin(), records.end(), [](const Record& record) {
    return !std::holds_alternative<Progress>(record);
  });
  const bool open = std::any_of(speakers.begin(), speakers.end(),
                                [](const Speaker& speaker) { return speaker.open(); });
  if (told || open || !FindAnchors(tail.text)) return;
  ParseShapes(tail);
  if (records.empty()) ParseFormats(tail, anchored);
}

// Gives the incidents from `from` on what their row did not say.
void Reader::State::Finish(const CleanLine& line, size_t from) {
  for (size_t i = from; i < records.size(); ++i) {
    auto* incident = std::get_if<Incident>(&records[i]);
    if (incident == nullptr) continue;
    if (incident->line.empty()) {
      incident->line = line.original.substr(0, kCitationCap);
      incident->offset = line.offset;
      incident->t = line.t;
    }
    if (by_node && incident->shape == "srun_task") {
      incident->rank = -1;
      continue;
    }
    if (line.rank >= 0 && incident->rank < 0 && incident->local_rank < 0) {
      (line.local_rank ? incident->local_rank : incident->rank) = line.rank;
    }
  }
}

Reader::Reader() : state_(std::make_unique<State>()) {
  state_->number_text.reserve(4 * 64);
}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

// A line as the program wrote it, or what it wrote between two carriage returns.
void Reader::State::FeedWritten(std::string_view text, const LogLine& line, Timestamp t) {
  const Unprefixed unprefixed = StripLauncherPrefixes(text);
  const CleanLine clean = {Unrelayed(unprefixed.text),
                           line.text,
                           line.offset,
                           unprefixed.rank,
                           unprefixed.local_rank,
                           line.end,
                           t};
  if (FeedJson(clean)) {
    Finish(clean, 0);
    return;
  }
  const size_t bar = EndOfBar(clean.text);
  FeedText(clean);
  if (Trimmed(clean.text.substr(bar)).size() >= kShortestTail) {
    CleanLine tail = clean;
    tail.text = clean.text.substr(bar);
    FeedShapes(tail);
  }
  Finish(clean, 0);
  named.Feed(records);
}

// Docker makes one record of all that a bar draws before its next newline. Each redraw is a line,
// as it is where the stream itself is read.
void Reader::State::FeedRedrawn(std::string_view text, const LogLine& line, Timestamp t) {
  RecordList all;
  if (number_text.capacity() < text.size()) number_text.reserve(text.size());
  while (!text.empty()) {
    const std::string_view drawn = text.substr(0, text.find('\r'));
    text.remove_prefix(std::min(drawn.size() + 1, text.size()));
    if (drawn.empty()) continue;
    records.clear();
    FeedWritten(drawn, line, t);
    std::move(records.begin(), records.end(), std::back_inserter(all));
  }
  records = std::move(all);
}

std::span<const Record> Reader::Feed(const LogLine& line, Timestamp t) {
  State& state = *state_;
  if (state.ParsePlain(line.text)) return state.records;
  state.records.clear();
  if (state.FeedFrame(line, t)) return state.records;
  state.number_text.clear();
  std::string_view text = UnwrapDockerLine(line.text, state.unwrapped);
  const bool unwrapped = text.data() != line.text.data();
  if (!text.empty() && std::memchr(text.data(), 0x1b, text.size()) != nullptr)
    text = StripAnsi(text, state.plain);
  if (unwrapped && text.find('\r') != std::string_view::npos)
    state.FeedRedrawn(text, line, t);
  else
    state.FeedWritten(text, line, t);
  return state.records;
}

std::span<const Record> Reader::Flush() {
  State& state = *state_;
  state.records.clear();
  for (Speaker& speaker : state.speakers) {
    speaker.traceback.Flush(state.records);
    speaker.summary.Flush(state.records);
  }
  return state.records;
}

std::string Reader::Save() const {
  ArchiveWriter writer;
  writer(*state_);
  return writer.Take();
}

bool Reader::Restore(std::string_view bytes) {
  State restored;
  ArchiveReader reader(bytes);
  restored.Fields(reader);
  if (!reader.Complete() || restored.speakers.size() > kMaxSpeakers) return false;
  state_->speakers = std::move(restored.speakers);
  state_->keras = std::move(restored.keras);
  state_->block = std::move(restored.block);
  state_->table = std::move(restored.table);
  state_->trials = std::move(restored.trials);
  state_->relayed = restored.relayed;
  state_->named = std::move(restored.named);
  state_->by_node = restored.by_node;
  state_->strength = restored.strength;
  return true;
}

}  // namespace rankscope::logs
