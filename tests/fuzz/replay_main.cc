// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A fuzz target without libFuzzer: `fuzz_NAME SEEDS CRASH` gives it each seed, the empty input and,
// of both, inputs that differ in a few bytes, the same ones in every run. Whoever crashes leaves
// its input in the file CRASH.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" {
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
// Of a target that has one; it may ask libFuzzer's own to change a part.
[[gnu::weak]] size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                             unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
}

namespace {

constexpr size_t kMaxBytes = 1 << 16;  // of an input that was made here
constexpr int kChanged = 200'000;      // inputs at most
constexpr std::chrono::seconds kTime(1);

const std::string* current = nullptr;
const char* crash_path = nullptr;

extern "C" void KeepInput(int signo) {
  const int fd = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd >= 0 && current != nullptr) {
    [[maybe_unused]] const ssize_t written = write(fd, current->data(), current->size());
  }
  signal(signo, SIG_DFL);
  raise(signo);
}

void Give(const std::string& input) {
  current = &input;
  // A copy of exactly its size: who reads behind the end is found by a sanitizer.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::vector<std::string> Seeds(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry);
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds = {""};
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

class Changer {
 public:
  explicit Changer(const std::vector<std::string>& seeds) : seeds_(seeds) {}

  std::string Next() {
    std::string input = OneOf();
    for (size_t changes = 1 + Below(4); changes > 0; --changes) Change(input);
    if (input.size() > kMaxBytes) input.resize(kMaxBytes);
    return input;
  }

  std::string NextByTarget() {
    std::string input = OneOf();
    const size_t size = input.size();
    input.resize(std::max(kMaxBytes, size));
    input.resize(LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t*>(input.data()), size,
                                         input.size(), static_cast<unsigned int>(random_())));
    return input;
  }

 private:
  size_t Below(size_t limit) { return random_() % limit; }
  const std::string& OneOf() { return seeds_[Below(seeds_.size())]; }

  void Change(std::string& input) {
    constexpr size_t kMaxPiece = 32;
    const size_t at = Below(input.size() + 1);
    switch (Below(6)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(Below(256));
        break;
      case 1:
        if (at < input.size()) input[at] ^= static_cast<char>(1 << Below(8));
        break;
      case 2:
        input.insert(at, 1 + Below(kMaxPiece), static_cast<char>(Below(256)));
        break;
      case 3:
        input.erase(at, 1 + Below(kMaxPiece));
        break;
      case 4:
        input.resize(at);
        break;
      default: {
        const std::string& other = OneOf();
        const size_t from = Below(other.size() + 1);
        input.insert(at, other, from, 1 + Below(8 * kMaxPiece));
      }
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937 random_{17};
};

}  // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  static std::mt19937 random(23);
  if (size == 0) return 0;
  if (random() % 4 == 0) return std::min(max_size, 1 + random() % size);
  data[random() % size] ^= static_cast<uint8_t>(1 << random() % 8);
  return std::min(size, max_size);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SEEDS CRASH\n", argv[0]);
    return 2;
  }
  crash_path = argv[2];
  for (const int signo : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) signal(signo, KeepInput);
  const std::vector<std::string> seeds = Seeds(argv[1]);
  for (const std::string& seed : seeds) Give(seed);
  Changer changer(seeds);
  int changed = 0;
  const auto end = std::chrono::steady_clock::now() + kTime;
  while (changed < kChanged && std::chrono::steady_clock::now() < end) {
    const bool by_target = LLVMFuzzerCustomMutator != nullptr && changed % 2 == 0;
    Give(by_target ? changer.NextByTarget() : changer.Next());
    ++changed;
  }
  std::printf("%zu seeds, %d changed\n", seeds.size() - 1, changed);
  return 0;
}
