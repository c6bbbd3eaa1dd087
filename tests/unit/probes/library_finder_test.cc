// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/attach/library_finder.h"

#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <sstream>
#include <vector>

#include "exporter/probes/attach/function_finder.h"
#include "exporter/probes/attach/prologue.h"
#include "exporter/probes/calls/call_table.h"

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

// As the loader has mapped it.
uint64_t MappedOffset(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<uint64_t>(address);
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0, offset = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 &&
        begin <= wanted && wanted < end)
      return wanted - begin + offset;
  }
  return 0;
}

TEST(ElfSymbols, OneNameOfAnotherLibraryIsFound) {
  void* const function = dlsym(RTLD_DEFAULT, "getaddrinfo");
  Dl_info library{};
  ASSERT_NE(dladdr(function, &library), 0);
  const auto offset = FindFunction(library.dli_fname, "getaddrinfo");
  ASSERT_TRUE(offset) << offset.error();
  EXPECT_EQ(*offset, MappedOffset(function));
  EXPECT_FALSE(FindFunction(library.dli_fname, "getaddrinfoX"));
  EXPECT_FALSE(FindFunction("/etc/passwd", "getaddrinfo"));
  EXPECT_FALSE(FindFunction("/no/such/file", "getaddrinfo"));
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

// A file that is made to be read without end: its headers, and beyond them what `Fill` says.
struct Crafted {
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Shdr> sections;
  uint64_t bytes = uint64_t{1} << 40;  // sparse
  std::function<void(uint64_t, std::span<std::byte>)> fill;
  mutable uint64_t read = 0;

  Crafted() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = EM_X86_64;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_phoff = sizeof header;
    Elf64_Phdr code{};
    code.p_type = PT_LOAD;
    code.p_flags = PF_X;
    code.p_filesz = uint64_t{1} << 39;
    segments.push_back(code);
  }

  void AddSection(uint32_t type, uint64_t offset, uint64_t size, uint32_t link) {
    Elf64_Shdr section{};
    section.sh_type = type;
    section.sh_offset = offset;
    section.sh_size = size;
    section.sh_link = link;
    sections.push_back(section);
  }

  Result<ElfFile> Read(const Names& wanted) {
    header.e_phnum = static_cast<uint16_t>(segments.size());
    header.e_shnum = static_cast<uint16_t>(std::min<size_t>(sections.size(), 0xffff));
    header.e_shoff = header.e_phoff + segments.size() * sizeof(Elf64_Phdr);
    std::string head(reinterpret_cast<const char*>(&header), sizeof header);
    head.append(reinterpret_cast<const char*>(segments.data()),
                segments.size() * sizeof(Elf64_Phdr));
    head.append(reinterpret_cast<const char*>(sections.data()),
                sections.size() * sizeof(Elf64_Shdr));
    const ReadAt read_at = [&](uint64_t offset, std::span<std::byte> into) -> size_t {
      if (offset >= bytes) return 0;
      const size_t n = std::min<uint64_t>(into.size(), bytes - offset);
      read += n;
      std::memset(into.data(), 0, n);
      if (fill) fill(offset, into.first(n));
      if (offset < head.size())
        std::memcpy(into.data(), head.data() + offset, std::min(n, head.size() - offset));
      return n;
    };
    return ReadElf(read_at, wanted);
  }
};

constexpr uint64_t kTables = 1 << 20;  // behind the headers

TEST(ElfSymbols, SparseTablesThatOverlapAreReadOnce) {
  Crafted file;
  file.AddSection(SHT_STRTAB, kTables, uint64_t{512} << 20, 0);
  for (int i = 0; i < 4000; ++i) file.AddSection(SHT_SYMTAB, kTables, uint64_t{512} << 20, 0);
  const auto elf = file.Read({"cuLaunchKernel"});
  ASSERT_TRUE(elf);
  EXPECT_TRUE(elf->cut);
  EXPECT_LE(file.read, kMostWork + (2 << 20));
}

// Every second byte begins something that may be a name.
TEST(ElfSymbols, NamesThatAreSlowToLookUpCountForMore) {
  Crafted file;
  file.AddSection(SHT_STRTAB, kTables, uint64_t{512} << 20, 0);
  file.AddSection(SHT_DYNSYM, kTables, uint64_t{512} << 20, 0);
  file.fill = [](uint64_t offset, std::span<std::byte> into) {
    for (size_t i = 0; i < into.size(); ++i)
      into[i] = static_cast<std::byte>("cu\0"[(offset + i) % 3]);
  };
  const auto elf = file.Read({"cuLaunchKernel"});
  ASSERT_TRUE(elf);
  EXPECT_TRUE(elf->cut);
  EXPECT_LE(file.read, kMostWork / 8);
}

TEST(ElfSymbols, ThousandsOfPlacesForOneNameAreNoLibrary) {
  Crafted file;
  constexpr std::string_view kName("\0cuLaunchKernel", 16);
  file.AddSection(SHT_STRTAB, kTables, kName.size(), 0);
  file.AddSection(SHT_DYNSYM, 2 * kTables, uint64_t{24} << 20, 0);
  file.fill = [&](uint64_t offset, std::span<std::byte> into) {
    if (offset == kTables) {
      std::memcpy(into.data(), kName.data(), std::min(into.size(), kName.size()));
    } else if (offset >= 2 * kTables) {
      for (size_t at = 0; at + sizeof(Elf64_Sym) <= into.size(); at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol{};
        symbol.st_name = 1;
        symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
        symbol.st_shndx = 1;
        symbol.st_value = offset + at;
        std::memcpy(into.data() + at, &symbol, sizeof symbol);
      }
    }
  };
  const auto elf = file.Read({"cuLaunchKernel"});
  ASSERT_TRUE(elf);
  EXPECT_TRUE(elf->cut);
  EXPECT_THAT(elf->functions, IsEmpty());
}

// A library of 2 GB with as many names as one has that is not stripped.
TEST(ElfSymbols, TheLargestLibrariesAreReadWhole) {
  Crafted file;
  constexpr uint64_t kNames = uint64_t{96} << 20;
  file.AddSection(SHT_STRTAB, kTables, kNames, 0);
  file.AddSection(SHT_SYMTAB, kTables + kNames, uint64_t{40} << 20, 0);
  file.fill = [](uint64_t offset, std::span<std::byte> into) {
    constexpr std::string_view kMangled =
        "_ZN2at6native12_GLOBAL__N_119cudnn_convolution_outERKNS_";
    for (size_t i = 0; i < into.size(); ++i)
      into[i] = static_cast<std::byte>(kMangled[(offset + i) % kMangled.size()]);
  };
  const auto elf = file.Read({"cuLaunchKernel"});
  ASSERT_TRUE(elf);
  EXPECT_FALSE(elf->cut) << elf->work;
}

TEST(LibraryFinder, MapsAreReadForTheirCode) {
  constexpr std::string_view kMaps =
      "55d0-55d1 r--p 00000000 fe:00 11 /usr/bin/python3.11\n"
      "55d1-55d2 r-xp 00001000 fe:00 11 /usr/bin/python3.11\n"
      "7f00-7f01 r-xp 00000000 00:2b 77 /opt/my env/lib/libcuda.so.1 (deleted)\n"
      "7f02-7f03 r-xp 00003000 fe:00 11 /usr/bin/python3.11\n"
      "7f04-7f05 rwxp 00000000 00:00 0 \n"
      "7ffc-7ffd r-xp 00000000 00:00 0 [vdso]\n"
      "../../1/mem r-xp 00000000 fe:00 12 /no/range\n"
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

// What the caller keeps of files that it knows.
LibraryFinder::Settled SettledOf(const LibraryFinder::Round& round) {
  LibraryFinder::Settled settled;
  for (const FoundLibrary& library : round.fresh) settled[KeyOf(library.version)] = library.version;
  return settled;
}

TEST(LibraryFinder, AFileIsFreshUntilItIsSettledAndItsUsersAreKnown) {
  LibraryFinder finder("/proc", {"ncclAllReduce"});
  const ProcessKey self{getpid(), 1};
  const LibraryFinder::Round first = finder.Look({self}, {});
  ASSERT_THAT(first.fresh, SizeIs(1));
  const LibraryFinder::Settled settled = SettledOf(first);
  EXPECT_THAT(first.seen.at(self).mapped, ElementsAre(settled.begin()->first));
  EXPECT_TRUE(first.seen.at(self).complete);
  const LibraryFinder::Round again = finder.Look({self}, settled);
  EXPECT_THAT(again.fresh, IsEmpty());
  EXPECT_EQ(again.seen.at(self).mapped, first.seen.at(self).mapped);
  // A second process with the same file: its user, and nothing fresh.
  const ProcessKey second{getpid(), 2};
  const LibraryFinder::Round other = finder.Look({self, second}, settled);
  EXPECT_THAT(other.fresh, IsEmpty());
  EXPECT_EQ(other.seen.at(second).mapped, first.seen.at(self).mapped);
  // Whoever no longer probes it has it offered again; so has who knows another version of it.
  EXPECT_THAT(finder.Look({self}, {}).fresh, SizeIs(1));
  LibraryFinder::Settled older = settled;
  older.begin()->second.changed_ns -= 1;
  EXPECT_THAT(finder.Look({second}, older).fresh, SizeIs(1));
}

TEST(LibraryFinder, AProcessThatIsGoneIsNotSeen) {
  LibraryFinder finder("/nonexistent", {"ncclAllReduce"});
  EXPECT_THAT(finder.Look({{1, 1}}, {}).seen, IsEmpty());
}

// The clocks say that each look takes longer than the user is given.
TEST(LibraryFinder, WhoHasSpentHisAllowanceWaitsAndIsNotSaidToBeKnown) {
  int64_t now_ns = 1'000'000'000;
  int64_t cpu_ns = 0;
  const LibraryFinder::Clocks clocks{[&] { return now_ns; }, [&] { return cpu_ns += 400'000'000; }};
  LibraryFinder finder("/proc", {"ncclAllReduce"}, clocks);
  std::vector<ProcessKey> processes;
  for (int64_t start = 1; start <= 8; ++start) processes.push_back({getpid(), start});
  const LibraryFinder::Round first = finder.Look(processes, {});
  EXPECT_LT(first.seen.size(), processes.size());
  EXPECT_FALSE(first.trouble.empty());
  const LibraryFinder::Settled settled = SettledOf(first);
  // Who was left out is the first of a later round.
  std::set<ProcessKey> seen;
  for (int round = 0; round < 40; ++round) {
    now_ns += 10'000'000'000;
    for (const auto& [process, what] : finder.Look(processes, settled).seen) {
      if (what.complete) seen.insert(process);
    }
  }
  EXPECT_EQ(seen.size(), processes.size());
  // What was seen long ago is not what runs now.
  const LibraryFinder::Round spent = finder.Look(processes, settled);
  now_ns += LibraryFinder::kOldNs + 1;
  EXPECT_LT(std::count_if(spent.seen.begin(), spent.seen.end(),
                          [](const auto& each) { return each.second.complete; }),
            static_cast<std::ptrdiff_t>(processes.size()));
}

TEST(LibraryFinder, AFileIsItsInodeAndOnAnOverlayItsVersion) {
  const FileVersion on_disk{1, 2, 3, 4, 5};
  EXPECT_EQ(KeyOf(on_disk), (FileKey{1, 2}));
  const FileVersion on_overlay{0, 2, 3, 4, 5};
  EXPECT_EQ(KeyOf(on_overlay), on_overlay);
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
