// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is trained: a perceptron with one hidden layer on noisy clusters, softmax cross-entropy, all
// in one flat vector of parameters so that gradients can be reduced and checkpoints written in one
// piece. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <istream>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace sample_trainer {

inline constexpr int kInputs = 16;
inline constexpr int kHidden = 64;
inline constexpr int kClasses = 8;
inline constexpr int kParameters = kHidden * (kInputs + 1) + kClasses * (kHidden + 1);

struct Sample {
  std::array<float, kInputs> x{};
  int label = 0;
};

// The same samples for the same seed; a tenth of the labels is wrong, so that a loss of zero is not
// to be had.
std::vector<Sample> SyntheticSamples(int count, uint32_t seed);

// One sample a line: a label and kInputs numbers. Throws std::runtime_error with path and line.
std::vector<Sample> ReadSamples(const std::string& path);

class Model {
 public:
  explicit Model(uint32_t seed);

  std::span<float> parameters() { return parameters_; }

  // Mean loss over the batch; `gradient` (kParameters long) gets the mean gradient.
  float LossAndGradient(std::span<const Sample> batch, std::span<float> gradient) const;

 private:
  std::vector<float> parameters_;
};

// A file of step and parameters, replaced as a whole. Both throw std::runtime_error that names the
// path.
void SaveCheckpoint(const std::string& path, int step, std::span<const float> parameters);
int LoadCheckpoint(const std::string& path, std::span<float> parameters);  // returns the step

}  // namespace sample_trainer
