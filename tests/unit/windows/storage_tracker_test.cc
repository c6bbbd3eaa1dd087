// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/trackers/storage_tracker.h"

#include <gtest/gtest.h>

#include "detectors/model/archive.h"
#include "detectors/model/event_types.h"

namespace rankscope::windows {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

Event Of(EventType type, std::vector<KeyValue> texts, std::vector<IntKeyValue> numbers) {
  Event event;
  event.type = WireType(type);
  event.str = std::move(texts);
  event.num = std::move(numbers);
  return event;
}

Event Save(int64_t milliseconds, bool main_thread) {
  return Of(EventType::kCheckpointWritten, {{"name", "a.pt"}, {"directory", "out"}},
            {{"bytes", 100},
             {"milliseconds", milliseconds},
             {"complete", 1},
             {"main_thread", main_thread ? 1 : 0}});
}

Speaker By(int32_t rank) {
  return {rank, rank, {1000 + rank, 1}};
}

TEST(StorageTracker, SavesOfOneRanksMainThreadAreTimed) {
  StorageTracker tracker;
  tracker.OnEvent(Save(4000, true), By(0), {10 * kSecond});
  tracker.OnEvent(Save(4000, true), By(1), {11 * kSecond});   // another rank's
  tracker.OnEvent(Save(4000, false), By(0), {15 * kSecond});  // in the background
  tracker.OnEvent(Save(4000, true), By(0), {20 * kSecond});
  tracker.OnEvent(Save(4000, true), By(0), {21 * kSecond});  // a shard, open at the same time
  EXPECT_EQ(tracker.saves(), 3);
  EXPECT_DOUBLE_EQ(tracker.save_seconds(), 9);
  EXPECT_EQ(tracker.first_save().ns, 6 * kSecond);
  EXPECT_EQ(tracker.last_save().ns, 21 * kSecond);
  EXPECT_EQ(tracker.written().size(), 5u);
}

TEST(StorageTracker, AFailureThatIsToldAgainIsOne) {
  StorageTracker tracker;
  const auto fail = [](int64_t times) {
    return Of(EventType::kFileError, {{"name", "a.pt"}, {"call", "write"}, {"class", "checkpoint"}},
              {{"errno", 28}, {"times", times}});
  };
  tracker.OnEvent(fail(1), By(0), {10 * kSecond});
  tracker.OnEvent(fail(7), By(0), {15 * kSecond});
  ASSERT_EQ(tracker.failures().size(), 1u);
  EXPECT_EQ(tracker.failures()[0].times, 7);
  EXPECT_EQ(tracker.failures()[0].first.ns, 10 * kSecond);
  EXPECT_EQ(tracker.failures()[0].last.ns, 15 * kSecond);
}

TEST(StorageTracker, TheRoomAtABusErrorStays) {
  StorageTracker tracker;
  const auto space = [](int64_t free, int64_t bus_error) {
    return Of(EventType::kFileSpace, {{"filesystem", "shared_memory"}},
              {{"free_bytes", free}, {"total_bytes", 100}, {"bus_error", bus_error}});
  };
  tracker.OnEvent(space(50, 0), By(0), {1});
  tracker.OnEvent(space(0, 1), By(0), {2});
  tracker.OnEvent(space(90, 0), By(0), {3});  // once the process is gone
  ASSERT_EQ(tracker.spaces().size(), 1u);
  EXPECT_EQ(tracker.spaces()[0].free_bytes, 0);
  EXPECT_TRUE(tracker.spaces()[0].bus_error);
}

TEST(StorageTracker, IsBoundedAndSurvivesDamagedBytes) {
  StorageTracker tracker;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "f" + std::to_string(i);
    tracker.OnEvent(Of(EventType::kFileError, {{"name", name}}, {{"errno", 28}}), By(0), {1});
    tracker.OnEvent(Of(EventType::kCheckpointRead, {{"name", name}}, {{"bytes", 1}}), By(0), {1});
    tracker.OnEvent(Of(EventType::kFileCallHangs, {}, {{"seconds", 1}}), By(i), {1});
  }
  EXPECT_EQ(tracker.failures().size(), StorageTracker::kMostFailures);
  EXPECT_EQ(tracker.read().size(), StorageTracker::kMostFiles);
  EXPECT_EQ(tracker.read().back().name, "f999");
  EXPECT_EQ(tracker.hangs().size(), StorageTracker::kMostSpaces);
  StorageTracker small;
  small.OnEvent(Save(4000, true), By(0), {10 * kSecond});
  ArchiveWriter writer;
  writer(small);
  const std::string bytes = writer.Take();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    ArchiveReader reader(damaged);
    StorageTracker other;
    reader(other);
    EXPECT_LE(other.written().size(), StorageTracker::kMostFiles);
  }
}

}  // namespace
}  // namespace rankscope::windows
