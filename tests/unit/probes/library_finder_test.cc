// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/library_finder.h"

#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "exporter/probes/call_table.h"
#include "exporter/probes/prologue.h"

// Two names for one function, as in a library built for a profiler; in the table of strings the
// second is the tail of the first.
extern "C" {
__attribute__((noinline, used, nothrow, visibility("default"))) int pncclAllReduce(int x) {
  return x + 1;
}
__attribute__((weak, nothrow, alias("pncclAllReduce"), visibility("default"))) int ncclAllReduce(
    int x);
}

namespace rankscope::probes {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::string Self() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

ReadAt From(const std::string& bytes) {
  return [&bytes](uint64_t offset, std::span<std::byte> into) -> size_t {
    if (offset >= bytes.size()) return 0;
    const size_t n = std::min<uint64_t>(into.size(), bytes.size() - offset);
    std::memcpy(into.data(), bytes.data() + offset, n);
    return n;
  };
}

TEST(ElfSymbols, AFunctionIsFoundByTheTailOfAnotherName) {
  const std::string self = Self();
  const auto elf = ReadElf(From(self), {"ncclAllReduce", "cuLaunchKernel"});
  ASSERT_TRUE(elf) << elf.error();
  ASSERT_THAT(elf->functions, SizeIs(1));
  const ElfFunction& function = elf->functions.front();
  EXPECT_EQ(function.name, "ncclAllReduce");
  // The bytes at that place of the file are the function's.
  EXPECT_EQ(std::memcmp(function.code.data(), reinterpret_cast<const void*>(&ncclAllReduce),
                        function.code.size()),
            0);
  EXPECT_EQ(function.code.size(), kPrologueBytes);
}

TEST(ElfSymbols, OneFunctionWithTwoWantedNamesIsOne) {
  const std::string self = Self();
  const auto elf = ReadElf(From(self), {"ncclAllReduce", "pncclAllReduce"});
  ASSERT_TRUE(elf);
  EXPECT_THAT(elf->functions, SizeIs(1));
}

TEST(ElfSymbols, WhatIsNoElfFileIsAnError) {
  for (const std::string& bytes :
       {std::string(), std::string("#!/bin/sh\n"), std::string(64, '\x7f')}) {
    EXPECT_FALSE(ReadElf(From(bytes), {"cuInit"}));
  }
}

// Cut anywhere, or with any header damaged: an error or fewer functions, never a read beyond.
TEST(ElfSymbols, DamageIsBorne) {
  const std::string self = Self();
  const Names wanted = {"ncclAllReduce"};
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    std::string cut = self.substr(0, random() % self.size());
    static_cast<void>(ReadElf(From(cut), wanted));
  }
  Elf64_Ehdr header;
  std::memcpy(&header, self.data(), sizeof header);
  for (int round = 0; round < 60; ++round) {
    std::string damaged = self;
    for (int i = 0; i < 8; ++i) {
      damaged[4 + random() % (sizeof header - 4)] = static_cast<char>(random());
      damaged[header.e_shoff + random() % (header.e_shnum * sizeof(Elf64_Shdr))] =
          static_cast<char>(random());
      damaged[header.e_phoff + random() % (header.e_phnum * sizeof(Elf64_Phdr))] =
          static_cast<char>(random());
    }
    static_cast<void>(ReadElf(From(damaged), wanted));
  }
}

TEST(LibraryFinder, MapsAreReadForTheirCode) {
  constexpr std::string_view kMaps =
      "55d0-55d1 r--p 00000000 fe:00 11 /usr/bin/python3.11\n"
      "55d1-55d2 r-xp 00001000 fe:00 11 /usr/bin/python3.11\n"
      "7f00-7f01 r-xp 00000000 00:2b 77 /opt/my env/lib/libcuda.so.1 (deleted)\n"
      "7f02-7f03 r-xp 00003000 fe:00 11 /usr/bin/python3.11\n"
      "7f04-7f05 rwxp 00000000 00:00 0 \n"
      "7ffc-7ffd r-xp 00000000 00:00 0 [vdso]\n"
      "broken\n";
  const auto mappings = ParseMappings(kMaps);
  ASSERT_THAT(mappings, SizeIs(2));
  EXPECT_EQ(mappings[0].range, "55d1-55d2");
  EXPECT_EQ(mappings[1].path, "/opt/my env/lib/libcuda.so.1 (deleted)");
  EXPECT_EQ(mappings[1].inode, 77u);
}

TEST(LibraryFinder, TheMarkChangesWithTheCode) {
  const std::string a = "Name:\tsh\nVmPeak:\t 100 kB\nVmExe:\t 4 kB\nVmLib:\t 1600 kB\n";
  const std::string b = "Name:\tsh\nVmPeak:\t 900 kB\nVmExe:\t 4 kB\nVmLib:\t 1600 kB\n";
  const std::string c = "Name:\ttrain\nVmPeak:\t 100 kB\nVmExe:\t 4 kB\nVmLib:\t 1600 kB\n";
  EXPECT_EQ(ParseCodeMark(a), ParseCodeMark(b));
  EXPECT_NE(ParseCodeMark(a), ParseCodeMark(c));
  EXPECT_EQ(ParseCodeMark("Name:\tsh\nState:\tZ (zombie)\n"), "");
}

TEST(LibraryFinder, AFileIsFreshOnceAndItsUsersAreKnown) {
  LibraryFinder finder("/proc", {"ncclAllReduce"});
  const ProcessKey self{getpid(), 1};
  LibraryFinder::Look first = finder.LookAt(self);
  ASSERT_THAT(first.fresh, SizeIs(1));
  EXPECT_THAT(first.mapped, ElementsAre(first.fresh.front().identity));
  const LibraryFinder::Look again = finder.LookAt(self);
  EXPECT_THAT(again.fresh, IsEmpty());
  EXPECT_EQ(again.mapped, first.mapped);
  // A second process with the same file: its user, and nothing fresh.
  const LibraryFinder::Look other = finder.LookAt({getpid(), 2});
  EXPECT_THAT(other.fresh, IsEmpty());
  EXPECT_EQ(other.mapped, first.mapped);
  finder.Forget(first.mapped.front());
  finder.Keep({});
  EXPECT_THAT(finder.LookAt(self).fresh, SizeIs(1));
}

TEST(LibraryFinder, AProcessThatIsGoneHasNothing) {
  LibraryFinder finder("/nonexistent", {"ncclAllReduce"});
  EXPECT_THAT(finder.LookAt({1, 1}).mapped, IsEmpty());
}

TEST(CallTable, EachSymbolStandsOnceAndCanBeFoundInAFile) {
  for (const auto table : {CudaCalls(), NcclCalls()}) {
    Names names;
    for (const CallRow& row : table) {
      EXPECT_TRUE(names.insert(row.symbol).second) << row.symbol;
      EXPECT_LE(row.symbol.size(), kLongestName);
      EXPECT_TRUE(row.symbol.starts_with("cu") || row.symbol.starts_with("nccl")) << row.symbol;
    }
  }
}

}  // namespace
}  // namespace rankscope::probes
