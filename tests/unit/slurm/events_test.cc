// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "exporter/slurm/event_json.h"
#include "exporter/slurm/event_store.h"
#include "tests/unit/agent/temporary_directory.h"

namespace rankscope::exporter::slurm {
namespace {

SlurmEvent Event(std::string job, std::string kind, int64_t seconds) {
  SlurmEvent event;
  event.job_id = std::move(job);
  event.kind = std::move(kind);
  event.wall_ns = seconds * 1'000'000'000;
  event.was = "PENDING";
  event.is = "RUNNING";
  event.source = "scontrol";
  event.facts = {{"nodes", "n[1-2]"}, {"submit_line", "sbatch \"a\"\n|b\x1b"}};
  return event;
}

std::string Slurp(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(SlurmEventJson, ComesBackAsItWas) {
  SlurmEvent event = Event("7", "started", 1795444481);
  event.number = 12;
  const std::string line = EventToJson(event);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_NE(line.find("\"time\":\"2026-11-23T"), std::string::npos) << line;
  EXPECT_NE(line.find("\"old\":\"PENDING\",\"new\":\"RUNNING\""), std::string::npos) << line;
  const auto back = EventFromJson(line);
  ASSERT_TRUE(back);
  EXPECT_EQ(EventToJson(*back), line);
  EXPECT_EQ(back->facts.size(), 2u);
  EXPECT_EQ(back->facts[1].value, event.facts[1].value);
}

TEST(SlurmEventJson, WhatIsNotUtf8IsReplaced) {
  SlurmEvent event = Event("7", "started", 5);
  event.reason = "a\xff\xfe";
  const auto back = EventFromJson(EventToJson(event));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->reason, "a\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(SlurmEventJson, WhatIsNoneIsNone) {
  for (const char* text :
       {"", "{", "[]", "null", "{\"kind\":\"started\"}", "{\"kind\":\"eaten\",\"job_id\":\"7\"}",
        "{\"kind\":7,\"job_id\":\"7\"}", "\"started\"", "{\"kind\":\"started\",\"job_id\":7}"}) {
    EXPECT_FALSE(EventFromJson(text)) << text;
  }
  for (const char* text : {"", "{}", "{\"schema\":2,\"events\":[]}", "{\"schema\":1,\"events\":{}}",
                           "[]", "{\"schema\":1}"}) {
    EXPECT_FALSE(EventsFromJson(text)) << text;
  }
  const auto page = EventsFromJson(
      R"({"schema":1,"last":9,"events":[7,{"kind":"started","job_id":"7","facts":[1]},{"kind":"x"}]})");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->last, 9);
  ASSERT_EQ(page->events.size(), 1u);
  EXPECT_TRUE(page->events[0].facts.empty());
}

class SlurmEventStoreTest : public testing::Test {
 protected:
  // Until the file holds what was added.
  void Settle(const EventStore& store) {
    while (store.writing()) {
      ASSERT_TRUE(disk_.Drain(Seconds(60)));
      loop_.Post([this] { loop_.Stop(); });
      loop_.Run();
    }
  }

  EventLoop loop_;
  DiskThread disk_{loop_};
};

TEST_F(SlurmEventStoreTest, SurvivesAStartAndACutLine) {
  TemporaryDirectory folder;
  const std::string path = folder.path() + "/events";
  {
    EventStore store;
    ASSERT_TRUE(store.Open(path, disk_));
    store.Add({Event("7", "submitted", 5), Event("7", "started", 6)});
    store.Add({Event("8", "submitted", 7)});
    EXPECT_EQ(store.first_kept(), 1);
    Settle(store);
  }
  std::ofstream(path, std::ios::app) << "{\"number\":4,\"kind\":\"sta";
  EventStore store;
  ASSERT_TRUE(store.Open(path, disk_));
  ASSERT_EQ(store.events()->size(), 3u);
  EXPECT_EQ(store.events()->back()->job_id, "8");
  store.Add({Event("8", "started", 9)});
  EXPECT_EQ(store.events()->back()->number, 4);
  Settle(store);
  // The cut line is gone with the start.
  EventStore third;
  ASSERT_TRUE(third.Open(path, disk_));
  EXPECT_EQ(third.events()->size(), 4u);
  struct stat file {};
  ASSERT_EQ(stat(path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07, 0u) << "command lines are not everybody's";
}

TEST_F(SlurmEventStoreTest, KeepsTheNewestAndTheFileFollows) {
  TemporaryDirectory folder;
  const std::string path = folder.path() + "/events";
  EventStore store(10);
  ASSERT_TRUE(store.Open(path, disk_));
  for (int i = 0; i < 35; ++i) {
    store.Add({Event(std::to_string(i), "submitted", i)});
    Settle(store);
  }
  EXPECT_EQ(store.events()->size(), 10u);
  EXPECT_EQ(store.first_kept(), 26);
  EXPECT_EQ(store.events()->front()->number, 26);
  const std::string text = Slurp(path);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 20);
  EventStore again(10);
  ASSERT_TRUE(again.Open(path, disk_));
  EXPECT_EQ(again.first_kept(), 26);
  EXPECT_EQ(again.events()->size(), 10u);
}

TEST_F(SlurmEventStoreTest, CountsKindsOfThisLife) {
  EventStore store;
  store.Add({Event("7", "submitted", 5), Event("8", "submitted", 6), Event("7", "node_fail", 9)});
  for (const auto& [kind, count] : store.counts())
    EXPECT_EQ(count, kind == "submitted" ? 2 : kind == "node_fail" ? 1 : 0) << kind;
  EXPECT_EQ(store.counts().size(), std::size(kSlurmEventKinds));
}

TEST_F(SlurmEventStoreTest, ADiskThatRefusesCostsTheFileOnly) {
  EventStore store;
  EXPECT_FALSE(store.Open("/nonexistent/events", disk_));
  store.Add({Event("7", "submitted", 5)});
  Settle(store);
  EXPECT_NE(store.trouble().find("/nonexistent/events"), std::string::npos);
  EXPECT_EQ(store.events()->size(), 1u);
}

TEST_F(SlurmEventStoreTest, WhatWasRefusedIsWrittenWithTheNextEvent) {
  TemporaryDirectory folder;
  const std::string path = folder.path() + "/f/events";
  std::filesystem::create_directory(folder.path() + "/f");
  EventStore store;
  ASSERT_TRUE(store.Open(path, disk_));
  std::filesystem::remove_all(folder.path() + "/f");
  store.Add({Event("7", "submitted", 5)});
  Settle(store);
  EXPECT_NE(store.trouble(), "");
  std::filesystem::create_directory(folder.path() + "/f");
  store.Add({Event("8", "submitted", 6)});
  Settle(store);
  EXPECT_EQ(store.trouble(), "");
  EventStore again;
  ASSERT_TRUE(again.Open(path, disk_));
  EXPECT_EQ(again.events()->size(), 2u);
}

TEST_F(SlurmEventStoreTest, AFileOfSomebodyElse) {
  TemporaryDirectory folder;
  const std::string path = folder.path() + "/events";
  // Numbers that fall, and a gap: what comes after it is kept.
  std::ofstream out(path);
  for (const int64_t number : {3, 4, 2, 9, 10}) {
    SlurmEvent event = Event(std::to_string(number), "submitted", number);
    event.number = number;
    out << EventToJson(event) << "\n";
  }
  out << std::string(1000, '\0') << "\n\xff\n[[[[\n";
  out.close();
  EventStore store;
  ASSERT_TRUE(store.Open(path, disk_));
  ASSERT_EQ(store.events()->size(), 2u);
  EXPECT_EQ(store.first_kept(), 9);
}

TEST(SlurmEventsDocument, OfOneJobSinceAndAfter) {
  EventStore store;
  store.Add({Event("7", "submitted", 5), Event("8", "submitted", 6), Event("7", "started", 9)});
  SlurmReport report;
  report.events = store.events();
  report.first_kept = store.first_kept();
  const auto numbers_of = [&](EventQuery query) {
    std::vector<int64_t> numbers;
    const auto page = EventsFromJson(EventsToJson(report, query));
    for (const SlurmEvent& event : page->events) numbers.push_back(event.number);
    EXPECT_EQ(page->last, 3);
    return numbers;
  };
  using Numbers = std::vector<int64_t>;
  EXPECT_EQ(numbers_of(EventQuery{}), (Numbers{1, 2, 3}));
  EXPECT_EQ(numbers_of({"7", INT64_MIN, 0}), (Numbers{1, 3}));
  EXPECT_EQ(numbers_of({"", 6'000'000'000, 0}), (Numbers{2, 3}));
  EXPECT_EQ(numbers_of({"", INT64_MIN, 2}), (Numbers{3}));
  EXPECT_EQ(numbers_of({"99", INT64_MIN, 0}), Numbers{});
}

TEST(SlurmEventsDocument, OfAJobWithItsNodesWhileItHadThem) {
  const auto node = [](const char* name, int64_t at) {
    SlurmEvent event = Event("", "node_down", at);
    event.node = name;
    event.is = "down";
    return event;
  };
  SlurmEvent started = Event("7", "started", 100);
  started.facts = {{"nodes", "n[1-2]"}};
  SlurmEvent failed = Event("7", "node_fail", 500);
  failed.is = "NODE_FAIL";
  EventStore store;
  store.Add({node("n1", 50), started, node("n2", 480), node("n3", 490), failed, node("n1", 1100),
             node("n1", 1101)});
  SlurmReport report;
  report.events = store.events();
  const auto page = EventsFromJson(EventsToJson(report, {"7", INT64_MIN, 0}));
  std::vector<int64_t> numbers;
  for (const SlurmEvent& event : page->events) numbers.push_back(event.number);
  EXPECT_EQ(numbers, (std::vector<int64_t>{2, 3, 5, 6}));
}

}  // namespace
}  // namespace rankscope::exporter::slurm
