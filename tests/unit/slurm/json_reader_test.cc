// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// JSON of other shapes than any version's: renamed, retyped, deep, long, cut.
#include "exporter/slurm/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "exporter/slurm/json_records.h"
#include "exporter/slurm/json_values.h"
#include "exporter/slurm/values.h"

namespace rankscope::exporter::slurm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

bool KeepAll(std::string_view) {
  return true;
}

// What a function makes of the value that stands as `text`.
template <auto kRead>
auto Of(const std::string& text) {
  decltype(kRead(Json())) made{};
  EXPECT_TRUE(
      ForEachJsonRecord("{\"jobs\": [{\"a\": " + text + "}]}", KeepAll,
                        [&](const JsonRecord& record) { made = kRead(At(record.value, "a")); }))
      << text;
  return made;
}

std::string Print(const Json& value) {
  std::string items;
  for (const Json& item : value.items()) {
    items += items.empty() ? "" : ",";
    if (value.Is(Json::Kind::kObject)) items += std::string(item.name) + ":";
    items += Print(item);
  }
  switch (value.kind) {
    case Json::Kind::kNull:
      return "null";
    case Json::Kind::kBoolean:
      return value.truth ? "true" : "false";
    case Json::Kind::kNumber:
      return std::to_string(value.number);
    case Json::Kind::kString:
      return "'" + std::string(value.text) + "'";
    case Json::Kind::kArray:
      return "[" + items + "]";
    case Json::Kind::kObject:
      return "{" + items + "}";
  }
  return {};
}

SlurmJob Only(const Read<SlurmJob>& read) {
  EXPECT_EQ(read.unreadable, 0);
  EXPECT_THAT(read.records, SizeIs(1));
  return read.records.empty() ? SlurmJob() : read.records[0];
}

SlurmJob JobOf(const std::string& more) {
  return Only(ReadJobJson(R"({"jobs": [{"job_id": 7, "job_state": "RUNNING")" + more + "}]}"));
}

TEST(JsonValues, ANumberHasManyShapes) {
  EXPECT_EQ(Of<Number>(("5")), 5);
  EXPECT_EQ(Of<Number>(("5.0")), 5);
  EXPECT_EQ(Of<Number>(("\"5\"")), 5);
  EXPECT_EQ(Of<Number>((R"({"set": true, "infinite": false, "number": 5})")), 5);
  EXPECT_EQ(Of<Number>((R"({"number": 5})")), 5);
  for (const char* none :
       {"null", "true", "-1", "\"\"", "\"five\"", "[5]", "{}", "4294967294", "4294967295",
        "18446744073709551614", "1e300", R"({"set": false, "infinite": false, "number": 5})",
        R"({"set": true, "infinite": true, "number": 5})", R"({"number": {"number": 5}})",
        R"({"set": true})"}) {
    EXPECT_EQ(Of<Number>((none)), std::nullopt) << none;
  }
}

TEST(JsonValues, AnExitHasManyShapes) {
  EXPECT_EQ(Of<Exit>(("256")), (ExitStatus{1, 0}));
  EXPECT_EQ(Of<Exit>((R"({"set": true, "infinite": false, "number": 9})")), (ExitStatus{0, 9}));
  EXPECT_EQ(Of<Exit>((R"({"status": "SIGNALED", "return_code": 0,
                           "signal": {"signal_id": 9, "name": "Killed"}})")),
            (ExitStatus{0, 9}));
  EXPECT_EQ(Of<Exit>((R"({"status": ["ERROR"], "return_code": {"set": true, "number": 3},
                           "signal": {"id": {"set": false, "number": 0}, "name": ""}})")),
            (ExitStatus{3, 0}));
  for (const char* none :
       {"null", "\"SUCCESS\"", "[]", "{}", R"({"status": "PENDING"})", "4294967294",
        R"({"status": ["PENDING"], "return_code": {"set": false, "number": 0},
            "signal": {"id": {"set": false, "number": 0}, "name": ""}})",
        R"({"return_code": 70000})"}) {
    EXPECT_EQ(Of<Exit>((none)), std::nullopt) << none;
  }
}

TEST(JsonValues, CountsGpusOfLists) {
  EXPECT_EQ(Of<Gpus>((R"([{"type": "cpu", "name": "", "count": 4}])")), 0);
  EXPECT_EQ(Of<Gpus>((R"([{"type": "gres", "name": "gpu", "count": 4},
                           {"type": "gres", "name": "gpu:a100", "count": 4}])")),
            4);
  EXPECT_EQ(Of<Gpus>((R"([{"type": "gres", "name": "gpu:a100", "count": 4},
                           {"type": "gres", "name": "gpu:h200", "count": 2},
                           {"type": "gres", "name": "gpumem", "count": 80}])")),
            6);
  EXPECT_EQ(Of<Gpus>(("[]")), std::nullopt);
  EXPECT_EQ(Of<Gpus>(("null")), std::nullopt);
  EXPECT_EQ(Of<Gpus>(("\"gres/gpu=3\"")), 3);
}

TEST(JobJson, WhatIsAbsentIsAbsent) {
  const SlurmJob job = JobOf("");
  EXPECT_EQ(job.job_id, "7");
  EXPECT_EQ(job.node_count, std::nullopt);
  EXPECT_EQ(job.gpus, std::nullopt);
  EXPECT_EQ(job.submit, 0);
  EXPECT_EQ(job.exit, std::nullopt);
  EXPECT_EQ(job.het_offset, -1);
}

TEST(JobJson, WhatIsOfAnotherTypeIsAbsent) {
  const SlurmJob job = JobOf(
      R"(, "name": {"a": 1}, "user_name": 5, "account": ["ml"], "nodes": true, "node_count": "many",
         "cpus": [1], "submit_time": "yesterday", "exit_code": [], "requeue": "yes",
         "time_limit": {"set": 1, "infinite": 0, "number": [3]}, "array_job_id": -3,
         "het_job_id": "x", "het_job_offset": 4, "tres_alloc_str": 7, "array_task_id": {}, "comment": 1)");
  SlurmJob expected;
  expected.job_id = "7";
  expected.state = "RUNNING";
  EXPECT_EQ(job, expected);
}

TEST(JobJson, NoneAssignedIsNoNode) {
  EXPECT_EQ(JobOf(R"(, "nodes": "None assigned")").nodes, "");
  EXPECT_EQ(JobOf(", \"nodes\": \"(null)\"").nodes, "");
  EXPECT_EQ(JobOf(R"(, "name": "None")").name, "None");
}

TEST(JobJson, AJobWithoutALimitHasNoEndInAYear) {
  constexpr const char* kEnd = R"(, "end_time": 1826982036, "time_limit": )";
  EXPECT_EQ(JobOf(std::string(kEnd) + "null").end, 0);
  EXPECT_EQ(JobOf(std::string(kEnd) + "60").end, 1826982036);
  EXPECT_EQ(JobOf(std::string(kEnd) + "null, \"job_state\": [\"COMPLETED\"]").end, 1826982036);
}

TEST(JobJson, CountsJobsThatSayNothing) {
  const auto read = ReadJobJson(
      R"({"jobs": [{"job_id": 7}, {"job_state": ["RUNNING"]}, {}, {"job_id": 0, "job_state": "FAILED"},
                   {"job_id": 8, "job_state": ["FAILED"]}, 5, null, [{"job_id": 9}]]})");
  EXPECT_EQ(read.unreadable, 4);
  ASSERT_THAT(read.records, SizeIs(1));
  EXPECT_EQ(read.records[0].job_id, "8");
}

TEST(JobJson, KnowsWhatIsNone) {
  for (const char* text :
       {"", "jobs", "[]", "5", "{", R"({"jobs": [)", R"({"jobs": [{"job_id": 7]})",
        "{\"jobs\": \xff}", "{} {}", R"({"jobs": [5 5]})"}) {
    EXPECT_EQ(ReadJobJson(text).unreadable, 1) << text;
    EXPECT_THAT(ReadJobJson(text).records, IsEmpty()) << text;
  }
  for (const char* text : {"{}", R"({"jobs": []})", R"({"jobs": null})", R"({"jobs": {}})",
                           R"({"errors": [{"error": "x"}], "jobs": 5})", "{\"jobs\": \"\xff\"}"}) {
    EXPECT_EQ(ReadNodeJson(text).unreadable, 0) << text;
    EXPECT_THAT(ReadJobJson(text).records, IsEmpty()) << text;
  }
}

TEST(JobJson, IsBounded) {
  const std::string deep(200'000, '[');
  EXPECT_EQ(ReadJobJson(deep).unreadable, 1);
  EXPECT_EQ(ReadJobJson(R"({"jobs": [{"x": )" + deep).unreadable, 1);
  std::string objects = R"({"jobs": [{"name": )";
  for (int i = 0; i < 100'000; ++i) objects += "{\"name\":";
  EXPECT_EQ(ReadJobJson(objects).unreadable, 1);

  std::string wide = R"({"job_id": 7, "job_state": [)";
  for (int i = 0; i < 200'000; ++i) wide += "{\"name\":1},";
  const auto read = ReadJobJson(R"({"jobs": [)" + wide + "\"RUNNING\"]}," +
                                R"({"job_id": 8, "job_state": "RUNNING"}]})");
  EXPECT_EQ(read.unreadable, 1);
  ASSERT_THAT(read.records, SizeIs(1));
  EXPECT_EQ(read.records[0].job_id, "8");

  const SlurmJob job = JobOf(R"(, "name": ")" + std::string(9000, 'n') + R"(", "submit_line": ")" +
                             std::string(90000, 's') + "\"");
  EXPECT_THAT(job.name, SizeIs(kMaxField));
  EXPECT_THAT(job.submit_line, SizeIs(kMaxSubmitLine));
}

TEST(JobJson, DoesNotReadWhatStandsWithinWhatIsNotKnown) {
  const SlurmJob job = JobOf(
      R"(, "future": {"name": "x", "job_state": "FAILED", "steps": [{"state": "FAILED"}]}, "nodes": "n1",
         "other": [{"job_id": 9}, [{"job_id": 10}]], "cpus": 4)");
  EXPECT_EQ(job.state, "RUNNING");
  EXPECT_EQ(job.name, "");
  EXPECT_EQ(job.nodes, "n1");
  EXPECT_EQ(job.cpus, 4);
}

TEST(AccountingJson, StepsBelongToTheJobThatHoldsThem) {
  const auto read = ReadAccountingJson(
      R"({"jobs": [
        {"steps": [{"step": {"id": "7.batch", "name": "batch"}, "state": ["FAILED"]}, 5, [],
                   {"step": {"id": 0}, "state": "COMPLETED", "time": {"start": 5}}],
         "state": {"current": ["FAILED"]}, "job_id": 7, "user": "bob"},
        {"job_id": 8, "state": {"current": "COMPLETED"}, "steps": []},
        {"steps": [{"step": {"id": "9.0"}}], "state": {"current": ["FAILED"]}},
        {"job_id": 10, "state": {}}]})");
  EXPECT_EQ(read.unreadable, 1);  // steps of nobody
  ASSERT_THAT(read.records, SizeIs(5));
  EXPECT_EQ(read.records[0].job_id, "7");
  EXPECT_EQ(read.records[0].step_id, "");
  EXPECT_EQ(read.records[1].job_id, "7");
  EXPECT_EQ(read.records[1].step_id, "batch");
  EXPECT_EQ(read.records[1].user, "bob");
  EXPECT_EQ(read.records[2].step_id, "0");
  EXPECT_EQ(read.records[2].start, 5);
  EXPECT_EQ(read.records[3].job_id, "8");
  EXPECT_EQ(read.records[4].job_id, "10");
}

TEST(AccountingJson, DoesNotBelieveASuccessThatFailed) {
  const auto exit = [](const std::string& state, const std::string& code) {
    return Only(ReadAccountingJson(R"({"jobs": [{"job_id": 7, "state": {"current": ")" + state +
                                   R"("}, "exit_code": {"status": "SUCCESS", "return_code": )" +
                                   code + "}}]}"))
        .exit;
  };
  EXPECT_EQ(exit("FAILED", "0"), std::nullopt);
  EXPECT_EQ(exit("FAILED", "3"), (ExitStatus{3, 0}));
  EXPECT_EQ(exit("COMPLETED", "0"), (ExitStatus{0, 0}));
  EXPECT_EQ(exit("TIMEOUT", "0"), (ExitStatus{0, 0}));
}

TEST(AccountingJson, WhatRunsHasNoEnd) {
  const auto end = [](const std::string& state) {
    return Only(ReadAccountingJson(R"({"jobs": [{"job_id": 7, "state": {"current": ")" + state +
                                   R"("}, "time": {"end": 1795446058}}]})"))
        .end;
  };
  EXPECT_EQ(end("RUNNING"), 0);
  EXPECT_EQ(end("COMPLETED"), 1795446058);
}

TEST(AccountingJson, HoldsManySteps) {
  std::string steps;
  for (int i = 0; i < 40'000; ++i) {
    steps += (i ? "," : "") + std::string(R"({"step": {"id": "7.)") + std::to_string(i) +
             R"("}, "state": ["COMPLETED"]})";
  }
  const auto read = ReadAccountingJson(R"({"jobs": [{"job_id": 7, "steps": [)" + steps +
                                       R"(], "state": {"current": ["COMPLETED"]}}]})");
  EXPECT_EQ(read.unreadable, 0);
  ASSERT_THAT(read.records, SizeIs(40'001));
  EXPECT_EQ(read.records.back().step_id, "39999");
}

TEST(NodeJson, CountsNodesThatSayNothing) {
  const auto read = ReadNodeJson(
      R"({"nodes": [{"name": "n1"}, {"state": ["IDLE"]}, {"name": "n2", "state": ["idle"], "gres": "gpu:2"}],
          "sinfo": [{"nodes": {"nodes": ["n[3-"]}}, {"nodes": "n4"}, {"nodes": {"nodes": ["n5"]}, "node": 3}]})");
  EXPECT_EQ(read.unreadable, 3);
  ASSERT_THAT(read.records, SizeIs(2));
  EXPECT_EQ(read.records[0].name, "n2");
  EXPECT_EQ(read.records[0].state, "IDLE");
  EXPECT_EQ(read.records[0].gpus, 2);
  EXPECT_EQ(read.records[1].name, "n5");
}

TEST(DiagJson, OfNothingSaysNothing) {
  for (const char* text :
       {"", "{}", R"({"statistics": []})", R"({"statistics": {"jobs_failed": "x"}})",
        R"({"other": {"jobs_failed": 1}})"}) {
    EXPECT_EQ(ReadDiagJson(text).failed, std::nullopt) << text;
  }
  const SlurmDiag diag =
      ReadDiagJson(R"({"statistics": {"rpcs_by_user": [{"user": "a"}, {"count": 1}, 5,
                       {"user": "b", "count": 2, "total_time": 1000000}]}})");
  ASSERT_THAT(diag.users, SizeIs(1));
  EXPECT_EQ(diag.users[0], (RpcCount{"b", 2, 1.0}));
}

TEST(JsonRecords, AreHandedOutOneByOne) {
  std::vector<std::string> seen;
  const bool whole = ForEachJsonRecord(
      R"({"meta": {"a": 1}, "jobs": [{"a": 2, "b": 3}, {"a": {"a": 4}}], "last": 5, "nodes": [[{"a": 6}]]})",
      [](std::string_view name) { return name == "a"; },
      [&](const JsonRecord& record) {
        seen.push_back(std::string(record.list) + Print(record.value));
      });
  EXPECT_TRUE(whole);
  EXPECT_THAT(seen, ElementsAre("meta{a:1}", "jobs{a:2}", "jobs{a:{a:4}}"));
}

TEST(JsonRecords, StepsComeBeforeTheirJob) {
  std::vector<std::string> seen;
  const bool whole = ForEachJsonRecord(
      R"({"jobs": [{"steps": [{"steps": [1]}, 5, {"a": 1}], "a": {"steps": [2]}}, {"steps": 3}]})",
      KeepAll, [&](const JsonRecord& record) {
        seen.push_back((record.step ? "step" : "job") + Print(record.value));
      });
  EXPECT_TRUE(whole);
  EXPECT_THAT(seen,
              ElementsAre("step{steps:[1]}", "step{a:1}", "job{a:{steps:[2]}}", "job{steps:3}"));
}

// "cut": not all of it is JSON.
std::string RecordOf(const std::string& value) {
  std::string printed;
  const bool whole = ForEachJsonRecord(
      R"({"jobs": [{"a": )" + value + "}]}", [](std::string_view name) { return name != "z"; },
      [&](const JsonRecord& record) { printed = Print(record.value); });
  return whole ? printed : "cut";
}

TEST(JsonRecords, KeepWhatIsRead) {
  EXPECT_EQ(RecordOf(R"([{}, [], [[null, true, false]], -7, 2.9, "a\"bé\n"])"),
            "{a:[{},[],[[null,true,false]],-7,2,'a\"b\xc3\xa9\n']}");
  EXPECT_EQ(RecordOf(R"({"b": 1, "z": {"b": [1, {"c": 2}]}, "b": 2})"), "{a:{b:1,b:2}}");
  // Numbers that nothing of Slurm's is.
  EXPECT_EQ(RecordOf("[18446744073709551615, 1e300, 1e999, 99999999999999999999]"),
            "{a:[-1,-1,-1,-1]}");
  // A name with an escape in it, and one that is longer than any that is read.
  EXPECT_EQ(RecordOf(R"(1, "\u0061b": 2, "b": 3)"), R"({a:1,\u0061b:2,b:3})");
  EXPECT_EQ(RecordOf("1, \"" + std::string(500, 'n') + "\": 2, \"b\": 3"), "{a:1,:2,b:3}");
  EXPECT_EQ(RecordOf(R"("half a pair \ud800")"), "{a:null}");
}

// json-c prints them, and Slurm what it divides.
TEST(JsonRecords, WhatIsNoNumberIsAbsent) {
  EXPECT_EQ(RecordOf("[NaN, Infinity, -Infinity]"), "{a:[null,null,-1]}");
  EXPECT_EQ(RecordOf(R"(1, "z": NaN, "b": {"number": NaN})"), "{a:1,b:{number:null}}");
  EXPECT_EQ(RecordOf("Nonsense"), "cut");
}

TEST(JsonRecords, WhatIsCutIsNone) {
  for (const char* value : {"[1", "{\"b\": 1", "\"b", "nul", "tru", "[1,]", "{\"b\"}", "{\"b\": }",
                            "{b: 1}", "[1 2]"}) {
    EXPECT_EQ(RecordOf(value), "cut") << value;
  }
}

// Slurm passes on whatever a job was called.
TEST(JobJson, OneNameThatIsNotUtf8CostsNobodyElse) {
  const auto read = ReadJobJson(
      "{\"jobs\": [{\"job_id\": 7, \"job_state\": \"RUNNING\", \"name\": \"a\xff\xfe\"},"
      "{\"job_id\": 8, \"job_state\": \"RUNNING\"}]}");
  EXPECT_EQ(read.unreadable, 0);
  ASSERT_THAT(read.records, SizeIs(2));
  EXPECT_EQ(read.records[0].name, "a\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(JobJson, WhatFollowsIsNoPartOfIt) {
  using namespace std::string_view_literals;
  for (const std::string_view more : {"\0"sv, "\0{}"sv, " {}"sv, "]"sv}) {
    const auto read =
        ReadJobJson(R"({"jobs": [{"job_id": 7, "job_state": "RUNNING"}]})" + std::string(more));
    EXPECT_FALSE(read.whole);
    EXPECT_EQ(read.unreadable, 1);
  }
}

}  // namespace
}  // namespace rankscope::exporter::slurm
