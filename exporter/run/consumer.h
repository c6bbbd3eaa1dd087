// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Where the wrapper's observations go: recorder and engine, put together by the command line, since
// this room knows neither. Built and called on the observer thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "detectors/model/sink.h"
#include "exporter/run/artifacts.h"

namespace rankscope::run {

struct Judgement {
  std::string json;  // the verdict document
  std::string text;  // for people
  // Where no daemon tells people of the run: leaves a message for whoever sends it. Called last, on
  // the main thread; returns what could not be done, or nothing. May be empty.
  std::function<std::string(const Artifacts& artifacts)> leave = {};
  bool notified = false;  // the daemon does that
};

struct Consumer {
  std::unique_ptr<Sink> sink;
  // What was accepted so far can be read by others.
  std::function<void()> flush;
  // After the last observation: the verdict on everything accepted.
  std::function<Judgement()> judge;
};

// `recording_fd`: the folder of the recording, open for as long as the consumer lives; -1 when it
// could not be made.
using MakeConsumer = std::function<Consumer(int recording_fd)>;

}  // namespace rankscope::run
