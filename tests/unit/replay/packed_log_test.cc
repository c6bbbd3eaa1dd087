// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Logs that gzip has packed, whole and broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "exporter/replay/log_file.h"
#include "exporter/replay/packed_text.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::TempDir;
using ::testing::HasSubstr;

std::string Pack(const std::string& text) {
  constexpr int kGzip = 15 + 16;
  z_stream z = {};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&z, text.size()) + 64, '\0');
  std::string from = text;
  z.next_in = reinterpret_cast<Bytef*>(from.data());
  z.avail_in = static_cast<uInt>(from.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  packed.resize(packed.size() - z.avail_out);
  deflateEnd(&z);
  return packed;
}

std::string Failing(int steps) {
  std::string text;
  for (int i = 0; i < steps; ++i)
    text += "step " + std::to_string(i) + " loss " + std::to_string(3.0 / (1 + i)) + "\n";
  return text +
         "Traceback (most recent call last):\n  File \"/w/t.py\", line 3, in <module>\n    d[k]\n"
         "KeyError: 'k'\n";
}

std::string Notes(const proto::Verdict& verdict) {
  std::string notes;
  for (const std::string& note : verdict.data_quality().notes()) notes += note + "\n";
  return notes;
}

TEST(PackedLogs, AreJudgedAsTheirText) {
  TempDir dir;
  const std::string text = Failing(20'000);
  dir.Write("plain.log", text);
  dir.Write("a.log.gz", Pack(text));
  const std::string half = text.substr(0, text.size() / 2);
  dir.Write("parts.gz", Pack(half) + Pack(text.substr(half.size())) + std::string(5, '\0'));
  const auto plain = JudgeLog(dir / "plain.log", 1);
  ASSERT_TRUE(plain);
  for (const char* name : {"a.log.gz", "parts.gz"}) {
    const auto packed = JudgeLog(dir / name, 1);
    ASSERT_TRUE(packed) << name << packed.error();
    EXPECT_EQ(packed->code(), plain->code());
    EXPECT_EQ(packed->exception_type(), "KeyError");
    EXPECT_THAT(Notes(*packed), HasSubstr("gzip has packed it"));
    for (const auto& evidence : packed->shows()) {
      if (!evidence.cite().has_log()) continue;
      const auto& log = evidence.cite().log();
      EXPECT_EQ(text.substr(static_cast<size_t>(log.offset()), log.line().size()), log.line());
    }
  }
}

TEST(PackedLogs, OfAJobAreReadSideBySide) {
  TempDir dir;
  dir.Write("rank0.log.gz", Pack(Failing(100)));
  dir.Write("rank1.log.gz", Pack("starting\nwaiting\n"));
  const std::vector<std::string> files = {dir / "rank0.log.gz", dir / "rank1.log.gz"};
  const auto job = JudgeJobLogs(files, 1);
  ASSERT_TRUE(job) << job.error();
  EXPECT_EQ(job->verdict.exception_type(), "KeyError");
  EXPECT_EQ(job->verdict.ranks_size(), 1);
}

TEST(PackedLogs, WhatIsBrokenIsSaid) {
  TempDir dir;
  const std::string packed = Pack(Failing(20'000));
  dir.Write("cut.gz", packed.substr(0, packed.size() / 2));
  std::string damaged = packed;
  damaged[damaged.size() - 6] ^= 1;  // of its checksum
  dir.Write("damaged.gz", damaged);
  dir.Write("behind.gz", packed + "and more");
  dir.Write("nothing.gz", packed.substr(0, 12));
  dir.Write("other.zst", "\x28\xb5\x2f\xfd....");
  const auto cut = JudgeLog(dir / "cut.gz", std::nullopt);
  ASSERT_TRUE(cut);
  EXPECT_THAT(Notes(*cut), HasSubstr("it is cut off after"));
  const auto broken = JudgeLog(dir / "damaged.gz", std::nullopt);
  ASSERT_TRUE(broken);
  EXPECT_THAT(Notes(*broken), HasSubstr("it is damaged after"));
  const auto behind = JudgeLog(dir / "behind.gz", std::nullopt);
  ASSERT_TRUE(behind);
  EXPECT_THAT(Notes(*behind), HasSubstr("it holds something else after"));
  const auto nothing = JudgeLog(dir / "nothing.gz", std::nullopt);
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error(), HasSubstr("it is cut off"));
  const auto other = JudgeLog(dir / "other.zst", std::nullopt);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error(), HasSubstr("zstd -dc"));
}

TEST(PackedLogs, AnEndlessOneIsNotReadToItsEnd) {
  constexpr int64_t kMost = 1 << 20;
  const std::string packed = Pack(std::string(size_t{8} << 20, 'a'));
  PackedText text(kMost);
  std::string_view rest = packed;
  std::string block(1 << 16, '\0');
  size_t bytes = 0;
  while (!text.ended() && !rest.empty()) bytes += text.Read(rest, block.data(), block.size());
  EXPECT_LE(bytes, size_t{kMost} + block.size());
  EXPECT_THAT(text.fault(), HasSubstr("made to be endless"));
  // A log of one line a million times is no such thing before it is large.
  PackedText whole;
  rest = packed;
  while (!whole.ended() && !rest.empty()) whole.Read(rest, block.data(), block.size());
  whole.Close();
  EXPECT_EQ(whole.fault(), "");
}

}  // namespace
}  // namespace rankscope::replay
