// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What stands around every page: head with style and script, navigation, footer, and the policy
// that lets nothing else be loaded or run. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "exporter/metrics/published.h"

namespace rankscope::web {

// `title`: plain text. What follows goes into <main>.
void BeginPage(std::string_view title, const metrics::Published& published, std::string& out);
void EndPage(const metrics::Published& published, std::string& out);

// The page's own style and script, by their hashes; requests and forms to this server alone.
std::string ContentSecurityPolicy();

// What stands between <style> and </style>, <script> and </script>.
std::string_view StyleSheet();
std::string_view Script();

}  // namespace rankscope::web
