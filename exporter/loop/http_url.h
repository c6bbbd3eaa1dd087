// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The URLs that an operator may configure. Pure; any thread.
#pragma once

#include <string_view>

#include "detectors/model/result.h"

namespace rankscope::exporter {

// ok: `text` is http://HOST[:PORT][/PATH], or https. The error says what is wrong with it.
Status CheckHttpUrl(std::string_view text);

}  // namespace rankscope::exporter
