// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Templates and values -> sentences: the one place where a value becomes text. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/features/evidence.h"
#include "detectors/model/fields.h"
#include "detectors/sentences/template.h"

namespace rankscope::sentences {

// With six significant digits.
std::string Number(double value);

// "rank 1", "ranks 0-3, 7"; empty when nobody is known.
std::string RankList(const std::vector<int32_t>& ranks);

std::string SignalName(int32_t signal);

// A value as its type is printed, or by a format.
std::string Print(const FieldValue& value, const Placeholder& how);
std::string Print(const FieldValue& value);

// Whether a condition holds for an observation.
bool Holds(Condition condition, const features::Evidence& evidence);

// The sentence of an observation. What it does not know outside of brackets is left blank.
std::string Render(Template text, const features::Evidence& evidence);

// The same, but empty when a value that stands outside of brackets is absent.
std::string RenderWhole(Template text, const features::Evidence& evidence);

// A sentence of values alone; empty when one that stands outside of brackets is absent.
std::string Render(Template text, const FieldValues& values);

// For a machine: each value is one word, of at most 64 bytes, and what is absent is left blank.
std::string RenderWords(Template text, const features::Evidence& evidence);
std::string RenderWords(Template text, const FieldValues& values);

}  // namespace rankscope::sentences
