// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: what NCCL and PyTorch report of their own collectives. RAS (its text is parsed
// here): whom its reports name, and since when unchanged, because ranks that differ while their
// counts move are how collectives are. Flight Recorder: the newest dump of each rank. Inspector:
// the newest digest of each rank. Bounded. Single writer.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/reports/ras_report.h"
#include "detectors/reports/ras_roster.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

// A rank of a communicator that a RAS report makes stand out.
struct RasSuspect {
  enum class Kind : uint8_t {
    kBehind,        // has launched fewer of an operation than any other rank
    kOutOfOrder,    // fewer of one operation and more of another than most: another order
    kDead,          // RAS has given its process up
    kUnresponsive,  // its process does not answer
    kLast = kUnresponsive,
  };
  Kind kind = Kind::kBehind;
  std::string communicator;
  int32_t size = 0;   // of the communicator; 0 = a process, named outside of any
  int32_t rank = -1;  // within the communicator
  std::string host;
  int64_t pid = -1;       // as the process sees it
  int32_t operation = 0;  // index into reports::kRasOperations; beyond: of all operations
  int64_t launched = -1;
  int64_t furthest = -1;        // of the operation, by any rank
  int32_t waiting = 0;          // ranks that have launched so many
  int32_t other_operation = 0;  // kOutOfOrder: of which it has launched more
  // Unchanged in so many reports in a row, the first and the last of them.
  int64_t reports = 1;
  Timestamp first, last;

  bool SameAs(const RasSuspect& other) const;
  template <class A>
  void Fields(A& a) {
    a(kind, communicator, size, rank, host, pid, operation, launched, furthest, waiting,
      other_operation, reports, first, last);
    if (kind > Kind::kLast) kind = Kind::kBehind;  // restored from damaged bytes
    if (operation < 0) operation = 0;
    if (other_operation < 0) other_operation = 0;
  }
};

struct RasSeen {
  int64_t reports = 0;
  Timestamp first, last;  // reports
  std::string version;    // of NCCL
  int64_t communicators = 0;
  int64_t mismatches = 0;  // communicators of the newest report whose ranks differ
  int64_t largest = 0;     // ranks of the largest communicator named
  int64_t timeouts = 0;    // of legs, in the newest report
  bool none = false;       // the service answers and knows no communicator
  int64_t silences = 0;    // in a row: it took the question and did not answer in time
  Timestamp silent_since;  // the first of them

  template <class A>
  void Fields(A& a) {
    a(reports, first, last, version, communicators, mismatches, largest, timeouts, none, silences,
      silent_since);
  }
};

struct FlightGroupSeen {
  std::string name, description;
  std::string members;  // "0-7,9", with a stride "0-56/8"; empty = not told
  int64_t enqueued = -1, completed = -1;
  int64_t pending = -1;  // sequence of the oldest collective that has not completed
  std::string operation, sizes, dtype, caller, state;
  int64_t created_ns = 0;  // since 1970: when that one was entered; 0 = not told
  int64_t timeout_ms = 0;  // after which the watchdog gives it up; 0 = not told
  // The oldest send or receive that has not completed, and since when, as above.
  std::string peers;  // ranks that it waits for; as `members`
  std::string exchange;
  int64_t exchange_sequence = -1, exchange_created_ns = 0, exchange_timeout_ms = 0;

  template <class A>
  void Fields(A& a) {
    a(name, description, members, enqueued, completed, pending, operation, sizes, dtype, caller,
      state, created_ns, timeout_ms, peers, exchange, exchange_sequence, exchange_created_ns,
      exchange_timeout_ms);
  }
};

// The newest dump of one rank.
struct FlightSeen {
  Timestamp t;
  int64_t written_ns = 0;  // since 1970
  bool cut = false;        // it holds more groups than were told
  std::vector<FlightGroupSeen> groups;

  template <class A>
  void Fields(A& a) {
    a(t, written_ns, cut, groups);
  }
};

// The newest digest of one rank's largest communicator.
struct InspectorSeen {
  Timestamp t;
  int64_t ranks = 0, nodes = 0;
  std::string operation;
  int64_t sequence = -1;
  int64_t bytes = -1;
  int64_t records = 0;  // so far
  int64_t dropped = 0;
  double bus_bytes_per_second = -1;  // median of the newest digest

  template <class A>
  void Fields(A& a) {
    a(t, ranks, nodes, operation, sequence, bytes, records, dropped, bus_bytes_per_second);
  }
};

class ReportTracker {
 public:
  static constexpr size_t kMaxSuspects = 64;  // 300 bytes each
  // A node has some dozen ranks, a folder of dumps those of all nodes. A rank is in a dozen groups
  // of 500 bytes.
  static constexpr size_t kMaxRanks = 4096;
  static constexpr size_t kMaxGroups = 64;

  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  void OnSamples(const SampleBatch&, const Speaker&, Timestamp) {}

  bool any() const { return ras_.reports > 0 || !flights_.empty() || !inspector_.empty(); }
  const RasSeen& ras() const { return ras_; }
  const std::vector<RasSuspect>& suspects() const { return suspects_; }  // of the newest report
  // The largest that any report has listed.
  const reports::RasRoster& roster() const { return roster_; }
  const std::map<int32_t, FlightSeen>& flights() const { return flights_; }
  const std::map<int32_t, InspectorSeen>& inspector() const { return inspector_; }

  template <class A>
  void Fields(A& a) {
    a(ras_, suspects_, roster_, flights_, inspector_);
    if (suspects_.size() > kMaxSuspects) suspects_.resize(kMaxSuspects);
    while (flights_.size() > kMaxRanks) flights_.erase(std::prev(flights_.end()));
    while (inspector_.size() > kMaxRanks) inspector_.erase(std::prev(inspector_.end()));
  }

 private:
  void OnRas(const Event& event, Timestamp t);
  void OnFlight(const Event& event, int32_t rank, Timestamp t);
  void OnInspector(const Event& event, int32_t rank, Timestamp t);

  RasSeen ras_;
  std::vector<RasSuspect> suspects_;
  reports::RasRoster roster_;
  std::map<int32_t, FlightSeen> flights_;
  std::map<int32_t, InspectorSeen> inspector_;
};

// Whom a RAS report makes stand out. Pure.
std::vector<RasSuspect> FindRasSuspects(const reports::RasReport& report, Timestamp t);

// The ranks of "0-7,9" and "0-56/8", at most 65,536; empty where it is no such list.
std::vector<int32_t> ReadRanks(std::string_view text);

}  // namespace rankscope::windows
