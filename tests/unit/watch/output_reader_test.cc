// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Polls of an output file: what has come, another file in its place, and what is no file.
#include "exporter/watch/output_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace rankscope::watch {
namespace {

namespace fs = std::filesystem;

class OutputReader : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "watch_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text,
             std::ios::openmode mode = std::ios::app) const {
    std::ofstream(Path(name), mode | std::ios::binary) << text;
  }
  OutputRequest LookAt(const std::string& name) const {
    OutputRequest request;
    request.paths = {Path(name)};
    request.most = 1024;
    return request;
  }
  // The next poll after this piece.
  static OutputRequest After(OutputRequest request, const OutputPiece& piece) {
    request.device = piece.device;
    request.inode = piece.inode;
    request.offset = piece.begin + static_cast<int64_t>(piece.bytes.size());
    return request;
  }

  std::string folder_;
};

TEST_F(OutputReader, WhatHasComeSince) {
  Write("a", "one\n");
  OutputRequest request = LookAt("a");
  OutputPiece piece = ReadOutput(request);
  EXPECT_EQ(piece.bytes, "one\n");
  EXPECT_EQ(piece.size, 4);
  EXPECT_GT(piece.written_ns, 0);
  EXPECT_FALSE(piece.anew);
  request = After(request, piece);
  EXPECT_EQ(ReadOutput(request).bytes, "");
  Write("a", "two\n");
  piece = ReadOutput(request);
  EXPECT_EQ(piece.bytes, "two\n");
  EXPECT_EQ(piece.begin, 4);
  EXPECT_FALSE(piece.anew);
}

TEST_F(OutputReader, APieceHasItsSize) {
  Write("a", std::string(3000, 'x'));
  OutputRequest request = LookAt("a");
  const OutputPiece first = ReadOutput(request);
  EXPECT_EQ(first.bytes.size(), 1024u);
  EXPECT_EQ(first.size, 3000);
  const OutputPiece second = ReadOutput(After(request, first));
  EXPECT_EQ(second.begin, 1024);
}

TEST_F(OutputReader, AnotherFileInItsPlace) {
  Write("a", "the first run\n");
  const OutputRequest request = After(LookAt("a"), ReadOutput(LookAt("a")));
  Write("a", "again\n", std::ios::trunc);
  OutputPiece piece = ReadOutput(request);
  EXPECT_TRUE(piece.anew) << "it is shorter";
  EXPECT_EQ(piece.bytes, "again\n");
  Write("b", "another one that is longer than it\n");
  fs::rename(Path("b"), Path("a"));
  piece = ReadOutput(request);
  EXPECT_TRUE(piece.anew);
  EXPECT_EQ(piece.begin, 0);
}

TEST_F(OutputReader, TheFirstPathThatIsThere) {
  Write("b", "text");
  OutputRequest request = LookAt("a");
  request.paths.push_back(Path("b"));
  EXPECT_EQ(ReadOutput(request).bytes, "text");
  EXPECT_EQ(ReadOutput(request).path, Path("b"));
  const OutputPiece missing = ReadOutput(LookAt("a"));
  EXPECT_EQ(missing.error, "No such file or directory");
  EXPECT_EQ(missing.path, Path("a"));
}

TEST_F(OutputReader, WhatIsNoFileMakesNobodyWait) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  ASSERT_EQ(mkdir(Path("folder").c_str(), 0700), 0);
  for (const bool foreign : {false, true}) {
    for (const char* const name : {"fifo", "folder"}) {
      OutputRequest request = LookAt(name);
      request.foreign = foreign;
      EXPECT_EQ(ReadOutput(request).error, "is no regular file") << name << foreign;
    }
    OutputRequest request = LookAt("fifo");
    request.paths = {"/dev/null"};
    request.foreign = foreign;
    EXPECT_EQ(ReadOutput(request).error, "is no regular file");
  }
}

TEST_F(OutputReader, AnotherUsersPathIsWalked) {
  Write("a", "text");
  fs::create_symlink("a", Path("link"));
  OutputRequest request = LookAt("a");
  request.foreign = true;
  EXPECT_EQ(ReadOutput(request).bytes, "text");
  request.paths = {Path("link")};
  EXPECT_EQ(ReadOutput(request).error, "is no regular file") << "the last step is no link";
  request.paths = {Path("missing")};
  EXPECT_EQ(ReadOutput(request).error, "No such file or directory");
}

TEST_F(OutputReader, WhatMayNotBeRead) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  Write("a", "text");
  ASSERT_EQ(chmod(Path("a").c_str(), 0), 0);
  EXPECT_EQ(ReadOutput(LookAt("a")).error, "Permission denied");
}

}  // namespace
}  // namespace rankscope::watch
