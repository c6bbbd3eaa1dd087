// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// How long before its end a run of which only a file is left had printed its last record, by the
// dates in the file: those of the program's records and that of the scheduler's last word.
#pragma once

#include "detectors/features/cite.h"
#include "detectors/features/job_features.h"
#include "detectors/windows/job_window.h"

namespace rankscope::features {

// Fills the silence and its evidence, where the text has no arrival times. Behind the causes.
void DescribePrintedSilence(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f);

}  // namespace rankscope::features
