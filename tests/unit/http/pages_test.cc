// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exporter/web/home_page.h"
#include "exporter/web/job_page.h"
#include "exporter/web/node_page.h"
#include "exporter/web/shell.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::web {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Home(const metrics::Published& published) {
  JobListing listing;
  for (const auto& job : published.jobs) listing.jobs.push_back(job.get());
  listing.matching = listing.jobs.size();
  return HomePage(listing, published);
}

// The page of its only job.
std::string Job(const metrics::Published& published) {
  return JobPage(*published.jobs.front(), published);
}

// All that a browser can be shown of it.
std::string All(const metrics::Published& published) {
  std::string pages = Home(published) + NodePage(published);
  for (const auto& job : published.jobs) pages += JobPage(*job, published);
  return pages;
}

TEST(Pages, AJobIsALineThatLeadsToItsPage) {
  JobStatus job = test::HangingJob();
  job.facts.partition = "gpu";
  job.verdict.add_ranks(3);
  const std::string page = Home(test::OnNode({job, test::HealthyJob("8900")}));
  EXPECT_THAT(page, HasSubstr("<span class=\"chip critical\">C2 collective_hang</span>"));
  EXPECT_THAT(page, HasSubstr("<a href=\"/job/8841\">8841</a>"));
  EXPECT_THAT(page, HasSubstr("120 / 1000"));
  EXPECT_THAT(page, HasSubstr("2 jobs, the worst first"));
  EXPECT_THAT(page, HasSubstr("<option value=\"gpu\">gpu</option>"));
  EXPECT_THAT(page, HasSubstr("<option value=\"C2\">C2</option>"));
  EXPECT_THAT(page, Not(HasSubstr("http-equiv"))) << "nothing that one has opened is closed";
}

TEST(Pages, FiltersStayAsChosenAndFurtherJobsAreLinked) {
  const metrics::Published published = test::OnNode({test::HangingJob()});
  JobListing listing{{published.jobs[0].get()},
                     700,
                     "?limit=1&severity=critical&after=8841",
                     {{"severity", "critical"}, {"user", "<gone>"}}};
  const std::string page = HomePage(listing, published);
  EXPECT_THAT(page, HasSubstr("<option value=\"critical\" selected>critical</option>"));
  EXPECT_THAT(page, HasSubstr("<option value=\"&lt;gone&gt;\" selected>&lt;gone&gt;</option>"));
  EXPECT_THAT(page, HasSubstr("700 jobs, the worst first; 1 on this page"));
  EXPECT_THAT(page, HasSubstr("href=\"/?limit=1&amp;severity=critical&amp;after=8841\""));
}

TEST(Pages, AJobsPageBeginsWithWhatItIsAndWhatToDo) {
  JobStatus job = test::HangingJob();
  job.verdict.mutable_resolution()->add_immediate("Look at rank 3.");
  job.verdict.add_implies()->set_text("Rank 3 is waited for.");
  const std::string page = Job(test::OnNode({job}));
  EXPECT_THAT(page, HasSubstr("0.65, two sources agree"));
  EXPECT_THAT(page, HasSubstr("loss fell from 10.5 to 2.3125 in 120 steps"));
  EXPECT_THAT(page, HasSubstr("href=\"/verdict?job_id=8841\""));
  EXPECT_THAT(page, HasSubstr("32 families ruled out"));
  EXPECT_LT(page.find("<p class=\"lead\">"), page.find("What to do now"));
  EXPECT_LT(page.find("What to do now"), page.find("What is seen"));
}

TEST(Pages, ARankIsACellThatTellsItsState) {
  JobStatus job = test::HangingJob();
  job.world_size = 4;
  job.ranks.clear();
  for (int32_t i = 0; i < 3; ++i) {
    RankStatus rank;
    rank.rank = i;
    rank.alive = i != 1;
    rank.place.node = "n1";
    job.ranks.push_back(rank);
  }
  job.ranks[1].exit_known = true;
  job.ranks[1].wait_status = 9;  // SIGKILL
  job.ranks[2].signals.Set(SignalId::kOldestCollectiveSeconds, 63);
  job.gpus.push_back({5, "GPU-5", "devices", true, {2}});
  job.verdict.clear_ranks();
  job.verdict.add_ranks(1);
  const std::string page = Job(test::OnNode({job}));
  EXPECT_THAT(page,
              HasSubstr("<li class=\"runs\" tabindex=\"0\" title=\"rank 0 on n1, GPU 0: runs\">"));
  EXPECT_THAT(page,
              HasSubstr("<li class=\"failed culprit\" tabindex=\"-1\" title=\"rank 1 on n1, GPU 0: "
                        "killed by SIGKILL; the verdict names it\">"));
  EXPECT_THAT(page, HasSubstr("rank 2 on n1, GPU 5: in a collective for 63 s"));
  EXPECT_THAT(page, HasSubstr("1 of the job's ranks are not on this node"));
}

TEST(Pages, TheNodeShowsItsGpusAndSources) {
  metrics::Published published = test::OnNode({});
  published.agent.sources.push_back(test::GpuSource({test::UpGpu(0), test::LostGpu(1)}));
  const std::string page = NodePage(published);
  EXPECT_THAT(page, HasSubstr("proc_connector: not permitted; give CAP_NET_ADMIN"));
  EXPECT_THAT(page, HasSubstr("<td>16511230111</td>")) << "the serial number";
  EXPECT_THAT(page, HasSubstr("<td class=\"critical\">lost: NVML: GPU is lost</td>"));
}

// A page with as many jobs as it may have, and one with as many ranks as a large job has.
TEST(Pages, AreSmallEnoughToBeOpenedOverASlowLine) {
  std::vector<JobStatus> jobs;
  for (int i = 0; i < 500; ++i) jobs.push_back(test::HangingJob("run-1000-" + std::to_string(i)));
  EXPECT_LT(Home(test::OnNode(jobs)).size(), 300'000u);
  JobStatus wide = test::HangingJob();
  for (int32_t i = 0; i < 1024; ++i) {
    wide.ranks.emplace_back().rank = i;
    wide.ranks.back().alive = true;
    wide.ranks.back().place.node = "gpu-node-" + std::to_string(i / 8);
  }
  EXPECT_LT(Job(test::OnNode({wide})).size(), 600'000u) << "a tenth of it when compressed";
}

TEST(Pages, WithoutJobsSaysHowToWatchOne) {
  EXPECT_THAT(Home(test::OnNode({})), HasSubstr("rankscope run"));
  EXPECT_THAT(Home({}), HasSubstr("not ready"));
}

TEST(Pages, EscapesEverythingFromTheWorld) {
  const std::string evil = "<script>alert(1)</script>\"'&\x1b\u202e";
  JobStatus job = test::HangingJob(evil);
  job.user = job.command = evil;
  job.verdict.set_code(evil);
  job.verdict.set_family(evil);
  job.verdict.set_sub(evil);
  job.verdict.mutable_triage()->set_severity(evil);
  job.verdict.mutable_shows(0)->set_text(evil);
  job.verdict.mutable_shows(0)->mutable_cite()->mutable_log()->set_line(evil);
  job.verdict.mutable_shows(0)->mutable_cite()->mutable_log()->set_stream(evil);
  job.verdict.add_implies()->set_text(evil);
  job.verdict.add_cannot_decide()->set_question(evil);
  job.verdict.add_next_tests()->set_command(evil);
  job.verdict.mutable_warnings(0)->set_text(evil);
  job.verdict.mutable_resolution()->add_immediate(evil);
  job.verdict.mutable_families(0)->set_by(evil);
  metrics::Published published = test::OnNode({job});
  published.agent.node = published.agent.version = evil;
  published.agent.sources[0].name = published.agent.sources[0].reason = evil;
  published.jobs = test::Shared({job});
  const std::string page = All(published);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, Not(HasSubstr("\u202e")));
  EXPECT_THAT(page, HasSubstr("\\u202e"));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
}

GpuHistory Card(int32_t index) {
  GpuHistory gpu;
  gpu.index = index;
  gpu.uuid = "GPU-fa4e000" + std::to_string(index) + "-0000-4000-8000-000000000000";
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.card = "0000:1" + std::to_string(index) + ":00";
  gpu.state = "up";
  gpu.ranks = {index};
  gpu.memory_total_bytes = 80.0 * (1 << 30);
  gpu.memory_begin_wall_seconds = test::kWallSeconds - 640;
  gpu.memory_part_seconds = 16;
  for (int i = 0; i < 40; ++i) gpu.memory_bytes.push_back(static_cast<float>(i) * (1 << 30));
  gpu.minutes_end_wall_seconds = test::kWallSeconds;
  const auto none = static_cast<float>(GpuHistory::kNone);
  gpu.engine.assign(GpuHistory::kMinutes, none);
  gpu.sm = gpu.throttled = gpu.engine;
  for (size_t i = 50; i < GpuHistory::kMinutes; ++i) {
    gpu.engine[i] = 0.97F;
    gpu.sm[i] = 0.12F;
    gpu.throttled[i] = i < 52 ? 0.4F : 0;
  }
  return gpu;
}

metrics::Published OnCards(std::vector<GpuHistory> gpus) {
  JobStatus job = test::HangingJob();
  job.gpu_history = std::move(gpus);
  return test::OnNode({job});
}

// Of the page, what it says of the job's cards.
std::string Charts(const metrics::Published& published) {
  const std::string page = Job(published);
  const size_t begin = page.find("<h2>GPUs</h2>");
  return begin == std::string::npos ? "" : page.substr(begin, page.find("<h2>", begin + 1) - begin);
}

TEST(Pages, DrawsTheCardsOfAJob) {
  metrics::Published published = OnCards({Card(2), Card(3)});
  published.agent.sources[0].xids = {{"0000:13:00", 79, 1, test::kWallSeconds - 900},
                                     {"0000:14:00", 48, 1, test::kWallSeconds - 900},
                                     {"0000:13:00", 13, 1, test::kWallSeconds - 4000}};
  const std::string page = Charts(published);
  EXPECT_THAT(page, HasSubstr("<b>GPU 3</b> rank 3 <code>GPU-fa4e0003</code>"));
  EXPECT_THAT(page, HasSubstr("at most 39.0 GiB of 80.0 GiB"));
  EXPECT_THAT(page, HasSubstr("in the last minute engine 97 %, SMs 12 %"));
  EXPECT_THAT(page, HasSubstr("clocks limited by heat or power in 2 minutes"));
  EXPECT_THAT(page, HasSubstr("<span class=\"critical\">Xid 79</span>")) << "of this hour and card";
  EXPECT_THAT(page, HasSubstr("<path class=\"xid\" d=\"M180.0 0V52\"/>"))
      << "a quarter from its end";
  EXPECT_THAT(page, HasSubstr("<path class=\"engine\" d=\"M200.0 ")) << "ten minutes of sixty";
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf")));
  EXPECT_THAT(page, Not(HasSubstr("GPU-fa4e0003-0000"))) << "short";
  EXPECT_THAT(Job(OnCards({})), Not(HasSubstr("<h2>GPUs</h2>")));
}

TEST(Pages, WhatACardDoesNotTellIsNotDrawn) {
  GpuHistory silent = Card(1);
  silent.memory_bytes.clear();
  silent.engine.clear();
  silent.sm.clear();
  silent.throttled.clear();
  silent.state = "lost";
  EXPECT_THAT(Job(OnCards({silent})), HasSubstr("not reported"));
  EXPECT_THAT(Job(OnCards({silent})), HasSubstr("<span class=\"critical\">lost</span>"));
  EXPECT_THAT(Job(OnCards({silent})), Not(HasSubstr("<path")));
  EXPECT_THAT(Job(OnCards({GpuHistory{}})), HasSubstr("GPU ?"));
  GpuHistory old = Card(1);  // without counters of its SMs, and of unknown size and time
  old.sm.assign(GpuHistory::kMinutes, static_cast<float>(GpuHistory::kNone));
  old.memory_total_bytes = old.minutes_end_wall_seconds = old.memory_begin_wall_seconds =
      GpuHistory::kNone;
  const std::string page = Charts(OnCards({old}));
  EXPECT_THAT(page, HasSubstr("engine 97 %, SMs \u2013"));
  EXPECT_THAT(page, Not(HasSubstr("class=\"sm\" d=")));
  EXPECT_THAT(page, HasSubstr(">at most 39.0 GiB<"));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
}

TEST(Pages, CardsAreEscaped) {
  const std::string evil = "<b>\"'&";
  GpuHistory card = Card(1);
  card.uuid = card.model = card.state = evil;
  const std::string page = Job(OnCards({card}));
  EXPECT_THAT(page, HasSubstr("<code>&lt;b&gt;&quot;&#39;&amp;</code>"));
  EXPECT_THAT(page, Not(HasSubstr("<b>\"")));
}

JobStatus WithTime(double begin) {
  JobStatus job = test::HealthyJob("8841");
  job.timeline.marks = {{begin - 60, "submitted", "says scontrol"},
                        {begin, "began", "attempt 1"},
                        {begin + 100, "suspended", "its cgroup was frozen"},
                        {begin + 160, "resumed", ""},
                        {begin + 200, "restarted", "attempt 2"},
                        {begin + 210, "told", "<b>RUNNING\n\"x'&"}};
  job.timeline.spans = {{begin, begin + 180, false, 1, "F2"},
                        {begin + 200, kUnknown, false, 2, ""},
                        {begin + 100, begin + 160, true, 0, ""}};
  return job;
}

TEST(Pages, AJobsTimeIsAStripAndTheSameInWords) {
  const std::string page = Job(test::OnNode({WithTime(test::kWallSeconds - 240)}));
  EXPECT_THAT(
      page, HasSubstr("<title>timeline of the job: 2 attempts, suspended for 60 s; listed below"));
  // 300 s in 240 units: from a minute before its begin to now.
  EXPECT_THAT(page, HasSubstr("<path class=\"failed\" d=\"M48.0 5H192.0V20H48.0Z\"/>"));
  EXPECT_THAT(page, HasSubstr("<path class=\"went\" d=\"M208.0 5H240.0V20H208.0Z\"/>"));
  EXPECT_THAT(page, HasSubstr("<path class=\"suspended\" d=\"M128.0 5H176.0V20H128.0Z\"/>"));
  EXPECT_THAT(page, HasSubstr("M128.0 0V20")) << "a mark";
  EXPECT_THAT(page,
              HasSubstr("<b>suspended</b> <span class=\"soft\">its cgroup was frozen</span>"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;RUNNING &quot;x&#39;&amp;</span>"));
  EXPECT_THAT(page, Not(HasSubstr(" style=")));
  EXPECT_THAT(Job(test::OnNode({test::HealthyJob("1")})), Not(HasSubstr("Timeline")));
}

TEST(Pages, ALongLifeIsFoldedAndTimesThatAreNoneAreNot) {
  JobStatus job = WithTime(test::kWallSeconds - 3e5);
  for (int i = 0; i < 100; ++i)
    job.timeline.marks.push_back({test::kWallSeconds - 2000 + i, "told", "RUNNING"});
  job.timeline.marks.push_back({kUnknown, "told", ""});
  const std::string page = Job(test::OnNode({job}));
  EXPECT_THAT(page, HasSubstr("<summary>95 earlier</summary>"));
  EXPECT_THAT(page, Not(HasSubstr("Mnan")));
}

TEST(Pages, CardsShowWhenTheirJobWasSuspended) {
  JobStatus job = WithTime(test::kWallSeconds - 1200);
  job.gpu_history = {Card(1)};
  const std::string charts = Charts(test::OnNode({job}));
  EXPECT_THAT(charts, HasSubstr("<path class=\"suspended\""));
}

TEST(Pages, BesideTheControllerSlurmsJobsHaveTheirTime) {
  metrics::Published published = test::OnNode({});
  auto events = std::make_shared<std::deque<std::shared_ptr<const SlurmEvent>>>();
  int64_t number = 0;
  const auto tell = [&](const char* job, double ago, const char* kind, const char* reason) {
    auto event = std::make_shared<SlurmEvent>();
    event->number = ++number;
    event->job_id = job;
    event->kind = kind;
    event->reason = reason;
    event->wall_ns = static_cast<int64_t>((test::kWallSeconds - ago) * 1e9);
    events->push_back(event);
  };
  tell("77", 400, "submitted", "");
  tell("77", 390, "blocked", "Resources");
  tell("77", 300, "started", "");
  tell("77", 200, "suspended", "");
  tell("77", 150, "resumed", "");
  tell("77", 100, "preempted", "<Preempted>");
  tell("78", 90, "submitted", "");
  auto report = std::make_shared<SlurmReport>();
  report->events = events;
  published.agent.sources.emplace_back().name = "slurm";
  published.agent.sources.back().slurm = report;
  const std::string page = NodePage(published);
  EXPECT_THAT(page, HasSubstr("<h2>Jobs of Slurm</h2>"));
  EXPECT_THAT(page, HasSubstr("<b>blocked</b> <span class=\"soft\">Resources</span>"));
  EXPECT_THAT(page, HasSubstr("&lt;Preempted&gt;"));
  EXPECT_THAT(page, HasSubstr("1 attempt, suspended for 50 s"));
  EXPECT_LT(page.find("<b>78</b>"), page.find("<b>77</b>")) << "the newest first";
}

std::string Base64(const std::string& bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < have ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (size_t k = 0; k < 4; ++k) {
      out.push_back(k <= have ? kDigits[(group >> (18 - 6 * k)) & 63] : '=');
    }
  }
  return out;
}

std::string Sha256(std::string_view content) {
  std::string file = (std::filesystem::temp_directory_path() / "hashed.XXXXXX").string();
  const int fd = mkstemp(file.data());
  if (fd < 0) return {};
  close(fd);
  std::ofstream(file) << content;
  FILE* pipe = popen(("sha256sum " + file).c_str(), "r");
  std::array<char, 65> hex{};
  const size_t read = pipe == nullptr ? 0 : fread(hex.data(), 1, 64, pipe);
  if (pipe != nullptr) pclose(pipe);
  std::filesystem::remove(file);
  std::string bytes;
  for (size_t i = 0; i + 1 < read; i += 2)
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.data() + i, 2), nullptr, 16)));
  return Base64(bytes);
}

// A wrong hash leaves the page without its style or its script in every browser.
TEST(Pages, PolicyHasTheHashesOfStyleAndScript) {
  EXPECT_THAT(ContentSecurityPolicy(),
              HasSubstr("style-src 'sha256-" + Sha256(StyleSheet()) + "'"));
  EXPECT_THAT(ContentSecurityPolicy(), HasSubstr("script-src 'sha256-" + Sha256(Script()) + "'"));
  EXPECT_THAT(ContentSecurityPolicy(), HasSubstr("default-src 'none'"));
  // Neither attribute works under this policy.
  const std::string pages = All(test::OnNode({test::HangingJob()}));
  EXPECT_THAT(pages, Not(HasSubstr(" style=")));
  EXPECT_THAT(pages, Not(HasSubstr(" onclick=")));
}

}  // namespace
}  // namespace rankscope::web
