// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is printed of each change, as text and as JSON.
#include "exporter/watch/lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rankscope::watch {
namespace {

using exporter::slurm::ExitStatus;
using exporter::slurm::SlurmJob;
using nlohmann::json;
using testing::HasSubstr;

constexpr int64_t kNow = 1'795'826'222;  // 2026-11-28T00:37:02Z

class Lines : public testing::Test {
 protected:
  Lines() {
    setenv("TZ", "UTC", 1);
    tzset();
    job_.job_id = "8845";
    job_.array_job_id = "8841";
    job_.array_task = "3";
    job_.state = "PENDING";
  }
  Told Of(const SlurmJob& job) {
    course_ = {};
    course_.Update(job);
    return {&course_, kNow * 1'000'000'000};
  }
  SlurmJob Running() const {
    SlurmJob job = job_;
    job.state = "RUNNING";
    job.nodes = "n[1-2]";
    job.start = kNow - 60;
    job.time_limit_seconds = 7260;
    return job;
  }

  SlurmJob job_;
  JobCourse course_;
};

TEST_F(Lines, WhyAJobWaits) {
  job_.reason = "Dependency";
  job_.dependency = "afterok:12(unfulfilled)";
  job_.start = kNow + 3600;
  const Line line = StateLine(Of(job_));
  EXPECT_EQ(line.text,
            "2026-11-28 00:37:02  8841_3  waits: Dependency (afterok:12(unfulfilled)), expected to "
            "start at 2026-11-28 01:37");
  const json object = json::parse(line.json);
  EXPECT_EQ(object["event"], "state");
  EXPECT_EQ(object["time"], "2026-11-28T00:37:02.000Z");
  EXPECT_EQ(object["job"], "8841_3");
  EXPECT_EQ(object["job_id"], "8845");
  EXPECT_EQ(object["reason"], "Dependency");
  EXPECT_EQ(object["expected_start"], "2026-11-28T01:37:02.000Z");
  EXPECT_TRUE(object["start"].is_null());
}

TEST_F(Lines, WhereAJobRuns) {
  EXPECT_THAT(StateLine(Of(Running())).text,
              HasSubstr("8841_3  runs on n[1-2] since 2026-11-28 00:36:02, 2 h to its time limit"));
}

TEST_F(Lines, HowAJobEnded) {
  SlurmJob job = Running();
  job.state = "FAILED";
  job.exit = ExitStatus{3, 0};
  job.end = kNow;
  Line line = EndLine(Of(job), nullptr, false);
  EXPECT_THAT(line.text, HasSubstr("8841_3  failed, exit code 3, after 60 s"));
  json object = json::parse(line.json);
  EXPECT_EQ(object["status"], 3);
  EXPECT_TRUE(object["signal"].is_null());
  EXPECT_TRUE(object["verdict"].is_null());
  job.state = "CANCELLED";
  job.state_by = "lena(1000)";
  job.exit = ExitStatus{0, 15};
  line = EndLine(Of(job), nullptr, false);
  EXPECT_THAT(line.text, HasSubstr("cancelled by lena(1000), signal 15"));
  proto::Verdict verdict;
  verdict.set_code("X20");
  verdict.set_family("external_cancel");
  line = EndLine(Of(job), &verdict, false);
  EXPECT_THAT(line.text, HasSubstr("; X20 external_cancel"));
  object = json::parse(line.json);
  EXPECT_EQ(object["verdict"]["code"], "X20");
  EXPECT_EQ(object["status"], 143);
  EXPECT_THAT(EndLine(Of(Running()), nullptr, true).text, HasSubstr("was put back into the queue"));
  Of(Running());
  course_.Lose();
  const Told lost{&course_, kNow * 1'000'000'000};
  line = EndLine(lost, nullptr, false);
  EXPECT_THAT(line.text, HasSubstr("has left the queue, and how it ended is not known"));
  EXPECT_EQ(json::parse(line.json)["status"], kUnknownStatus);
}

TEST_F(Lines, HowFarAJobIs) {
  JobSummary summary;
  summary.records = 7;
  EXPECT_THAT(ProgressLine(Of(Running()), summary).text, HasSubstr("7 training records"));
  summary.last_step = 1200;
  summary.total_steps = 5000;
  summary.last_loss = 2.3125;
  const Line line = ProgressLine(Of(Running()), summary);
  EXPECT_THAT(line.text, HasSubstr("step 1200 of 5000, loss 2.3125"));
  EXPECT_EQ(json::parse(line.json)["loss"], 2.3125);
  EXPECT_THAT(StandsLine(Of(Running()), &summary, nullptr).text,
              HasSubstr("still runs on n[1-2] since"));
}

TEST_F(Lines, NamesAndPathsAreHarmless) {
  SlurmJob job = Running();
  job.nodes = "n1\x1b[2J\nfake";
  job.name = "a\"b\n\x1b[31m";
  EXPECT_EQ(StateLine(Of(job)).text.find_first_of("\x1b\n"), std::string::npos);
  const Line line = OutputLine(Of(job), {"/a\n\x1b]0;x\x07.out"}, "");
  EXPECT_EQ(line.text.find_first_of("\x1b\n\x07"), std::string::npos);
  EXPECT_EQ(json::parse(line.json)["paths"][0], "/a\n\x1b]0;x\x07.out");
  EXPECT_EQ(line.json.find('\n'), std::string::npos);
  EXPECT_EQ(json::parse(StateLine(Of(job)).json)["name"], job.name);
}

TEST_F(Lines, OfSlurmAndOfTheWhole) {
  EXPECT_THAT(SlurmLine(false, "squeue: no answer", 0).text, HasSubstr("does not answer"));
  EXPECT_THAT(UnknownLine("99", "nobody knows it", 0).text, HasSubstr("99  no such job"));
  const Line line = TotalsLine({3, 1, 1, 1, 125}, 0);
  EXPECT_THAT(line.text, HasSubstr("3 jobs: 1 completed, 1 did not, 1 not known"));
  EXPECT_EQ(json::parse(line.json)["status"], 125);
}

TEST(Spell, Durations) {
  EXPECT_EQ(Spell(45), "45 s");
  EXPECT_EQ(Spell(720), "12 min");
  EXPECT_EQ(Spell(15'000), "4 h 10 min");
  EXPECT_EQ(Spell(266'400), "3 d 2 h");
}

}  // namespace
}  // namespace rankscope::watch
