// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A recording judged again: reads it, plays it to an engine of its own, gives the verdicts. Blocks
// on files; any thread.
#pragma once

#include <functional>
#include <string>

#include "detectors/engine/engine.h"
#include "detectors/model/time.h"
#include "detectors/proto/verdict.pb.h"
#include "exporter/replay/reading.h"

namespace rankscope::replay {

struct JudgeOptions {
  engine::Config config;
  // A job's code, family, confidence or state is not what it was at the last tick; `since_start` is
  // observation time.
  std::function<void(Duration since_start, const proto::Verdict& verdict)> changed;
  // This much observation time passes before the next observation.
  std::function<void(Duration)> pace;
};

struct Judgement {
  proto::VerdictDocument document;  // by job id; each job's last verdict
  ReadResult read;                  // where not readable, the document is empty
};

Judgement JudgeRecording(const std::string& path, const JudgeOptions& options = {});

}  // namespace rankscope::replay
