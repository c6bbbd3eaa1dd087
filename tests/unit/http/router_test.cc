// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "detectors/document/verdict_json.h"
#include "detectors/model/job_summary.h"
#include "tests/unit/http/gunzip.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;
std::shared_ptr<const State> StateOf(metrics::Published published, const State* before = nullptr) {
  metrics::SnapshotBuilder builder;
  auto exposition = std::make_shared<const Exposition>(builder.Build(published));
  return std::make_shared<const State>(
      std::make_shared<const metrics::Published>(std::move(published)), std::move(exposition),
      before);
}

class RouterTest : public testing::Test {
 protected:
  Response Ask(const std::string& target, std::vector<Header> headers = {},
               std::string method = "GET") {
    const size_t mark = target.find('?');
    Request request;
    request.method = std::move(method);
    request.path = target.substr(0, mark);
    if (mark != std::string::npos) request.query = target.substr(mark + 1);
    request.headers = std::move(headers);
    request.beyond_loopback = beyond_loopback_;
    request.role = beyond_loopback_ ? Role::kVerdict : Role::kLog;
    Response response = router_.Handle(request, *state_);
    response.body = response.Content();
    response.pages.clear();
    return response;
  }

  // A node's, which is not beside Slurm's controller.
  static metrics::Published OfNode(metrics::Published published) {
    for (metrics::SourceStatus& source : published.agent.sources) source.slurm = nullptr;
    return published;
  }

  bool beyond_loopback_ = false;
  std::shared_ptr<const State> state_ =
      StateOf(OfNode(test::OnNode({test::HealthyJob("8841"), test::HangingJob("a b/c")})));
  Router router_;
};

TEST_F(RouterTest, EveryRouteAnswersGetAndHeadAlike) {
  for (const char* path :
       {"/", "/job/8841", "/node", "/metrics", "/verdict", "/verdict?job_id=8841",
        "/evidence?job_id=8841", "/events?job_id=8841", "/-/healthy", "/-/ready", "/health"}) {
    const Response get = Ask(path);
    EXPECT_EQ(get.status, 200) << path;
    EXPECT_FALSE(get.Content().empty()) << path;
    EXPECT_EQ(get.HeaderValue("cache-control"), "no-store") << path;
    EXPECT_THAT(std::string(get.HeaderValue("vary")), HasSubstr("Accept-Encoding")) << path;
    EXPECT_EQ(Ask(path, {}, "HEAD").Content(), get.Content()) << path;
  }
}

// What is left of these jobs, as the instance that keeps it publishes it.
metrics::Published Leaving(metrics::Published published, const std::vector<JobSummary>& summaries) {
  JobSummaryLines lines;
  for (const JobSummary& summary : summaries) lines[summary.job_id] = JobSummaryToText(summary);
  published.summaries = std::make_shared<const JobSummaryLines>(std::move(lines));
  return published;
}

TEST_F(RouterTest, ADigestIsOneLineOfOneJob) {
  for (const char* bad : {"/digest", "/digest?job_id="}) EXPECT_EQ(Ask(bad).status, 400) << bad;
  EXPECT_EQ(Ask("/digest?job_id=nobody").status, 404);
  EXPECT_EQ(Ask("/digest?job_id=8841", {}, "POST").status, 405);
}

TEST_F(RouterTest, SummaryIsWhatIsLeftOfAJob) {
  JobSummary whole, task;
  whole.job_id = "8840";
  whole.last_step = 400;
  whole.checkpoints = {{"/scratch/run7/step_400.pt", 91e6, 400}};
  task.job_id = "8851";
  task.array_task = "8850_3";
  state_ = StateOf(Leaving(test::OnNode({}), {whole, task}));
  const Response json = Ask("/summary?job_id=8840");
  EXPECT_EQ(json.status, 200);
  EXPECT_EQ(json.HeaderValue("Content-Type"), "application/json");
  EXPECT_EQ(json.HeaderValue("Cache-Control"), "no-store");
  EXPECT_EQ(json.HeaderValue("Vary"), "Accept, Accept-Encoding");
  const Json document = Json::parse(json.body);
  EXPECT_EQ(document["job_id"], "8840");
  EXPECT_EQ(document["array_task"], nullptr);
  EXPECT_EQ(document["last_step"], 400);
  EXPECT_EQ(document["first_loss"], nullptr);
  EXPECT_EQ(document["checkpoints"][0]["path"], "/scratch/run7/step_400.pt");
  EXPECT_EQ(document["line"], JobSummaryToText(whole));
  EXPECT_EQ(Ask("/summary?slurm_job_id=8840").body, json.body);
  EXPECT_EQ(Ask("/summary?job_id=8840", {}, "HEAD").Content(), json.Content());
  // A node reads the line out of either.
  const Response text = Ask("/summary?job_id=8840", {{"Accept", "text/plain"}});
  EXPECT_EQ(text.body, JobSummaryToText(whole) + "\n");
  EXPECT_EQ(FindJobSummary(json.body), JobSummaryToText(whole));
  const std::string tag(json.HeaderValue("ETag"));
  EXPECT_EQ(Ask("/summary?job_id=8840", {{"If-None-Match", tag}}).status, 304);
  // A task of an array by either of its names; a job of which nothing was left; no job at all.
  EXPECT_EQ(Json::parse(Ask("/summary?job_id=8850_3").body)["job_id"], "8851");
  EXPECT_EQ(Json::parse(Ask("/summary?job_id=8851").body)["array_task"], "8850_3");
  for (const char* unknown : {"8850", "8850_4", "8850_31", "884", "x"})
    EXPECT_EQ(Ask(std::string("/summary?job_id=") + unknown).status, 404) << unknown;
  for (const char* bad : {"/summary", "/summary?job_id="}) {
    EXPECT_EQ(Ask(bad).status, 400) << bad;
    EXPECT_TRUE(Json::accept(Ask(bad).body));
  }
  EXPECT_EQ(Ask("/summary?job_id=8840%00").status, 400);
  EXPECT_EQ(Ask("/summary?job_id=8840", {}, "POST").status, 405);
  state_ = StateOf(test::OnNode({}));
  EXPECT_EQ(Ask("/summary?job_id=8840").status, 404) << "nothing is kept";
}

TEST_F(RouterTest, OtherMethodsAre405WithAllow) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", ""}) {
    const Response response = Ask("/metrics", {}, method);
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(response.HeaderValue("Allow"), "GET, HEAD");
  }
}

TEST_F(RouterTest, PathsAreExact) {
  for (const char* path :
       {"/metrics/", "/metricsX", "/summary/", "/summary/8841", "/verdict/8841", "//metrics",
        "/Metrics", "/../metrics", "/etc/passwd", "/%2e%2e/metrics", "/-/reload/"}) {
    EXPECT_EQ(Ask(path).status, 404) << path;
  }
  EXPECT_EQ(Ask("/%6Detrics").status, 200);
  EXPECT_EQ(Ask("http://127.0.0.1/metrics").status, 200);
}

TEST_F(RouterTest, OddTargetsAre400OrTooLong) {
  for (const char* target :
       {"/%", "/%zz", "/metrics?a=%", "*", "metrics", "/%00", "/verdict?a=%"}) {
    const Response response = Ask(target);
    EXPECT_EQ(response.status, 400) << target;
    EXPECT_EQ(response.HeaderValue("Content-Type"), "text/plain; charset=utf-8");
    EXPECT_THAT(response.body, EndsWith("\n")) << target;
  }
  for (const char* target :
       {"/verdict?job_id=", "/verdict?job_id=1&slurm_job_id=2", "/evidence", "/events"}) {
    const Response response = Ask(target);
    EXPECT_EQ(response.status, 400) << target;
    EXPECT_EQ(response.HeaderValue("Content-Type"), "application/problem+json");
    EXPECT_EQ(Json::parse(response.body)["status"], 400) << response.body;
  }
  EXPECT_EQ(Ask("/" + std::string(3000, 'a')).status, 414);
  EXPECT_EQ(Ask("/metrics?" + std::string(3000, 'a')).status, 414);
}

TEST_F(RouterTest, VerdictComesInThreeFormats) {
  const Response json = Ask("/verdict?job_id=8841");
  EXPECT_EQ(json.HeaderValue("Content-Type"), "application/json");
  EXPECT_EQ(Json::parse(json.body)["code"], "G1");
  EXPECT_EQ(Ask("/verdict?slurm_job_id=8841").body, json.body);

  const Json all = Json::parse(Ask("/verdict").body);
  EXPECT_EQ(all["schema"], 1);
  EXPECT_EQ(all["node"], "n1");
  EXPECT_EQ(all["verdicts"].size(), 2u);
  EXPECT_EQ(all["verdicts"][0]["code"], "C2") << "the worst first";

  const Response text = Ask("/verdict?job_id=8841", {{"accept", "text/plain"}});
  EXPECT_EQ(text.HeaderValue("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(text.body, VerdictToText(state_->published().jobs[0]->verdict));

  const Response binary = Ask("/verdict", {{"Accept", "application/x-protobuf"}});
  proto::VerdictDocument document;
  ASSERT_TRUE(document.ParseFromString(binary.body));
  EXPECT_EQ(document.verdicts_size(), 2);
  EXPECT_EQ(document.node(), "n1");
  EXPECT_EQ(binary.HeaderValue("Content-Type"), "application/x-protobuf");
  EXPECT_EQ(binary.HeaderValue("Vary"), "Accept, Accept-Encoding");
  EXPECT_EQ(Ask("/metrics").HeaderValue("Vary"), "Accept, Accept-Encoding");
}

TEST_F(RouterTest, JobIdsAreDecoded) {
  EXPECT_EQ(Json::parse(Ask("/verdict?job_id=a+b%2Fc").body)["job_id"], "a b/c");
}

TEST_F(RouterTest, UnknownJobIs404AndNamesTheKnown) {
  for (const char* path : {"/verdict?job_id=9", "/evidence?job_id=9", "/events?job_id=9"}) {
    const Response response = Ask(path);
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(response.HeaderValue("Content-Type"), "application/problem+json");
    EXPECT_EQ(Json::parse(response.body)["detail"], "no job '9' on this node; known: 8841, a b/c");
  }
}

TEST_F(RouterTest, NoJobAtAllIsAnEmptyDocument) {
  state_ = StateOf(test::OnNode({}));
  EXPECT_TRUE(Json::parse(Ask("/verdict").body)["verdicts"].empty());
  EXPECT_THAT(Ask("/verdict", {{"Accept", "text/plain"}}).body, HasSubstr("no job has been seen"));
  EXPECT_EQ(Ask("/verdict?job_id=1").status, 404);
}

metrics::Published ManyJobs(int count) {
  std::vector<JobStatus> jobs;
  for (int i = 0; i < count; ++i) jobs.push_back(test::HealthyJob(std::to_string(1000 + i)));
  return test::OnNode(std::move(jobs));
}

TEST_F(RouterTest, VerdictsComeInPagesThatSayWhereTheNextIs) {
  state_ = StateOf(ManyJobs(250));
  std::vector<std::string> ids;
  std::vector<size_t> sizes;
  for (std::string target = "/verdict"; !target.empty();) {
    const Response page = Ask(target);
    const Json document = Json::parse(page.body);
    EXPECT_EQ(document["schema"], 1);
    EXPECT_EQ(document["node"], "n1");
    for (const Json& verdict : document["verdicts"]) ids.push_back(verdict["job_id"]);
    sizes.push_back(document["verdicts"].size());
    target = document.value("next", "");
    EXPECT_EQ(page.HeaderValue("Link"), target.empty() ? "" : "<" + target + ">; rel=\"next\"");
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{100, 100, 50}));
  EXPECT_EQ(ids.size(), 250u);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_EQ(Json::parse(Ask("/verdict?limit=3&after=1100").body)["verdicts"][0]["job_id"], "1101");
  EXPECT_EQ(Json::parse(Ask("/verdict?limit=1000").body)["verdicts"].size(), 250u);
  EXPECT_FALSE(Json::parse(Ask("/verdict?limit=1000").body).contains("next"));
  for (const char* bad :
       {"limit=0", "limit=1001", "limit=", "limit=-1", "limit=1x", "after=", "after=zzz",
        "severity=bad", "state=x", "family=C99", "since=now", "limti=3", "job=1000"}) {
    const Response refused = Ask(std::string("/verdict?") + bad);
    EXPECT_EQ(refused.status, 400) << bad;
    EXPECT_EQ(refused.HeaderValue("Content-Type"), "application/problem+json");
    EXPECT_TRUE(Json::accept(refused.body));
  }
}

TEST_F(RouterTest, PagesAreTheSameInAllFormatsAndCompressed) {
  state_ = StateOf(ManyJobs(3));
  const Response binary = Ask("/verdict?limit=2", {{"Accept", "application/x-protobuf"}});
  proto::VerdictDocument document;
  ASSERT_TRUE(document.ParseFromString(binary.body));
  EXPECT_EQ(document.schema(), 1u);
  ASSERT_EQ(document.verdicts_size(), 2);
  EXPECT_EQ(document.verdicts(1).job_id(), "1001");
  EXPECT_EQ(binary.HeaderValue("Link"), "</verdict?limit=2&after=1001>; rel=\"next\"");
  EXPECT_EQ(document.SerializeAsString(), binary.body);

  EXPECT_EQ(Ask("/verdict", {{"Accept", "text/plain"}}).body,
            VerdictToText(state_->published().jobs[0]->verdict) + "\n" +
                VerdictToText(state_->published().jobs[1]->verdict) + "\n" +
                VerdictToText(state_->published().jobs[2]->verdict));
  state_ = StateOf(ManyJobs(30));
  // Put together of parts that were compressed apart: one stream for any gzip.
  for (const char* accept : {"application/json", "text/plain", "application/x-protobuf"}) {
    const Response plain = Ask("/verdict", {{"Accept", accept}});
    const Response packed = Ask("/verdict", {{"Accept", accept}, {"Accept-Encoding", "gzip"}});
    EXPECT_EQ(packed.HeaderValue("Content-Encoding"), "gzip");
    EXPECT_LT(packed.body.size(), plain.body.size());
    EXPECT_EQ(test::Gunzip(packed.body), plain.body) << accept;
    EXPECT_EQ(packed.HeaderValue("ETag"), "W/" + std::string(plain.HeaderValue("ETag")));
  }
}

TEST_F(RouterTest, JobsThatShareAnIdStandOnOnePage) {
  JobStatus earlier = test::HealthyJob("1001");
  earlier.running = false;
  state_ = StateOf(test::OnNode(
      {test::HealthyJob("1000"), earlier, test::HangingJob("1001"), test::HealthyJob("1002")}));
  const Json document = Json::parse(Ask("/verdict?limit=1").body);
  EXPECT_EQ(document["verdicts"].size(), 2u) << document["next"];
  EXPECT_EQ(Json::parse(Ask("/verdict?job_id=1001").body)["code"], "C2") << "the running one";
}

TEST_F(RouterTest, OnlyNamesOfThisMachineAreServed) {
  router_ = Router({.names = {"node7", {"grafana.example"}}});
  const auto status = [this](const std::string& host, const std::string& target = "/verdict") {
    return Ask(target, {{"Host", host}}).status;
  };
  for (const char* own :
       {"localhost", "LOCALHOST:10177", "localhost.", "127.0.0.1", "127.0.0.1:1", "127.8.7.6",
        "[::1]", "[::1]:10177", "grafana.example", "Grafana.Example:443"}) {
    EXPECT_EQ(status(own), 200) << own;
  }
  const std::vector<std::string> foreign = {"evil.example",
                                            "evil.example:10177",
                                            "127.0.0.1.evil.example",
                                            "localhost.evil.example",
                                            "127.1",
                                            "2130706433",
                                            "0x7f000001",
                                            "127.0.0.1@evil.example",
                                            "grafana.example.x",
                                            "xgrafana.example",
                                            "",
                                            ":10177",
                                            "localhost:10177/x",
                                            "[::1",
                                            "[::1]x",
                                            "127.0.0.1 evil"};
  for (const std::string& name : foreign) {
    EXPECT_EQ(status(name), 421) << name;
    EXPECT_EQ(status(name, "/metrics"), 421) << name;
  }
  for (const char* address : {"10.1.2.3", "[2001:db8::1]:80", "0.0.0.0", "node7"})
    EXPECT_EQ(status(address), 421) << address;
  EXPECT_THAT(Ask("/verdict", {{"Host", "evil.example"}}).body, HasSubstr("web.hosts"));
  EXPECT_EQ(status("localhost", "http://evil.example/verdict"), 421);
  EXPECT_EQ(status("evil.example", "http://localhost/verdict"), 421);
  EXPECT_EQ(Ask("/verdict").status, 200) << "HTTP/1.0 without a name: no browser";
  // A listener beyond loopback: any address, the node's name, and for Prometheus whatever it says.
  beyond_loopback_ = true;
  for (const char* own : {"10.1.2.3:10177", "[2001:db8::1]:80", "NODE7:10177", "grafana.example"})
    EXPECT_EQ(status(own), 200) << own;
  for (const char* name : {"evil.example", "node7.evil.example", "node70"})
    EXPECT_EQ(status(name), 421) << name;
  for (const char* target : {"/metrics", "/-/healthy", "/-/ready", "/health"})
    EXPECT_EQ(status("node7.cluster.example:10177", target), 200) << target;
  EXPECT_EQ(status("node7.cluster.example:10177", "/"), 421);
}

TEST_F(RouterTest, ProbesFollowTheAgeOfTheLastTick) {
  const Timestamp tick = state_->published().tick;
  Timestamp now = tick;
  router_ = Router({.now = [&now] { return now; }});
  const auto probes = [this] {
    return std::vector<int>{Ask("/-/ready").status, Ask("/-/healthy").status,
                            Ask("/health").status};
  };
  EXPECT_EQ(probes(), (std::vector<int>{200, 200, 200}));
  now = tick + kReadyAge;
  EXPECT_EQ(probes(), (std::vector<int>{200, 200, 200}));
  now = tick + kReadyAge + Seconds(1);
  EXPECT_EQ(probes(), (std::vector<int>{503, 200, 200}));
  EXPECT_THAT(Ask("/-/ready").body, HasSubstr("the daemon's last tick was 11 s ago"));
  now = tick + kHealthyAge + Seconds(1);
  EXPECT_EQ(probes(), (std::vector<int>{503, 503, 503}));
  EXPECT_THAT(Ask("/-/healthy").body,
              HasSubstr("not healthy: the daemon's last tick was 61 s ago"));
  EXPECT_EQ(Ask("/metrics").status, 200) << "what is known is told";
  // Who reads his recordings is not to be restarted for it.
  metrics::Published starting = state_->published();
  starting.agent.ready = false;
  state_ = StateOf(std::move(starting));
  EXPECT_EQ(probes(), (std::vector<int>{503, 200, 200}));
  now = tick + kLongestStart + Seconds(1);
  EXPECT_EQ(probes(), (std::vector<int>{503, 503, 503}));
}

// Where a document is in memory: the same as long as its job is.
TEST_F(RouterTest, DocumentsOfJobsThatDoNotChangeAreRenderedOnce) {
  const auto pages = [](const State& state, const char* query) {
    Request request;
    request.method = "GET";
    request.path = "/verdict";
    request.query = query;
    return Router().Handle(request, state).pages;
  };
  const Page of_json = pages(*state_, "")[3];
  EXPECT_EQ(pages(*state_, "limit=2")[3], of_json);
  metrics::Published next = state_->published();
  next.jobs[1] = std::make_shared<const JobStatus>(test::HealthyJob("a b/c"));
  const auto later = StateOf(std::move(next), state_.get());
  EXPECT_EQ(pages(*later, "")[1], of_json);
  EXPECT_NE(pages(*later, "")[3], pages(*state_, "")[1]);
}

TEST_F(RouterTest, BeyondLoopbackNoTextOfLogsIsServed) {
  const auto everything = [this] {
    std::string all;
    for (const char* accept : {"application/json", "text/plain", "application/x-protobuf"}) {
      for (const char* target : {"/verdict", "/verdict?job_id=a+b%2Fc"})
        all += Ask(target, {{"Accept", accept}}).body;
    }
    for (const char* target : {"/evidence?job_id=a+b%2Fc", "/events?job_id=a+b%2Fc", "/"})
      all += Ask(target).body;
    return all;
  };
  JobStatus job = test::HangingJob("a b/c");
  proto::Verdict& verdict = job.verdict;
  verdict.clear_shows();
  proto::Evidence& read = *verdict.add_shows();
  read.set_store(proto::STORE_LOG);
  read.set_text("raised KeyError: 'SECRET text'");
  read.set_observed_text("SECRET observed");
  read.mutable_cite()->mutable_log()->set_line("KeyError: 'SECRET line'");
  read.mutable_cite()->mutable_log()->set_stream("stderr");
  proto::Evidence& heard = *verdict.add_shows();
  heard.set_id(1);
  heard.set_store(proto::STORE_KERNEL);
  heard.set_text("SECRET of the kernel");
  heard.mutable_cite()->mutable_kernel()->set_text("SECRET kernel line");
  proto::Evidence& counted = *verdict.add_shows();
  counted.set_id(2);
  counted.set_store(proto::STORE_GPU);
  counted.set_text("the card counts 7 errors");
  verdict.add_implies()->set_text("the key SECRET is missing");
  proto::Resolution& advice = *verdict.mutable_resolution();
  for (auto* of : {advice.mutable_immediate(), advice.mutable_verify_ended()}) of->Add("SECRET");
  verdict.add_next_tests()->set_command("grep SECRET /scratch/log");
  verdict.add_warnings()->set_text("SECRET warned");
  state_ = StateOf(OfNode(test::OnNode({job})));
  EXPECT_THAT(everything(), HasSubstr("SECRET line"));
  beyond_loopback_ = true;
  const std::string all = everything();
  EXPECT_THAT(all, testing::Not(HasSubstr("SECRET")));
  EXPECT_THAT(all, HasSubstr(kWithheld));
  EXPECT_THAT(all, HasSubstr("the card counts 7 errors"));
  EXPECT_THAT(Ask("/verdict").body, HasSubstr("\"code\":\"C2\""));
}

TEST_F(RouterTest, EntityTagsSaveTheBody) {
  const std::string tag(Ask("/verdict?job_id=8841").HeaderValue("ETag"));
  ASSERT_FALSE(tag.empty());
  const Response same = Ask("/verdict?job_id=8841", {{"If-None-Match", "\"old\", " + tag}});
  EXPECT_EQ(same.status, 304);
  EXPECT_TRUE(same.body.empty());
  EXPECT_EQ(same.HeaderValue("ETag"), tag);
  const std::vector<Header> as_text = {{"If-None-Match", tag}, {"Accept", "text/plain"}};
  EXPECT_EQ(Ask("/verdict?job_id=8841", as_text).status, 200);
  // Other bytes that say the same have the weak form of the tag, and that names both.
  const Response packed = Ask("/verdict?job_id=8841", {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(packed.HeaderValue("Content-Encoding"), "gzip");
  EXPECT_EQ(packed.HeaderValue("ETag"), "W/" + tag);
  EXPECT_THAT(packed.body, StartsWith("\x1f\x8b"));
  EXPECT_EQ(Ask("/verdict?job_id=8841", {{"If-None-Match", "W/" + tag}}).status, 304);
  state_ = StateOf(test::OnNode({test::HangingJob("8841")}));
  EXPECT_EQ(Ask("/verdict?job_id=8841", {{"If-None-Match", tag}}).status, 200);
}

TEST_F(RouterTest, EvidenceHasWhatIsShownAndEveryNumber) {
  const Json evidence = Json::parse(Ask("/evidence?job_id=8841").body);
  EXPECT_EQ(evidence["shows"], Json::parse(Ask("/verdict?job_id=8841").body)["shows"]);
  EXPECT_EQ(evidence["training"]["loss"], 2.3125);
  EXPECT_EQ(evidence["ranks"].size(), 2u);
  EXPECT_EQ(evidence["ranks"][0]["sm_activity"], nullptr);
  EXPECT_EQ(evidence["logs"][0]["stream"], "stdout");
  EXPECT_EQ(evidence["stores"][0], (Json{{"store", "log"}, {"available", true}}));
}

TEST_F(RouterTest, EventsHaveTheCauseChainWithItsEvidence) {
  const Json events = Json::parse(Ask("/events?job_id=a+b%2Fc").body);
  EXPECT_EQ(events["changes"], 2);
  EXPECT_EQ(events["onset"], "2026-05-28T20:25:09.500Z");
  ASSERT_EQ(events["cause_chain"].size(), 1u);
  EXPECT_EQ(events["cause_chain"][0]["role"], "root");
  EXPECT_EQ(events["cause_chain"][0]["shows"]["text"],
            "loss fell from 10.5 to 2.3125 in 120 steps");
}

TEST_F(RouterTest, EventsTellWhatHappenedToTheJobOnItsNode) {
  JobStatus job = test::HealthyJob("8841");
  job.timeline.marks = {{1780000000.25, "began", ""},
                        {1780000060, "suspended", "its cgroup was frozen"},
                        {kUnknown, "resumed", ""}};
  state_ = StateOf(test::OnNode({job}));
  EXPECT_EQ(Json::parse(Ask("/events?job_id=8841").body)["lifecycle"], Json::parse(R"([
      {"time": "2026-05-28T20:26:40.250Z", "kind": "began", "text": ""},
      {"time": "2026-05-28T20:27:40.000Z", "kind": "suspended", "text": "its cgroup was frozen"}])"));
}

TEST_F(RouterTest, EventsBesideTheControllerAreSlurms) {
  metrics::Published published = test::OnNode({test::HealthyJob("8841")});
  for (metrics::SourceStatus& source : published.agent.sources) {
    if (source.slurm == nullptr) continue;
    SlurmReport report = *source.slurm;
    auto events = std::make_shared<std::deque<std::shared_ptr<const SlurmEvent>>>();
    for (const char* job : {"8841", "9"}) {
      SlurmEvent event;
      event.number = static_cast<int64_t>(events->size()) + 1;
      event.wall_ns = int64_t{1795444481} * 1'000'000'000;
      event.job_id = job;
      event.kind = "started";
      event.source = "scontrol";
      events->push_back(std::make_shared<const SlurmEvent>(std::move(event)));
    }
    report.events = events;
    source.slurm = std::make_shared<const SlurmReport>(std::move(report));
  }
  state_ = StateOf(std::move(published));
  const auto jobs = [&](const std::string& query) {
    std::string told;
    const Json document = Json::parse(Ask("/events" + query).body);
    for (const Json& event : document["events"]) told += event["job_id"].get<std::string>() + " ";
    return told;
  };
  EXPECT_EQ(jobs(""), "8841 9 ");
  EXPECT_EQ(jobs("?job_id=9"), "9 ");
  EXPECT_EQ(jobs("?job_id=10"), "");
  EXPECT_EQ(jobs("?after=1"), "9 ");
  EXPECT_EQ(jobs("?since=1795444482"), "");
  EXPECT_EQ(jobs("?since=2026-11-23T14:34:41Z"), "8841 9 ");
  EXPECT_EQ(Ask("/events?since=yesterday").status, 400);
  EXPECT_EQ(Ask("/events?after=-x").status, 400);
  // Of a job that is watched here as well, all in one.
  const Json both = Json::parse(Ask("/events?job_id=8841").body);
  EXPECT_EQ(both["code"], "G1");
  EXPECT_EQ(both["events"].size(), 1u);
  EXPECT_EQ(both["last"], 2);
}

TEST_F(RouterTest, AnyBytesOfAJobMakeValidJson) {
  JobStatus job = test::HealthyJob("x\xFF\"\\\n<");
  job.logs[0].stream = "\xC3\x28";
  state_ = StateOf(OfNode(test::OnNode({job})));
  for (const char* page : {"/verdict?job_id=", "/evidence?job_id=", "/events?job_id="}) {
    // The control character cannot be asked for, so ask for everything or a job that is not there.
    EXPECT_EQ(Ask(std::string(page) + "x%FF").status, 404);
    EXPECT_TRUE(Json::accept(Ask(std::string(page) + "x%FF").body));
  }
  EXPECT_TRUE(Json::accept(Ask("/verdict").body));
}

TEST_F(RouterTest, ReadyOnlyWhenTheAgentIs) {
  metrics::Published published = test::OnNode({});
  published.agent.ready = false;
  published.agent.not_ready_reason = "procfs has not answered yet";
  state_ = StateOf(std::move(published));
  const Response response = Ask("/-/ready");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr("procfs has not answered yet"));
  EXPECT_EQ(Ask("/-/healthy").status, 200);
  EXPECT_EQ(Ask("/metrics").status, 200);
}

TEST_F(RouterTest, ExplainAsksTheAgent) {
  EXPECT_EQ(Ask("/explain?pid=7").status, 404);  // nobody to ask
  router_ = Router({.explain = [](int32_t pid, Duration) -> std::optional<std::string> {
    if (pid == 7) return "rank 0 of job 8841 (environ RANK=0)\n";
    if (pid == 8) return std::nullopt;
    return "";
  }});
  EXPECT_EQ(Ask("/explain?pid=7").body, "rank 0 of job 8841 (environ RANK=0)\n");
  EXPECT_EQ(Ask("/explain?pid=8").status, 503);
  EXPECT_EQ(Ask("/explain?pid=9").status, 404);
  for (const char* bad : {"/explain", "/explain?pid=", "/explain?pid=x", "/explain?pid=-1",
                          "/explain?pid=0", "/explain?pid=7x", "/explain?pid=99999999999"}) {
    EXPECT_EQ(Ask(bad).status, 400) << bad;
  }
}

}  // namespace
}  // namespace rankscope::http
