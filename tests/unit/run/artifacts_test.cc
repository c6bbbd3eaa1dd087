// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a run keeps of its command's files: the newest that fit, and no other's.
#include "exporter/run/artifacts.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "exporter/loop/owned_fd.h"
#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::run {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string OutputOf(const std::string& command) {
  std::string text;
  FILE* const pipe = popen(command.c_str(), "r");
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

class ArtifactsTest : public testing::Test {
 protected:
  // `age`: of files with smaller numbers is less.
  void Write(const std::string& name, const std::string& content, int age = 0) {
    const fs::path path = work() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    timespec times[2] = {{1'700'000'000 - age, 0}, {1'700'000'000 - age, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  Artifacts Collect(std::vector<std::string> patterns, int64_t budget = 1 << 20) {
    const OwnedFd folder(open(run().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return CollectArtifacts({std::move(patterns), budget, Seconds(60)}, work(), folder.get(),
                            run());
  }
  fs::path work() const { return fs::path(directory_.path()) / "work"; }
  std::string run() const { return directory_.path() + "/run"; }
  std::string List() { return OutputOf("tar tzf '" + run() + "/artifacts.tar.gz'"); }
  std::string Content(const std::string& name) {
    return OutputOf("tar xzOf '" + run() + "/artifacts.tar.gz' '" + name + "'");
  }
  // Hard to compress.
  static std::string Noise(size_t bytes) {
    std::string noise(bytes, '\0');
    uint64_t state = 88172645463325252;
    for (char& c : noise) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      c = static_cast<char>(state);
    }
    return noise;
  }
  void SetUp() override {
    fs::create_directories(work());
    fs::create_directories(run());
  }

  rankscope::exporter::TemporaryDirectory directory_;
};

TEST_F(ArtifactsTest, TheNewestComeFirstAndWhatDoesNotFitIsListed) {
  Write("out/old.bin", Noise(3000), 30);
  Write("out/large.bin", Noise(20'000), 20);
  Write("out/new.log", std::string(100'000, 'x'), 10);
  const Artifacts artifacts = Collect({"out/*"}, 8192);
  EXPECT_EQ(artifacts.complaint, "");
  EXPECT_THAT(artifacts.kept, ElementsAre("out/new.log, 100000 bytes", "out/old.bin, 3000 bytes"));
  EXPECT_THAT(artifacts.left,
              ElementsAre("out/large.bin, 20000 bytes: does not fit into the budget"));
  EXPECT_EQ(List(), "out/new.log\nout/old.bin\n");
  EXPECT_EQ(Content("out/new.log"), std::string(100'000, 'x'));
  EXPECT_EQ(Content("out/old.bin"), Noise(3000));
  EXPECT_LE(fs::file_size(artifacts.archive), 8192u);
  EXPECT_EQ(fs::status(artifacts.archive).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(ArtifactsTest, FoldersMatchAtAnyDepth) {
  Write("a.log", "1");
  Write("x/a.log", "2");
  Write("x/y/a.log", "3");
  Write("x/y/.hidden/a.log", "4");
  EXPECT_THAT(Collect({"**/a.log"}).kept, SizeIs(3));
  EXPECT_THAT(Collect({"x/**"}).kept, SizeIs(2));
  EXPECT_THAT(Collect({"x/*/a.log", "x/**/a.log"}).kept, SizeIs(2)) << "each once";
  EXPECT_THAT(Collect({work().string() + "/a.l?g"}).kept,
              ElementsAre(work().string().substr(1) + "/a.log, 1 bytes"));
}

TEST_F(ArtifactsTest, WhatIsNoPlainFileIsLeftOut) {
  Write("f/plain", "1");
  Write("secret/of-another", "2");
  fs::create_symlink(work() / "secret/of-another", work() / "f/link");
  fs::create_directory_symlink(work() / "secret", work() / "f/folder");
  ASSERT_EQ(mkfifo((work() / "f/pipe").c_str(), 0666), 0);
  const Artifacts artifacts = Collect({"f/*", "f/folder*/*"});
  EXPECT_THAT(artifacts.kept, ElementsAre("f/plain, 1 bytes"));
  EXPECT_THAT(artifacts.left, Contains(HasSubstr("f/link, ")));
  EXPECT_THAT(artifacts.left, Contains(HasSubstr("f/folder, ")));
  EXPECT_THAT(artifacts.left, Contains("f/pipe, 0 bytes: a pipe"));
}

TEST_F(ArtifactsTest, NamesAreNames) {
  const std::string longest = std::string(120, 'd') + "/" + std::string(200, 'n');
  Write("h/two\nlines\x1b[2J", "1", 1);
  Write("h/" + longest, "2", 2);
  Write("h/-rf *", "3", 3);
  const Artifacts artifacts = Collect({"h/**", "../../../etc/hostnam[e]", "nowhere/*", "h/none*"});
  ASSERT_GE(artifacts.kept.size(), 3u);
  EXPECT_THAT(artifacts.kept, Contains("h/two?lines?[2J, 1 bytes"));
  EXPECT_EQ(Content("h/" + longest), "2");
  EXPECT_EQ(Content("h/-rf *"), "3");
  EXPECT_THAT(List(), testing::Not(HasSubstr("..")));
  EXPECT_THAT(artifacts.left, Contains(HasSubstr("nowhere/*: No such file")));
}

TEST_F(ArtifactsTest, AHugeFileTakesNoTime) {
  Write("huge", "");
  fs::resize_file(work() / "huge", uintmax_t{1} << 40);
  Write("small", "x", 5);
  const Artifacts artifacts = Collect({"*"});
  EXPECT_THAT(artifacts.kept, ElementsAre("small, 1 bytes"));
  EXPECT_THAT(artifacts.left, ElementsAre(HasSubstr("huge, 1099511627776 bytes: larger than")));
}

TEST_F(ArtifactsTest, NothingIsNoArchive) {
  const Artifacts artifacts = Collect({"none*"});
  EXPECT_EQ(artifacts.archive, "");
  EXPECT_THAT(artifacts.kept, IsEmpty());
  EXPECT_THAT(artifacts.left, ElementsAre("none*: nothing matches"));
  EXPECT_FALSE(fs::exists(run() + "/artifacts.tar.gz"));
}

}  // namespace
}  // namespace rankscope::run
