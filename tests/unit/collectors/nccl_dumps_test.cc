// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Dumps of a job's libraries: which file may be read, when, and what of it is told.
#include "exporter/nccl/nccl_dumps.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "detectors/model/event_types.h"
#include "detectors/reports/digest.h"
#include "exporter/nccl/dump_file.h"
#include "tests/unit/collectors/recording_sink.h"

namespace rankscope::collectors {
namespace {

namespace fs = std::filesystem;

std::string Fixture(const std::string& name) {
  std::ifstream file(std::string(RANKSCOPE_SOURCE_DIR) + "/tests/fixtures/flight_recorder/" + name,
                     std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

std::string_view Text(const Event& event, std::string_view key) {
  for (const KeyValue& pair : event.str) {
    if (pair.key == key) return pair.value;
  }
  return {};
}

int64_t Number(const Event& event, std::string_view key) {
  for (const IntKeyValue& pair : event.num) {
    if (pair.key == key) return pair.value;
  }
  return -99;
}

TEST(NcclDigest, RanksAsRuns) {
  EXPECT_EQ(reports::WriteRanks({}), "");
  EXPECT_EQ(reports::WriteRanks({3}), "3");
  EXPECT_EQ(reports::WriteRanks({0, 1, 2, 3}), "0-3");
  EXPECT_EQ(reports::WriteRanks({0, 8, 16, 24, 25}), "0-24/8,25");
  EXPECT_EQ(reports::WriteRanks({1, 5}), "1,5");
  EXPECT_EQ(reports::WriteRanks({1, 2}), "1-2");
  EXPECT_EQ(reports::WriteRanks({5, 4, 3}), "5,4,3");
  std::vector<int32_t> wild;
  for (int i = 0; i < 2000; ++i) wild.push_back(i * i);
  EXPECT_EQ(reports::WriteRanks(wild), "") << "too long to be told";
}

TEST(NcclDigest, OneEventPerGroup) {
  const auto dump = reports::ReadFlightDump(Fixture("lag_rank_0"));
  ASSERT_TRUE(dump) << dump.error();
  const std::vector<Event> events = reports::TellFlightDump(*dump, 0, {7, 8}, 99);
  ASSERT_EQ(events.size(), 1u);
  const Event& event = events[0];
  EXPECT_EQ(event.type, WireType(EventType::kFlightRecord));
  EXPECT_EQ(event.process, (ProcessKey{7, 8}));
  EXPECT_EQ(Text(event, "group"), "0");
  EXPECT_EQ(Text(event, "description"), "default_pg");
  EXPECT_EQ(Text(event, "members"), "0-3");
  EXPECT_EQ(Text(event, "operation"), "all_reduce");
  EXPECT_EQ(Number(event, "enqueued"), 4522);
  EXPECT_EQ(Number(event, "completed"), 4520);
  EXPECT_EQ(Number(event, "pending"), 4521);
  EXPECT_EQ(Number(event, "written_ns"), 99);
}

TEST(NcclDigest, ManyGroupsAreCutAndSaidToBe) {
  reports::FlightDump dump;
  for (int i = 0; i < 100; ++i) {
    reports::FlightGroup group;
    group.name = std::to_string(i);
    group.last_enqueued = 5;
    group.last_completed = i == 99 ? 4 : 5;
    dump.groups.push_back(group);
  }
  const std::vector<Event> events = reports::TellFlightDump(dump, 0, {}, 0);
  ASSERT_EQ(events.size(), reports::kMaxToldGroups);
  EXPECT_EQ(Text(events[0], "group"), "99") << "what waits goes first";
  EXPECT_EQ(Number(events[0], "cut"), 1);
  EXPECT_EQ(reports::TellFlightDump({}, 3, {}, 0).size(), 1u) << "that it has written is told too";
}

TEST(NcclDigest, InspectorByCommunicator) {
  const std::string line =
      R"({"header":{"id":"0x9e7a479f95a66c","rank":0,"n_ranks":8,"nnodes":1},)"
      R"("metadata":{"inspector_output_format_version":"v4.0","dump_timestamp_us":1748030377748202,)"
      R"("hostname":"example-hostname","pid":1639453},)"
      R"("coll_perf":{"coll":"AllReduce","coll_sn":1407,"coll_msg_size_bytes":17179869184,)"
      R"("coll_exec_time_us":61974,"coll_algobw_gbs":277.21,"coll_busbw_gbs":485.12}})";
  size_t used = 0;
  const std::string text = line + "\n" + line + "\nnot a record\n" + line.substr(0, 40);
  const std::vector<Event> events = reports::TellInspectorLines(text, {7, 8}, used);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(Number(events[0], "records"), 2);
  EXPECT_EQ(Number(events[0], "sequence"), 1407);
  EXPECT_NEAR(static_cast<double>(Number(events[0], "bus_bytes_per_second")), 485.12e9, 1e7);
  EXPECT_EQ(text.substr(used), line.substr(0, 40)) << "half a line waits for its other half";
}

class Folder : public ::testing::Test {
 protected:
  Folder() {
    std::string name = (fs::temp_directory_path() / "rankscope_dumps_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~Folder() override { fs::remove_all(root_); }
  void Write(const fs::path& path, const std::string& bytes) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }
  fs::path root_;
};

Result<DumpFile> Find(const std::string& path, uid_t owner) {
  exporter::UserMounts mounts("/proc", getpid());
  const PathStart start = {OwnedFd(open("/", O_PATH | O_CLOEXEC)),
                           OwnedFd(open(".", O_PATH | O_CLOEXEC))};
  return DumpFile::Find(start, path, owner, mounts);
}

TEST_F(Folder, OfRootsFilesThoseThatAllMayRead) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  Write(root_ / "dump", "bytes");
  ASSERT_EQ(chmod((root_ / "dump").c_str(), 0600), 0);
  EXPECT_FALSE(Find(root_ / "dump", 0));
}

TEST_F(Folder, OnlyARegularFileOfItsOwnerIsRead) {
  const std::string file = root_ / "dump";
  Write(file, "bytes");
  const auto found = Find(file, getuid());
  ASSERT_TRUE(found);
  EXPECT_EQ(*found->Read(0, 100), "bytes");
  EXPECT_EQ(*found->Read(2, 2), "te");
  EXPECT_EQ(found->stamp().size, 5);

  EXPECT_FALSE(Find(file, getuid() + 1)) << "another user's";
  fs::create_symlink(file, root_ / "link");
  EXPECT_FALSE(Find(root_ / "link", getuid()));
  ASSERT_EQ(mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(Find(root_ / "pipe", getuid())) << "and does not wait for a writer";
  EXPECT_FALSE(Find(root_, getuid()));
  EXPECT_FALSE(Find("/dev/null", 0));
  EXPECT_FALSE(Find(std::string("a\0b", 3), getuid()));
  const auto none = Find(root_ / "nothing", getuid());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), "") << "that there is none is no error";
}

class DumpSource : public Folder {
 protected:
  void PutRank(int pid, int rank, const std::string& more) {
    const fs::path at = root_ / "proc" / std::to_string(pid);
    std::string environment = "RANK=" + std::to_string(rank) + "|" + more + "|";
    std::replace(environment.begin(), environment.end(), '|', '\0');
    Write(at / "environ", environment);
    for (const char* link : {"root", "cwd"}) fs::create_directory_symlink("/", at / link);
    for (const char* link : {"ns", "mountinfo", "auxv"})
      fs::create_symlink(fs::path("/proc/self") / link, at / link);
    const std::string uid = '\t' + std::to_string(getuid()), gid = '\t' + std::to_string(getgid());
    Write(at / "status", "Name:\tx\nPPid:\t0\nUid:" + uid + uid + uid + uid + "\nGid:" + gid + gid +
                             gid + gid + "\nGroups:\t\n");
    std::string zeros;
    for (int i = 0; i < 27; ++i) zeros += " 0";
    Write(at / "stat", std::to_string(pid) + " (python3) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 3 0 " +
                           std::to_string(kTicks) + " 0 10" + zeros + " 0\n");
    TrackedProcess process;
    process.key = {pid, kTicks};
    process.uid = getuid();
    process.job_id = "8841";
    table_->Add(process);
  }
  // Looks every 20 ms until `enough` says so; `then` runs once, after some looks.
  void Run(const std::function<bool()>& enough, const std::function<void()>& then = {},
           Duration most = Milliseconds(5000)) {
    NcclDumps source(table_, Milliseconds(20), (root_ / "proc").string());
    ASSERT_TRUE(source.Start(loop_, sink_).ok());
    loop_.Every(Milliseconds(10), [&] {
      if (enough()) loop_.Stop();
    });
    if (then) loop_.After(Milliseconds(200), then);
    loop_.After(most, [&] { loop_.Stop(); });
    loop_.Run();
    lost_ = source.lost();
    source.Stop();
  }
  static Duration Milliseconds(int64_t ms) { return {ms * 1'000'000}; }
  std::string Prefix() const {
    return "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=" + (root_ / "trace_").string();
  }

  static constexpr int64_t kTicks = 100;
  std::shared_ptr<ProcessTable> table_ = std::make_shared<ProcessTable>();
  exporter::EventLoop loop_;
  RecordingSink sink_;
  int64_t lost_ = 0;
};

TEST_F(DumpSource, TellsTheDumpOfEachRank) {
  PutRank(41, 0, Prefix());
  PutRank(42, 2, Prefix());
  PutRank(43, 0, Prefix());  // a data loader's worker has all of its rank's environment
  Run([&] { return sink_.Of<Event>().size() >= 2; },
      [&] {
        Write(root_ / "trace_0", Fixture("lag_rank_0"));
        Write(root_ / "trace_2", Fixture("lag_rank_2"));
      });
  const std::vector<Event> events = sink_.Of<Event>();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(Number(events[0], "rank"), 0);
  EXPECT_EQ(Number(events[0], "enqueued"), 4522);
  EXPECT_EQ(Number(events[1], "rank"), 2);
  EXPECT_EQ(Number(events[1], "enqueued"), 4520);
  EXPECT_EQ(events[1].process, (ProcessKey{42, kTicks}));
  EXPECT_EQ(lost_, 0);
}

TEST_F(DumpSource, ADumpOfAnEarlierRunIsNoneOfThisOne) {
  Write(root_ / "proc/stat", "btime 4000000000\n");  // the rank begins in the year 2096
  PutRank(41, 0, Prefix());
  Write(root_ / "trace_0", Fixture("lag_rank_0"));
  Run([] { return false; }, {}, Milliseconds(400));
  EXPECT_TRUE(sink_.Of<Event>().empty());
}

TEST_F(DumpSource, WhatARankWroteAtItsEndIsStillRead) {
  PutRank(41, 0, Prefix());
  Run([&] { return !sink_.Of<Event>().empty(); },
      [&] {
        Write(root_ / "trace_0", Fixture("lag_rank_0"));
        table_->Remove({41, kTicks});
      });
  EXPECT_EQ(sink_.Of<Event>().size(), 1u);
}

TEST_F(DumpSource, HostileDumpsAreCountedAndNothingRuns) {
  PutRank(41, 0, Prefix());
  PutRank(42, 1, Prefix());
  PutRank(43, 2, Prefix());
  Write(root_ / "trace_0", Fixture("hostile"));
  Write(root_ / "secret", Fixture("lag_rank_0"));
  fs::create_symlink(root_ / "secret", root_ / "trace_1");
  Write(root_ / "trace_2", std::string(100000, '\x80'));
  Run([] { return false; }, {}, Milliseconds(500));
  EXPECT_TRUE(sink_.Of<Event>().empty());
  EXPECT_EQ(lost_, 3);
  EXPECT_FALSE(fs::exists("/tmp/never"));
}

}  // namespace
}  // namespace rankscope::collectors
