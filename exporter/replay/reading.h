// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Reads a recording back: one file (delimited protobuf or JSON Lines), standard input, or a
// recorder's directory. Any thread; blocks on the files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "detectors/model/observation.h"
#include "detectors/recording/recording.h"

namespace rankscope::replay {

struct ReadCallbacks {
  // Once, before everything else; not called where nothing is readable.
  std::function<void(const recording::Header&)> header;
  // Once, before the first observation (a restored state may come before it): whether Tick
  // observations are among what follows.
  std::function<void(bool ticks_recorded)> begin;
  std::function<void(const Observation&)> observation;
  // Where observations before this point are missing: take this state in their place. False = it
  // cannot be taken (it is of another build); null = never. EngineState is given here only, never
  // as an observation.
  std::function<bool(const EngineState&)> restore;
};

struct ReadResult {
  bool readable = false;  // a header, or a JSON line, was there
  std::string error;      // why not readable
  bool exact = true;  // the observations given are all there were, or a restored state stands for
                      // the missing ones
  std::optional<int64_t>
      truncated_at;  // bytes that could be read of the last file, where it ends too early
  std::vector<std::string> notes;  // for people: what is missing
  int64_t observations = 0;
};

// `path`: a file, a directory, or "-".
ReadResult ReadRecording(const std::string& path, const ReadCallbacks& callbacks);

// The same of a directory that is open.
ReadResult ReadRecordingDirectory(int directory_fd, const ReadCallbacks& callbacks);

}  // namespace rankscope::replay
