// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Everything that passes the door between the world and the detectors. Thirteen kinds and
// EngineState; all numbers travel as SampleBatch. The wire form is detectors/proto/recording.proto,
// converted by detectors/recording.
//
// Lifetimes: `LogLine::text` and `LogLine::stream_name` are borrowed and valid only during
// Sink::Accept, because lines come by the million; everything else is owned. Built by sources, on
// the loop thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "detectors/model/ids.h"
#include "detectors/model/kernel_event.h"
#include "detectors/model/scheduler_record.h"
#include "detectors/model/signals.h"
#include "detectors/model/time.h"

namespace rankscope {

struct Epoch {
  int64_t wall_offset_ns = 0;  // wall time = t + wall_offset_ns
  int64_t uncertainty_ns = 0;
  std::string boot_id;
  // Whoever observes was away since then and up to now: what befell meanwhile was not seen; 0 = not
  // away.
  Timestamp away_since = {};
};

// The engine knows no other now. On a 1 s grid.
struct Tick {};

enum class Availability : uint8_t {
  kUnspecified,
  kUp,
  kDown,
  kStale,
  kUnsupported,
  kDenied,
  kNotApplicable
};

struct SourceState {
  uint32_t source = 0;
  std::string name;
  Availability state = Availability::kUnspecified;
  std::string reason;
  int64_t lost = 0;
  Duration interval;
  int64_t lost_untold = 0;  // of `lost`: what no line's lost_before tells

  template <class A>
  void Fields(A& a) {
    a(source, name, state, reason, lost, interval, lost_untold);
  }
};

// Said by the wrapper (`rankscope run`), by `classify` and by whoever knows where a job begins and
// ends.
struct RunMark {
  // kDisowned: the job is another user's than the one whose wrapper has spoken for it; all that was
  // said of it goes.
  enum class What : uint8_t { kUnspecified, kBegin, kEnd, kStreamsClosed, kLost, kDisowned };
  std::string job_id;
  What what = What::kUnspecified;
  std::vector<std::string> argv;
  int32_t wait_status = 0;  // as waitpid gives it; meaningful when status_known
  bool status_known = false;
  // kEnd: why the command could not be executed. kBegin: what the wrapper could not do as asked.
  std::string error;
  std::string cwd;
  std::string log;
  ProcessKey root;
  int32_t world_size = 0;
  // kBegin: how often Slurm has put the job back into the queue; 0 = never, or it is none of
  // Slurm's.
  int32_t slurm_restart = 0;
  // Whose wrapper says it, by the kernel's word (SO_PEERCRED): the daemon fills it, a recording of
  // the wrapper's own is not believed.
  std::optional<uint32_t> uid = std::nullopt;
  // kEnd: read from the run's own folder, when its wrapper had ended.
  bool from_folder = false;
};

struct KeyValue {
  std::string key;
  std::string value;

  template <class A>
  void Fields(A& a) {
    a(key, value);
  }
};

// All that a source knows of a process, at once; what is missing becomes a request.
struct ProcessStart {
  ProcessKey key;
  ProcessKey parent;
  uint32_t uid = 0;
  std::string comm;
  std::vector<std::string> argv;
  std::vector<KeyValue> env;  // allow-listed keys only
  std::string cgroup;
  std::vector<int32_t> ns_pids;
  bool complete = false;
  bool preexisting = false;
  std::vector<std::string> gpu_uuids;
  // Of the GPUs' device nodes that its cgroup lets it open, rising; empty: all, or not known.
  std::vector<int32_t> gpu_minors;
  std::string job_id;  // when the source knows it: the wrapper's own child
};

struct ProcessExit {
  ProcessKey key;
  int32_t wait_status = 0;
  bool status_known = false;
  bool core = false;
};

struct SignalSent {
  ProcessKey target;
  int32_t signo = 0;
  int32_t si_code = 0;
  ProcessKey sender;
  std::string sender_comm;
  uint32_t sender_uid = 0;
  std::string sender_cgroup;
};

enum class LineEnd : uint8_t { kUnspecified, kLf, kCr, kFlush, kClosed };

// The end of a line in a regular file: where whoever takes over reads on.
struct FilePlace {
  uint64_t device = 0;  // as makedev(3) packs it
  uint64_t inode = 0;   // 0 = no regular file
  int64_t end = 0;      // of the first byte after the line
  auto operator<=>(const FilePlace&) const = default;
};

// One line, assembled and redacted (masks keep the length, so offsets stay true to the unmodified
// stream).
struct LogLine {
  uint32_t stream = 0;
  std::string_view stream_name;  // borrowed
  std::string job_id;
  ProcessKey writer;
  int64_t offset = 0;     // of the first byte, in the unmodified stream
  std::string_view text;  // borrowed; any bytes, without its terminator
  LineEnd end = LineEnd::kUnspecified;
  int32_t cut_bytes = 0;    // taken out of the middle of an over-long line
  int32_t redactions = 0;   // masked spans
  int64_t lost_before = 0;  // bytes of the stream lost just before this line
  // What the source knows of the stream: whose it is, and under which restart of the launcher it
  // was written; -1 = not known. A prefix in the text goes before it.
  int32_t rank = -1;
  int32_t local_rank = -1;
  int32_t restart = -1;
  // Milliseconds since 1970 of the local time that this line, or one before it, prints, where the
  // source orders by it; 0 = not known.
  int64_t printed_ms = 0;
  // Where it stands, if its stream leads to a regular file that other daemons can read as well.
  FilePlace file = {};
};

struct Subject {
  enum class Kind : uint8_t { kNone, kRank, kProcess, kGpu, kJob, kHost };
  Kind kind = Kind::kNone;
  RankKey rank;
  ProcessKey process;
  std::string name;  // kGpu: uuid, kJob: job id
};

struct Sample {
  SignalId signal{};
  double value = 0;  // a counter in single precision stands still above 2^24
};

struct SampleBatch {
  Subject subject;
  std::vector<Sample> samples;
  std::string query;  // the citation: where these numbers can be asked for again
};

struct KernelEvent {
  int64_t kmsg_seq = 0;
  KernelEventType type = KernelEventType::kUnnamed;
  std::string text;
  ProcessKey victim;
  std::string gpu_bus_id;
  int32_t code = 0;
  // Of an out-of-memory kill: what ran out, whose limit it was, and how much was in use; 0 = not
  // known.
  std::string scope = {};  // cgroup | host | cpuset | mempolicy; empty = not known
  std::string cgroup = {};
  int64_t limit_bytes = 0;
  int64_t used_bytes = 0;
};

// One word of the scheduler's: of a node, of a job that this one goes on from, of the GPUs that a
// mapping file names. Recordings of older builds shred a SchedulerRecord into such words.
struct SchedulerFact {
  std::string job_id;
  std::string step_id;
  std::string field;
  std::string value;
  std::string origin;
  int64_t wall_ns = 0;
  std::string node;
};

struct IntKeyValue {
  std::string key;
  int64_t value = 0;

  bool operator==(const IntKeyValue&) const = default;
};

struct Event {
  RankKey rank;
  ProcessKey process;
  uint32_t type = 0;
  int64_t request = 0;
  std::vector<KeyValue> str;
  std::vector<IntKeyValue> num;
  Timestamp begin;
};

struct EngineState {
  std::string build;
  std::string blob;
};

struct Observation {
  Timestamp t;
  int64_t seq = 0;      // per source, rising
  uint32_t source = 0;  // index of the source's row; 0 = the wrapper
  std::string node;
  std::variant<std::monostate, Epoch, Tick, SourceState, RunMark, ProcessStart, ProcessExit,
               SignalSent, LogLine, SampleBatch, KernelEvent, SchedulerFact, SchedulerRecord, Event,
               EngineState>
      kind;
};

}  // namespace rankscope
