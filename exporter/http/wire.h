// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a listener decides about requests and answers without touching a socket. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/http/message.h"

namespace rankscope::http {

// Why two readers of these bytes could disagree about where the request ends or whom it is for (RFC
// 9112, 3.2 and 6.3); empty when they cannot. `version`: 10 or 11.
std::string_view Ambiguity(const Request& request, int version);

// What the client will wait: half a second less than Prometheus says, so that an answer still
// reaches it.
Duration DeadlineOf(const Request& request);

// Who answers. Probes are answered at once and whole pages of metrics by a thread of their own, so
// that nobody who asks for anything else keeps them waiting.
enum class Lane { kProbe, kScrape, kGeneral };
Lane LaneOf(const Request& request);

// Status line and headers, with the empty line.
std::string HeadOf(const Response& response, bool keep_alive);

// In place of those of the same names.
void SetHeaders(const std::vector<std::pair<std::string, std::string>>& headers,
                Response& response);

}  // namespace rankscope::http
