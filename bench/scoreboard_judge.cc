// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/scoreboard_judge.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "detectors/document/verdict_words.h"
#include "detectors/proto/verdict.pb.h"

namespace rankscope::bench {
namespace {

constexpr int kMoreTicks = 20;  // past the longest wait for a last word

// What stands behind `"key":` in `text`.
std::string ValueOf(const std::string& text, const std::string& key) {
  const size_t at = text.find('"' + key + "\":");
  if (at == std::string::npos) return {};
  const size_t begin = text.find_first_not_of(" \"", at + key.size() + 3);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_first_of(",\"}\n", begin) - begin);
}

int GroundOf(const std::string& word) {
  for (int i = proto::GROUND_HEURISTIC; i <= proto::GROUND_RECORD; ++i) {
    if (Word(static_cast<proto::Ground>(i)) == word) return i;
  }
  return 0;
}

}  // namespace

void LiveJudge::Accept(const Observation& observation) {
  if (!begin_) {
    begin_ = observation.t;
    engine_.emplace(engine::Config{}, observation.node);
  }
  last_ = observation.t;
  if (std::holds_alternative<Tick>(observation.kind)) return JudgeAt(observation.t);
  engine_->Accept(observation);
}

Judgement LiveJudge::Finish(bool ended) {
  for (int i = 0; ended && i < kMoreTicks; ++i) JudgeAt(last_ = last_ + Seconds(1));
  return judgement_;
}

void LiveJudge::JudgeAt(Timestamp now) {
  for (const std::string& job_id : engine_->Tick(now).changed) {
    const auto job = engine_->Find(job_id);
    if (!job) continue;
    const proto::Verdict& verdict = *job->verdict;
    if (judgement_.changes.empty() || verdict.code() != judgement_.code)
      judgement_.changes.push_back({(now - *begin_).seconds(), verdict.code()});
    judgement_.code = verdict.code();
    judgement_.sub = verdict.sub();
    judgement_.confidence = verdict.confidence();
    judgement_.ground = verdict.contradicted() ? 0 : verdict.ground();
    judgement_.ranks.assign(verdict.ranks().begin(), verdict.ranks().end());
  }
}

Judgement Ask(const std::string& command, const std::string& path) {
  std::string output;
  if (FILE* const pipe = popen((command + " '" + path + "'").c_str(), "r")) {
    char buffer[4096];
    for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
    pclose(pipe);
  }
  Judgement judgement;
  judgement.code = ValueOf(output, "code");
  judgement.sub = ValueOf(output, "sub");
  judgement.ground = GroundOf(ValueOf(output, "ground"));
  judgement.confidence = std::strtod(ValueOf(output, "confidence").c_str(), nullptr);
  return judgement;
}

Judgement AskAbout(const std::string& command, const std::string& bytes) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("scoreboard." + std::to_string(::getpid()) + ".rsrec");
  std::ofstream(path, std::ios::binary) << bytes;
  Judgement judgement = Ask(command, path.string());
  std::filesystem::remove(path);
  return judgement;
}

}  // namespace rankscope::bench
