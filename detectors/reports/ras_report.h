// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What NCCL's RAS service says of a job, whichever dialect it speaks: its JSON (since 2.28.7) lists
// every rank, its text names groups of equal communicators and only the ranks that stand out. RAS
// counts what ranks have *launched*, of five collectives; it knows no Send, no Recv, no AllToAll,
// and not whether anything has completed. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope::reports {

inline constexpr std::array<std::string_view, 5> kRasOperations = {
    "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};
inline constexpr size_t kRasOperationCount = kRasOperations.size();
// Before 2.26 one count stood for all operations.
inline constexpr size_t kRasAllOperations = kRasOperationCount;

// One rank of a communicator, as far as it is told.
struct RasRank {
  enum class State : uint8_t {
    kUnknown,  // named, and nothing said of its state
    kRunning,
    kInitialising,
    kFinalising,
    kAborted,
    kNoMember,      // its process answers and knows no such communicator: torn down or not begun
    kUnresponsive,  // its process does not answer
    kDead,          // RAS has given it up
  };
  int32_t rank = -1;  // within the communicator
  std::string host;
  int64_t pid = -1;  // as the process itself sees it
  int32_t cuda_device = -1;
  int32_t nvml_device = -1;
  State state = State::kUnknown;
  std::string error;  // what NCCL says is wrong with it; empty = nothing
  // Launched operations, the last one for all of them together; -1 = not told.
  std::array<int64_t, kRasOperationCount + 1> launched = {-1, -1, -1, -1, -1, -1};
};

// Ranks of a communicator that have launched equally many.
struct RasCount {
  size_t operation = kRasAllOperations;
  int64_t launched = 0;
  int32_t ranks = 0;
};

struct RasCommunicator {
  std::string id;  // hash, with the second one where it is told
  int32_t size = 0;
  int32_t reported = 0;
  int32_t missing = 0;  // did not answer or know nothing of it
  bool mismatch = false, incomplete = false, failed = false;
  std::vector<RasRank> ranks;    // JSON: all of them; text: those that stand out
  std::vector<RasCount> counts;  // of operations that the ranks disagree on; JSON: of all
};

// A row of the text's table: communicators of one kind.
struct RasGroup {
  int32_t communicators = 0;
  int32_t nodes = 0;
  int32_t ranks_per_communicator = 0;
  int32_t ranks = 0;
  std::string status, errors;
};

struct RasProcess {
  std::string host;
  int64_t pid = -1;
  std::string gpus;
};

struct RasReport {
  bool json = false;
  std::string version;                         // of NCCL, "2.29.1"; empty = not told
  std::string timestamp;                       // as the answering process prints it
  int32_t nodes = 0, processes = 0, gpus = 0;  // text only; 0 = not told
  int32_t communicators_told = 0;              // how many there are, by the report's own word
  std::vector<RasCommunicator> communicators;  // text: those that have something to report
  std::vector<RasGroup> groups;
  std::vector<RasProcess> dead, unresponsive;
  int32_t dead_told = 0, unresponsive_told = 0;
  int32_t timeouts = 0;
  double collection_seconds = -1;
  bool none = false;  // RAS answers and knows no communicator
  bool cut = false;   // the answer ends in the middle
  int64_t repaired = 0;
  int64_t not_understood = 0;  // lines of the text
};

// A job of 16,384 ranks with a world communicator and some of eight ranks each has 20,000; what
// goes beyond is counted, not kept.
inline constexpr size_t kMaxRasCommunicators = 32768;
inline constexpr size_t kMaxRasRanks = size_t{1} << 17;

// The answer to a STATUS command, in either dialect. Never fails: a text that is no report has no
// communicator and no version.
RasReport ReadRas(std::string_view text);
RasReport ReadRasText(std::string_view text);
RasReport ReadRasJson(std::string_view text);

// Version as three numbers, for what is known of releases; empty where it is not one.
std::optional<std::array<int, 3>> RasVersion(std::string_view version);

}  // namespace rankscope::reports
