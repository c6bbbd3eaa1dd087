// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A report as a mail: multipart/alternative of text and HTML, quoted-printable, in lines that end
// in CRLF. Nothing that a job has named can begin a header, a part or an element. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exporter/notify/report.h"

namespace rankscope::exporter::notify {

struct MailHead {
  std::string from;
  std::vector<std::string> to;
  std::string id;      // the letters before the @ of Message-ID
  std::string thread;  // the same of the first of the thread; `id` itself: it is the first
  int64_t wall_ns = 0;
};

struct Attachment {
  std::string name;  // plain letters
  std::string type;  // application/gzip
  std::string bytes;
};

// `attachment`: null = none.
std::string RenderMail(const Report& report, const MailHead& head,
                       const Attachment* attachment = nullptr);

std::string RenderText(const Report& report);
std::string RenderHtml(const Report& report);

// A header's value: printable, in encoded words (RFC 2047) where it is not ASCII, folded.
std::string HeaderValue(std::string_view text);
std::string QuotedPrintable(std::string_view text);
// For the text of an element and for an attribute's value in quotes.
std::string EscapeHtml(std::string_view text);

}  // namespace rankscope::exporter::notify
