// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// generate --seed N [--count N] --family CODE|healthy|any ... --out DIR: writes SEED.rsrec and
// SEED.truth.json for each seed.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/generator/faults.h"
#include "tests/generator/generator.h"
#include "tests/generator/named.h"

namespace {

using rankscope::generator::Options;

int Usage() {
  std::fprintf(stderr,
               "usage: generate [--seed N] [--count N] [--family CODE|healthy|any] [--second CODE] "
               "[--ranks N] [--minutes M] [--without STORE]... [--late] [--outage] [--plain] "
               "[--widen F] --out DIR\nfamilies:");
  for (const auto& row : rankscope::generator::Faults())
    std::fprintf(stderr, " %.*s", static_cast<int>(row.code.size()), row.code.data());
  for (const std::string& name : rankscope::generator::NamedJobs())
    std::fprintf(stderr, " %s", name.c_str());
  std::fprintf(stderr, "\nstores:");
  for (const std::string& store : rankscope::generator::StoreNames())
    std::fprintf(stderr, " %s", store.c_str());
  std::fprintf(stderr, "\n");
  return 2;
}

bool Flag(const std::string& name, Options& options) {
  if (name == "--late") return options.late = true;
  if (name == "--outage") return options.outage = true;
  if (name == "--plain") return options.plain = true;
  return false;
}

bool Value(const std::string& name, const char* value, Options& options, long& count,
           std::string& out) {
  if (name == "--seed") {
    options.seed = std::strtoull(value, nullptr, 10);
  } else if (name == "--count") {
    count = std::strtol(value, nullptr, 10);
  } else if (name == "--family") {
    options.family = value;
  } else if (name == "--second") {
    options.second = value;
  } else if (name == "--ranks") {
    options.ranks = std::atoi(value);
  } else if (name == "--minutes") {
    options.minutes = std::strtod(value, nullptr);
  } else if (name == "--without") {
    options.without.emplace_back(value);
  } else if (name == "--widen") {
    options.widen = std::strtod(value, nullptr);
  } else if (name == "--out") {
    out = value;
  } else {
    return false;
  }
  return true;
}

bool Known(const Options& options) {
  using rankscope::generator::FindFault;
  const bool family = options.family == "any" || options.family == "healthy" ||
                      rankscope::generator::FindNamed(options.family) != nullptr ||
                      FindFault(options.family) != nullptr;
  return family && (options.second.empty() || FindFault(options.second) != nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  long count = 1;
  std::string out;
  for (int i = 1; i < argc; ++i) {
    if (Flag(argv[i], options)) continue;
    if (i + 1 >= argc || !Value(argv[i], argv[i + 1], options, count, out)) return Usage();
    ++i;
  }
  if (out.empty() || !Known(options)) return Usage();
  std::filesystem::create_directories(out);
  for (long i = 0; i < count; ++i, ++options.seed) {
    std::string bytes;
    const auto truth = rankscope::generator::GenerateRecording(options, bytes);
    const std::string stem = out + "/" + std::to_string(options.seed);
    std::ofstream(stem + ".rsrec", std::ios::binary) << bytes;
    std::ofstream(stem + ".truth.json") << rankscope::generator::TruthJson(truth);
    std::printf("%s.rsrec %s %zu bytes\n", stem.c_str(), truth.family.c_str(), bytes.size());
  }
  return 0;
}
