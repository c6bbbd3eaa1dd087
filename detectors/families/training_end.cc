// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// E3, G1 and U0: what is left when nothing ended the run by an event. Health needs positive
// evidence; a curve that cannot be read is unverifiable, never healthy.
#include "detectors/families/training_end.h"

#include <cmath>

namespace rankscope::families {

using features::JobFeatures;

bool EndedWell(const JobFeatures& f) {
  if (f.Primary() != nullptr || f.wrapper_lost) return false;
  // What happened while nobody listened is not known to be good.
  if (f.end_unseen && !f.train_end) return false;
  // A launcher that reports a failed child denies a good end, even when nobody says why.
  for (const features::Cause& cause : f.causes) {
    const bool report = cause.incident().kind == logs::IncidentKind::kNonZeroExit ||
                        cause.incident().kind == logs::IncidentKind::kSignalDeath;
    if (report && cause.role == features::Cause::Role::kWrapper &&
        !(f.exit_known && f.exit_code == 0))
      return false;
  }
  return f.exit_known ? f.exit_code == 0 : true;
}

Question WhetherItLearned(const JobFeatures& f) {
  return f.loss.points > 0 && std::isfinite(f.loss.end) ? Question::kDidNotFall
                                                        : Question::kCorrectness;
}

}  // namespace rankscope::families
