// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How right the verdicts are on generated jobs (tests/generator), as a table. Seeds below 2,000,000
// are for development, those from 2,000,000 on are held out.
//
//   scoreboard [--first N] [--count N] [--family CODE]... [--without STORE]... [--late] [--outage]
//              [--minutes M] [--ranks N] [--widen F] [--second CODE] [--each] [--classifier CMD]
//              [--conditions] [--fit] [--named] [--real] [--corpus FOLDER]... [--rankscope PATH]
//              [--healthy-days N] [--at-least NAME=VALUE]... [--at-most NAME=VALUE]...
//
// CMD is run as `CMD PATH` and prints JSON with "code" and "confidence"; its table stands below
// ours. --conditions: the same jobs with stores missing, a late daemon, an outage, wider ranges.
// --fit: the rows of detectors/families/confidence.inc, of all that was judged. --healthy-days:
// instead of a table of families, hours of healthy jobs whose nodes make so many days. --real:
// labelled logs and recordings of real runs; FOLDER holds labels.tsv and logs/. --at-least and
// --at-most (macro_f1, accepted, sure, wrong, brier, culprit, abstained, healthy, blamed, changes):
// exit status 1 where ours does not reach them.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "bench/scoreboard_board.h"
#include "bench/scoreboard_fit.h"
#include "bench/scoreboard_judge.h"
#include "bench/scoreboard_real.h"
#include "tests/generator/faults.h"
#include "tests/generator/generator.h"
#include "tests/generator/named.h"

namespace rankscope::bench {
namespace {

using generator::Options;
using generator::Truth;

struct Limit {
  std::string name;
  double value = 0;
  bool least = true;
};

struct Arguments {
  Options options;
  uint64_t first = 1;
  int count = 5;
  double healthy_days = 0;  // 0 = jobs of all families instead
  std::vector<std::string> families, corpora;
  std::string classifier, rankscope;
  std::vector<Limit> limits;
  bool each = false, conditions = false, named = false, real = false, fit = false;
};

struct Boards {
  Board ours, theirs;
  Fit* fit = nullptr;  // of all conditions
};

bool ReadFlag(const std::string& name, Arguments& of) {
  if (name == "--late") return of.options.late = true;
  if (name == "--outage") return of.options.outage = true;
  if (name == "--each") return of.each = true;
  if (name == "--conditions") return of.conditions = true;
  if (name == "--named") return of.named = true;
  if (name == "--real") return of.real = true;
  if (name == "--fit") return of.fit = true;
  return false;
}

bool ReadLimit(const std::string& name, const std::string& value, Arguments& of) {
  const size_t equals = value.find('=');
  if (equals == std::string::npos) return false;
  of.limits.push_back({value.substr(0, equals), std::strtod(value.c_str() + equals + 1, nullptr),
                       name == "--at-least"});
  return true;
}

bool ReadValue(const std::string& name, const char* value, Arguments& of) {
  if (name == "--first") {
    of.first = std::strtoull(value, nullptr, 10);
  } else if (name == "--count") {
    of.count = std::atoi(value);
  } else if (name == "--family") {
    of.families.emplace_back(value);
  } else if (name == "--second") {
    of.options.second = value;
  } else if (name == "--without") {
    of.options.without.emplace_back(value);
  } else if (name == "--minutes") {
    of.options.minutes = std::strtod(value, nullptr);
  } else if (name == "--healthy-days") {
    of.healthy_days = std::strtod(value, nullptr);
  } else if (name == "--ranks") {
    of.options.ranks = std::atoi(value);
  } else if (name == "--widen") {
    of.options.widen = std::strtod(value, nullptr);
  } else if (name == "--classifier") {
    of.classifier = value;
  } else if (name == "--corpus") {
    of.corpora.emplace_back(value);
  } else if (name == "--rankscope") {
    of.rankscope = value;
  } else if (name == "--at-least" || name == "--at-most") {
    return ReadLimit(name, value, of);
  } else {
    return false;
  }
  return true;
}

bool Read(int argc, char** argv, Arguments& of) {
  const std::string self = argv[0];
  of.rankscope = self.substr(0, self.rfind('/') + 1) + "../rankscope";
  for (int i = 1; i < argc; ++i) {
    if (ReadFlag(argv[i], of)) continue;
    if (i + 1 >= argc || !ReadValue(argv[i], argv[i + 1], of)) return false;
    ++i;
  }
  if (of.families.empty()) {
    of.families = {"healthy"};
    for (const auto& row : generator::Faults()) of.families.emplace_back(row.code);
  }
  return true;
}

void PrintEach(const Truth& truth, const Judgement& judgement) {
  std::printf(
      "%llu %s %s %s -> %s %s %.2f%s%s named after %.0f s, onset %.0f, %zu of %d ranks, %s, "
      "%d changes:",
      static_cast<unsigned long long>(truth.seed), truth.family.c_str(), truth.sub.c_str(),
      truth.dialect.c_str(), judgement.code.c_str(), judgement.sub.c_str(), judgement.confidence,
      IsRight(truth, judgement.code) ? "" : " WRONG", truth.decidable ? "" : " undecidable",
      judgement.NamedAt(truth), truth.onset, truth.ranks.size(), truth.world,
      truth.disposition.c_str(), judgement.Changed());
  for (const Judgement::Change& change : judgement.changes)
    std::printf(" %s %.0f", change.code.c_str(), change.t);
  std::printf("\n");
  std::fflush(stdout);
}

void JudgeOne(const Arguments& arguments, const Options& options, Boards& boards) {
  LiveJudge judge;
  const Truth truth = generator::Generate(options, judge);
  const Judgement judgement = judge.Finish(truth.disposition != "running");
  boards.ours.Add(truth, judgement);
  if (boards.fit != nullptr) boards.fit->Add(truth, judgement);
  if (arguments.each) PrintEach(truth, judgement);
  if (arguments.classifier.empty()) return;
  std::string bytes;
  generator::GenerateRecording(options, bytes);
  boards.theirs.Add(truth, AskAbout(arguments.classifier, bytes));
}

void JudgeAll(const Arguments& arguments, const Options& base, Boards& boards) {
  uint64_t family_number = 0;
  for (const std::string& family : arguments.families) {
    ++family_number;
    for (int i = 0; i < arguments.count; ++i) {
      Options options = base;
      options.family = family;
      // Each family has seeds of its own: the same seed is the same job under another fault.
      options.seed = arguments.first + 64 * static_cast<uint64_t>(i) + family_number;
      JudgeOne(arguments, options, boards);
    }
  }
}

// Whole hours of healthy jobs, until those of all their nodes are so many days.
void JudgeHealthyDays(const Arguments& arguments, Boards& boards) {
  for (uint64_t seed = arguments.first; boards.ours.healthy_node_days() < arguments.healthy_days;
       ++seed) {
    Options options = arguments.options;
    options.family = "healthy";
    options.seed = seed;
    if (options.minutes == 0) options.minutes = 60;
    JudgeOne(arguments, options, boards);
  }
}

void PrintRows(const Arguments& arguments, const std::string& name, const Boards& boards) {
  boards.ours.PrintRow(name);
  if (!arguments.classifier.empty()) boards.theirs.PrintRow(name + ", " + arguments.classifier);
}

void JudgeConditions(const Arguments& arguments, Fit* fit) {
  std::vector<std::pair<std::string, Options>> conditions;
  const auto add = [&](const std::string& name) -> Options& {
    return conditions.emplace_back(name, arguments.options).second;
  };
  for (const std::string& store : generator::StoreNames())
    add("without " + store).without = {store};
  add("logs alone").without = {"ebpf", "nvml", "nccl", "slurm", "kernel"};
  add("late daemon").late = true;
  add("daemon restarted").outage = true;
  add("ranges 30 % wider").widen = 1.3;
  for (const auto& [name, options] : conditions) {
    Boards boards;
    boards.fit = fit;
    JudgeAll(arguments, options, boards);
    PrintRows(arguments, name, boards);
  }
}

void JudgeNamed(const Arguments& arguments) {
  Boards boards;
  for (const std::string& name : generator::NamedJobs()) {
    Options options = arguments.options;
    options.seed = arguments.first;
    options.family = name;
    JudgeOne(arguments, options, boards);
  }
  PrintRows(arguments, "examples of the brief and the protocol", boards);
}

void JudgeReal(const Arguments& arguments, const std::string& name,
               const std::vector<RealRun>& runs, const std::string& ours, Fit* fit) {
  if (runs.empty()) return;
  Boards boards;
  for (const RealRun& run : runs) {
    const Judgement judgement = Ask(arguments.rankscope + " " + ours, run.path);
    boards.ours.Add(run.truth, judgement);
    if (fit != nullptr) fit->Add(run.truth, judgement);
    if (arguments.each && !IsRight(run.truth, judgement.code))
      std::printf("%s: %s, is %s\n", run.path.c_str(), judgement.code.c_str(),
                  run.truth.family.c_str());
    if (!arguments.classifier.empty())
      boards.theirs.Add(run.truth, Ask(arguments.classifier, run.path));
  }
  PrintRows(arguments, name, boards);
}

void JudgeReals(const Arguments& arguments, Fit* fit) {
  const std::string source = RANKSCOPE_SOURCE_DIR;
  JudgeReal(arguments, "`tests/fixtures/labelled_runs`, logs of real runs",
            LabelledLogs(source + "/tests/fixtures/labelled_runs"), "classify", fit);
  JudgeReal(arguments, "`tests/fixtures/recordings`, recordings of real runs", GoldenRuns(source),
            "replay", fit);
  std::vector<std::string> corpora = arguments.corpora;
  for (const char* const one : {"/../shared/corpus/failures", "/../shared/corpus2/failures"})
    corpora.push_back(source + one);
  for (const std::string& corpus : corpora)
    JudgeReal(arguments, "public logs of real runs", LabelledLogs(corpus), "classify", fit);
}

int Failed(const Arguments& arguments, const Board& board) {
  int failed = 0;
  for (const Limit& limit : arguments.limits) {
    const double value = board.Value(limit.name);
    if (limit.least ? value >= limit.value : value <= limit.value) continue;
    std::printf("FAILED: %s is %.3f, expected at %s %.3f\n", limit.name.c_str(), value,
                limit.least ? "least" : "most", limit.value);
    ++failed;
  }
  return failed;
}

int Run(const Arguments& arguments) {
  Boards boards;
  Fit fit;
  boards.fit = &fit;
  if (arguments.healthy_days > 0)
    JudgeHealthyDays(arguments, boards);
  else
    JudgeAll(arguments, arguments.options, boards);
  boards.ours.PrintFamilies();
  boards.ours.PrintSums();
  if (!arguments.classifier.empty()) {
    std::printf("\n%s\n\n", arguments.classifier.c_str());
    boards.theirs.PrintFamilies();
    boards.theirs.PrintSums();
  }
  if (arguments.conditions || arguments.named || arguments.real) {
    std::printf("\n");
    Board::PrintHead();
    PrintRows(arguments, "all stores", boards);
  }
  if (arguments.conditions) JudgeConditions(arguments, boards.fit);
  if (arguments.named) JudgeNamed(arguments);
  if (arguments.real) JudgeReals(arguments, boards.fit);
  if (arguments.fit) fit.Print();
  return Failed(arguments, boards.ours) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rankscope::bench

int main(int argc, char** argv) {
  rankscope::bench::Arguments arguments;
  if (!rankscope::bench::Read(argc, argv, arguments)) {
    std::fprintf(stderr, "usage: see the top of bench/scoreboard.cc\n");
    return 2;
  }
  return rankscope::bench::Run(arguments);
}
