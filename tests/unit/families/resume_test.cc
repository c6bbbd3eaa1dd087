// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A resume that was meant, and where the training begins.
#include <gtest/gtest.h>

#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

// Forty records from step 5 on, after an attempt that had saved at step 200.
features::JobFeatures AfterASave() {
  features::JobFeatures f;
  f.ended = true;
  f.running = false;
  f.lines = 60;
  f.progress = 40;
  f.recognised = true;
  f.steps = 200;
  f.steps_known = true;
  f.evidence.resize(3);
  f.resume.earlier = true;
  f.resume.restarted = true;
  f.resume.earlier_first_step = 5;
  f.resume.earlier_last_step = 200;
  f.resume.earlier_first_loss = 2.6;
  f.resume.earlier_last_loss = 0.9;
  f.resume.earlier_noise = 0.02;
  f.resume.earlier_save_evidence = 0;
  f.resume.earlier_loss_evidence = 1;
  f.first_progress_evidence = 2;
  f.resume.first_step = 5;
  f.resume.interval = 5;
  f.loss.first_three = 2.58;
  return f;
}

TEST(SilentResume, BeginsAgainAtTheBeginning) {
  const Finding finding = silent_resume::Evaluate(AfterASave());
  ASSERT_TRUE(finding.matched);
  EXPECT_EQ(finding.sub, "not_loaded");
  EXPECT_EQ(finding.tier, proto::TIER_S);
}

TEST(SilentResume, WithoutAWordOfARestartItIsWeak) {
  features::JobFeatures f = AfterASave();
  f.resume.restarted = false;
  EXPECT_EQ(silent_resume::Evaluate(f).tier, proto::TIER_W);
}

TEST(SilentResume, IsNoneWhereItGoesOn) {
  features::JobFeatures f = AfterASave();
  f.resume.first_step = 205;
  EXPECT_FALSE(silent_resume::Evaluate(f).matched);
}

TEST(SilentResume, IsNoneWhereTheLossGoesOn) {
  features::JobFeatures f = AfterASave();
  f.loss.first_three = 0.92;
  EXPECT_FALSE(silent_resume::Evaluate(f).matched);
}

TEST(SilentResume, IsNoneWhereACheckpointWasRead) {
  features::JobFeatures f = AfterASave();
  f.resume.load_seen = true;
  EXPECT_FALSE(silent_resume::Evaluate(f).matched);
}

TEST(SilentResume, IsNoneWhereStepsCountWithinEpochs) {
  features::JobFeatures f = AfterASave();
  f.resume.counts_within_epochs = true;
  EXPECT_FALSE(silent_resume::Evaluate(f).matched);
}

TEST(SilentResume, InPartNeedsAResume) {
  features::JobFeatures f = AfterASave();
  f.resume.first_step = 205;
  f.resume.partial = "optimizer";
  f.resume.partial_evidence = 1;
  EXPECT_EQ(silent_resume::Evaluate(f).sub, "partial");
  f.resume.partial = "rng";
  EXPECT_FALSE(silent_resume::Evaluate(f).matched);
  f.resume.partial = "weights";
  f.resume.earlier = false;
  EXPECT_FALSE(silent_resume::Evaluate(f).matched);
}

}  // namespace
}  // namespace rankscope::families
