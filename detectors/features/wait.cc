// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/landmarks.h"

namespace rankscope::features {

void DescribeWaits(const windows::JobWindow&, const windows::AttemptWindow&, Citer&, JobFeatures&) {
}

}  // namespace rankscope::features
