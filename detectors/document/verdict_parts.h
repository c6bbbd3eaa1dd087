// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Parts of a verdict for the other documents about its job, written as verdict_json.h writes them:
// keys of the object that `w` has open. Any thread.
#pragma once

#include "detectors/document/json_writer.h"
#include "detectors/proto/verdict.pb.h"

namespace rankscope {

// attempt, state, revision, code, family, confidence.
void WriteReference(const proto::Verdict& verdict, JsonWriter& w);
// "shows".
void WriteShows(const proto::Verdict& verdict, JsonWriter& w);
// "cause_chain", in which each cause has its evidence beside the evidence's number.
void WriteShownCauses(const proto::Verdict& verdict, JsonWriter& w);
// "attempts".
void WriteAttempts(const proto::Verdict& verdict, JsonWriter& w);

}  // namespace rankscope
