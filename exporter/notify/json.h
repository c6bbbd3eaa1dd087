// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Messages as JSON: for Alertmanager (API v2), for chats and for a webhook of one's own. Pure; any
// thread.
#pragma once

#include <string>

#include "exporter/notify/report.h"

namespace rankscope::exporter::notify {

// An array of alerts: of each job the one that begins, and the one that it ends.
std::string RenderAlerts(const Batch& batch, const ReportOptions& options);

// {"schema":1,"notifications":[...]}: what the message is made of, for programs.
std::string RenderWebhook(const Batch& batch, const ReportOptions& options);

// Plain text in blocks: a job's name cannot call everybody in a channel, or be a link.
std::string RenderSlack(const Report& report);
// An Adaptive Card whose texts are runs, in which Markdown means nothing.
std::string RenderTeams(const Report& report);

}  // namespace rankscope::exporter::notify
