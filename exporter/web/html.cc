// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/html.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "detectors/model/hidden_text.h"

namespace rankscope::web {
std::string Print(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

void AppendEscaped(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (const size_t hidden = HiddenSequence(text.substr(i))) {
      AppendWrittenOut(CodePoint(text.substr(i), hidden), out);
      i += hidden - 1;
      continue;
    }
    switch (c) {
      case '&':
        out.append("&amp;");
        break;
      case '<':
        out.append("&lt;");
        break;
      case '>':
        out.append("&gt;");
        break;
      case '"':
        out.append("&quot;");
        break;
      case '\'':
        out.append("&#39;");
        break;
      default:
        // Control characters are not allowed in HTML; terminals' colours come as them.
        out.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
    }
  }
}

std::string Escaped(std::string_view text) {
  std::string out;
  AppendEscaped(text, out);
  return out;
}

std::string NumberText(double value) {
  return std::isnan(value) ? "\u2013" : Print("%.6g", value);
}

void AppendCell(std::string_view kind, std::string_view html, std::string& out) {
  out.append("<td").append(kind).append(">").append(html).append("</td>");
}

std::string_view SeverityClass(const proto::Verdict& verdict) {
  for (const std::string_view known : {"ok", "info", "warning", "critical"}) {
    if (verdict.triage().severity() == known) return known;
  }
  return "none";
}

void AppendChip(const proto::Verdict& verdict, std::string& out) {
  out.append("<span class=\"chip ").append(SeverityClass(verdict)).append("\">");
  if (verdict.code().empty()) {
    out.append("no verdict yet");
  } else {
    AppendEscaped(verdict.code(), out);
    out.push_back(' ');
    AppendEscaped(verdict.family(), out);
    if (!verdict.sub().empty()) {
      out.append(" / ");
      AppendEscaped(verdict.sub(), out);
    }
  }
  out.append("</span>");
}

std::string LengthText(double seconds) {
  if (seconds < 120) return Print("%.0f s", seconds);
  if (seconds < 7200) return Print("%.0f min", seconds / 60);
  return seconds < 172800 ? Print("%.1f h", seconds / 3600) : Print("%.1f days", seconds / 86400);
}

std::string TimeText(double wall_seconds, const char* format) {
  if (!std::isfinite(wall_seconds) || std::fabs(wall_seconds) > 1e11) return {};
  const auto seconds = static_cast<time_t>(wall_seconds);
  tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return {};
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

void AppendTime(double wall_seconds, double now_wall_seconds, std::string& out) {
  const std::string machine = TimeText(wall_seconds, "%Y-%m-%dT%H:%M:%SZ");
  if (machine.empty()) {
    out.append("\u2013");
    return;
  }
  const bool today = TimeText(wall_seconds, "%F") == TimeText(now_wall_seconds, "%F");
  out.append("<time datetime=\"").append(machine).append("\">");
  out.append(TimeText(wall_seconds, today ? "%H:%M:%S" : "%m-%d %H:%M")).append("</time>");
}

}  // namespace rankscope::web
