// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Turns what the wrapper sees into observations: begin, the child, lines, ticks, end. Lives on a
// thread of its own, behind the queue, so that reading text never slows the command.
//
// An open line is not cut short by time while it may still grow: "Epoch 3 ..." now and " loss 0.5"
// a minute later are one line. Only what follows a carriage return (a progress bar, complete each
// time it is drawn) is taken as a line after kBarSilence; its terminator then ends an empty rest.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "detectors/logs/text/assembler.h"
#include "detectors/model/observation.h"
#include "exporter/run/child.h"
#include "exporter/run/consumer.h"
#include "exporter/run/daemon_link.h"
#include "exporter/run/queue.h"
#include "exporter/run/relay.h"

namespace rankscope::run {

class Observer {
 public:
  static constexpr Duration kBarSilence = Seconds(5);
  static constexpr Duration kTickInterval = Seconds(1);

  struct Facts {
    std::string job_id;
    std::string host;
    std::string cwd;
    std::string log_path;
    int recording_fd = -1;
    char* const* argv = nullptr;
    char* const* environment = nullptr;
    ProcessKey child;
    Timestamp started;
    std::string note;  // what could not be done as asked, so far
    std::array<std::string, kStreams> stream_names = {"stdout", "stderr"};
    std::vector<std::string> targets = {};  // as in Options
    std::string notify = {};                // the same
  };

  Observer(Facts facts, Queue& queue, const Tap& tap, DaemonLink& link, MakeConsumer make_consumer);

  // Until kFinish has been taken. The verdict: the daemon's when it answers, else our own.
  Judgement Run();

 private:
  struct Stream {
    logs::LineAssembler assembler;
    LineEnd last_end = LineEnd::kLf;
    Timestamp last_bytes;
    bool closed = false;
  };

  void Begin();
  void Handle(const QueueItem& item);
  void TakeBytes(const QueueItem& item);
  void CloseStream(int stream, int64_t lost_before);
  void EmitLine(int stream, const logs::AssembledLine& line);
  void EmitTicks(Timestamp now);
  void FlushSilentBars(Timestamp now);
  void TellLogHealth(bool at_end);
  void Emit(Observation& observation, Timestamp t);
  template <typename Kind>
  void EmitKind(Kind kind, Timestamp t);
  Timestamp NextDeadline() const;
  Judgement Finish();

  Facts facts_;
  Queue& queue_;
  const Tap& tap_;
  DaemonLink& link_;
  MakeConsumer make_consumer_;
  Consumer consumer_;
  std::array<Stream, kStreams> streams_;
  Observation line_;    // reused: a line costs no allocation
  std::string masked_;  // a line that holds a secret, masked
  int64_t seq_ = 0;
  Timestamp last_t_;
  Timestamp next_tick_;
  int64_t told_lost_bytes_ = 0;
  bool dirty_ = false;
  bool finished_ = false;
};

}  // namespace rankscope::run
