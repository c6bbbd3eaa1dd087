// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What all pages write: text that came from the world, numbers, times and a verdict's mark. Pure;
// any thread.
#pragma once

#include <string>
#include <string_view>

#include "detectors/status/job_status.h"

namespace rankscope::web {

// Escapes for text and for attributes in double quotes; characters that hide or turn text are
// written out.
void AppendEscaped(std::string_view text, std::string& out);
std::string Escaped(std::string_view text);

// One number by a format of printf; at most 31 bytes.
std::string Print(const char* format, double value);

// A cell of a table; `kind`: its attributes, with a blank before them.
void AppendCell(std::string_view kind, std::string_view html, std::string& out);

// Six digits are more than a reader compares; an absent number is a dash.
std::string NumberText(double value);

// A class of the style sheet; the words of a verdict are never used as one directly.
std::string_view SeverityClass(const proto::Verdict& verdict);

// "C2 collective_hang / sleep" in the colour of its severity.
void AppendChip(const proto::Verdict& verdict, std::string& out);

// "40 s", "12 min", "3.5 h", "2.1 days".
std::string LengthText(double seconds);

// In UTC by strftime's format; empty where it is no time.
std::string TimeText(double wall_seconds, const char* format);

// "14:05:06", with the day where the time is of another day than `now`; machine-readable as well.
void AppendTime(double wall_seconds, double now_wall_seconds, std::string& out);

}  // namespace rankscope::web
