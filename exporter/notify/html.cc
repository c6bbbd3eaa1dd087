// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The HTML of a mail. Readers of mail know little CSS, drop style sheets and show no pictures, so
// each element has its own style, and a table is a table. Colours are dark enough on white, and the
// page says that it is made for that, so that no reader turns half of them round at night.
#include "exporter/notify/mail.h"

namespace rankscope::exporter::notify {
namespace {

std::string Element(std::string_view name, std::string_view style, std::string_view inner) {
  return "<" + std::string(name) + " style=\"" + std::string(style) + "\">" + std::string(inner) +
         "</" + std::string(name) + ">\n";
}

std::string List(const std::vector<std::string>& points) {
  std::string items;
  for (const std::string& point : points)
    items += Element("li", "margin:0 0 4px;word-break:break-word", EscapeHtml(point));
  return Element("ul", "margin:4px 0 0;padding-left:20px", items);
}

std::string Facts(const Report& report) {
  std::string rows;
  for (const auto& [label, value] : report.facts) {
    rows +=
        "<tr>" +
        Element("td", "padding:2px 14px 2px 0;color:#57606a;vertical-align:top;white-space:nowrap",
                EscapeHtml(label)) +
        Element("td", "padding:2px 0;vertical-align:top;word-break:break-word", EscapeHtml(value)) +
        "</tr>\n";
  }
  return Element("table", "border-collapse:collapse;margin-top:12px;font-size:14px", rows);
}

}  // namespace

std::string RenderHtml(const Report& report) {
  const std::string_view colour = report.good ? "#1a7f37" : "#b42318";
  std::string body = Element("div",
                             "border-left:4px solid " + std::string(colour) +
                                 ";padding:2px 0 2px 12px;font-size:17px;font-weight:600;"
                                 "word-break:break-word",
                             EscapeHtml(report.headline));
  body += Facts(report);
  constexpr std::string_view kTitle = "margin-top:16px;font-weight:600";
  if (!report.jobs.empty()) body += Element("div", kTitle, "Jobs") + List(report.jobs);
  for (const Report::Section& section : report.sections)
    body += Element("div", kTitle, EscapeHtml(section.title)) + List(section.points);
  if (!report.log.empty()) {
    std::string lines;
    for (const std::string& line : report.log) lines += EscapeHtml(line) + "\n";
    body += Element("div", kTitle, EscapeHtml(report.log_title)) +
            Element("pre",
                    "margin:4px 0 0;padding:8px 10px;background:#f4f5f7;border-radius:4px;"
                    "font-size:12px;white-space:pre-wrap;word-break:break-word",
                    lines);
  }
  if (!report.link.empty()) {
    const std::string link = EscapeHtml(report.link);
    body += Element("p", "margin-top:16px", "<a href=\"" + link + "\">" + link + "</a>");
  }
  return "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
         "<meta name=\"color-scheme\" content=\"light only\"></head>\n"
         "<body style=\"margin:0;padding:16px;background:#ffffff;color:#1f2328;"
         "font-family:-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;font-size:14px;"
         "line-height:1.45\">\n" +
         Element("div", "max-width:720px", body) + "</body></html>\n";
}

}  // namespace rankscope::exporter::notify
