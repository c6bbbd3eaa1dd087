// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The source that hears what ranks and launchers write to their standard output and error, at the
// moment they write it: no wrapper, no log sink, no change of the job. Each byte is heard or
// counted as lost. Loop thread only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "bpf/events/stdio.h"
#include "exporter/probes/attach/probe_source.h"
#include "exporter/probes/stdio/left_output.h"
#include "exporter/probes/stdio/output_rules.h"
#include "exporter/probes/stdio/output_stream.h"
#include "exporter/probes/stdio/recent_lines.h"
#include "exporter/probes/stdio/said_turns.h"
#include "exporter/probes/stdio/stdio_programs.h"

namespace rankscope::probes {

class Stdio final : public ProbeSource {
 public:
  // From a write to its line, at most. A verdict waits 150 ms for what follows an abnormal end.
  static constexpr Duration kBeat = Milliseconds(50);
  // Of each beat, for working off what was written: the rest is everybody else's.
  static constexpr Duration kShareOfBeat = Milliseconds(20);
  // Beats from one look for streams of which nothing was told to the next: a second.
  static constexpr int kSweepBeats = 20;
  // How long a process may be without a job: the time that a rank waits for its launcher to be
  // known, and some.
  static constexpr Duration kPatience = Seconds(4);
  // Streams at once, which hold a line of 64 KiB each at worst: 128 MiB. Most processes write
  // nothing.
  static constexpr size_t kMaxStreams = 2048;
  // Of one user never more than are left to all the others: one alone has half of them.
  // Of a job, ranks' streams aside: a program that starts printing helpers without end fills a
  // quarter of what the engine takes of a job (windows::JobWindow::kMaxStreams).
  static constexpr int32_t kMaxHelpers = 1024;
  // What a stream may have said before its job is known.
  static constexpr size_t kMaxWaiting = 256 << 10;
  static constexpr size_t kSlice = 2 << 10;  // worked off at once
  // Above those of wrappers, which count from 1 by 4.
  static constexpr uint32_t kFirstStream = 1 << 16;

  Stdio(std::shared_ptr<collectors::ProcessTable> table, std::shared_ptr<TrackedMap> tracked,
        OutputRules::Who who, SpeechBudget budget, bool force);
  ~Stdio() override;

  Status Start(exporter::EventLoop& loop, Sink& sink) override;
  void Stop() override;
  int64_t lost() const override;
  int64_t lost_untold() const override { return lost() - lost_told_; }
  std::vector<Count> counts() const override;

  // Streams have numbers from here on: those below are an earlier daemon's, of the same jobs.
  void NumberFrom(uint32_t number) { next_number_ = std::max(next_number_, number); }

  // The files that were heard before: what was written to them meanwhile is read from them, and
  // told before what is heard. `wall_offset_ns`: of the wall clock above CLOCK_MONOTONIC.
  void GoOnAfter(std::shared_ptr<const collectors::HeardFiles> heard, int64_t wall_offset_ns) {
    heard_ = std::move(heard);
    wall_offset_ns_ = wall_offset_ns;
  }

  // Tells what was written up to now, by everybody whose job is known.
  void CatchUp();

 private:
  struct Waiting {
    std::string text;
    bool begins_line = false;
    int64_t lost_before = 0;
    Timestamp t;
    int64_t position = -1;               // in a regular file; below zero: not known
    std::shared_ptr<const void> room{};  // in its user's share, while it waits
    bool past = false;                   // it was read from its file
  };
  // One file that a process writes to as its output or error.
  struct Stream {
    OutputRules::Answer answer = OutputRules::Answer::kLater;
    rs_file file{};
    rs_file input{};
    Timestamp since;
    bool looked = false;
    std::vector<Waiting> waiting;
    size_t waiting_bytes = 0;
    int64_t lost_waiting = 0;  // not yet told with a piece
    std::unique_ptr<OutputStream> output;
    // A launcher's: said a beat later than ranks, whose words it may repeat.
    bool launcher = false;
    std::string own_prefix;      // of its own lines, where all others are copies
    bool met_late = false;       // a launcher that nobody told of, and that was not heard so far
    bool begins_inside = false;  // the first line that is heard is the end of one
  };
  struct Speaker {
    uint64_t start_ns = 0;
    uint32_t uid = 0;
    std::array<uint64_t, 3> unheard{};  // by stream: of the kernel's count, what was seen
    std::map<std::pair<uint32_t, FileId>, Stream> streams;
  };

  // A file of which a part was read: what was heard of that part is heard already.
  struct ReadFile {
    std::string job_id;
    int64_t begin = 0, end = 0;  // of what was read, or passed over
    Timestamp at;                // when
    std::string open;            // the end of it: a line that is not complete
  };

  void OnSaid(const rs_said& said, std::string_view data, size_t room);
  void NoteWrapped();
  bool TakeAll();
  void WorkOff();
  void WorkOff(SaidPiece piece);
  bool HasRoomFor(uint32_t uid) const;
  void ReadLeft();
  LeftOutput::Hooks HooksOfLeft();
  void FindUnheard();
  bool BeganBefore(const ProcessKey& key) const { return key.start_ticks < began_ticks_; }
  void OnLeftText(LeftText text);
  void TellLeft(const LeftText& text, const FileId& id, const std::vector<Waiting>& left);
  struct Nobody {
    std::string job_id;
    FilePlace file;
    ProcessKey launcher;  // pid 0: not a launcher's alone
  };
  void TellAsNobody(const Nobody& of, const std::vector<Waiting>& left);
  void Join(const FileId& file, Waiting& piece);
  void TellOpen();
  bool Awaits(const ProcessKey& key, const Stream& stream) const;
  void Hear(const ProcessKey& key, Speaker& speaker, Stream& stream, uint32_t slot, Waiting piece);
  void Settle(const ProcessKey& key, Speaker& speaker, Stream& stream, uint32_t slot);
  bool Open(const ProcessKey& key, Stream& stream, uint32_t slot);
  void Refuse(const ProcessKey& key, Speaker& speaker, Stream& stream, uint32_t slot);
  void Say(Stream& stream, const Waiting& piece);
  void SayWaiting(Stream& stream, Timestamp until);
  OutputStream::Emit EmitFor(Stream& stream);
  void Lose(Stream& stream, int64_t bytes);
  void SettleWaiting();
  void CloseEnded();
  // `over`: the process has ended; else others may hear it go on.
  void Close(const ProcessKey& key, Speaker& speaker, bool over);
  void Sweep();
  bool TellUnheard(const ProcessKey& key, uint32_t slot, const rs_stream& counts, int64_t unheard);
  std::optional<rs_standard> StandardOf(int32_t pid) const;

  OutputRules::Who who_;
  OutputRules rules_;
  SpeechBudget budget_;
  std::unique_ptr<StdioPrograms> programs_;
  exporter::EventLoop::TimerId timer_ = 0;
  SaidTurns turns_;
  Duration left_of_beat_ = kShareOfBeat;  // below zero: the last beat took more than its share
  RecentLines recent_;
  std::map<ProcessKey, Speaker> speakers_;
  size_t streams_ = 0;
  std::map<uint32_t, size_t> streams_of_;  // the same by user
  uint32_t next_number_ = kFirstStream;
  std::map<std::string, int32_t> helpers_;  // streams of a job, by others than ranks
  bool any_waiting_ = false;
  int64_t lost_ = 0;
  int64_t lost_told_ = 0;  // of these, with the lines of their streams
  // Bytes of streams that are closed: told, unheard by reason, ignored.
  struct Totals {
    uint64_t told = 0;
    std::array<uint64_t, RS_UNHEARD_KINDS> unheard{};
    uint64_t ignored = 0;
    void Add(const rs_stream& counts);
  };
  Totals closed_;
  uint64_t refused_ = 0;  // told before it was known that it is no output
  int beats_ = 0;
  std::shared_ptr<const collectors::HeardFiles> heard_;
  int64_t wall_offset_ns_ = 0;
  std::unique_ptr<LeftOutput> left_;  // from the first beat on
  bool left_read_ = false;
  std::map<FileId, ReadFile> read_;
  // Jobs that began before this source did and that nobody has heard.
  enum class Unheard : uint8_t { kMet, kReading, kRead };
  std::map<std::string, Unheard> unheard_;
  std::set<std::string> heard_before_;  // jobs that an earlier daemon has heard
  int64_t began_ticks_ = 0;             // when this source did, as processes count their start
  std::unique_ptr<LeftOutput> unheard_output_;
  bool unheard_done_ = false;                       // it has told all, and is to go
  std::vector<std::unique_ptr<LeftOutput>> stuck_;  // of which a thread does not come back
};

}  // namespace rankscope::probes
