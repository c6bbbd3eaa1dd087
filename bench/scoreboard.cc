// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How right the verdicts are on generated jobs (tests/generator), as a table. Seeds below 1,000,000
// are for development, those from 1,000,000 on are held out.
//
//   scoreboard [--first N] [--count N] [--family CODE]... [--without STORE]... [--late] [--outage]
//              [--minutes M] [--ranks N] [--widen F] [--each] [--classifier CMD]
//
// CMD is run as `CMD RECORDING` and prints JSON with "code" and "confidence".
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "detectors/engine/engine.h"
#include "detectors/proto/verdict.pb.h"
#include "tests/generator/faults.h"
#include "tests/generator/generator.h"

namespace rankscope {
namespace {

using generator::Options;
using generator::Truth;

constexpr int kMoreTicks = 20;  // past the longest wait for a last word
constexpr double kSure = 0.6;

struct Judgement {
  std::string code, sub;
  double confidence = 0;
  std::vector<int> ranks;
  int changes = 0;
  std::map<std::string, double> first;  // when a code was first named, seconds
};

bool IsFault(const std::string& code) {
  return !code.empty() && code != "G1" && code != "U0";
}

// Judges live, as the daemon does: with each tick.
class LiveJudge final : public Sink {
 public:
  void Accept(const Observation& observation) override {
    if (!begin_) {
      begin_ = observation.t;
      engine_.emplace(engine::Config{}, observation.node);
    }
    last_ = observation.t;
    if (std::holds_alternative<Tick>(observation.kind)) return JudgeAt(observation.t);
    engine_->Accept(observation);
  }

  Judgement Finish() {
    for (int i = 0; i < kMoreTicks; ++i) JudgeAt(last_ = last_ + Seconds(1));
    return judgement_;
  }

 private:
  void JudgeAt(Timestamp now) {
    for (const std::string& job_id : engine_->Tick(now).changed) {
      const auto job = engine_->Find(job_id);
      if (!job) continue;
      const proto::Verdict& verdict = *job->verdict;
      if (verdict.code() != judgement_.code) {
        if (!judgement_.code.empty()) ++judgement_.changes;
        judgement_.first.try_emplace(verdict.code(), (now - *begin_).seconds());
      }
      judgement_.code = verdict.code();
      judgement_.sub = verdict.sub();
      judgement_.confidence = verdict.confidence();
      judgement_.ranks.assign(verdict.ranks().begin(), verdict.ranks().end());
    }
  }

  std::optional<engine::Engine> engine_;
  std::optional<Timestamp> begin_;
  Timestamp last_;
  Judgement judgement_;
};

// What stands behind `"key":` in `text`.
std::string Value(const std::string& text, const std::string& key) {
  const size_t at = text.find('"' + key + "\":");
  if (at == std::string::npos) return {};
  const size_t begin = text.find_first_not_of(" \"", at + key.size() + 3);
  return text.substr(begin, text.find_first_of(",\"}\n", begin) - begin);
}

Judgement Classify(const std::string& command, const std::string& bytes) {
  const char* const folder = std::getenv("TMPDIR");
  const std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/scoreboard.rsrec";
  std::ofstream(path, std::ios::binary) << bytes;
  std::string output;
  if (FILE* const pipe = popen((command + " " + path).c_str(), "r")) {
    char buffer[4096];
    for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
    pclose(pipe);
  }
  Judgement judgement;
  judgement.code = Value(output, "code");
  judgement.confidence = std::strtod(Value(output, "confidence").c_str(), nullptr);
  return judgement;
}

struct Row {
  int jobs = 0, decidable = 0, right = 0, sure_right = 0, named_wrongly = 0;
  int culprits = 0, culprits_right = 0, abstained = 0;
  std::vector<double> delays;
};

struct Board {
  std::map<std::string, Row> rows;
  std::array<int, 10> bin_jobs{}, bin_right{};
  std::array<double, 10> bin_confidence{};
  int jobs = 0, sure_wrong = 0, healthy = 0, healthy_blamed = 0, healthy_called = 0;
  int healthy_changes = 0;
  double healthy_seconds = 0, brier = 0;
};

bool IsRight(const Truth& truth, const std::string& code) {
  return code == truth.family ||
         std::find(truth.accepted.begin(), truth.accepted.end(), code) != truth.accepted.end();
}

void Add(const Truth& truth, const Judgement& judgement, Board& board) {
  const bool right = IsRight(truth, judgement.code);
  ++board.jobs;
  const double of = right ? 1 : 0;
  board.brier += (judgement.confidence - of) * (judgement.confidence - of);
  const auto bin = static_cast<size_t>(std::clamp(judgement.confidence * 10, 0.0, 9.0));
  ++board.bin_jobs[bin];
  board.bin_right[bin] += right ? 1 : 0;
  board.bin_confidence[bin] += judgement.confidence;
  if (!right && judgement.confidence >= kSure) ++board.sure_wrong;
  if (truth.healthy) {
    ++board.healthy;
    board.healthy_called += judgement.code == "G1" ? 1 : 0;
    board.healthy_changes += judgement.changes;
    board.healthy_seconds += truth.seconds;
    board.healthy_blamed += std::any_of(judgement.first.begin(), judgement.first.end(),
                                        [](const auto& one) { return IsFault(one.first); }) ||
                                    IsFault(judgement.code)
                                ? 1
                                : 0;
  }
  Row& row = board.rows[truth.family];
  ++row.jobs;
  if (!truth.decidable) return;
  ++row.decidable;
  if (!right) ++board.rows[judgement.code].named_wrongly;
  if (judgement.code == "U0" && truth.family != "U0") ++row.abstained;
  if (!right) return;
  ++row.right;
  if (judgement.confidence >= kSure) ++row.sure_right;
  if (!truth.ranks.empty() && truth.culprit_seen) {
    ++row.culprits;
    row.culprits_right += std::set<int>(truth.ranks.begin(), truth.ranks.end()) ==
                          std::set<int>(judgement.ranks.begin(), judgement.ranks.end());
  }
  if (const auto named = judgement.first.find(judgement.code); named != judgement.first.end())
    row.delays.push_back(named->second - truth.onset);
}

double Ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

void PrintRows(Board& board) {
  std::printf(
      "| family | jobs | decidable | precision | recall | F1 | >= 0.6 | culprit | abstained | "
      "median delay, s |\n");
  std::printf("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  double f1_sum = 0;
  int families = 0;
  for (auto& [family, row] : board.rows) {
    const double precision = Ratio(row.right, row.right + row.named_wrongly);
    const double recall = Ratio(row.right, row.decidable);
    const double f1 = Ratio(2 * precision * recall, precision + recall);
    if (row.decidable > 0) f1_sum += f1, ++families;
    std::sort(row.delays.begin(), row.delays.end());
    const double delay = row.delays.empty() ? 0 : row.delays[row.delays.size() / 2];
    std::printf("| %s | %d | %d | %.2f | %.2f | %.2f | %.2f | %d/%d | %d | %.0f |\n",
                family.empty() ? "none" : family.c_str(), row.jobs, row.decidable, precision,
                recall, f1, Ratio(row.sure_right, row.decidable), row.culprits_right, row.culprits,
                row.abstained, delay);
  }
  std::printf("\nmacro-F1 %.3f over %d families\n", Ratio(f1_sum, families), families);
}

void PrintSums(const Board& board) {
  int decidable = 0, right = 0, sure = 0, culprits = 0, culprits_right = 0;
  for (const auto& [family, row] : board.rows) {
    decidable += row.decidable;
    right += row.right;
    sure += row.sure_right;
    culprits += row.culprits;
    culprits_right += row.culprits_right;
  }
  std::printf("accepted %.3f of %d decidable jobs; right at >= 0.6: %.3f\n",
              Ratio(right, decidable), decidable, Ratio(sure, decidable));
  std::printf("wrong at >= 0.6: %.3f of %d jobs; Brier %.3f\n", Ratio(board.sure_wrong, board.jobs),
              board.jobs, Ratio(board.brier, board.jobs));
  std::printf("culprit exact: %d of %d\n", culprits_right, culprits);
  std::printf(
      "healthy: %d runs, a fault named in %d, called healthy %d; %.2f changes of verdict an "
      "hour over %.2f node-days\n",
      board.healthy, board.healthy_blamed, board.healthy_called,
      Ratio(board.healthy_changes, board.healthy_seconds / 3600), board.healthy_seconds / 86400);
  std::printf("\n| confidence | jobs | mean | right |\n| --- | ---: | ---: | ---: |\n");
  for (size_t i = 0; i < board.bin_jobs.size(); ++i) {
    if (board.bin_jobs[i] == 0) continue;
    std::printf("| %.1f to %.1f | %d | %.2f | %.2f |\n", 0.1 * static_cast<double>(i),
                0.1 * static_cast<double>(i + 1), board.bin_jobs[i],
                board.bin_confidence[i] / board.bin_jobs[i],
                Ratio(board.bin_right[i], board.bin_jobs[i]));
  }
}

struct Arguments {
  Options options;
  uint64_t first = 1;
  int count = 5;
  std::vector<std::string> families;
  std::string classifier;
  bool each = false;
};

bool Read(int argc, char** argv, Arguments& of) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--late") {
      of.options.late = true;
    } else if (name == "--outage") {
      of.options.outage = true;
    } else if (name == "--each") {
      of.each = true;
    } else if (i + 1 >= argc) {
      return false;
    } else if (const char* const value = argv[++i]; name == "--first") {
      of.first = std::strtoull(value, nullptr, 10);
    } else if (name == "--count") {
      of.count = std::atoi(value);
    } else if (name == "--family") {
      of.families.emplace_back(value);
    } else if (name == "--without") {
      of.options.without.emplace_back(value);
    } else if (name == "--minutes") {
      of.options.minutes = std::strtod(value, nullptr);
    } else if (name == "--ranks") {
      of.options.ranks = std::atoi(value);
    } else if (name == "--widen") {
      of.options.widen = std::strtod(value, nullptr);
    } else if (name == "--classifier") {
      of.classifier = value;
    } else {
      return false;
    }
  }
  if (of.families.empty()) {
    of.families = {"healthy"};
    for (const auto& row : generator::Faults()) of.families.emplace_back(row.code);
  }
  return true;
}

void Judge(const Arguments& arguments, const Options& options, Board& board) {
  Truth truth;
  Judgement judgement;
  if (arguments.classifier.empty()) {
    LiveJudge judge;
    truth = generator::Generate(options, judge);
    judgement = judge.Finish();
  } else {
    std::string bytes;
    truth = generator::GenerateRecording(options, bytes);
    judgement = Classify(arguments.classifier, bytes);
  }
  Add(truth, judgement, board);
  if (!arguments.each) return;
  std::printf(
      "%llu %s %s %s -> %s %s %.2f%s%s after %.0f s, onset %.0f, ranks %d of %d, %s, %d changes\n",
      static_cast<unsigned long long>(options.seed), truth.family.c_str(), truth.sub.c_str(),
      truth.dialect.c_str(), judgement.code.c_str(), judgement.sub.c_str(), judgement.confidence,
      IsRight(truth, judgement.code) ? "" : " WRONG", truth.decidable ? "" : " undecidable",
      judgement.first.contains(judgement.code) ? judgement.first[judgement.code] : -1.0,
      truth.onset, static_cast<int>(truth.ranks.size()), truth.world, truth.disposition.c_str(),
      judgement.changes);
  std::fflush(stdout);
}

}  // namespace
}  // namespace rankscope

int main(int argc, char** argv) {
  rankscope::Arguments arguments;
  if (!rankscope::Read(argc, argv, arguments)) {
    std::fprintf(stderr, "usage: see the top of bench/scoreboard.cc\n");
    return 2;
  }
  rankscope::Board board;
  uint64_t family_number = 0;
  for (const std::string& family : arguments.families) {
    ++family_number;
    for (int i = 0; i < arguments.count; ++i) {
      auto options = arguments.options;
      options.family = family;
      // Each family has seeds of its own: the same seed is the same job under another fault.
      options.seed = arguments.first + 64 * static_cast<uint64_t>(i) + family_number;
      rankscope::Judge(arguments, options, board);
    }
  }
  rankscope::PrintRows(board);
  rankscope::PrintSums(board);
  return 0;
}
