// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/shell.h"

#include <cmath>

#include "detectors/document/verdict_json.h"
#include "exporter/web/html.h"
#include "exporter/web/script.h"
#include "exporter/web/style.h"

namespace rankscope::web {

void BeginPage(std::string_view title, const metrics::Published& published, std::string& out) {
  const metrics::AgentStatus& agent = published.agent;
  out.append(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>");
  AppendEscaped(title, out);
  out.append("</title><style>").append(kStyle).append("</style></head>\n<body>\n");
  out.append("<header><p class=\"brand\"><a href=\"/\">rankscope</a></p><p id=\"node-name\">");
  AppendEscaped(agent.node, out);
  if (!agent.ready) {
    out.append(" <span class=\"warning\">not ready: ");
    AppendEscaped(agent.not_ready_reason, out);
    out.append("</span>");
  }
  out.append(
      "</p><nav aria-label=\"pages\"><a href=\"/\">Jobs</a><a href=\"/node\">Node</a>"
      "<a href=\"/metrics\">Metrics</a></nav></header>\n<main>\n");
}

void EndPage(const metrics::Published& published, std::string& out) {
  out.append("</main>\n<footer id=\"as-of\">rankscope ");
  AppendEscaped(published.agent.version, out);
  if (published.wall_seconds > 0)
    out.append(", as of ").append(Rfc3339(std::llround(published.wall_seconds * 1e9)));
  out.append(
      "<span id=\"offline\" class=\"warning\" hidden> \u2013 no answer; trying again</span>");
  out.append("</footer>\n<script>").append(kScript).append("</script>\n</body></html>\n");
}

std::string ContentSecurityPolicy() {
  return "default-src 'none'; style-src 'sha256-" + std::string(kStyleSha256) +
         "'; script-src 'sha256-" + std::string(kScriptSha256) +
         "'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
}

std::string_view StyleSheet() {
  return kStyle;
}

std::string_view Script() {
  return kScript;
}

}  // namespace rankscope::web
