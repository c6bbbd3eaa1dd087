// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/mail.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "detectors/document/text_layout.h"
#include "detectors/model/utf8.h"

namespace rankscope::exporter::notify {
namespace {

constexpr std::string_view kEnd = "\r\n";
// No line of quoted-printable text has "=_" in it (RFC 2045, 6.7).
constexpr std::string_view kBoundary = "=_rankscope_alternative";
constexpr std::string_view kOuterBoundary = "=_rankscope_mixed";
constexpr size_t kMostLine = 76;      // RFC 2045
constexpr size_t kMostSubject = 400;  // bytes; a longer one is read by nobody

char Hex(unsigned value) {
  return "0123456789ABCDEF"[value & 15];
}

std::string Base64(std::string_view text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < text.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (i + j < text.size() ? static_cast<uint8_t>(text[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j)
      out += i + j > text.size() ? '=' : kLetters[bits >> (18 - 6 * j) & 63];
  }
  return out;
}

// "Fri, 27 Nov 2026 20:50:56 +0000"
std::string MailDate(int64_t wall_ns) {
  constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                     "Thu", "Fri", "Sat"};
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t seconds = wall_ns / 1'000'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  const auto two = [](int value) {
    return std::string(value < 10 ? "0" : "") + std::to_string(value);
  };
  return std::string(kDays[static_cast<size_t>(utc.tm_wday)]) + ", " + two(utc.tm_mday) + " " +
         std::string(kMonths[static_cast<size_t>(utc.tm_mon)]) + " " +
         std::to_string(utc.tm_year + 1900) + " " + two(utc.tm_hour) + ":" + two(utc.tm_min) + ":" +
         two(utc.tm_sec) + " +0000";
}

std::string Header(std::string_view name, std::string_view value) {
  return std::string(name) + ": " + std::string(value) + std::string(kEnd);
}

std::string Multipart(std::string_view kind, std::string_view boundary) {
  return Header("Content-Type", "multipart/" + std::string(kind) + ";\r\n boundary=\"" +
                                    std::string(boundary) + '"');
}

std::string Lines(std::string_view base64) {
  std::string out;
  out.reserve(base64.size() + base64.size() / kMostLine * kEnd.size() + kEnd.size());
  for (; !base64.empty(); base64.remove_prefix(std::min(kMostLine, base64.size()))) {
    out += base64.substr(0, kMostLine);
    out += kEnd;
  }
  return out;
}

std::string Part(std::string_view type, std::string_view text) {
  std::string part = "--" + std::string(kBoundary) + std::string(kEnd);
  part += Header("Content-Type", std::string(type) + "; charset=utf-8");
  part += Header("Content-Transfer-Encoding", "quoted-printable");
  return part + std::string(kEnd) + QuotedPrintable(text) + std::string(kEnd);
}

}  // namespace

std::string HeaderValue(std::string_view text) {
  std::string clean = Printable(text);
  if (clean.size() > kMostSubject) {
    clean.resize(kMostSubject);
    while (!clean.empty() && !IsUtf8(clean)) clean.pop_back();
    clean += "...";
  }
  const bool plain = AsciiPrefix(clean) == clean.size() && clean.find("=?") == std::string::npos;
  if (plain && clean.size() <= 200) return clean;  // a line has at most 998 bytes; readers fold it
  // An encoded word has at most 75 letters: 45 bytes of text, whole characters.
  constexpr size_t kBytes = 45;
  std::string out;
  std::string_view rest = clean;
  while (!rest.empty()) {
    size_t size = 0;
    while (size < rest.size()) {
      const size_t next = std::max<size_t>(Utf8Sequence(rest.substr(size)), 1);
      if (size + next > kBytes) break;
      size += next;
    }
    out += (out.empty() ? "=?utf-8?B?" : "\r\n =?utf-8?B?") + Base64(rest.substr(0, size)) + "?=";
    rest.remove_prefix(size);
  }
  return out;
}

std::string QuotedPrintable(std::string_view text) {
  std::string out, line;
  const auto put = [&](std::string_view piece) {
    if (line.size() + piece.size() > kMostLine - 1) {
      out += line + "=\r\n";
      line.clear();
    }
    line += piece;
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte == '\n') {
      out += line + "\r\n";
      line.clear();
      continue;
    }
    const bool ends = i + 1 == text.size() || text[i + 1] == '\n';
    // A full stop that begins a line would be the end of the mail for a careless server.
    const bool stop = byte == '.' && line.empty();
    const bool plain = byte > 0x20 && byte < 0x7F && byte != '=' && !stop;
    if (plain || (byte == ' ' && !ends)) {
      put(text.substr(i, 1));
    } else {
      put(std::string{'=', Hex(byte >> 4), Hex(byte)});
    }
  }
  return out + line;
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : ToUtf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string RenderText(const Report& report) {
  std::string out;
  Wrap("", report.headline, out);
  out += '\n';
  size_t width = 0;
  for (const auto& [label, value] : report.facts) width = std::max(width, label.size());
  for (const auto& [label, value] : report.facts)
    Wrap(label + ":" + std::string(width + 1 - label.size(), ' '), value, out);
  if (!report.jobs.empty()) out += '\n';
  for (const std::string& job : report.jobs) Wrap("- ", job, out);
  for (const Report::Section& section : report.sections) {
    out += '\n' + section.title + '\n';
    for (const std::string& point : section.points) Wrap("  - ", point, out);
  }
  if (!report.log.empty()) out += '\n' + Printable(report.log_title) + '\n';
  for (const std::string& line : report.log) out += "  | " + Printable(line) + '\n';
  if (!report.link.empty()) out += '\n' + Printable(report.link) + '\n';
  return out;
}

std::string RenderMail(const Report& report, const MailHead& head, const Attachment* attachment) {
  const std::string host = head.from.substr(std::min(head.from.find('@') + 1, head.from.size()));
  const auto id_of = [&host](const std::string& id) { return '<' + id + '@' + host + '>'; };
  std::string to;
  for (const std::string& address : head.to) to += (to.empty() ? "" : ",\r\n ") + address;
  std::string mail = Header("From", "rankscope <" + head.from + '>');
  mail += Header("To", to);
  mail += Header("Subject", HeaderValue(report.subject));
  mail += Header("Date", MailDate(head.wall_ns));
  mail += Header("Message-ID", id_of(head.id));
  if (head.thread != head.id && !head.thread.empty()) {
    mail += Header("In-Reply-To", id_of(head.thread));
    mail += Header("References", id_of(head.thread));
  }
  mail += Header("Auto-Submitted", "auto-generated");  // RFC 3834: no vacation notices, please
  mail += Header("MIME-Version", "1.0");
  const std::string outer = "--" + std::string(kOuterBoundary);
  if (attachment != nullptr) {
    mail += Multipart("mixed", kOuterBoundary);
    mail += std::string(kEnd) + outer + std::string(kEnd);
  }
  mail += Multipart("alternative", kBoundary);
  mail += kEnd;
  mail += Part("text/plain", RenderText(report));
  mail += Part("text/html", RenderHtml(report));
  mail += "--" + std::string(kBoundary) + "--" + std::string(kEnd);
  if (attachment == nullptr) return mail;
  mail += outer + std::string(kEnd) + Header("Content-Type", attachment->type);
  mail += Header("Content-Transfer-Encoding", "base64");
  mail += Header("Content-Disposition", "attachment; filename=\"" + attachment->name + '"');
  mail += std::string(kEnd) + Lines(Base64(attachment->bytes));
  return mail + outer + "--" + std::string(kEnd);
}

}  // namespace rankscope::exporter::notify
