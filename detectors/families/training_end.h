// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the files of undertrained and healthy and undetermined share.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

bool EndedWell(const features::JobFeatures& f);
// A launcher's report of a child that failed, behind which nothing was trained; the last one.
// nullptr: there is none.
const features::Cause* ReportedFailure(const features::JobFeatures& f);

// Something was trained, by what the output shows, whoever reads it as a record: it prints records,
// or a loss that changes, saves, evaluates, or says that training is over.
bool ShowsTraining(const features::JobFeatures& f);
// Or work was done: on a GPU, in collectives, by a framework that names itself, or by ranks that a
// launcher of distributed training started.
bool ShowsWork(const features::JobFeatures& f);

Question WhetherItLearned(const features::JobFeatures& f);

}  // namespace rankscope::families
