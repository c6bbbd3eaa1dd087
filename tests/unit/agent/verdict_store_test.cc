// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/verdict_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "exporter/daemon/kept_file.h"
#include "tests/unit/agent/settled.h"
#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFar = int64_t{4'000'000'000} * 1'000'000'000;  // beyond every file's time

JobStatus Job(const std::string& job_id) {
  JobStatus job;
  job.job_id = job_id;
  job.verdict.set_job_id(job_id);
  job.verdict.set_code("A2");
  job.verdict.set_state(proto::FINAL);
  return job;
}

class VerdictStoreTest : public testing::Test {
 protected:
  std::unique_ptr<VerdictStore> Make() {
    return std::make_unique<VerdictStore>(
        loop_, disk_, [this](const std::string& job_id) { kept_.push_back(job_id); });
  }
  void Settle(const VerdictStore& store) {
    RunUntil(loop_, [&] { return store.files().waiting() == 0; });
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(directory_.path() + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_.path() + "/" + name, std::ios::binary) << bytes;
  }

  TemporaryDirectory directory_;
  EventLoop loop_;
  DiskThread disk_{loop_};
  std::vector<std::string> kept_;
};

TEST_F(VerdictStoreTest, WhatWasPutIsServedAfterARestart) {
  const std::string folder = directory_.path() + "/v";
  {
    auto store = Make();
    ASSERT_TRUE(store->Open(folder, 0, Seconds(60)).ok());
    store->Put(Job("8841"), 0);
    store->Put(Job("../x"), 0);
    EXPECT_EQ(store->files().waiting(), 2u) << "nothing was waited for";
    Settle(*store);
    EXPECT_THAT(kept_, testing::UnorderedElementsAre("8841", "../x"));
  }
  auto store = Make();
  ASSERT_TRUE(store->Open(folder, 0, Seconds(60)).ok());
  ASSERT_EQ(store->Jobs().size(), 2u);
  EXPECT_TRUE(store->Contains("../x"));
  EXPECT_EQ(store->Jobs()[1]->verdict.code(), "A2");
  EXPECT_FALSE(store->Jobs()[1]->running);
  EXPECT_TRUE(fs::exists(folder + "/8841.json"));
  EXPECT_FALSE(fs::exists(directory_.path() + "/x.pb"));
}

TEST_F(VerdictStoreTest, ForgetsWhatIsTooOldOnDiskToo) {
  auto store = Make();
  ASSERT_TRUE(store->Open(directory_.path(), 0, Seconds(60)).ok());
  store->Put(Job("1"), 0);
  Settle(*store);
  store->Expire(Seconds(61).ns, Seconds(60));
  EXPECT_TRUE(store->Jobs().empty());
  Settle(*store);
  EXPECT_TRUE(fs::is_empty(directory_.path()));
  store->Put(Job("2"), 0);
  Settle(*store);
  auto later = Make();
  ASSERT_TRUE(later->Open(directory_.path(), kFar, Seconds(60)).ok());
  EXPECT_TRUE(later->Jobs().empty());
}

TEST_F(VerdictStoreTest, ADamagedFileCostsItself) {
  auto store = Make();
  ASSERT_TRUE(store->Open(directory_.path(), 0, Seconds(60)).ok());
  store->Put(Job("1"), 0);
  Settle(*store);
  Write("bad.pb", "\xff\xff\xff");
  fs::create_symlink("/etc/passwd", directory_.path() + "/link.pb");
  auto again = Make();
  const Status status = again->Open(directory_.path(), 0, Seconds(60));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error(), testing::HasSubstr("bad.pb"));
  EXPECT_EQ(again->Jobs().size(), 1u);
  EXPECT_EQ(again->damaged(), 1);
}

TEST_F(VerdictStoreTest, NeitherAFlippedBitNorALostEndIsServed) {
  JobStatus job = Job("1");
  job.verdict.add_shows()->set_text("what the log says");
  {
    auto store = Make();
    ASSERT_TRUE(store->Open(directory_.path(), 0, Seconds(60)).ok());
    store->Put(job, 0);
    Settle(*store);
  }
  const std::string whole = Read("1.pb");
  const auto served = [&](const std::string& bytes) {
    Write("1.pb", bytes);
    auto store = Make();
    static_cast<void>(store->Open(directory_.path(), 0, Seconds(60)));
    return store->Contains("1") &&
           store->Jobs()[0]->verdict.SerializeAsString() == job.verdict.SerializeAsString();
  };
  ASSERT_TRUE(served(whole));
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(served(whole.substr(0, bytes))) << bytes;
  }
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(served(flipped)) << bit;
  }
}

TEST_F(VerdictStoreTest, AFileOfABuildWithoutChecksumsIsRead) {
  Write("1.pb", Job("1").verdict.SerializeAsString());
  auto store = Make();
  EXPECT_TRUE(store->Open(directory_.path(), 0, Seconds(60)).ok());
  EXPECT_TRUE(store->Contains("1"));
}

TEST_F(VerdictStoreTest, AnotherJobsFileIsNotItsOwn) {
  Write("2.pb", SealMessage(Job("1").verdict.SerializeAsString()));
  auto store = Make();
  EXPECT_FALSE(store->Open(directory_.path(), 0, Seconds(60)).ok());
  EXPECT_TRUE(store->Jobs().empty());
}

TEST_F(VerdictStoreTest, WhatTheDiskRefusedIsWrittenWhenThereIsRoom) {
  const std::string folder = directory_.path() + "/v";
  auto store = Make();
  ASSERT_TRUE(store->Open(folder, 0, Seconds(60)).ok());
  fs::remove(folder);
  Write("v", "in the way");
  for (int i = 0; i < 100; ++i) store->Put(Job(std::to_string(i)), 0);
  RunUntil(loop_, [&] { return store->files().errors() > 0; });
  EXPECT_THAT(store->files().trouble(), testing::HasSubstr("state.dir"));
  EXPECT_EQ(store->files().waiting(), 100u);
  fs::remove(folder);
  fs::create_directory(folder);
  Settle(*store);
  EXPECT_EQ(store->files().trouble(), "");
  EXPECT_EQ(kept_.size(), 100u);
  auto again = Make();
  ASSERT_TRUE(again->Open(folder, 0, Seconds(60)).ok());
  EXPECT_EQ(again->Jobs().size(), 100u);
}

TEST_F(VerdictStoreTest, WithoutADirectoryItKeepsInMemory) {
  Write("file", "x");
  auto store = Make();
  EXPECT_FALSE(store->Open(directory_.path() + "/file/v", 0, Seconds(60)).ok());
  store->Put(Job("1"), 0);
  EXPECT_TRUE(store->Contains("1"));
  EXPECT_EQ(store->files().waiting(), 0u) << "there is nothing to wait for";
}

TEST_F(VerdictStoreTest, IsBoundedAndDropsTheOldest) {
  auto store = Make();
  for (size_t i = 0; i <= VerdictStore::kMaxVerdicts; ++i) {
    store->Put(Job(std::to_string(i)), static_cast<int64_t>(i));
  }
  EXPECT_EQ(store->Jobs().size(), VerdictStore::kMaxVerdicts);
  EXPECT_FALSE(store->Contains("0"));
}

TEST_F(VerdictStoreTest, AUsersManyRunsCostHisOwn) {
  auto store = Make();
  JobStatus other = Job("other");
  other.user = "61001";
  store->Put(other, 0);
  for (size_t i = 0; i <= VerdictStore::kMaxVerdicts; ++i) {
    store->Put(Job(std::to_string(i)), static_cast<int64_t>(i + 1));
  }
  EXPECT_TRUE(store->Contains("other"));
  EXPECT_FALSE(store->Contains("0"));
}

TEST(KeptFile, TheChecksumIsTheCommonOne) {
  EXPECT_EQ(SealLine("123456789"), "123456789\ncrc32:cbf43926\n");
  EXPECT_EQ(SealMessage("123456789"),
            std::string("\xBA\x3F\x08\x26\x39\xF4\xCB\x09\0\0\0", 11) + "123456789");
}

TEST(KeptFile, WhatAnotherBuildSealedIsTakenAsItIs) {
  EXPECT_EQ(OpenLine("one line\ncrc32c:00000000\n"), "one line");
  EXPECT_EQ(OpenLine("one line\ncrc32c:0000000\n"), std::nullopt) << "it is cut";
  const std::string seal("\xC2\x3E\x08\0\0\0\0\0\0\0\0", 11);
  EXPECT_EQ(OpenMessage(seal + "\x0A\x01" + "7"),
            "\x0A\x01"
            "7");
  EXPECT_EQ(OpenMessage(seal), std::nullopt);
}

TEST(KeptFile, ALineIsReadAsItWasWritten) {
  EXPECT_EQ(OpenLine(SealLine("one line")), "one line");
  EXPECT_EQ(OpenLine("an old build's line\n"), "an old build's line");
  const std::string whole = SealLine("one line");
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    const std::string cut = whole.substr(0, bytes);
    const auto line = OpenLine(cut);
    EXPECT_TRUE(!line || *line == "one line") << bytes;
  }
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(OpenLine(flipped)) << bit;
  }
}

TEST(FileNameOf, NeverLeavesItsDirectory) {
  EXPECT_EQ(FileNameOf("run-12ab.3_x"), "run-12ab.3_x");
  EXPECT_EQ(FileNameOf("../../etc"), "%2E.%2F..%2Fetc");
  EXPECT_EQ(FileNameOf("."), "%2E");
  EXPECT_EQ(FileNameOf(std::string("a\0b", 3)), "a%00b");
  EXPECT_LE(FileNameOf(std::string(1000, '/')).size(), 200u);
}

}  // namespace
}  // namespace rankscope::exporter
