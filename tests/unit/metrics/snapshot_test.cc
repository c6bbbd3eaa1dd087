// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/metrics/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "exporter/metrics/encoder.h"
#include "tests/unit/metrics/published_states.h"

namespace rankscope::metrics {
namespace {

using test::FinishedJob;
using test::HangingJob;
using test::HealthyJob;
using test::OnNode;
using testing::HasSubstr;
using testing::Not;

std::string Scrape(SnapshotBuilder& builder, const Published& published) {
  std::string out;
  AppendText(*builder.Build(published), out);
  return out;
}

std::string Scrape(const Published& published, SnapshotOptions options = {}) {
  SnapshotBuilder builder(options);
  return Scrape(builder, published);
}

// Series of this family.
size_t CountOf(const std::string& text, std::string_view name) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    const std::string_view line = std::string_view(text).substr(at);
    if (line.starts_with(name) && (line[name.size()] == '{' || line[name.size()] == ' ')) ++count;
  }
  return count;
}

TEST(Snapshot, VerdictHasTheFamiliesThatSomethingSpeaksFor) {
  JobStatus job = HangingJob();
  for (proto::FamilyState& state : *job.verdict.mutable_families()) {
    if (state.code() == "B2") state.set_score(0.25);
    if (state.code() == "X5") state.set_score(0.5);  // and ruled out
  }
  const std::string text = Scrape(OnNode({job}));
  EXPECT_EQ(CountOf(text, "rankscope_verdict"), 2u);
  EXPECT_EQ(CountOf(text, "rankscope_verdict_confidence_ratio"), 2u);
  for (const auto& [family, named, confidence] :
       {std::tuple{"collective_hang", "1", "0.65"}, {"gpu_hardware", "0", "0.25"}}) {
    const std::string labels = "{job_id=\"8841\",family=\"" + std::string(family) + "\"} ";
    EXPECT_THAT(text, HasSubstr("\nrankscope_verdict" + labels + named + "\n"));
    EXPECT_THAT(text,
                HasSubstr("\nrankscope_verdict_confidence_ratio" + labels + confidence + "\n"));
  }
  EXPECT_THAT(text,
              HasSubstr(R"(rankscope_verdict_info{job_id="8841",family="collective_hang",)"
                        R"(code="C2",sub="",scope="job",domain="unknown",)"
                        R"(severity="critical",phase="train",state="live",disposition=""} 1)"));
  EXPECT_THAT(text,
              HasSubstr("rankscope_verdict_onset_timestamp_seconds{job_id=\"8841\"} 1779999909.5"));
}

TEST(Snapshot, WhatIsRuledOutIsOfTheFullProfile) {
  const Published published = OnNode({HangingJob(), FinishedJob("7", 1)});
  EXPECT_EQ(CountOf(Scrape(published), "rankscope_verdict_ruled_out"), 0u);
  const std::string text = Scrape(published, {.profile = Profile::kFull});
  EXPECT_EQ(CountOf(text, "rankscope_verdict_ruled_out"), families::FamilyNames().size());
  for (const families::FamilyName& name : families::FamilyNames()) {
    const bool kept = name.code == "C2" || name.code == "B2";  // B2 is not decidable here
    EXPECT_THAT(text, HasSubstr("\nrankscope_verdict_ruled_out{job_id=\"8841\",family=\"" +
                                std::string(name.family) + "\"} " + (kept ? "0" : "1")));
  }
}

TEST(Snapshot, FamiliesAreSortedContiguousAndNeverEmpty) {
  SnapshotBuilder builder;
  const auto snapshot = builder.Build(OnNode({HealthyJob("1"), HangingJob("2")}));
  for (size_t i = 0; i < snapshot->families.size(); ++i) {
    EXPECT_GT(snapshot->families[i].SeriesCount(), 0u);
    if (i > 0) {
      EXPECT_LT(snapshot->families[i - 1].row->name, snapshot->families[i].row->name);
    }
  }
}

TEST(Snapshot, NoSeriesIsShownTwice) {
  JobStatus job = HealthyJob();
  job.ranks.push_back(job.ranks.front());             // a restarted rank
  job.logs.push_back({"/tmp/a/stdout", 1, 1, 0, 0});  // another folder, the same name
  job.verdict.add_warnings()->set_kind("w");
  job.verdict.add_warnings()->set_kind("w");
  Published published = OnNode({job, HealthyJob(), FinishedJob("8841", 1)});
  published.agent.sources.push_back(published.agent.sources.front());
  const std::string text = Scrape(published);
  std::set<std::string> seen;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (line[0] != '#') {
      EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
    at = end + 1;
  }
}

TEST(Snapshot, AbsentValuesMakeNoSeriesAndRealNanDoes) {
  JobStatus job = HealthyJob();
  job.signals.Set(SignalId::kLoss, kUnknown);
  EXPECT_EQ(CountOf(Scrape(OnNode({job})), "rankscope_training_loss"), 0u);
  job.training.nonfinite_loss = 2;
  const std::string text = Scrape(OnNode({job}));
  EXPECT_THAT(text, HasSubstr("rankscope_training_loss{job_id=\"8841\"} NaN\n"));
  EXPECT_THAT(text,
              HasSubstr("rankscope_training_nonfinite_total{job_id=\"8841\",field=\"loss\"} 2\n"));
  EXPECT_EQ(CountOf(text, "rankscope_rank_sm_active_median_ratio"), 0u);
  EXPECT_EQ(CountOf(text, "rankscope_rank_alive"), 2u);
}

TEST(Snapshot, SourcesSayWhetherTheyWork) {
  const std::string text = Scrape(OnNode({}));
  EXPECT_THAT(text, HasSubstr("rankscope_source_up{source=\"procfs\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_source_up{source=\"proc_connector\"} 0\n"));
  EXPECT_EQ(CountOf(text, "rankscope_source_last_event_timestamp_seconds"), 5u)
      << "proc_connector has told nothing";
}

TEST(Snapshot, HealthyJobIsShownForFiveMinutesAfterItsEndAndItsRanksForOne) {
  const auto scrape = [](double ago) { return Scrape(OnNode({FinishedJob("7", ago)})); };
  EXPECT_EQ(CountOf(scrape(59), "rankscope_rank_alive"), 2u);
  for (const double ago : {61.0, 299.0}) {
    const std::string text = scrape(ago);
    EXPECT_EQ(CountOf(text, "rankscope_rank_alive"), 0u);
    EXPECT_EQ(CountOf(text, "rankscope_training_loss"), 0u);
    EXPECT_EQ(CountOf(text, "rankscope_verdict"), 0u) << "which is of running jobs";
    EXPECT_EQ(CountOf(text, "rankscope_verdict_info"), 1u);
    EXPECT_EQ(CountOf(text, "rankscope_job_running"), 1u);
  }
  EXPECT_THAT(scrape(301), Not(HasSubstr("job_id=\"7\"")));
}

TEST(Snapshot, VerdictOfAFailureStaysForAnHour) {
  JobStatus job = FinishedJob("7", 0);
  test::SetFamily(job, "A2", 0.85, "critical");
  const auto scrape = [&](double ago) {
    job.verdict.set_updated_ns(test::WallNs(test::kWallSeconds - ago));
    return Scrape(OnNode({job}));
  };
  for (const double ago : {301.0, 3599.0}) {
    const std::string text = scrape(ago);
    EXPECT_EQ(CountOf(text, "rankscope_verdict_info"), 1u);
    EXPECT_THAT(text, HasSubstr("rankscope_verdict_confidence_ratio{job_id=\"7\","
                                "family=\"signal_kill\"} 0.85\n"));
    EXPECT_EQ(CountOf(text, "rankscope_job_info"), 1u);
    EXPECT_EQ(CountOf(text, "rankscope_job_running"), 0u);
  }
  EXPECT_THAT(scrape(3601), Not(HasSubstr("job_id=\"7\"")));
}

TEST(Snapshot, RunningJobKeepsItsSeriesHoweverOldItsVerdict) {
  JobStatus job = HealthyJob();
  job.verdict.set_updated_ns(test::WallNs(test::kWallSeconds - 86400));
  EXPECT_EQ(CountOf(Scrape(OnNode({job})), "rankscope_rank_alive"), 2u);
}

TEST(Snapshot, WarningStaysAsZeroAfterItFell) {
  SnapshotBuilder builder;
  EXPECT_THAT(
      Scrape(builder, OnNode({HangingJob()})),
      HasSubstr("rankscope_warning_active{job_id=\"8841\",warning=\"straggler_mild\"} 1\n"));
  EXPECT_THAT(
      Scrape(builder, OnNode({HealthyJob()})),
      HasSubstr("rankscope_warning_active{job_id=\"8841\",warning=\"straggler_mild\"} 0\n"));
  EXPECT_EQ(CountOf(Scrape(builder, OnNode({HealthyJob("other")})), "rankscope_warning_active"),
            0u);
}

TEST(Snapshot, CapHoldsAndDropsRanksFirstVerdictsLast) {
  std::vector<JobStatus> jobs;
  for (int i = 0; i < 20; ++i) jobs.push_back(HealthyJob(std::to_string(i)));
  const Published published = OnNode(jobs);
  const size_t all = SnapshotBuilder({.max_series = 16000}).Build(published)->SeriesCount();
  for (const size_t cap : {all / 4, all / 2, all - 100, all - 1}) {
    const auto snapshot =
        SnapshotBuilder({.max_series = static_cast<int32_t>(cap)}).Build(published);
    EXPECT_LE(snapshot->SeriesCount(), cap);
    std::string text;
    AppendText(*snapshot, text);
    EXPECT_THAT(text,
                HasSubstr("rankscope_series " + std::to_string(snapshot->SeriesCount()) + "\n"));
    EXPECT_THAT(text,
                Not(HasSubstr("rankscope_series_dropped_total{reason=\"cap_rank_detail\"} 0\n")));
    EXPECT_EQ(CountOf(text, "rankscope_verdict_info"), 20u);
    if (cap < all / 2) continue;
    EXPECT_EQ(CountOf(text, "rankscope_verdict"), 20u);
    EXPECT_THAT(text, HasSubstr("rankscope_series_dropped_total{reason=\"cap_verdict\"} 0\n"));
  }
  const std::string whole = Scrape(published, {.max_series = 16000});
  EXPECT_THAT(whole, HasSubstr("rankscope_series_dropped_total{reason=\"cap_rank_detail\"} 0\n"));
  EXPECT_THAT(whole, Not(HasSubstr("rankscope_series_missing{")));
}

TEST(Snapshot, CapTakesFinishedJobsFirst) {
  const Published published =
      OnNode({FinishedJob("1", 5), FinishedJob("3", 5), FinishedJob("4", 5), HealthyJob("2")});
  const size_t all = SnapshotBuilder({.max_series = 16000}).Build(published)->SeriesCount();
  SnapshotBuilder builder({.max_series = static_cast<int32_t>(all) - 100});
  Scrape(builder, published);
  const std::string text = Scrape(builder, published);
  EXPECT_THAT(text, HasSubstr("rankscope_rank_alive{job_id=\"2\""));
  EXPECT_THAT(text, Not(HasSubstr("rankscope_rank_alive{job_id=\"1\"")));
  EXPECT_THAT(text, HasSubstr("rankscope_verdict_info{job_id=\"1\""));
  EXPECT_THAT(text, HasSubstr("rankscope_series_missing{metric=\"rankscope_rank_alive\"} 6\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_series_dropped_total{reason=\"cap_rank\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("rankscope_series_dropped_total{reason=\"cap_ended\"} 0\n")));
}

TEST(Snapshot, CountersOfDropsRiseTickByTickAndMissingSeriesAreOfThisTick) {
  SnapshotBuilder builder({.max_series = 10});
  const Published published = OnNode({HealthyJob()});
  Scrape(builder, published);
  const std::string text = Scrape(builder, published);
  EXPECT_THAT(text, HasSubstr("rankscope_series_dropped_total{reason=\"cap_verdict\"} 8\n"))
      << "its family, confidence, changes and time";
  EXPECT_EQ(CountOf(text, "rankscope_series_missing"), 1u) << "no room for names";
  EXPECT_THAT(text, HasSubstr("rankscope_series_missing{metric=\"other\"} "));
  builder.SetMaxSeries(1000);
  EXPECT_THAT(Scrape(builder, published), Not(HasSubstr("rankscope_series_missing{")));
}

TEST(Snapshot, HistogramsAreOfTheFullProfileAndWholeOrNotThere) {
  JobStatus job = HealthyJob();
  for (RankStatus& rank : job.ranks) test::AddLaunchGaps(rank);
  job.gpus.clear();  // would be shown behind the ranks
  const Published published = OnNode({job});
  EXPECT_THAT(Scrape(published), Not(HasSubstr("rankscope_cuda_launch_gap_seconds")));
  SnapshotBuilder builder({.profile = Profile::kFull});
  const auto all = builder.Build(published);
  std::string text;
  AppendText(*all, text);
  EXPECT_EQ(CountOf(text, "rankscope_cuda_launch_gap_seconds_bucket"), 2 * kLaunchGapSlots);
  EXPECT_THAT(text, HasSubstr(R"(gap_seconds_bucket{job_id="8841",rank="1",le="0.0009765625"} )"
                              "100000\n"));
  EXPECT_THAT(text, HasSubstr(R"(gap_seconds_bucket{job_id="8841",rank="1",le="1.0"} 100042)"));
  EXPECT_THAT(text, HasSubstr(R"(gap_seconds_bucket{job_id="8841",rank="1",le="64.0"} 100042)"));
  EXPECT_THAT(text, HasSubstr(R"(gap_seconds_bucket{job_id="8841",rank="1",le="+Inf"} 100045)"));
  EXPECT_THAT(text, HasSubstr(R"(gap_seconds_sum{job_id="8841",rank="1"} 312.5)"));
  EXPECT_THAT(text, HasSubstr(R"(gap_seconds_count{job_id="8841",rank="1"} 100045)"));
  EXPECT_THAT(text, HasSubstr("rankscope_series " + std::to_string(all->SeriesCount()) + "\n"));

  // Room for all but one of its series.
  const auto cap = static_cast<int32_t>(all->SeriesCount()) - 1;
  SnapshotBuilder tight({.profile = Profile::kFull, .max_series = cap});
  text.clear();
  AppendText(*tight.Build(published), text);
  EXPECT_EQ(CountOf(text, "rankscope_cuda_launch_gap_seconds_bucket"), kLaunchGapSlots);
  EXPECT_EQ(CountOf(text, "rankscope_cuda_launch_gap_seconds_count"), 1u);
  EXPECT_THAT(text, HasSubstr("rankscope_series_dropped_total{reason=\"cap_rank_detail\"} " +
                              std::to_string(kLaunchGapSlots + 2) + "\n"));
}

TEST(Snapshot, WhoUsesAGpuIsSaidWhileTheSourceWorks) {
  JobStatus job = HealthyJob();
  job.ranks[0].cuda_attached = 1;
  job.ranks[1].cuda_attached = 0;
  Published published = OnNode({job});
  const std::string text = Scrape(published);
  EXPECT_THAT(text, HasSubstr("rankscope_cuda_attached{job_id=\"8841\",rank=\"0\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankscope_cuda_attached{job_id=\"8841\",rank=\"1\"} 0\n"));
  for (SourceStatus& source : published.agent.sources) {
    if (source.name == "cuda") source.state = Availability::kDown;
  }
  EXPECT_EQ(CountOf(Scrape(published), "rankscope_cuda_attached"), 0u);
}

TEST(Snapshot, LabelsAreSharedFromTickToTick) {
  SnapshotBuilder builder;
  const Published published = OnNode({HealthyJob()});
  const auto labels = [](const Snapshot& snapshot) {
    for (const Family& family : snapshot.families) {
      if (family.row->name == "rankscope_rank_alive") return family.series.front().labels.get();
    }
    return static_cast<const LabelSet*>(nullptr);
  };
  const auto first = builder.Build(published);
  const auto second = builder.Build(published);
  EXPECT_NE(labels(*first), nullptr);
  EXPECT_EQ(labels(*first), labels(*second));
}

TEST(Snapshot, ManyStreamsAreSummedAsOther) {
  JobStatus job = HealthyJob();
  for (int i = 0; i < 40; ++i)
    job.logs.push_back({"rank" + std::to_string(i) + ".log", 1, 10, 0, 0});
  const std::string text = Scrape(OnNode({job}));
  EXPECT_EQ(CountOf(text, "rankscope_log_lines_total"), 17u);
  EXPECT_THAT(text, HasSubstr("rankscope_log_lines_total{job_id=\"8841\",stream=\"other\"} 26\n"));
}

}  // namespace
}  // namespace rankscope::metrics
