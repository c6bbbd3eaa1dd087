// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// rankscope replay: judges a recording again.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>

#include "detectors/document/verdict_json.h"
#include "detectors/document/verdict_words.h"
#include "exporter/cli/commands.h"
#include "exporter/replay/judge.h"

namespace rankscope::cli {

namespace {

void SleepFor(Duration duration) {
  timespec rest{duration.ns / 1'000'000'000, duration.ns % 1'000'000'000};
  while (nanosleep(&rest, &rest) != 0) {
  }
}

void PrintChange(Duration since_start, const proto::Verdict& verdict) {
  const char* state = verdict.state() == proto::FINAL         ? "final"
                      : verdict.state() == proto::PROVISIONAL ? "provisional"
                                                              : "live";
  // A job names itself; its name must not control the terminal.
  std::string job_id = verdict.job_id();
  std::replace_if(
      job_id.begin(), job_id.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
  std::printf("%+.3fs %s %s %s %s, %s\n", since_start.seconds(), job_id.c_str(),
              verdict.code().c_str(), verdict.family().c_str(), ConfidenceWords(verdict).c_str(),
              state);
  std::fflush(stdout);
}

void PrintDocument(const proto::VerdictDocument& document, bool json, Detail detail) {
  if (json) {
    std::printf("%s\n", DocumentToJson(document).c_str());
    return;
  }
  for (int i = 0; i < document.verdicts_size(); ++i) {
    std::printf("%s%s", i == 0 ? "" : "\n", VerdictToText(document.verdicts(i), detail).c_str());
  }
}

}  // namespace

int ReplayCommand(int argc, char** argv) {
  std::string recording;
  std::string format = "json";
  double speed = 0;
  bool timeline = false;
  bool all = false;
  CLI::App app("Judge a recording again and print the verdict of each job in it.",
               "rankscope replay");
  app.add_option("RECORDING", recording,
                 "Directory of a recording, one of its files, a file of JSON Lines, or - for "
                 "standard input")
      ->required();
  app.add_option("--format", format, "Output format: json or text")
      ->check(CLI::IsMember({"json", "text"}));
  app.add_flag("--all", all, "In text, print all evidence and each reason");
  app.add_option("--speed", speed,
                 "Speed relative to the recording; without it, as fast as possible")
      ->check(CLI::Range(0.001, 1e6));
  app.add_flag("--timeline", timeline,
               "Print each change of a verdict with its time, instead of the verdicts");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  replay::JudgeOptions options;
  if (timeline) options.changed = PrintChange;
  if (speed > 0) {
    options.pace = [speed](Duration passed) {
      constexpr double kMostSeconds = 1e6;  // a damaged time must not overflow
      SleepFor(Seconds(std::min(passed.seconds() / speed, kMostSeconds)));
    };
  }
  const replay::Judgement judgement = replay::JudgeRecording(recording, options);
  if (!judgement.read.readable) {
    std::fprintf(stderr, "rankscope replay: %s: %s\n", recording.c_str(),
                 judgement.read.error.c_str());
    return 1;
  }
  for (const std::string& note : judgement.read.notes) {
    std::fprintf(stderr, "rankscope replay: %s: %s\n", recording.c_str(), note.c_str());
  }
  if (!timeline)
    PrintDocument(judgement.document, format == "json", all ? Detail::kAll : Detail::kShort);
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace rankscope::cli
