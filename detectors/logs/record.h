// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a log line can become. Three kinds of record: Progress (a training step's numbers), Incident
// (something that may explain how a run ended) and Marker (where in its life the run is). Dialects
// and shapes produce them; windows consume them. Views are borrowed from the line and valid until
// the next call of the reader.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/model/time.h"

namespace rankscope::logs {

// A line ready for parsing: terminator, ANSI sequences and launcher prefixes gone.
struct CleanLine {
  std::string_view text;      // what the program wrote
  std::string_view original;  // what the stream holds (redacted); citations quote this
  int64_t offset = 0;         // of original's first byte
  int32_t rank = -1;          // from a launcher prefix; -1 = not said
  bool local_rank = false;    // the prefix names a local rank ([default3]:), not a global one
  LineEnd end = LineEnd::kLf;
  Timestamp t;
};

inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

// What the number that a record prints as its step counts.
enum class StepUnit : uint8_t {
  kSteps,    // of the training, or within an epoch
  kEpochs,   // of as many steps as nobody says
  kRounds,   // of a boosting library, each over all the data
  kSamples,  // within an epoch
};

// One training progress record. The views hold the numbers as the job printed them (quotes and
// thousands separators removed) and are empty where the record does not print them; the doubles are
// the same numbers, meaningful only where the view is not empty (a printed "nan" is a NaN with a
// non-empty view).
struct Progress {
  std::string_view format;  // FormatRow::name
  bool generic = false;     // read by the generic fallback: weak evidence
  std::string_view step_text;
  std::string_view loss_text;
  std::string_view grad_norm_text;
  std::string_view learning_rate_text;
  double step = kAbsent;
  double loss = kAbsent;
  double grad_norm = kAbsent;
  double learning_rate = kAbsent;
  double total_steps = kAbsent;
  double epoch = kAbsent;
  double step_seconds = kAbsent;  // as printed in the line: seconds per step
  double reward = kAbsent;
  double loss_scale = kAbsent;
  double skipped_iterations = kAbsent;
  double nan_iterations = kAbsent;
  double num_zeros = kAbsent;  // gradient elements that are zero
  double params_norm = kAbsent;
  double batch_size = kAbsent;        // samples per step, over all ranks
  double consumed_samples = kAbsent;  // since the training's begin
  double consumed_tokens = kAbsent;
  double elapsed_seconds = kAbsent;     // since the loop's begin
  double samples_per_second = kAbsent;  // throughput, as printed, whatever it is per
  double tokens_per_second = kAbsent;
  double tflops = kAbsent;          // TFLOP/s, per GPU where the dialect says so
  double mfu = kAbsent;             // 0..1
  double reward_std = kAbsent;      // reinforcement learning
  double zero_std_share = kAbsent;  // 0..1, groups whose rewards are all equal
  double kl = kAbsent;
  double clipped_share = kAbsent;  // 0..1, completions that ran into the length limit
  StepUnit step_unit = StepUnit::kSteps;
  bool loss_key_missing = false;  // the dialect prints a loss when it has one, and here it did not
};

enum class IncidentKind : uint8_t {
  kException,          // a Python traceback's last line, or a lone terminal error line
  kSignalDeath,        // text says that a process was killed by a signal: signal, pid, rank
  kNonZeroExit,        // a launcher or shell says that a process exited: exit_code, pid, rank
  kCudaOom,            // an allocator's text; fields requested, total, free, allocated, reserved,
                       // this_process (bytes)
  kHostOom,            // slurmstepd, kernel or cgroup text of an out-of-memory kill
  kCudaError,          // a CUDA runtime error that is not out-of-memory; field error
  kXid,                // NVRM text; fields code, bus_id
  kCollectiveTimeout,  // watchdog or transport timeout inside a collective; fields op, seq,
                       // timeout_ms, backend
  kPeerLost,           // a connection inside a process group broke: a peer went away first
  kRendezvous,         // the process group could not form; sub
                // timeout|refused|dns|port_in_use|bind|store_lost|join|syn_timeout|unreachable;
                // fields host, port
  kSchedulerEnd,   // sub
                   // cancelled|time_limit|preemption|requeue|node_failure|failed|memory_error|oom
  kTerminated,     // the program says that it was told to stop: SIGTERM, SIGINT, KeyboardInterrupt;
                   // field signal name
  kNonFiniteLoss,  // prose: "Loss is nan, stopping training"
  kUsageError,     // argparse and friends: "error: unrecognized arguments"
  kStorage,        // no space, quota, I/O error; field errno
};

// Roles a text can give itself. Only kInitiating competes for the verdict; the engine may demote
// further.
enum class Role : uint8_t {
  kInitiating,
  kCascade,  // a consequence by its own words: connection reset by peer, closing signal SIGTERM
  kWrapper,  // the launcher's report of a child's failure
  kAdvice,   // "may", "might", "consider passing"
};

// Where in the program an exception was raised, read off its innermost telling frame.
enum class FrameKind : uint8_t {
  kUnknown,
  kImport,
  kConfig,          // argument parsing, configuration files, constructor keywords
  kDataset,         // datasets, pyarrow, dataset __getitem__, collate, tokenising a corpus
  kAssetLoad,       // from_pretrained, hub download, tokenizer or model files
  kCheckpointLoad,  // load_state_dict, torch.load of a checkpoint, resume
  kCheckpointSave,
  kDataLoader,
  kRendezvous,  // init_process_group, TCPStore
  kCollective,  // all_reduce, barrier, ...
  kTrainStep,   // forward, backward, optimizer step, training loop
  kTeardown,    // destroy_process_group, atexit
};

// Why a line beside the incident's own is worth quoting.
enum class QuoteRole : uint8_t {
  kFrame,     // the source line at which it was raised
  kMessage,   // a further line of its message
  kBelow,     // a line right below it, of its message or not
  kCause,     // the first exception of its chain
  kLauncher,  // a further line of a launcher's report
};

// Part of a line, and where it stands in the stream.
struct Quote {
  QuoteRole role{};
  int64_t offset = 0;
  std::string line;  // at most kCitationCap bytes

  template <class A>
  void Fields(A& a) {
    a(role, offset, line);
  }
};
inline constexpr size_t kMaxQuotes = 6;         // of one incident
inline constexpr size_t kMaxMessageQuotes = 3;  // of which further lines of the message, and as
                                                // many below it

struct Incident {
  IncidentKind kind{};
  Role role = Role::kInitiating;
  FrameKind frame = FrameKind::kUnknown;
  int32_t rank = -1;  // global; -1 = not said
  int32_t local_rank = -1;
  int32_t pid = 0;  // 0 = not said
  int32_t exit_code = 0;
  int32_t signal = 0;          // 0 = none
  std::string sub;             // closed list per kind, see above
  std::string shape;           // ShapeRow::name that read it
  std::string exception_type;  // as printed, dotted: torch.cuda.OutOfMemoryError
  std::string message;         // first line, at most kMessageCap bytes
  std::string cause_type;      // first exception of a chain, when there is one
  std::string cause_message;
  std::string file;  // innermost user frame (not site-packages), path:line
  std::string function;
  std::vector<KeyValue> fields;  // captured values by name, see IncidentKind
  int64_t printed_time_s =
      0;               // seconds of the printed local time, for ordering within a stream; 0 = none
  int64_t offset = 0;  // of the cited line
  std::string line;    // the cited line, at most kCitationCap bytes
  Timestamp t;
  std::vector<Quote> quotes;  // at most kMaxQuotes

  template <class A>
  void Fields(A& a) {
    a(kind, role, frame, rank, local_rank, pid, exit_code, signal, sub, shape, exception_type,
      message, cause_type, cause_message, file, function, fields, printed_time_s, offset, line, t,
      quotes);
  }
};

inline constexpr size_t kMessageCap = 500;
inline constexpr size_t kCitationCap = 300;  // what a verdict may quote of a line

enum class MarkerKind : uint8_t {
  kBanner,      // a framework names itself; text = framework
  kTrainBegin,  // the training loop starts; number = total steps where said
  kTrainEnd,    // the training loop says that it finished; number = steps made, where they can be
                // told
  kSaveBegin,   // a checkpoint save begins; text = path
  kSaveEnd,
  kLoadBegin,        // a checkpoint is being read; text = path
  kLoaded,           // a checkpoint was read; number = step where said
  kNoCheckpoint,     // asked for a checkpoint, found none, starts from scratch
  kEval,             // an evaluation record; number = eval loss where printed
  kRendezvousBegin,  // "initializing process group" and friends
  kRendezvousEnd,    // the process group stands
  kRestart,  // the launcher restarts its workers, the scheduler requeues: a new attempt; number =
             // restart count
  kLauncherBegin,  // a launcher's start-up text
  kSaveFailed,     // a checkpoint save failed, by the program's own words; text = path or reason
  kEvalBegin,      // an evaluation starts
  kFact,           // what a library says of itself: name = what ("nccl_version"), text = its value
  kLossScale,      // a dynamic loss scale was lowered; number = the new scale
  kPartialLoad,    // something of a checkpoint was not restored; text = what
  kCompileBegin,   // a compiler runs, or its lock is waited for; text = what
  kCompileEnd,
  kResumeAsked,  // the command, or its arguments, asks to go on from a checkpoint; text = how,
                 // empty where a command does not ask
  kFreshAsked,   // or for the weights of one alone
  kMetric,  // a loss or reward outside of any dialect's record; text = its name, number = its value
};
inline constexpr size_t kMarkerKinds = static_cast<size_t>(MarkerKind::kMetric) + 1;
// The name of a kMetric whose value was printed as a tensor of PyTorch with its graph: of what is
// computed from the weights, which mostly is a loss.
inline constexpr std::string_view kGraphMetric = "graph_metric";

struct Marker {
  MarkerKind kind{};
  std::string_view name;  // row that read it
  std::string_view text;
  double number = kAbsent;
  int64_t offset = 0;
  std::string_view line;
};

using Record = std::variant<Progress, Incident, Marker>;
using RecordList = std::vector<Record>;

}  // namespace rankscope::logs
