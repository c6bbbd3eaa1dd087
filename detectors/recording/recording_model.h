// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Wire messages -> the model, for the decoder of recordings. Any thread.
#pragma once

#include <cstdint>

#include "detectors/model/observation.h"
#include "detectors/proto/recording.pb.h"

namespace rankscope::recording {

// Fills `to`, whose views then borrow from `from`. False for a kind that this build does not know.
// Adds to `unknown_signals` the samples it had to leave out.
bool ToModel(const proto::Observation& from, Observation& to, int64_t& unknown_signals);

}  // namespace rankscope::recording
