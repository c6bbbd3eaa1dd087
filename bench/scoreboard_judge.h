// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Who judges: the engine, live, or a program that is given a file. Single thread.
#pragma once

#include <optional>
#include <string>

#include "bench/scoreboard_board.h"
#include "detectors/engine/engine.h"
#include "detectors/model/sink.h"

namespace rankscope::bench {

// Judges as the daemon does: with each tick.
class LiveJudge final : public Sink {
 public:
  void Accept(const Observation& observation) override;
  // `ended`: the job has ended, and the last word on it is waited for.
  Judgement Finish(bool ended);

 private:
  void JudgeAt(Timestamp now);

  std::optional<engine::Engine> engine_;
  std::optional<Timestamp> begin_;
  Timestamp last_;
  Judgement judgement_;
};

// What `COMMAND PATH` prints: JSON with "code" and "confidence", and perhaps "sub".
Judgement Ask(const std::string& command, const std::string& path);

// The same of a recording in memory.
Judgement AskAbout(const std::string& command, const std::string& bytes);

}  // namespace rankscope::bench
