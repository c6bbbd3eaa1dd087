// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Facts of a run besides its loss and its incidents: how it took its leave, what it was meant to
// resume and did, its loss scale, its rewards, its compilers, its restarts, and what is seen of it
// from below its text. Each function fills its
// part of JobFeatures and cites for it. Private to features; pure.
#pragma once

#include "detectors/features/cite.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

// Last save and evaluation, final metrics, the word that all is done, the last line.
void DescribeLeave(const windows::JobWindow& job, const windows::AttemptWindow& window,
                   Citer& citer, JobFeatures& f);
// Dialects whose step counts within the epoch: a resumed run may well begin at 0.
bool CountsWithinEpochs(const windows::AttemptWindow& window);
// resume.cc
void DescribeResume(const windows::JobWindow& job, const windows::AttemptWindow& window,
                    Citer& citer, JobFeatures& f);
void DescribeLossScale(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f);
// Ranks that belong on this node and never came.
void DescribeMissingRanks(const windows::JobWindow& job, Citer& citer, JobFeatures& f);
void DescribeTarget(const windows::Targets& targets, const windows::AttemptWindow& window,
                    Citer& citer, JobFeatures& f);
void DescribeReward(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f);
void DescribeMetric(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f);
void DescribeCompiler(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f);
void DescribeRestarts(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f);
// Where it stands still because somebody wants it to; suspension.cc
void DescribeSuspension(const windows::JobWindow& job, bool earlier, Citer& citer, JobFeatures& f);
// network.cc, storage.cc and so on
void DescribeNetwork(const windows::JobWindow& job, const windows::AttemptWindow& window,
                     Citer& citer, JobFeatures& f);
void DescribeStorage(const windows::JobWindow& job, const windows::AttemptWindow& window,
                     Citer& citer, JobFeatures& f);
void DescribeWaits(const windows::JobWindow& job, const windows::AttemptWindow& window,
                   Citer& citer, JobFeatures& f);
void DescribeLaunches(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f);
void DescribeCollectives(const windows::JobWindow& job, const windows::AttemptWindow& window,
                         Citer& citer, JobFeatures& f);
void DescribeFaults(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f);
void DescribeStillness(const windows::JobWindow& job, const windows::AttemptWindow& window,
                       Citer& citer, JobFeatures& f);
void DescribeGpus(const windows::JobWindow& job, const windows::AttemptWindow& window, Citer& citer,
                  JobFeatures& f);
// Of the current attempt, after those of the GPUs.
void DescribeLeads(const windows::JobWindow& job, const windows::AttemptWindow& window,
                   Citer& citer, JobFeatures& f);
// Those that are the job's, computed on or not.
void DescribeJobCards(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f);
void DescribeReports(const windows::JobWindow& job, const windows::AttemptWindow& window,
                     Citer& citer, JobFeatures& f);

}  // namespace rankscope::features
