// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/log_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "detectors/engine/engine.h"
#include "detectors/logs/text/assembler.h"
#include "detectors/logs/text/masked_line.h"
#include "detectors/logs/text/printed_time.h"
#include "detectors/logs/text/quoted_text.h"
#include "detectors/model/observation.h"
#include "exporter/replay/flight_dumps.h"
#include "exporter/replay/log_file_blocks.h"
#include "exporter/replay/log_file_set.h"
#include "exporter/replay/told_text.h"
#include "exporter/replay/written_text.h"

namespace rankscope::replay {

namespace {

constexpr size_t kBlockBytes = 1 << 16;  // stays in the second-level cache
constexpr size_t kMostFiles = 16'384;    // a job's logs, not a file system
constexpr char kJobId[] = "log";         // what a lone file says of its job
// A file has no times: everything arrives at once, and the end comes after it.
constexpr Timestamp kArrival = {1'000'000'000};
constexpr int kMostTicks = 64;

// All blocks of a job's files together: a thousand files side by side stay below it.
constexpr size_t kAllBlocksBytes = size_t{64} << 20;
constexpr size_t kLeastBlockBytes = 4096;

// What a file's lines are, besides bytes.
struct TextQuality {
  int64_t lines = 0;
  int64_t odd = 0;  // lines that begin with a control character
};

class LogJudge {
 public:
  void Begin(const std::string& log, int32_t world_size) {
    RunMark mark;
    mark.what = RunMark::What::kBegin;
    mark.log = log;
    mark.world_size = world_size;
    Give(std::move(mark));
  }

  Status Read(const std::string& file, uint32_t stream) {
    LogBlocks blocks(file, kBlockBytes, true);
    logs::LineAssembler assembler;
    const auto emit = [&](const logs::AssembledLine& line) { GiveLine(line, file, stream); };
    std::string head;
    Result<std::string_view> block = blocks.Next();
    if (block) quoted_ = logs::FindQuoteMark(*block);
    if (block && !block->empty() && block->size() < kBlockBytes) {
      // A short file: the next block says whether this one is all of it.
      head = *block;
      const int64_t begin = blocks.begin();
      block = blocks.Next();
      if (block && block->empty()) {
        if (const std::string_view what = WrittenByHand(head); !what.empty()) {
          written_ = true;
          Note(file, "this is " + std::string(what) + " and no output of a job: it was not judged");
          return {};
        }
        std::string quoted = QuotedOutput(head);
        if (quoted.empty() && TellsOfErrorsOnly(head)) {
          written_ = true;
          Note(file,
               "this text tells of errors, and no program printed one here: it was not judged");
          return {};
        }
        if (!quoted.empty()) {
          head = std::move(quoted);
          Note(file,
               "this is a report that somebody wrote: what stands between its ``` fences "
               "was judged, and nothing else");
        }
      }
      assembler = logs::LineAssembler(begin);
      assembler.Feed(head, emit);
    }
    for (;; block = blocks.Next()) {
      if (!block) return Error{block.error()};
      if (block->empty()) break;
      if (blocks.begin() != assembler.offset()) {  // behind a hole
        assembler.Flush(LineEnd::kFlush, emit);
        assembler = logs::LineAssembler(blocks.begin());
      }
      assembler.Feed(*block, emit);
    }
    assembler.Flush(LineEnd::kClosed, emit);
    quoted_ = logs::QuoteMark::kNone;
    Note(file, blocks.note());
    return {};
  }

  // Reads the files that print comparable times side by side, in the order of these times.
  void Merge(std::span<const JobLog> logs, uint32_t first_stream, JobLogSet& set) {
    struct Open {
      LogLines lines;
      logs::PrintedClock clock;
      const JobLog* log;
      uint32_t stream;
      int64_t ms = 0;
    };
    const size_t block = std::clamp(kAllBlocksBytes / std::max<size_t>(1, logs.size()),
                                    kLeastBlockBytes, kBlockBytes);
    std::vector<Open> open;
    open.reserve(logs.size());
    for (const JobLog& log : logs) {
      open.push_back({LogLines(log.file, block), logs::PrintedClock(log.year), &log,
                      first_stream + static_cast<uint32_t>(open.size()), 0});
    }
    // The earliest first; what a file says before its first time goes before everything.
    const auto later = [&open](size_t a, size_t b) {
      return std::pair(open[a].ms, a) > std::pair(open[b].ms, b);
    };
    std::vector<size_t> heap;
    const auto advance = [&](size_t i) {
      Open& one = open[i];
      if (!one.lines.Next()) {
        if (!one.lines.error().empty())
          set.unreadable.push_back(one.log->file + ": " + one.lines.error());
        Note(one.log->file, one.lines.note());
        return;
      }
      one.ms = one.clock.Advance(one.lines.line().text);
      heap.push_back(i);
      std::push_heap(heap.begin(), heap.end(), later);
    };
    for (size_t i = 0; i < open.size(); ++i) advance(i);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      const size_t i = heap.back();
      heap.pop_back();
      SpeakFor(*open[i].log, open[i].ms);
      GiveLine(open[i].lines.line(), open[i].log->file, open[i].stream);
      advance(i);
    }
  }

  // What the ranks' Flight Recorders have written.
  void GiveDumps(const FlightDumps& dumps) {
    dumps_ = dumps.read.size();
    for (const Event& event : dumps.events) {
      Observation observation;
      observation.t = kArrival;
      observation.seq = ++seq_;
      observation.kind = event;
      std::get<Event>(observation.kind).rank.job_id = kJobId;
      engine_.Accept(observation);
    }
  }

  // Whose the next lines are.
  void SpeakFor(const JobLog& log, int64_t printed_ms) {
    LogLine& line = std::get<LogLine>(line_.kind);
    line.rank = log.name.rank;
    line.local_rank = log.name.local_rank;
    line.restart = log.name.restart;
    line.printed_ms = printed_ms;
  }

  Result<proto::Verdict> End(std::optional<int> exit_code) {
    RunMark end;
    end.what = RunMark::What::kEnd;
    end.status_known = exit_code.has_value();
    end.wait_status = exit_code.value_or(0) << 8;  // as waitpid packs an exit code
    Give(std::move(end));
    RunMark closed;
    closed.what = RunMark::What::kStreamsClosed;
    Give(std::move(closed));
    std::optional<engine::JobView> job;
    for (int i = 1; i <= kMostTicks && (!job || job->verdict->state() != proto::FINAL); ++i) {
      engine_.Tick(kArrival + Seconds(i));
      job = engine_.Find(kJobId);
    }
    if (!job) return Error{"the engine knows of no run in it"};
    proto::Verdict verdict = *job->verdict;
    for (const std::string& note : notes_) verdict.mutable_data_quality()->add_notes(note);
    if (dumps_ > 0) {
      verdict.mutable_data_quality()->add_notes(
          std::to_string(dumps_) + (dumps_ == 1 ? " dump" : " dumps") +
          " of PyTorch's flight recorder " + (dumps_ == 1 ? "was" : "were") + " read");
    } else if (text_.lines == 0 && !written_) {
      verdict.mutable_data_quality()->add_notes("there is no text: nothing was said");
    } else if (text_.odd * 2 > text_.lines) {
      verdict.mutable_data_quality()->add_notes(
          std::to_string(text_.odd) + " of " + std::to_string(text_.lines) +
          " lines begin with a control character: this is no text");
    }
    return verdict;
  }

 private:
  void Note(const std::string& file, const std::string& note) {
    if (!note.empty()) notes_.push_back(file + ": " + note);
  }

  void GiveLine(logs::AssembledLine assembled, const std::string& file, uint32_t stream) {
    const size_t mark = logs::QuoteWidth(assembled.text, quoted_);
    assembled.text.remove_prefix(mark);
    assembled.offset += static_cast<int64_t>(mark);
    LogLine& line = std::get<LogLine>(line_.kind);
    line.stream = stream;
    line.stream_name = file;
    logs::FillLine(assembled, line, masked_);
    ++text_.lines;
    if (!line.text.empty() && line.text.front() >= 0 && line.text.front() < '\t') ++text_.odd;
    line_.t = kArrival;
    line_.seq = ++seq_;
    engine_.Accept(line_);
  }

  void Give(RunMark mark) {
    mark.job_id = kJobId;
    Observation observation;
    observation.t = kArrival;
    observation.seq = ++seq_;
    observation.kind = std::move(mark);
    engine_.Accept(observation);
  }

  static Observation EmptyLine() {
    LogLine line;
    line.job_id = kJobId;
    Observation observation;
    observation.kind = std::move(line);
    return observation;
  }

  engine::Engine engine_;
  Observation line_ = EmptyLine();  // one for all lines: nothing is allocated per line
  TextQuality text_;
  bool written_ = false;                             // by hand, and not fed
  logs::QuoteMark quoted_ = logs::QuoteMark::kNone;  // before the lines of the file that is read
  size_t dumps_ = 0;
  std::vector<std::string> notes_;
  std::string masked_;
  int64_t seq_ = 0;
};

// Orders by text, with runs of digits compared as numbers.
bool NaturallyBefore(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  while (!a.empty() && !b.empty()) {
    if (digit(a.front()) && digit(b.front())) {
      const auto take = [&](std::string_view& text) {
        const size_t zeros = std::min(text.find_first_not_of('0'), text.size());
        text.remove_prefix(zeros);
        const size_t size =
            static_cast<size_t>(std::find_if_not(text.begin(), text.end(), digit) - text.begin());
        const std::string_view number = text.substr(0, size);
        text.remove_prefix(size);
        return number;
      };
      const std::string_view x = take(a);
      const std::string_view y = take(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

void AddNotes(const std::vector<std::string>& notes, proto::Verdict& verdict) {
  for (const std::string& note : notes) verdict.mutable_data_quality()->add_notes(note);
}

}  // namespace

Result<proto::Verdict> JudgeLog(const std::string& file, std::optional<int> exit_code) {
  std::vector<std::string> files = {file};
  const FlightDumps dumps = TakeFlightDumps(files);
  LogJudge judge;
  if (!dumps.read.empty()) {
    judge.Begin(file, dumps.world_size);
    judge.GiveDumps(dumps);
    Result<proto::Verdict> verdict = judge.End(exit_code);
    if (verdict) AddNotes(dumps.notes, *verdict);
    return verdict;
  }
  if (files.empty()) return Error{dumps.notes.empty() ? "not read" : dumps.notes.front()};
  judge.Begin(file, 0);
  if (const Status read = judge.Read(file, 1); !read) return Error{read.error()};
  return judge.End(exit_code);
}

Result<JobJudgement> JudgeJobLogs(std::span<const std::string> files_of_job,
                                  std::optional<int> exit_code) {
  std::vector<std::string> files(files_of_job.begin(), files_of_job.end());
  const FlightDumps dumps = TakeFlightDumps(files);
  JobLogSet set = ArrangeLogs(files);
  const int32_t ranks = std::max(set.ranks, dumps.world_size);
  LogJudge judge;
  judge.Begin(files.size() == 1 ? files.front() : std::string(), ranks > 1 ? ranks : 0);
  const std::span<const JobLog> logs(set.logs);
  size_t read = 0;
  for (size_t i = 0; i < logs.size();) {
    size_t end = i + 1;
    if (logs[i].timed && logs.size() > 1) {
      while (end < logs.size() && logs[end].timed && logs[end].name.restart == logs[i].name.restart)
        ++end;
      judge.Merge(logs.subspan(i, end - i), static_cast<uint32_t>(i + 1), set);
      read += end - i;
    } else {
      judge.SpeakFor(logs[i], 0);
      if (const Status status = judge.Read(logs[i].file, static_cast<uint32_t>(i + 1)); !status) {
        set.unreadable.push_back(logs[i].file + ": " + status.error());
      } else {
        ++read;
      }
    }
    i = end;
  }
  // After the text: of ranks that stood nothing is printed any more.
  judge.GiveDumps(dumps);
  read += dumps.read.size();
  std::string unreadable;
  for (const std::string& one : set.unreadable)
    unreadable += (unreadable.empty() ? "" : "; ") + one;
  if (read == 0) return Error{unreadable.empty() ? "no file of text there" : unreadable};
  Result<proto::Verdict> verdict = judge.End(exit_code);
  if (!verdict) return Error{verdict.error()};
  AddNotes(set.notes, *verdict);
  AddNotes(dumps.notes, *verdict);
  if (!unreadable.empty()) verdict->mutable_data_quality()->add_notes("not read: " + unreadable);
  return JobJudgement{std::move(*verdict), std::move(unreadable)};
}

Result<std::vector<std::string>> LogFilesOf(std::span<const std::string> files_and_directories) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& path : files_and_directories) {
    std::error_code error;
    if (path == "-" || !fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> below;
    fs::recursive_directory_iterator it(path, error);
    for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::error_code gone;
      if (it->is_regular_file(gone) && !gone) below.push_back(it->path().string());
      if (below.size() > kMostFiles) {
        return Error{path + ": holds more than " + std::to_string(kMostFiles) +
                     " files; name the job's own directory"};
      }
    }
    if (error) return Error{path + ": " + error.message()};
    std::sort(below.begin(), below.end(), NaturallyBefore);
    files.insert(files.end(), below.begin(), below.end());
  }
  if (files.empty()) return Error{"no files there"};
  return files;
}

}  // namespace rankscope::replay
