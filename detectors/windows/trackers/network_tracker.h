// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Of one attempt: how the job's processes reach each other: connection attempts, listeners, names
// that do not resolve, retransmits; and where its coordinator is meant to be. Bounded. Single
// writer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/windows/trackers/speaker.h"

namespace rankscope::windows {

// One process and one peer, address to listen on or name, and one way in which it went.
struct Contact {
  enum class Kind : uint8_t { kConnect, kListen, kResolve, kReset };
  Kind kind = Kind::kConnect;
  int32_t rank = -1;
  ProcessKey process;
  std::string peer;     // "10.0.0.1:29500"; of kResolve the name
  std::string host;     // without the port
  std::string outcome;  // exporter/probes/network/network_facts.h
  int64_t port = 0;
  int64_t error = 0;  // errno; of kResolve getaddrinfo's code
  int64_t attempts = 0;
  double seconds = 0;    // the longest from a try to its outcome, or to now
  bool waiting = false;  // it had not returned when it was last told of
  Timestamp first, last;

  template <class A>
  void Fields(A& a) {
    a(kind, rank, process, peer, host, outcome, port, error, attempts, seconds, waiting, first,
      last);
    if (kind > Kind::kReset) kind = Kind::kConnect;  // restored from damaged bytes
  }
};

// Where a rank is told to find the others.
struct Coordinator {
  std::string host;
  int64_t port = 0;
  std::string said_by;  // MASTER_PORT, --rdzv_endpoint ...

  template <class A>
  void Fields(A& a) {
    a(host, port, said_by);
  }
};

class NetworkTracker {
 public:
  // 64 ranks that each meet four peers in trouble; what went well gives way.
  static constexpr size_t kMost = 512;
  static constexpr size_t kMostCoordinators = 8;  // a launcher's, the ranks', and of each a retry
  static constexpr size_t kTextCap = 253;         // a host name

  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  void OnSamples(const SampleBatch&, const Speaker&, Timestamp) {}
  void OnEnvironment(const std::vector<KeyValue>& environment);
  void OnCommand(std::string_view command);
  // Of the attempt before this one: the launcher that says so lives through both.
  void KeepCoordinators(const NetworkTracker& before) { coordinators_ = before.coordinators_; }

  const std::vector<Contact>& contacts() const { return contacts_; }
  const std::vector<Coordinator>& coordinators() const { return coordinators_; }
  int64_t dropped() const { return dropped_; }

  template <class A>
  void Fields(A& a) {
    a(contacts_, coordinators_, dropped_);
    if (contacts_.size() > kMost) contacts_.resize(kMost);  // restored from damaged bytes
    if (coordinators_.size() > kMostCoordinators) coordinators_.resize(kMostCoordinators);
  }

 private:
  void Add(Contact contact);
  void AddCoordinator(std::string_view host, int64_t port, std::string_view said_by);

  std::vector<Contact> contacts_;
  std::vector<Coordinator> coordinators_;
  int64_t dropped_ = 0;
};

}  // namespace rankscope::windows
