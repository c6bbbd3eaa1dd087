// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a recorder does on a disk without room: needs root, for a file system of its own.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "exporter/replay/reading.h"
#include "exporter/replay/recorder.h"
#include "exporter/replay/segments.h"
#include "tests/unit/replay/support.h"

namespace rankscope::replay {
namespace {

using ::rankscope::testing::Script;
using ::rankscope::testing::TempDir;

class SmallDisk {
 public:
  SmallDisk() {
    mounted_ = mount("none", dir_.path().c_str(), "tmpfs", 0, "size=256k,mode=0700") == 0;
    error_ = errno;
    if (mounted_) fd_ = OwnedFd(open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~SmallDisk() {
    fd_.Reset();
    if (mounted_) umount2(dir_.path().c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  const char* error() const { return std::strerror(error_); }
  int fd() const { return fd_.get(); }
  const TempDir& dir() const { return dir_; }

 private:
  TempDir dir_;
  bool mounted_ = false;
  int error_ = 0;
  OwnedFd fd_;
};

TEST(FullDisk, LosesWhatDoesNotFitSaysSoAndGoesOnWhenThereIsRoom) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to mount a small file system";
  SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "cannot mount a tmpfs here: " << disk.error();
  RecorderBudgets budgets;
  budgets.segment_bytes = 64 << 10;
  budgets.segments = 16;  // more than fit
  budgets.buffer_bytes = 4096;
  RecorderHooks hooks;
  std::string last_seen = "0";
  hooks.state = [&] { return EngineState{"b", last_seen}; };
  Recorder recorder(disk.fd(), {}, hooks, budgets);
  ASSERT_TRUE(recorder.Open());
  Script script;
  const std::string text(1000, 'x');
  const auto feed = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const Observation line = script.Line(text);
      recorder.Accept(line);
      last_seen = std::to_string(line.seq);
    }
  };
  feed(1000);  // 1 MB into 256 KiB
  const Recorder::Counters full = recorder.counters();
  EXPECT_TRUE(full.broken);
  EXPECT_GT(full.errors, 0);
  EXPECT_EQ(full.last_error, ENOSPC);
  EXPECT_GT(full.lost, 500);
  EXPECT_LT(full.lost, 1000);
  EXPECT_FALSE(recorder.exact());
  for (const int64_t number : ListSegments(disk.fd())) {
    const ReadResult read = ReadRecording(disk.dir() / SegmentName(number), {});
    EXPECT_TRUE(read.readable) << number;
    EXPECT_FALSE(read.truncated_at) << number << ": no half frame is left behind";
  }

  // Room again: within ten seconds of the observations' own time a new segment begins, with the
  // state of all before it.
  const int64_t last_before = ListSegments(disk.fd()).back();
  for (const int64_t number : ListSegments(disk.fd())) {
    if (number == last_before) continue;
    ASSERT_EQ(unlinkat(disk.fd(), SegmentName(number).c_str(), 0), 0);
  }
  feed(1100);  // 11 s
  EXPECT_FALSE(recorder.counters().broken && recorder.counters().lost == full.lost);
  const int64_t last = ListSegments(disk.fd()).back();
  EXPECT_GT(last, last_before + 1) << "the number left out says that observations are missing";
}

}  // namespace
}  // namespace rankscope::replay
