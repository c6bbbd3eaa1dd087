// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/stub_gpu/trainer/script.h"

#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace stub_trainer {
namespace {

constexpr std::pair<std::string_view, Act> kActs[] = {
    {"sleep", Act::kSleep}, {"save", Act::kSave},   {"evaluate", Act::kEvaluate},
    {"leave", Act::kLeave}, {"spin", Act::kSpin},   {"block", Act::kBlock},
    {"slow", Act::kSlow},   {"fault", Act::kFault}, {"allocate", Act::kAllocate},
    {"exit", Act::kExit},   {"raise", Act::kRaise},
};

constexpr std::pair<std::string_view, int64_t Script::*> kSettings[] = {
    {"ranks", &Script::ranks},
    {"steps", &Script::steps},
    {"step_ms", &Script::step_ms},
    {"launches", &Script::launches},
    {"graphs", &Script::graphs},
    {"kernel_us", &Script::kernel_us},
    {"collectives", &Script::collectives},
    {"collective_bytes", &Script::collective_bytes},
    {"to_device_bytes", &Script::to_device_bytes},
    {"memory_bytes", &Script::memory_bytes},
    {"print", &Script::print},
    {"late_ms", &Script::late_ms},
    {"synchronize_launches", &Script::synchronize_launches},
    {"watchdog", &Script::watchdog},
};

bool HasValue(Act act) {
  return act != Act::kLeave && act != Act::kSpin && act != Act::kBlock && act != Act::kRaise;
}

Act ReadAct(const std::string& word) {
  for (const auto& [name, act] : kActs) {
    if (name == word) return act;
  }
  throw std::invalid_argument("unknown act '" + word + "'");
}

template <class Number>
Number Read(std::istream& words, const std::string& what) {
  Number value{};
  if (!(words >> value)) throw std::invalid_argument(what + " needs a number");
  return value;
}

Happening ReadHappening(std::istream& words, int rank) {
  Happening happening;
  happening.rank = rank;
  std::string word;
  words >> word;
  happening.act = ReadAct(word);
  if (HasValue(happening.act)) happening.value = Read<double>(words, word);
  if (happening.act == Act::kRaise && !(words >> happening.file))
    throw std::invalid_argument("raise needs a file");
  while (words >> word) {
    if (word == "caught") {
      happening.caught = true;
    } else if (word == "from") {
      happening.from = Read<int64_t>(words, word);
    } else if (word == "until") {
      happening.until = Read<int64_t>(words, word);
    } else if (word == "every") {
      happening.every = Read<int64_t>(words, word);
    } else if (word == "at") {
      happening.from = Read<int64_t>(words, word);
      happening.until = happening.from + 1;
    } else {
      throw std::invalid_argument("unknown word '" + word + "'");
    }
  }
  if (happening.every < 1) throw std::invalid_argument("every 0");
  return happening;
}

void ReadLine(const std::string& line, Script& script) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string word;
  if (!(words >> word)) return;
  if (word == "rank" || word == "all") {
    const int rank = word == "rank" ? Read<int>(words, word) : -1;
    script.happenings.push_back(ReadHappening(words, rank));
    return;
  }
  for (const auto& [name, setting] : kSettings) {
    if (name != word) continue;
    script.*setting = Read<int64_t>(words, word);
    return;
  }
  throw std::invalid_argument("unknown setting '" + word + "'");
}

}  // namespace

Script ReadScript(std::istream& text) {
  Script script;
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    try {
      ReadLine(line, script);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("line " + std::to_string(number) + ": " + error.what());
    }
  }
  return script;
}

}  // namespace stub_trainer
