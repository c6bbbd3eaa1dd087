// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/support/trainer/model.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sample_trainer {
namespace {

// Layout of the parameters: hidden weights and bias row by row, then output weights and bias row by
// row.
constexpr size_t kHiddenRow = kInputs + 1;
constexpr size_t kOutputBegin = kHidden * kHiddenRow;
constexpr size_t kOutputRow = kHidden + 1;
constexpr char kMagic[8] = {'s', 't', 'c', 'k', 'p', 't', '0', '1'};

}  // namespace

std::vector<Sample> SyntheticSamples(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::array<std::array<float, kInputs>, kClasses> centers{};
  for (auto& center : centers) {
    for (float& value : center) value = normal(random);
  }
  std::vector<Sample> samples(static_cast<size_t>(count));
  for (Sample& sample : samples) {
    sample.label = static_cast<int>(random() % kClasses);
    const auto& center = centers[static_cast<size_t>(sample.label)];
    for (size_t i = 0; i < kInputs; ++i) sample.x[i] = center[i] + 1.5f * normal(random);
    if (random() % 10 == 0) sample.label = static_cast<int>(random() % kClasses);
  }
  return samples;
}

std::vector<Sample> ReadSamples(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path + ": " + std::strerror(errno));
  std::vector<Sample> samples;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    Sample sample;
    fields >> sample.label;
    for (float& value : sample.x) fields >> value;
    if (!fields || sample.label < 0 || sample.label >= kClasses) {
      throw std::runtime_error(path + ":" + std::to_string(samples.size() + 1) + ": not a sample");
    }
    samples.push_back(sample);
  }
  if (samples.empty()) throw std::runtime_error(path + " has no samples");
  return samples;
}

Model::Model(uint32_t seed) : parameters_(kParameters) {
  std::mt19937 random(seed);
  std::normal_distribution<float> hidden(0, 1 / std::sqrt(static_cast<float>(kInputs)));
  std::normal_distribution<float> output(0, 1 / std::sqrt(static_cast<float>(kHidden)));
  for (size_t i = 0; i < kOutputBegin; ++i) parameters_[i] = hidden(random);
  for (size_t i = kOutputBegin; i < kParameters; ++i) parameters_[i] = output(random);
}

float Model::LossAndGradient(std::span<const Sample> batch, std::span<float> gradient) const {
  std::fill(gradient.begin(), gradient.end(), 0.0f);
  const float share = 1 / static_cast<float>(batch.size());
  float loss = 0;
  std::array<float, kHidden> hidden{};
  std::array<float, kClasses> delta{};
  for (const Sample& sample : batch) {
    for (size_t h = 0; h < kHidden; ++h) {
      const float* row = &parameters_[h * kHiddenRow];
      float sum = row[kInputs];
      for (size_t i = 0; i < kInputs; ++i) sum += row[i] * sample.x[i];
      hidden[h] = std::max(sum, 0.0f);
    }
    float largest = -INFINITY;
    for (size_t c = 0; c < kClasses; ++c) {
      const float* row = &parameters_[kOutputBegin + c * kOutputRow];
      float sum = row[kHidden];
      for (size_t h = 0; h < kHidden; ++h) sum += row[h] * hidden[h];
      delta[c] = sum;
      largest = std::max(largest, sum);
    }
    const auto label = static_cast<size_t>(sample.label);
    const float score = delta[label] - largest;
    float total = 0;
    for (float& value : delta) total += value = std::exp(value - largest);
    loss += share * (std::log(total) - score);

    for (size_t c = 0; c < kClasses; ++c) {
      delta[c] = share * (delta[c] / total - (c == label ? 1.0f : 0.0f));
      float* row = &gradient[kOutputBegin + c * kOutputRow];
      for (size_t h = 0; h < kHidden; ++h) row[h] += delta[c] * hidden[h];
      row[kHidden] += delta[c];
    }
    for (size_t h = 0; h < kHidden; ++h) {
      if (hidden[h] <= 0) continue;
      float back = 0;
      for (size_t c = 0; c < kClasses; ++c) {
        back += delta[c] * parameters_[kOutputBegin + c * kOutputRow + h];
      }
      float* row = &gradient[h * kHiddenRow];
      for (size_t i = 0; i < kInputs; ++i) row[i] += back * sample.x[i];
      row[kInputs] += back;
    }
  }
  return loss;
}

void SaveCheckpoint(const std::string& path, int step, std::span<const float> parameters) {
  const std::string partial = path + ".partial";
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  file.write(kMagic, sizeof(kMagic));
  file.write(reinterpret_cast<const char*>(&step), sizeof(step));
  file.write(reinterpret_cast<const char*>(parameters.data()),
             static_cast<std::streamsize>(parameters.size_bytes()));
  file.close();
  if (!file || std::rename(partial.c_str(), path.c_str()) != 0) {
    throw std::runtime_error("cannot write checkpoint " + path + ": " + std::strerror(errno));
  }
}

int LoadCheckpoint(const std::string& path, std::span<float> parameters) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("cannot open checkpoint " + path + ": " + std::strerror(errno));
  char magic[sizeof(kMagic)] = {};
  int step = 0;
  file.read(magic, sizeof(magic));
  file.read(reinterpret_cast<char*>(&step), sizeof(step));
  file.read(reinterpret_cast<char*>(parameters.data()),
            static_cast<std::streamsize>(parameters.size_bytes()));
  if (!file || std::memcmp(magic, kMagic, sizeof(magic)) != 0) {
    throw std::runtime_error(path + " is not a whole checkpoint of this program");
  }
  return step;
}

}  // namespace sample_trainer
