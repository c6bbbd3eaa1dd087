// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The one way from captured bytes to a LogLine: whatever stores, parses or shows a line gets it
// masked. `copy` holds the masked text where there is any, is reused from line to line, and must
// live as long as the line's text is used. Any thread, one copy per caller.
#pragma once

#include <string>

#include "detectors/logs/text/assembler.h"
#include "detectors/model/observation.h"

namespace rankscope::logs {

// Masks the text that the line has; spans masked before are counted on.
void MaskText(LogLine& line, std::string& copy);

// Text, offset, end and losses from the assembler, masked. Stream, job and writer are the caller's.
void FillLine(const AssembledLine& assembled, LogLine& line, std::string& copy);

}  // namespace rankscope::logs
