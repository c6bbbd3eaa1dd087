// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// rankscope classify: judges log files, one line of JSON each.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "detectors/document/verdict_json.h"
#include "exporter/cli/commands.h"
#include "exporter/replay/log_file.h"

namespace rankscope::cli {

namespace {

// Prints the verdict, or why there is none; false for the latter.
bool Print(const std::string& name, const Result<proto::Verdict>& verdict, bool json,
           Detail detail) {
  if (!verdict) {
    if (json) {
      std::string line = "{\"file\":";
      AppendJsonString(name, line);
      line += ",\"error\":";
      AppendJsonString(verdict.error(), line);
      std::printf("%s}\n", line.c_str());
    } else {
      std::printf("%s: %s\n\n", name.c_str(), verdict.error().c_str());
    }
  } else if (json) {
    std::printf("%s\n", VerdictToJson(*verdict, name).c_str());
  } else {
    std::printf("%s\n%s\n", name.c_str(), VerdictToText(*verdict, detail).c_str());
  }
  return verdict.has_value();
}

// One object for all files. Where some could not be read, it has an `error` beside its verdict.
bool JudgeAsOneJob(const std::vector<std::string>& paths, std::optional<int> exit_code, bool json,
                   Detail detail) {
  std::string name;
  for (const std::string& path : paths) name += (name.empty() ? "" : " ") + path;
  const Result<std::vector<std::string>> files = replay::LogFilesOf(paths);
  if (!files) return Print(name, Error{files.error()}, json, detail);
  Result<replay::JobJudgement> judged = replay::JudgeJobLogs(*files, exit_code);
  if (!judged) return Print(name, Error{judged.error()}, json, detail);
  if (judged->unreadable.empty()) return Print(name, std::move(judged->verdict), json, detail);
  if (json) {
    std::string line = "{\"file\":";
    AppendJsonString(name, line);
    line += ",\"error\":";
    AppendJsonString(judged->unreadable, line);
    line += "," + VerdictToJson(judged->verdict).substr(1);
    std::printf("%s\n", line.c_str());
  } else {
    std::printf("%s\nnot read: %s\n%s\n", name.c_str(), judged->unreadable.c_str(),
                VerdictToText(judged->verdict, detail).c_str());
  }
  return false;
}

}  // namespace

int ClassifyCommand(int argc, char** argv) {
  std::vector<std::string> files;
  std::string format = "json";
  std::optional<int> exit_code;
  bool job = false;
  bool all = false;
  CLI::App app(
      "Judge log files, or dumps of PyTorch's flight recorder, and print one JSON object per file, "
      "in their order. Exit status: 0; 1 if a "
      "file cannot be read; 2 for wrong usage.",
      "rankscope classify");
  app.add_option("FILE", files, "Log files; - for standard input")->required();
  app.add_option("--exit-code", exit_code, "Exit status of the job's command, if known")
      ->check(CLI::Range(0, 255));
  app.add_option("--format", format, "Output format: json or text")
      ->check(CLI::IsMember({"json", "text"}));
  app.add_flag("--all", all, "In text, print all evidence and each reason");
  app.add_flag(
      "--job", job,
      "Judge all files, and all files below directories, as the logs and the dumps of PyTorch's "
      "flight recorder of one job's ranks");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  const bool json = format == "json";
  const Detail detail = all ? Detail::kAll : Detail::kShort;
  bool read = true;
  if (job) {
    read = JudgeAsOneJob(files, exit_code, json, detail);
  } else {
    for (const std::string& file : files) {
      read = Print(file, replay::JudgeLog(file, exit_code), json, detail) && read;
    }
  }
  return std::fflush(stdout) == 0 && read ? 0 : 1;
}

}  // namespace rankscope::cli
