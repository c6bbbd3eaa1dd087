// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/secret_phrases.h"

#include <algorithm>

#include "detectors/logs/text/secret_commands.h"

namespace rankscope::logs {
namespace {

// The program whose argument stands at `at`: the nearest one of the table in the same command.
std::string_view ProgramBefore(std::string_view text, size_t at) {
  constexpr size_t kMaxCommand = 256;  // what is longer is not walked again for every flag
  size_t begin = at;
  while (begin > 0 && at - begin < kMaxCommand &&
         std::string_view("|;&`(").find(text[begin - 1]) == std::string_view::npos) {
    --begin;
  }
  std::string_view command = text.substr(begin, at - begin);
  while (!command.empty()) {
    const size_t blank = command.find_last_of(" \t'\"[,");
    const std::string_view word =
        blank == std::string_view::npos ? command : command.substr(blank + 1);
    if (TakesSecrets(word)) return word;
    command = blank == std::string_view::npos ? std::string_view() : command.substr(0, blank);
  }
  return {};
}

// Whether a word behind "password" is one: what else stands there is words, or a number of things.
bool LooksLikePassword(std::string_view word) {
  if (word.size() < 6 || std::string_view("/<$-*{[(").find(word.front()) != std::string_view::npos)
    return false;
  const bool digit = HasDigit(word);
  return digit && (std::any_of(word.begin(), word.end(), IsLetter) ||
                   std::all_of(word.begin(), word.end(), IsDigit));
}

}  // namespace

Span CookieSecret(std::string_view text, size_t at) {
  size_t i = at + std::string_view("cookie").size();
  if (i < text.size() && (text[i] == '\'' || text[i] == '"')) ++i;
  i = SkipWhile(text, i, IsBlank);
  if (i >= text.size() || text[i] != ':') return {};
  i = SkipWhile(text, i + 1, IsBlank);
  // The quote that ends it stands before the value, or before the header's name: -H 'Cookie: a=b'.
  size_t header = at;
  while (header > 0 && (IsLetter(text[header - 1]) || text[header - 1] == '-')) --header;
  char quote = header > 0 ? text[header - 1] : '\0';
  if (i < text.size() && (text[i] == '\'' || text[i] == '"')) quote = text[i++];
  size_t end = text.size();
  if (quote == '\'' || quote == '"') end = std::min(text.find(quote, i), text.size());
  const std::string_view value = text.substr(std::min(i, end), end - std::min(i, end));
  const size_t equals = value.find('=');
  if (equals == std::string_view::npos || value.size() < 6) return {};
  return value.find_first_not_of('*') == std::string_view::npos ? Span{} : Span{i, end};
}

Span CommandLineSecret(std::string_view text, size_t at) {
  const std::string_view program = ProgramBefore(text, at);
  if (program.empty()) return {};
  const auto word = [text](size_t begin) {
    const bool quoted = begin < text.size() && (text[begin] == '\'' || text[begin] == '"');
    if (quoted) return Span{begin + 1, std::min(text.find(text[begin], begin + 1), text.size())};
    return Span{begin, SkipWhile(text, begin, [](char c) {
                  return static_cast<unsigned char>(c) > ' ' &&
                         std::string_view("|;&`)'\"").find(c) == std::string_view::npos;
                })};
  };
  const auto of = [text](Span span) { return text.substr(span.begin, span.end - span.begin); };
  Span argument = word(at + 1);
  CommandSecret secret = FindCommandSecret(
      program, of(argument), program.data() + program.size() + 1 >= text.data() + at + 1);
  if (secret.in_next) {
    argument = word(SkipWhile(text, argument.end, IsBlank));
    if (argument.begin > text.size()) return {};
    secret.begin = SecretIn(of(argument), secret.after);
  }
  if (secret.begin == CommandSecret::kNone) return {};
  const Span span{argument.begin + secret.begin, argument.end};
  return of(span).find_first_not_of('*') == std::string_view::npos ? Span{} : span;
}

Span SpokenPassword(std::string_view text, size_t i) {
  const std::string_view rest = text.substr(i);
  if (rest.starts_with("for ")) {
    constexpr size_t kMaxAccount = 64;
    const size_t colon = rest.substr(0, kMaxAccount).find(": ");
    if (colon == std::string_view::npos) return {};
    i += colon + 2;
  } else if (rest.starts_with("is ") || rest.starts_with("was ")) {
    i += rest.find(' ') + 1;
  }
  i = SkipWhile(text, i, [](char c) { return IsBlank(c) || c == '\'' || c == '"'; });
  size_t end = SkipWhile(
      text, i, [](char c) { return static_cast<unsigned char>(c) > ' ' && c != '\'' && c != '"'; });
  while (end > i && std::string_view(".,;:)").find(text[end - 1]) != std::string_view::npos) --end;
  return LooksLikePassword(text.substr(i, end - i)) ? Span{i, end} : Span{};
}

Span SpokenKey(std::string_view text, size_t at) {
  if (!StartsWord(text, at)) return {};
  size_t i = text.find(' ', at);
  i = SkipWhile(text, i + 1, IsLetter);  // the second word
  const auto between = [](char c) {
    return IsBlank(c) || c == ':' || c == '=' || c == '\'' || c == '"';
  };
  const size_t name = i;
  i = SkipWhile(text, i, between);
  if (text.substr(i).starts_with("is ")) i = SkipWhile(text, i + 3, between);
  const size_t end = SkipWhile(text, i, IsCredentialByte);
  const std::string_view word = text.substr(i, end - i);
  const bool secret = i > name && word.size() >= 16 && HasDigit(word) &&
                      std::any_of(word.begin(), word.end(), IsLetter);
  return secret ? Span{i, end} : Span{};
}

}  // namespace rankscope::logs
