// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/loop/http_options.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rankscope::exporter {
namespace {

constexpr std::string_view kBlanks = " \t\r\f\v";

struct OptionRow {
  std::string_view name, letter;
  std::string HttpOptions::*value;
};

constexpr OptionRow kValues[] = {
    {"user", "u", &HttpOptions::user},
    {"oauth2-bearer", "", &HttpOptions::bearer},
    {"unix-socket", "", &HttpOptions::unix_socket},
    {"proxy", "x", &HttpOptions::proxy},
    {"cacert", "", &HttpOptions::ca_file},
    {"capath", "", &HttpOptions::ca_folder},
    {"cert", "E", &HttpOptions::certificate},
    {"key", "", &HttpOptions::key},
    {"pass", "", &HttpOptions::key_password},
};

// What the client does anyway.
constexpr std::string_view kSilent[] = {"silent", "s", "show-error", "S", "fail", "f"};

struct Line {
  std::string_view name;
  std::string value;
};

std::string_view SkipBlanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

char Unescape(char c) {
  switch (c) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 'v':
      return '\v';
    default:
      return c;
  }
}

// `"` is the first sign of `text`. What follows the closing one is not looked at.
std::string Unquote(std::string_view text) {
  std::string value;
  for (size_t i = 1; i < text.size() && text[i] != '"'; ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      value += Unescape(text[++i]);
    } else {
      value += text[i];
    }
  }
  return value;
}

// `name = value`, `name: value`, `--name value`, `-Nvalue` is not among them; the value may stand
// in quotes, else it ends at a blank.
Line Split(std::string_view text) {
  const bool dashed = text.starts_with('-');
  text.remove_prefix(std::min(text.find_first_not_of('-'), text.size()));
  const std::string_view end = dashed ? " \t\r\f\v" : " \t\r\f\v=:";
  Line line;
  line.name = text.substr(0, text.find_first_of(end));
  text = SkipBlanks(text.substr(line.name.size()));
  if (!dashed && (text.starts_with('=') || text.starts_with(':')))
    text = SkipBlanks(text.substr(1));
  line.value = text.starts_with('"') ? Unquote(text)
                                     : std::string(text.substr(0, text.find_first_of(kBlanks)));
  return line;
}

std::string Take(const Line& line, HttpOptions& options) {
  if (std::find(std::begin(kSilent), std::end(kSilent), line.name) != std::end(kSilent)) return {};
  if (line.name == "insecure" || line.name == "k") {
    options.insecure = true;
    return {};
  }
  const bool control = std::any_of(line.value.begin(), line.value.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 127;
  });
  const bool header = line.name == "header" || line.name == "H";
  const auto* const row =
      std::find_if(std::begin(kValues), std::end(kValues), [&line](const OptionRow& known) {
        return !line.name.empty() && (line.name == known.name || line.name == known.letter);
      });
  if (!header && row == std::end(kValues)) {
    std::string known = "header, insecure";
    for (const OptionRow& each : kValues) known += ", " + std::string(each.name);
    return "is not an option that rankscope reads; those are " + known;
  }
  if (line.value.empty()) return "has no value";
  if (control) return "has a value with a control character";
  if (!header) {
    options.*(row->value) = line.value;
    return {};
  }
  if (line.value.find_first_of(":;") == std::string::npos || line.value.starts_with('@'))
    return "has a value that is not \"Name: value\"";
  options.headers.push_back(line.value);
  return {};
}

}  // namespace

Result<HttpOptions> ReadHttpOptions(std::string_view text) {
  HttpOptions options;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    const std::string_view content = SkipBlanks(whole);
    if (content.empty() || content.starts_with('#')) continue;
    const Line line = Split(content);
    const std::string wrong = Take(line, options);
    if (wrong.empty()) continue;
    // A name that is none may be a part of a secret.
    const bool is_name = !line.name.empty() && line.name.size() <= 32 &&
                         std::all_of(line.name.begin(), line.name.end(), [](char c) {
                           return (c >= 'a' && c <= 'z') || c == '-' || (c >= '0' && c <= '9');
                         });
    return Error{"line " + std::to_string(number) + ": " +
                 (is_name ? "'" + std::string(line.name) + "' " : "its first word ") + wrong};
  }
  return options;
}

}  // namespace rankscope::exporter
