// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/job_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exporter/http/router.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::http {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

JobStatus Job(std::string id, const char* severity, double began_ago, bool running = true) {
  JobStatus job = test::HealthyJob(std::move(id));
  job.verdict.mutable_triage()->set_severity(severity);
  job.running = running;
  job.timeline.spans = {{test::kWallSeconds - began_ago, kUnknown, false, 1, ""}};
  return job;
}

class JobQueryTest : public testing::Test {
 protected:
  static std::shared_ptr<const State> StateOf(std::vector<JobStatus> jobs) {
    return std::make_shared<const State>(
        std::make_shared<const metrics::Published>(test::OnNode(std::move(jobs))), nullptr,
        nullptr);
  }

  std::vector<std::string> Ids(const std::string& query) {
    const auto parameters = ParseQuery(query);
    const auto parsed = JobQueryOf(*parameters, 100, 1000);
    if (!parsed) return {parsed.error()};
    const auto slice = Select(*state_, *parsed);
    if (!slice) return {"nothing"};
    next_ = slice->next;
    std::vector<std::string> ids;
    for (const JobDocument* job : slice->jobs) ids.push_back(job->job().job_id);
    return ids;
  }

  Response Ask(std::string path, Role role = Role::kLog) {
    Request request;
    request.method = "GET";
    request.path = std::move(path);
    request.headers.push_back({"Host", "localhost"});
    request.role = role;
    return Router().Handle(request, *state_);
  }

  std::string next_;
  std::shared_ptr<const State> state_ =
      StateOf({Job("1", "ok", 10), Job("2", "critical", 500, false), Job("3", "critical", 900),
               Job("4", "critical", 50), Job("5", "warning", 5), Job("6", "", 5)});
};

TEST_F(JobQueryTest, TheWorstComeFirstThenThoseThatRunThenTheNewest) {
  EXPECT_THAT(Ids(""), ElementsAre("4", "3", "2", "5", "6", "1"));
  EXPECT_THAT(Ids("limit=2"), ElementsAre("4", "3"));
  EXPECT_EQ(next_, "?limit=2&after=3");
  EXPECT_THAT(Ids("limit=2&after=3"), ElementsAre("2", "5"));
  EXPECT_THAT(Ids("limit=2&after=5"), ElementsAre("6", "1"));
  EXPECT_EQ(next_, "");
}

TEST_F(JobQueryTest, EachFilterSelectsAndTheNextPageKeepsIt) {
  JobStatus job = Job("7", "critical", 1);
  job.user = "eve";
  job.facts.partition = "gpu a";
  job.verdict.add_nodes("n7");
  job.verdict.set_code("C2");
  job.verdict.set_state(proto::FINAL);
  job.verdict.set_updated_ns(2'000'000'000'000'000'000);
  JobStatus other = job;
  other.job_id = "8";
  other.verdict.add_nodes("n8");
  state_ = StateOf({job, other, Job("9", "critical", 2)});
  for (const char* filter :
       {"user=eve", "partition=gpu+a", "node=n7", "family=C2", "family=collective_hang",
        "state=final", "since=1999999999", "user=eve&severity=&node="}) {
    EXPECT_THAT(Ids(filter), ElementsAre("7", "8")) << filter;
    Ids(std::string(filter) + "&limit=1");
    EXPECT_THAT(Ids(next_.substr(1)), ElementsAre("8")) << next_;
  }
  EXPECT_THAT(Ids("node=n8"), ElementsAre("8"));
}

TEST_F(JobQueryTest, WhatIsNoParameterIsRefused) {
  EXPECT_THAT(Ids("usr=ada")[0], HasSubstr("there is no parameter 'usr'"));
  EXPECT_THAT(Ids("severity=bad")[0], HasSubstr("critical warning info ok"));
  EXPECT_EQ(Ask("/verdict?job_id=1").status, 404) << "a query is no path";
}

TEST_F(JobQueryTest, PagesForBrowsers) {
  const Response home = Ask("/");
  EXPECT_EQ(home.status, 200);
  EXPECT_LT(home.body.find("/job/4"), home.body.find("/job/3"));
  EXPECT_THAT(std::string(home.HeaderValue("Content-Security-Policy")), HasSubstr("script-src"));
  EXPECT_FALSE(home.HeaderValue("ETag").empty());
  EXPECT_EQ(Ask("/job/4").status, 200);
  EXPECT_EQ(Ask("/job/%34").status, 200);
  EXPECT_EQ(Ask("/job/none").status, 404);
  EXPECT_EQ(Ask("/job/").status, 404);
  EXPECT_EQ(Ask("/job").status, 404);
  EXPECT_EQ(Ask("/node").status, 200);
  EXPECT_EQ(Ask("/node/").status, 404);
}

TEST_F(JobQueryTest, ThePageOfAJobHidesLogTextFromWhoMayNotSeeIt) {
  JobStatus job = Job("1", "critical", 10);
  proto::Evidence& evidence = *job.verdict.add_shows();
  evidence.set_text("the log says it");
  evidence.mutable_cite()->mutable_log()->set_line("hunter2");
  job.command = "train --name hunter3";
  state_ = StateOf({job});
  EXPECT_THAT(Ask("/job/1").body, HasSubstr("hunter2"));
  const Response page = Ask("/job/1", Role::kVerdict);
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, Not(HasSubstr("hunter")));
  EXPECT_EQ(Ask("/job/1", Role::kMetrics).status, 403);
}

}  // namespace
}  // namespace rankscope::http
