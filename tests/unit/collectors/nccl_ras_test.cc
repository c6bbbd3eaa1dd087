// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Asking NCCL's RAS: whom, how, and what of the answers is worth keeping.
#include "exporter/nccl/nccl_ras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "detectors/model/event_types.h"
#include "exporter/nccl/nccl_ras_diary.h"
#include "exporter/nccl/ras_client.h"
#include "tests/unit/collectors/ras_service.h"
#include "tests/unit/collectors/recording_sink.h"

namespace rankscope::collectors {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

RasAnswer Ask(const RasService& service, milliseconds deadline = milliseconds(5000)) {
  RasQuestion question;
  question.socket = service.socket_at();
  question.deadline = deadline;
  return AskRas(question);
}

TEST(RasClient, SpeaksBothDialects) {
  for (const bool json : {false, true}) {
    const std::string report =
        json ? R"({"nccl_version":"2.28.9","communicators":[]})" : RasText("OK", "");
    const RasService service(RasService::Reporting(report, json));
    const RasAnswer answer = Ask(service);
    EXPECT_EQ(answer.error, "");
    EXPECT_EQ(answer.text, report);
    EXPECT_EQ(answer.json, json);
    EXPECT_FALSE(answer.cut);
  }
}

TEST(RasClient, AServiceThatNeverAnswersCostsTheDeadline) {
  const RasService service([](int fd) {
    while (RasService::Hear(fd) != "(end)") {
    }
  });
  const auto begin = steady_clock::now();
  const RasAnswer answer = Ask(service, milliseconds(200));
  EXPECT_LT(steady_clock::now() - begin, milliseconds(2000));
  EXPECT_TRUE(answer.silent);
  EXPECT_EQ(answer.text, "");
  EXPECT_THAT(answer.error, testing::HasSubstr("handshake"));
}

TEST(RasClient, AnAnswerWithoutEndIsCut) {
  const RasService service([](int fd) {
    RasService::Hear(fd);
    RasService::Say(fd, "SERVER PROTOCOL 2\n");
    RasService::Hear(fd);
    RasService::Say(fd, "OK\n");
    RasService::Hear(fd);
    RasService::Say(fd, "OK\n");
    const std::string flood(size_t{1} << 20, 'x');
    for (int i = 0; i < 1024 && RasService::Say(fd, flood); ++i) {
    }
  });
  const RasAnswer answer = Ask(service);
  EXPECT_TRUE(answer.cut);
  EXPECT_EQ(answer.text.size(), kMaxAnswer);
}

TEST(RasClient, WhoeverSpeaksAnotherProtocolIsLeft) {
  for (const std::string& said :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string(100000, 'z'), std::string()}) {
    const RasService service([said](int fd) {
      RasService::Hear(fd);
      RasService::Say(fd, said);
    });
    const RasAnswer answer = Ask(service, milliseconds(1000));
    EXPECT_EQ(answer.text, "");
    EXPECT_NE(answer.error, "");
  }
}

TEST(RasClient, HalfAReportIsOne) {
  const RasService service([](int fd) {
    RasService::Hear(fd);
    RasService::Say(fd, "SERVER PROTOCOL 2\n");
    RasService::Hear(fd);
    RasService::Say(fd, "OK\n");
    RasService::Hear(fd);
    RasService::Say(fd, "ERROR: Unknown command\n");
    RasService::Hear(fd);
    RasService::Say(fd, "NCCL version 2.26.2 compiled with");
    RasService::Hear(fd);  // until the asker has had enough
  });
  const RasAnswer answer = Ask(service, milliseconds(300));
  EXPECT_EQ(answer.text, "NCCL version 2.26.2 compiled with");
  EXPECT_TRUE(answer.cut);
}

TEST(RasListener, PortsAsJobsNameThem) {
  EXPECT_EQ(RasPortOf(""), 28028);
  EXPECT_EQ(RasPortOf("localhost:28029"), 28029);
  EXPECT_EQ(RasPortOf("[::1]:7000"), 7000);
  EXPECT_EQ(RasPortOf("10.0.0.1:99999"), 28028);
  EXPECT_EQ(RasPortOf("localhost"), 28028);
}

constexpr char kTcp[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:6D7C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 "
    "4711 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:6D7C 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 "
    "4712 1 0000000000000000 100 0 0 10 0\n"
    "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "17 1 0000000000000000 100 0 0 10 0\n"
    "   3: garbage\n";

TEST(RasListener, ReadsTheKernelsTable) {
  const std::vector<ListeningSocket> found = ParseListeners(kTcp, false, 28028);
  ASSERT_EQ(found.size(), 1u) << "a listener, not a connection";
  EXPECT_EQ(found[0].address, std::string("\x7f\0\0\x01", 4));
  EXPECT_EQ(found[0].uid, 1000u);
  EXPECT_EQ(found[0].inode, 4711u);
  EXPECT_TRUE(ParseListeners(kTcp, true, 28028).empty()) << "no address of sixteen bytes";
  const std::string v6 =
      "head\n   0: 00000000000000000000000001000000:6D7C 0:0 0A 0:0 00:0 0  1000        0 5 1\n";
  ASSERT_EQ(ParseListeners(v6, true, 28028).size(), 1u);
  EXPECT_EQ(ParseListeners(v6, true, 28028)[0].address, std::string(15, '\0') + "\x01");
}

Timestamp At(double seconds) {
  return {static_cast<int64_t>((1000 + seconds) * 1e9)};
}

TEST(RasDiary, KeepsTheFirstAndWhatLasts) {
  NcclRasDiary diary;
  EXPECT_EQ(diary.Add(At(0), RasText("OK", "")).size(), 1u);
  EXPECT_EQ(diary.Add(At(30), RasText("OK", "")).size(), 0u);
  // Ranks that differ while they advance: that is how collectives are.
  EXPECT_EQ(diary.Add(At(60), RasMismatch(100, 99, 5)).size(), 0u);
  EXPECT_EQ(diary.Add(At(90), RasMismatch(200, 199, 5)).size(), 0u);
  // It stands: both reports are told, each with its own time.
  const auto both = diary.Add(At(120), RasMismatch(200, 199, 5));
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].t, At(90));
  EXPECT_EQ(both[1].t, At(120));
  int told = 0;
  for (int i = 1; i <= 100; ++i) {
    told += static_cast<int>(diary.Add(At(120 + 30 * i), RasMismatch(200, 199, 5)).size());
  }
  EXPECT_EQ(told, 3 + 4) << "three more at once, then one in ten minutes of fifty";
  EXPECT_EQ(diary.Add(At(4000), RasText("OK", "")).size(), 1u) << "that it is over";
  EXPECT_EQ(diary.Add(At(4030), RasText("OK", "")).size(), 0u);
}

TEST(RasDiary, AskedOftenItTellsNoMoreOften) {
  NcclRasDiary diary;
  int told = 0;
  for (int i = 0; i <= 60; ++i) {
    told += static_cast<int>(diary.Add(At(i), RasMismatch(200, 199, 5)).size());
  }
  EXPECT_EQ(told, 1 + 4) << "as it is first seen, and then every ten seconds";
}

TEST(RasDiary, TheDeadAreToldAtOnce) {
  NcclRasDiary diary;
  diary.Add(At(0), RasText("OK", ""));
  const std::string dead =
      "DEAD\n  1 job process is considered dead (unreachable via the RAS network)\n"
      "  Process 3487984 on node 10.0.0.1 managing GPU 1\n\n";
  EXPECT_EQ(diary.Add(At(30), RasText("INCOMPLETE", dead)).size(), 1u);
}

// An elastic restart, or the first report that lists all of them: whom RAS knows as which rank.
TEST(RasDiary, OtherProcessesAreToldOfAFewTimes) {
  const auto listed = [](int first_pid) {
    std::string ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks += (rank > 0 ? "," : "") + std::string(R"({"rank":)") + std::to_string(rank) +
               R"(,"host":"h","pid":)" + std::to_string(first_pid + rank) +
               R"(,"status":{"init_state":0,"async_error":0}})";
    }
    return R"({"nccl_version":"2.28.9","communicators":[{"hash":"0x1","size":2,"ranks":[)" + ranks +
           "]}]}";
  };
  NcclRasDiary diary;
  EXPECT_EQ(diary.Add(At(0), listed(10)).size(), 1u);
  EXPECT_EQ(diary.Add(At(30), listed(10)).size(), 0u);
  EXPECT_EQ(diary.Add(At(60), listed(20)).size(), 1u);
  size_t told = 0;
  for (int i = 0; i < 1000; ++i) told += diary.Add(At(90 + 30 * i), listed(100 + 10 * i)).size();
  EXPECT_GT(told, 2u);
  EXPECT_LE(told, static_cast<size_t>(NcclRasDiary::kMaxRosters));
}

TEST(RasDiary, HasABudget) {
  NcclRasDiary diary;
  size_t bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    // Trouble that begins anew every time.
    const std::string text = i % 2 == 0 ? RasText("OK", "") + std::string(40000, ' ')
                                        : RasText("INCOMPLETE",
                                                  "TIMEOUT\n  Encountered 2 "
                                                  "communication timeouts while "
                                                  "gathering communicator data\n") +
                                              std::string(40000, ' ');
    for (const auto& entry : diary.Add(At(30 * i), text)) bytes += entry.text.size();
  }
  EXPECT_LE(bytes, NcclRasDiary::kMaxToldBytes);
  EXPECT_GT(diary.untold(), 0);
}

TEST(RasDiary, GarbageIsNoTrouble) {
  NcclRasDiary diary;
  diary.Add(At(0), "garbage");
  EXPECT_EQ(diary.Add(At(30), std::string(100000, '{')).size(), 0u);
}

// A /proc of files, with one rank that "listens" where the test's service does.
class RasSource : public ::testing::Test {
 protected:
  RasSource() {
    std::string name = (fs::temp_directory_path() / "rankscope_ras_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~RasSource() override { fs::remove_all(root_); }

  void Write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  void PutRank(int pid, const std::string& environment, uint16_t port, uint64_t inode, bool holds) {
    const fs::path at = root_ / std::to_string(pid);
    Write(at / "environ", environment);
    std::string zeros;
    for (int i = 0; i < 27; ++i) zeros += " 0";
    Write(at / "stat", std::to_string(pid) + " (python3) S 1 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 3 0 " +
                           "100 0 10" + zeros + " 0\n");
    char row[256];
    std::snprintf(row, sizeof row, "   0: 0100007F:%04X 00000000:0000 0A 0:0 00:0 0 %u 0 %llu 1\n",
                  port, getuid(), static_cast<unsigned long long>(inode));
    Write(at / "net/tcp", std::string("head\n") + row);
    fs::create_directories(at / "fd");
    if (holds) {
      fs::create_symlink("socket:[" + std::to_string(inode) + "]", at / "fd" / "7");
    }
    TrackedProcess process;
    process.key = {pid, 100};
    process.uid = getuid();
    process.job_id = "8841";
    table_->Add(process);
  }
  // Runs the source until `enough` says so, at most some seconds.
  void Run(const std::function<bool()>& enough, Duration most = Seconds(20)) {
    NcclRas source(table_, Milliseconds(20), root_.string());
    ASSERT_TRUE(source.Start(loop_, sink_).ok());
    loop_.Every(Milliseconds(10), [&] {
      if (enough()) loop_.Stop();
    });
    loop_.After(most, [&] { loop_.Stop(); });
    loop_.Run();
    source.Stop();
  }
  static Duration Milliseconds(int64_t ms) { return {ms * 1'000'000}; }

  fs::path root_;
  std::shared_ptr<ProcessTable> table_ = std::make_shared<ProcessTable>();
  exporter::EventLoop loop_;
  RecordingSink sink_;
};

std::string Environment(int rank, uint16_t port) {
  const std::string text = "RANK=" + std::to_string(rank) +
                           "|WORLD_SIZE=4|NCCL_RAS_ADDR=localhost:" + std::to_string(port) + "|";
  std::string bytes = text;
  std::replace(bytes.begin(), bytes.end(), '|', '\0');
  return bytes;
}

TEST_F(RasSource, TellsWhatStandsAndByWhom) {
  const RasService service(RasService::Reporting(RasMismatch(6650, 6649, 42), false));
  PutRank(41, Environment(0, service.port()), service.port(), 777, true);
  Run([&] { return sink_.Of<Event>().size() >= 2; });
  const std::vector<Event> events = sink_.Of<Event>();
  ASSERT_EQ(events.size(), 2u) << "the first one, and that it stands";
  EXPECT_EQ(events[0].type, WireType(EventType::kRasReport));
  EXPECT_EQ(events[0].process, (ProcessKey{41, 100}));
  EXPECT_EQ(events[0].str[1].key, "text");
  EXPECT_THAT(events[1].str[1].value, testing::HasSubstr("up to operation 6649"));
  EXPECT_NE(events[1].begin.ns, 0);
}

// The first job of a node has the port; another job's ranks do not listen there.
TEST_F(RasSource, AsksNobodyElsesService) {
  const RasService service(RasService::Reporting(RasMismatch(6650, 6649, 42), false));
  PutRank(41, Environment(0, service.port()), service.port(), 777, false);
  Run([] { return false; }, Milliseconds(500));
  EXPECT_EQ(service.connections(), 0);
  EXPECT_TRUE(sink_.Of<Event>().empty());
}

TEST_F(RasSource, AJobWithoutTheServiceIsNotAsked) {
  const RasService service(RasService::Reporting(RasText("OK", ""), false));
  std::string environment = Environment(0, service.port());
  environment += std::string("NCCL_RAS_ENABLE=0") + '\0';
  PutRank(41, environment, service.port(), 777, true);
  Run([] { return false; }, Milliseconds(300));
  EXPECT_EQ(service.connections(), 0);
}

TEST_F(RasSource, TheNodeOfRankZeroAsksMoreOften) {
  const RasService service(RasService::Reporting(RasText("OK", ""), false));
  PutRank(41, Environment(8, service.port()), service.port(), 777, true);
  Run([] { return false; }, Milliseconds(420));
  EXPECT_LE(service.connections(), 6);
  EXPECT_GE(service.connections(), 1);
}

}  // namespace
}  // namespace rankscope::collectors
