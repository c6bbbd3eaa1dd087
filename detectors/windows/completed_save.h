// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which checkpoint an attempt has completed last, and whether one is further than another. Pure.
#pragma once

#include <cstdint>

#include "detectors/windows/job_window.h"

namespace rankscope::windows {

// By the kernel, which sees the files; else by a framework's word that it has saved, or that it
// saves, where it trained on behind that.
CompletedSave NewestCompletedSave(const AttemptWindow& window, Timestamp end);

// The step that the name of a file or folder of a checkpoint says; absent: none. Only a number
// behind a word for a step is one: others number ranks and shards.
double StepOfCheckpointName(std::string_view path);

enum class Advance : uint8_t { kFurther, kNoFurther, kUnknown };
// Unknown where neither says its step: a file that is replaced, or a folder named by the clock,
// says nothing of how far the training had come.
Advance CompareSaves(const CompletedSave& before, const CompletedSave& after);

}  // namespace rankscope::windows
