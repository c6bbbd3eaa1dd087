// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/scoreboard_fit.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "detectors/families/family.h"

namespace rankscope::bench {
namespace {

// Verdicts that a cell without any is worth.
constexpr double kPrior = 6;

// What a ground is worth where nothing is known of it, and at most: the world has more causes that
// look alike than the generator.
struct Worth {
  double first, most;
};
constexpr std::array<Worth, proto::GROUND_RECORD> kWorth = {{{0.35, 0.5},
                                                             {0.5, 0.6},
                                                             {0.55, 0.75},
                                                             {0.65, 0.85},
                                                             {0.7, 0.85},
                                                             {0.85, 0.85},
                                                             {0.9, 0.95},
                                                             {0.95, 0.95}}};

constexpr std::array<std::string_view, families::kGroups> kNames = {
    "kFailure", "kHang", "kPace", "kLearning", "kEnd", "kHealth", "kUndetermined"};

// -1 = not a family of ours.
int GroupOf(std::string_view code) {
  for (const families::FamilyRow& row : families::Families()) {
    if (row.code == code) return static_cast<int>(row.group);
  }
  return -1;
}

struct Block {
  double mean, weight;
  int cells;
};

}  // namespace

void Fit::Add(const generator::Truth& truth, const Judgement& judgement) {
  const int group = GroupOf(judgement.code);
  if (group < 0 || judgement.ground <= 0 || judgement.ground > kGrounds) return;
  Cell& cell = rows_[static_cast<size_t>(group)][static_cast<size_t>(judgement.ground - 1)];
  ++cell.jobs;
  cell.right += IsRight(truth, judgement.code);
}

// Neighbours that fall are pooled: the best rising sequence by least squares.
std::array<double, Fit::kGrounds> Fit::Rise(const Row& row) {
  std::vector<Block> blocks;
  for (size_t i = 0; i < kGrounds; ++i) {
    const double weight = row[i].jobs + kPrior;
    blocks.push_back({(row[i].right + kPrior * kWorth[i].first) / weight, weight, 1});
    while (blocks.size() > 1 && blocks.back().mean < blocks[blocks.size() - 2].mean) {
      const Block last = blocks.back();
      blocks.pop_back();
      Block& into = blocks.back();
      into.mean = (into.mean * into.weight + last.mean * last.weight) / (into.weight + last.weight);
      into.weight += last.weight;
      into.cells += last.cells;
    }
  }
  std::array<double, kGrounds> values{};
  size_t cell = 0;
  for (const Block& block : blocks) {
    for (int i = 0; i < block.cells; ++i, ++cell)
      values[cell] = std::min(block.mean, kWorth[cell].most);
  }
  return values;
}

void Fit::Print() const {
  for (size_t group = 0; group < rows_.size(); ++group) {
    std::printf("GROUP(%s", kNames[group].data());
    for (const double value : Rise(rows_[group])) std::printf(", %.2f", value);
    std::printf(")  //");
    for (const Cell& cell : rows_[group]) std::printf(" %.0f/%.0f", cell.right, cell.jobs);
    std::printf("\n");
  }
}

}  // namespace rankscope::bench
