// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the families share whose run was ended by somebody else: the scheduler's word and the
// program's, what was lost, what became of the job. Private to families; pure.
#pragma once

#include <string>
#include <string_view>

#include "detectors/families/family.h"

namespace rankscope::families {

// The primary cause, where it is the scheduler's act of this kind.
const features::Cause* PrimarySchedulerEnd(const features::JobFeatures& f, std::string_view sub);
Finding SchedulerFinding(const features::JobFeatures& f, std::string_view sub);

// A program that says why it was told to stop; the request itself may have come first.
const features::Cause* Notice(const features::JobFeatures& f, std::string_view sub);
// One voice, and the program's: it may have taken any signal for a preemption.
Finding NoticeFinding(const features::JobFeatures& f, std::string_view sub,
                      const features::Cause& notice);

// Who ended a run says nothing of what ailed it before. Where no training record was read, nobody
// saw whether it trained, and it may well have been ended because it did not.
void CapByWhatWasSeen(const features::JobFeatures& f, Finding& finding);

RuledOut NoSchedulerText(const features::JobFeatures& f, std::string_view what);

// What was trained in vain, and how much of the cards' time that is.
void AddLostWork(const features::JobFeatures& f, Finding& finding);
// The runs that the record has of the job, and what became of it afterwards: a value {rerun}.
void AddHistory(const features::JobFeatures& f, Finding& finding);

}  // namespace rankscope::families
