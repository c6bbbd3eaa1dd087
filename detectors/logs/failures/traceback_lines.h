// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a line can be to a traceback: its header, a margin, the message's continuation, words that
// stand below every message. Private to detectors/logs; pure, any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::logs {

bool IsHeader(std::string_view text);
// `text` without the margin that an exception group draws; all of it where there is none.
std::string_view StripMargin(std::string_view text);
// Without the one blank that a label or a copy left before an exception; frames keep theirs.
std::string_view WithoutLoneBlank(std::string_view text);
bool IsGroupRule(std::string_view text);
bool ContinuesMessage(std::string_view text);
bool IsBoilerplate(std::string_view text);
bool IsSentence(std::string_view text);

// torch.distributed.checkpoint: one rank prints what others raised. The first of these, or -1.
int32_t RankOfCheckpoint(std::string_view message);

// The last of a chain quotes the lines of its first and of the one before it: the first is what
// happened, the other what the last was raised from.
void QuoteCause(const Incident& earlier, Incident& last);

}  // namespace rankscope::logs
