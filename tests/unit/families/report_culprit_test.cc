// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What reports of NCCL and PyTorch add to a hang: the rank, the confidence, and when they add none.
#include "detectors/families/report_culprit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

using features::Evidence;
using features::EvidenceKind;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

features::EvidenceRef Add(features::JobFeatures& f, EvidenceKind kind, proto::Store store) {
  Evidence evidence;
  evidence.kind = kind;
  evidence.store = store;
  f.evidence.push_back(evidence);
  return static_cast<features::EvidenceRef>(f.evidence.size() - 1);
}

features::JobFeatures Silent() {
  features::JobFeatures f;
  f.now = {int64_t{10'000} * 1'000'000'000};
  f.running = true;
  f.timed = true;
  f.world_size = 8;
  f.processes_alive = 8;
  f.progress = 100;
  f.phase = proto::PHASE_TRAIN;
  f.usual_record_seconds = 1;
  f.step_seconds = 1;
  f.p99_record_seconds = 1;
  f.silence_seconds = 90;
  f.silence_evidence = Add(f, EvidenceKind::kSilence, proto::STORE_LOG);
  return f;
}

TEST(ReportedCulprit, IsNamedAndTheQuestionAnswered) {
  features::JobFeatures f = Silent();
  const Finding before = collective_hang::Evaluate(f);
  EXPECT_THAT(before.open, Contains(Question::kHangCulprit));
  f.reports.ras = {{5}, "behind", Add(f, EvidenceKind::kRas, proto::STORE_NCCL)};
  const Finding finding = collective_hang::Evaluate(f);
  EXPECT_THAT(finding.ranks, ElementsAre(5));
  EXPECT_THAT(finding.open, Not(Contains(Question::kHangCulprit)));
  EXPECT_THAT(finding.open, Contains(Question::kHangTrigger)) << "why it did not come is another";
  EXPECT_EQ(finding.tier, proto::TIER_C) << "silence in the log, and NCCL's own word";
  EXPECT_THAT(finding.shows, Contains(f.reports.ras.evidence));
}

TEST(ReportedCulprit, TwoReportsThatAgreeNameWhatTheDumpsSay) {
  features::JobFeatures f = Silent();
  f.reports.ras = {{5}, "behind", Add(f, EvidenceKind::kRas, proto::STORE_NCCL)};
  f.reports.flight = {{4, 5}, "absent", Add(f, EvidenceKind::kFlightRecorder, proto::STORE_NCCL)};
  const Finding finding = collective_hang::Evaluate(f);
  EXPECT_THAT(finding.ranks, ElementsAre(4, 5));
  EXPECT_THAT(finding.shows, Contains(f.reports.ras.evidence));
  EXPECT_THAT(finding.shows, Contains(f.reports.flight.evidence));
}

TEST(ReportedCulprit, TwoReportsThatDisagreeNameNobody) {
  features::JobFeatures f = Silent();
  f.reports.ras = {{5}, "behind", Add(f, EvidenceKind::kRas, proto::STORE_NCCL)};
  f.reports.flight = {{2}, "behind", Add(f, EvidenceKind::kFlightRecorder, proto::STORE_NCCL)};
  const Finding finding = collective_hang::Evaluate(f);
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_THAT(finding.open, Contains(Question::kHangCulprit));
  EXPECT_DOUBLE_EQ(finding.contradiction, 0.5);
}

TEST(ReportedCulprit, ARunThatMovesHasNone) {
  features::JobFeatures f = Silent();
  f.silence_seconds = 5;
  f.reports.ras = {{5}, "behind", Add(f, EvidenceKind::kRas, proto::STORE_NCCL)};
  f.reports.disorder = {"op", {5}, f.reports.ras.evidence};
  EXPECT_FALSE(collective_hang::Evaluate(f).matched);
  EXPECT_FALSE(collective_desync::Evaluate(f).matched);
}

TEST(ReportedCulprit, AServiceThatIsSilentIsShown) {
  features::JobFeatures f = Silent();
  f.reports.ras_silent_evidence = Add(f, EvidenceKind::kRas, proto::STORE_NCCL);
  const Finding finding = collective_hang::Evaluate(f);
  EXPECT_THAT(finding.shows, Contains(f.reports.ras_silent_evidence));
  EXPECT_TRUE(finding.ranks.empty());
}

TEST(ReportedDisorder, IsADesyncOfAHungRun) {
  features::JobFeatures f = Silent();
  f.reports.disorder = {"op", {5}, Add(f, EvidenceKind::kFlightRecorder, proto::STORE_NCCL)};
  const Finding finding = collective_desync::Evaluate(f);
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "op");
  EXPECT_THAT(finding.ranks, ElementsAre(5));
  EXPECT_EQ(finding.domain, proto::DOMAIN_WORKLOAD);
}

}  // namespace
}  // namespace rankscope::families
