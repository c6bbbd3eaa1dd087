// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What NCCL and PyTorch report of a collective that does not complete, as findings of other
// families take it in: who holds it up, and whether the ranks wait for the same thing at all. Pure.
#pragma once

#include "detectors/families/family.h"

namespace rankscope::families {

// Names the ranks that did not enter, and answers who they are. Whoever complained before (text is
// the survivors') was waiting. Does nothing where nothing names a rank; where two reports name
// different ones, shows both and names nobody.
void AddReportedCulprit(const features::JobFeatures& f, Finding& finding);

// X10 from reports: matched only where the run hangs, or has ended by its collectives' timeout.
Finding ReportedDisorder(const features::JobFeatures& f);

// C2 by dumps alone: ranks stand in a collective past the time that one may take. Matched or not.
Finding ReportedStandstill(const features::JobFeatures& f);

// X5: what the node's ports counted under the run. A link that went down explains a connection that
// broke, which a peer's death does not bring about.
void AddPortFaults(const features::JobFeatures& f, Finding& finding);

}  // namespace rankscope::families
