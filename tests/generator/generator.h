// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// From a seed the recording of a whole job, and the truth about it. The same seed and options give
// the same bytes on every machine. Single thread.
#pragma once

#include <string>

#include "detectors/model/sink.h"
#include "tests/generator/plan.h"

namespace rankscope::generator {

// Streams the job's observations, ticks included, in the order of their times.
Truth Generate(const Options& options, Sink& sink);

// The same as the bytes of one recording.
Truth GenerateRecording(const Options& options, std::string& bytes);

}  // namespace rankscope::generator
