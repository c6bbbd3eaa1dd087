// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/redactor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "detectors/logs/text/number.h"
#include "detectors/logs/text/scanner.h"
#include "detectors/logs/text/secret_commands.h"
#include "detectors/logs/text/secret_names.h"
#include "detectors/logs/text/secret_phrases.h"
#include "detectors/logs/text/secret_span.h"

namespace rankscope::logs {
namespace {

// A word of `pred` bytes that begins with the literal at `at` and has at least `min` more bytes.
template <typename Pred>
Span Prefixed(std::string_view text, size_t at, std::string_view literal, size_t min, Pred pred) {
  if (!StartsWord(text, at) || text.substr(at, literal.size()) != literal) return {};
  const size_t body = at + literal.size();
  const size_t end = SkipWhile(text, body, pred);
  return end - body >= min ? Span{at, end} : Span{};
}

// --- Rules: the span of the secret for a hit of the rule's literal at `at`.

Span Authorization(std::string_view text, size_t at) {
  size_t i = at + std::string_view("authorization").size();
  i = SkipWhile(text, i, [](char c) { return c == '\'' || c == '"' || c == ' '; });
  if (i >= text.size() || (text[i] != ':' && text[i] != '=')) return {};
  i = SkipWhile(text, i + 1, [](char c) { return c == '\'' || c == '"' || c == ' '; });
  const size_t scheme = SkipWhile(text, i, IsLetter);
  if (scheme < text.size() && text[scheme] == ' ' && scheme - i >= 3 && scheme - i <= 10)
    i = scheme + 1;
  const size_t end = SkipWhile(text, i, IsCredentialByte);
  return end - i >= 6 ? Span{i, end} : Span{};
}

Span Bearer(std::string_view text, size_t at) {
  if (!StartsWord(text, at)) return {};
  const size_t i = at + std::string_view("bearer ").size();
  const size_t end = SkipWhile(text, i, IsCredentialByte);
  return end - i >= 16 && HasDigit(text.substr(i, end - i)) ? Span{i, end} : Span{};
}

// scheme://user:password@host, and scheme://token@host where the name is too long to be one.
Span UrlCredentials(std::string_view text, size_t at) {
  size_t begin = at + 3;
  size_t i = begin;
  size_t colon = std::string_view::npos;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '@') break;
    if (c == ':' && colon == std::string_view::npos) colon = i;
    const bool allowed =
        static_cast<unsigned char>(c) > ' ' && c != '/' && c != '"' && c != '\'' && c != '<';
    if (!allowed || i - begin > 512) return {};
  }
  if (i >= text.size() || i == begin) return {};
  if (colon != std::string_view::npos) {
    begin = colon + 1;
  } else if (i - begin < 16) {
    return {};
  }
  return text.substr(begin, i - begin).find_first_not_of('*') == std::string_view::npos
             ? Span{}
             : Span{begin, i};
}

Span HuggingFace(std::string_view text, size_t at) {
  return Prefixed(text, at, "hf_", 20, [](char c) { return IsDigit(c) || IsLetter(c); });
}

Span SecretKey(std::string_view text, size_t at) {
  const Span span = Prefixed(text, at, "sk-", 20, IsTokenByte);
  return span.found() && HasDigit(text.substr(at, span.end - at)) ? span : Span{};
}

Span GitHub(std::string_view text, size_t at) {
  if (text.substr(at).starts_with("github_pat_"))
    return Prefixed(text, at, "github_pat_", 22, IsWordByte);
  if (text.substr(at).starts_with("glpat-")) return Prefixed(text, at, "glpat-", 20, IsTokenByte);
  return Prefixed(text, at, text.substr(at, 4), 30,
                  [](char c) { return IsDigit(c) || IsLetter(c); });
}

Span AwsKeyId(std::string_view text, size_t at) {
  const auto upper = [](char c) { return IsDigit(c) || (c >= 'A' && c <= 'Z'); };
  if (!StartsWord(text, at) || !upper(text[at])) return {};
  const size_t end = SkipWhile(text, at, upper);
  if (end - at != 20 || (end < text.size() && IsWordByte(text[end]))) return {};
  // The secret key often follows: "AKIA...,wJalr...", 40 bytes of base64.
  const size_t key = SkipWhile(text, end, [](char c) {
    return std::string_view(" ,:;/|\t\"'").find(c) != std::string_view::npos;
  });
  const size_t stop = SkipWhile(text, key, [](char c) {
    return IsDigit(c) || IsLetter(c) || c == '+' || c == '/' || c == '=';
  });
  return {at, key > end && key - end <= 4 && stop - key == 40 ? stop : end};
}

Span Jwt(std::string_view text, size_t at) {
  if (!StartsWord(text, at) || text.substr(at, 3) != "eyJ") return {};
  const size_t header = SkipWhile(text, at, IsBase64UrlByte);
  if (header - at < 12 || header >= text.size() || text[header] != '.') return {};
  size_t end = SkipWhile(text, header + 1, IsBase64UrlByte);
  if (end - header < 8) return {};
  if (end < text.size() && text[end] == '.') end = SkipWhile(text, end + 1, IsBase64UrlByte);
  return {at, end};
}

Span Slack(std::string_view text, size_t at) {
  if (text.substr(at).starts_with("hooks.slack.com/services/")) {
    const size_t begin = at + std::string_view("hooks.slack.com/services/").size();
    return {begin, SkipWhile(text, begin, [](char c) { return IsTokenByte(c) || c == '/'; })};
  }
  if (!StartsWord(text, at) || text.size() < at + 5 || text[at + 4] != '-') return {};
  const size_t end = SkipWhile(text, at, IsTokenByte);
  return end - at >= 15 ? Span{at, end} : Span{};
}

Span Google(std::string_view text, size_t at) {
  return Prefixed(text, at, "AIza", 35, IsTokenByte);
}

// Issuers whose tokens say so: NGC, PyPI, npm, Docker Hub, Groq, Replicate.
Span IssuerToken(std::string_view text, size_t at) {
  for (const std::string_view issuer : {"nvapi-", "pypi-", "npm_", "dckr_pat_", "gsk_", "r8_",
                                        "wandb_v1_", "dapi", "ya29.", "GOCSPX-"}) {
    const Span span = Prefixed(text, at, issuer, 20, IsTokenByte);
    if (span.found() && HasDigit(text.substr(at, span.end - at))) return span;
  }
  return {};
}

// The signature of a link that opens without a password, as S3, Google and Azure make them.
Span SignedUrl(std::string_view text, size_t at) {
  const size_t begin = text.find('=', at) + 1;
  const size_t end = SkipWhile(text, begin, [](char c) { return IsCredentialByte(c) || c == '%'; });
  return end - begin >= 16 ? Span{begin, end} : Span{};
}

// A bare 40-digit hexadecimal word behind a phrase that asks for a key: a Git commit looks the same
// elsewhere.
Span Wandb(std::string_view text, size_t at) {
  const auto hex = [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); };
  const size_t limit = std::min(text.size(), at + 300);
  for (size_t i = at; i < limit; ++i) {
    if (!hex(text[i]) || !StartsWord(text, i)) continue;
    const size_t end = SkipWhile(text, i, hex);
    if (end - i == 40 && (end == text.size() || !IsWordByte(text[end]))) return {i, end};
    i = end;
  }
  return {};
}

Span PrivateKey(std::string_view text, size_t at) {
  const size_t begin = text.find("-----", at);
  if (begin == std::string_view::npos) return {};
  const size_t end = std::min(text.find("-----END", begin + 5), text.size());
  const std::string_view body = text.substr(begin + 5, end - begin - 5);
  return body.find_first_not_of('*') == std::string_view::npos ? Span{} : Span{begin + 5, end};
}

// NAME=VALUE, NAME: VALUE, "name": "value", --name value, for names that say so.
Span Assignment(std::string_view text, size_t at) {
  constexpr size_t kMaxName =
      128;  // each way; what is longer is no name, and must not be walked again for every hit
  const auto in_name = [](char c) { return IsTokenByte(c) || c == '.'; };
  size_t begin = at;
  while (begin > 0 && at - begin < kMaxName && in_name(text[begin - 1])) --begin;
  const size_t end = SkipWhile(text.substr(0, std::min(text.size(), at + kMaxName)), at, in_name);
  const std::string_view name = text.substr(begin, end - begin);
  const SecretName kind = ClassifyName(name);
  if (kind == SecretName::kNo) return {};
  size_t i = end;
  if (i < text.size() && (text[i] == '\'' || text[i] == '"')) ++i;
  const size_t blank = i;
  i = SkipWhile(text, i, IsBlank);
  if (i < text.size() && (text[i] == '=' || text[i] == ':') && !text.substr(i).starts_with("==")) {
    i = SkipWhile(text, i + 1, IsBlank);
  } else if (!name.starts_with("--") || i == blank) {
    const bool spoken = kind == SecretName::kPassword && i > blank &&
                        std::all_of(name.begin(), name.end(), IsLetter);
    return spoken ? SpokenPassword(text, i) : Span{};
  }
  if (i >= text.size()) return {};
  size_t stop = i;
  const bool quoted = text[i] == '\'' || text[i] == '"';
  if (quoted) {
    const size_t close = text.find(text[i], i + 1);
    ++i;
    stop = close == std::string_view::npos ? text.size() : close;
  } else {
    if (text[i] == '-' && name.starts_with("--")) return {};  // the next option
    stop = SkipWhile(text, i, [](char c) {
      return static_cast<unsigned char>(c) > ' ' &&
             std::string_view(",;'\"()[]{}&|").find(c) == std::string_view::npos;
    });
  }
  return IsSecretValue(kind, text.substr(i, stop - i)) ? Span{i, stop} : Span{};
}

struct Rule {
  RedactionRow row;
  Span (*match)(std::string_view text, size_t at);
  std::array<std::string_view, 14> literals;  // any case; empty ones are none
};

constexpr Rule kRules[] = {
    {{"authorization", "credentials of an Authorization header",
      "Authorization: Basic dXNlcjpwYXNzd29yZA=="},
     Authorization,
     {"authorization"}},
    {{"cookie", "the cookies of a request or an answer", "Cookie: session=0123456789"},
     CookieSecret,
     {"cookie"}},
    {{"command", "a password on the command line of a program that takes one",
      "+ curl -u me:hunter2 https://example.com"},
     CommandLineSecret,
     {" -u", " -p", " -a", " -b", " -w", " --user", " --proxy-user", " --cookie", " --pass",
      " --oauth2-bearer"}},
    {{"spoken_key", "a key behind its name in words", "secret key wJalrXUtnFEMI0123456789"},
     SpokenKey,
     {"secret key", "access key", "account key", "api key", "secret access key", "access token",
      "auth token"}},
    {{"bearer", "a bearer token", "curl -H 'Bearer 0123456789abcdef0123'"}, Bearer, {"bearer "}},
    {{"url_credentials", "user:password@ in a URL", "cloning https://me:hunter2@example.com/x.git"},
     UrlCredentials,
     {"://"}},
    {{"hugging_face", "a Hugging Face token", "hf_AbCdEfGhIjKlMnOpQrStUvWx"}, HuggingFace, {"hf_"}},
    {{"secret_key", "an sk- key (OpenAI, Anthropic, Stripe)", "key sk-abcdefghij0123456789abcd"},
     SecretKey,
     {"sk-"}},
    {{"github", "a GitHub or GitLab token", "ghp_0123456789abcdefghijABCDEFGHIJ012345"},
     GitHub,
     {"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"}},
    {{"aws_key_id", "an AWS access key id", "AKIAIOSFODNN7EXAMPLE"}, AwsKeyId, {"AKIA", "ASIA"}},
    {{"jwt", "a JSON web token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"},
     Jwt,
     {"eyJ"}},
    {{"slack", "a Slack token or webhook", "xoxb-0123456789-abcdefghij"},
     Slack,
     {"xoxa-", "xoxb-", "xoxp-", "xoxo-", "xoxs-", "xoxr-", "hooks.slack.com/services/"}},
    {{"issuer_token",
      "a token of NGC, PyPI, npm, Docker Hub, Groq, Replicate, W&B, Databricks or Google",
      "export NGC=nvapi-0123456789abcdefghij"},
     IssuerToken,
     {"nvapi-", "pypi-", "npm_", "dckr_pat_", "gsk_", "r8_", "wandb_v1_", "dapi", "ya29.",
      "GOCSPX-"}},
    {{"signed_url", "the signature of a link to a bucket",
      "GET https://b.s3.amazonaws.com/x?X-Amz-Signature=0123456789abcdef0123456789abcdef"},
     SignedUrl,
     {"x-amz-signature=", "x-amz-security-token=", "x-goog-signature=", "&sig=", "?sig=",
      "accountkey=", "sharedaccesskey=", "&signature=", "?signature="}},
    {{"google", "a Google API key", "AIzaSyA0123456789abcdefghijABCDEFGHIJ012"}, Google, {"AIza"}},
    {{"wandb", "a Weights & Biases key", "wandb login 0123456789abcdef0123456789abcdef01234567"},
     Wandb,
     {"wandb login", "api key", "wandb.login"}},
    {{"private_key", "a PEM private key", "-----BEGIN RSA PRIVATE KEY-----\\nMIIEpAIBAAKCAQEA"},
     PrivateKey,
     {"PRIVATE KEY-----"}},
    {{"assignment", "a value whose name says that it is secret", "DB_PASSWORD=hunter2"},
     Assignment,
     {"token", "secret", "passw", "passphrase", "api_key", "api-key", "apikey", "access_key",
      "access-key", "accesskey", "private_key", "private-key", "credential", "auth_key"}},
    {{"assignment_rare", "the same of names that are mostly something else", "MYSQL_PWD=hunter2"},
     Assignment,
     {"_pwd", "account_key", "account-key"}},
};

// Rules without a literal of three bytes.
constexpr RedactionRow kEmail = {"email", "an e-mail address", "contact jane.doe@example.com"};
constexpr RedactionRow kPemBody = {
    "pem_body", "a line of a PEM block's base64",
    "MIIEpAIBAAKCAQEA7bq0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghi"};

const std::vector<RedactionRow>& AllRows() {
  static const std::vector<RedactionRow> rows = [] {
    std::vector<RedactionRow> all;
    for (const Rule& rule : kRules) all.push_back(rule.row);
    all.push_back(kEmail);
    all.push_back(kPemBody);
    return all;
  }();
  return rows;
}

const Scanner& RuleScanner() {
  static const Scanner scanner = [] {
    std::vector<Scanner::Literal> literals;
    for (uint32_t i = 0; i < std::size(kRules); ++i) {
      for (const std::string_view literal : kRules[i].literals) {
        if (!literal.empty()) literals.push_back({literal, i});
      }
    }
    return Scanner(literals, Scanner::Case::kFolded);
  }();
  return scanner;
}

// The address around the '@' at `at`. "Acc@1", "mAP@0.5" and "git@host:path" are none.
Span Email(std::string_view text, size_t at) {
  size_t begin = at;
  const auto local = [](char c) { return IsTokenByte(c) || c == '.' || c == '+' || c == '%'; };
  while (begin > 0 && at - begin < 64 && local(text[begin - 1])) --begin;
  if (at - begin < 2 || text.substr(begin, at - begin) == "git") return {};
  if (at + 1 >= text.size() || !IsLetter(text[at + 1])) return {};
  // user:password@host in a URL has a rule of its own, which leaves the host readable.
  if (begin > 0 && (text[begin - 1] == ':' || text[begin - 1] == '/')) {
    const std::string_view before =
        text.substr(begin < 256 ? 0 : begin - 256, std::min<size_t>(begin, 256));
    const size_t scheme = before.rfind("://");
    if (scheme != std::string_view::npos && before.find(' ', scheme) == std::string_view::npos)
      return {};
  }
  size_t end = SkipWhile(text, at + 1,
                         [](char c) { return IsDigit(c) || IsLetter(c) || c == '-' || c == '.'; });
  while (end > at + 1 && (text[end - 1] == '.' || text[end - 1] == '-')) --end;
  const std::string_view domain = text.substr(at + 1, end - at - 1);
  const size_t dot = domain.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || domain.size() > 253) return {};
  const std::string_view top = domain.substr(dot + 1);
  if (top.size() < 2 || !std::all_of(top.begin(), top.end(), IsLetter)) return {};
  return {begin, end};
}

// PEM blocks are printed 64 or 76 bytes a line; the rest of the block carries no name.
Span PemBody(std::string_view text) {
  if (text.size() < 16 || text.size() > 80) return {};
  const std::string_view body = Trimmed(text);
  // Its last line is shorter, and most often padded.
  const bool last =
      body.size() >= 16 && body.size() < 64 && body.size() % 4 == 0 && body.back() == '=';
  if (!last && body.size() != 64 && body.size() != 70 && body.size() != 76) return {};
  bool upper = false;
  bool lower = false;
  bool digit = false;
  for (const char c : body) {
    upper = upper || (c >= 'A' && c <= 'Z');
    lower = lower || (c >= 'a' && c <= 'z');
    digit = digit || IsDigit(c);
    if (!IsDigit(c) && !IsLetter(c) && c != '+' && c != '/' && c != '=') return {};
  }
  const auto begin = static_cast<size_t>(body.data() - text.data());
  return upper && lower && digit ? Span{begin, begin + body.size()} : Span{};
}

// Calls on_span for each secret until it returns false.
template <typename OnSpan>
void ForEachSecret(std::string_view text, OnSpan&& on_span) {
  if (const Span body = PemBody(text); body.found() && !on_span(body)) return;
  bool go_on = true;
  Span last;  // a hit inside it is masked already
  RuleScanner().Scan(text, [&](uint32_t rule, size_t at) {
    if (at >= last.begin && at < last.end) return true;
    const Span span = kRules[rule].match(text, at);
    if (span.found()) {
      last = span;
      go_on = on_span(span);
    }
    return go_on;
  });
  size_t i = 0;
  while (go_on && i < text.size()) {
    const void* found = std::memchr(text.data() + i, '@', text.size() - i);
    if (found == nullptr) return;
    const auto at = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    const Span span = Email(text, at);
    if (span.found()) go_on = on_span(span);
    i = at + 1;
  }
}

}  // namespace

std::span<const RedactionRow> Redactions() {
  return AllRows();
}

bool MayHoldSecret(std::string_view text) {
  bool any = false;
  ForEachSecret(text, [&](const Span&) {
    any = true;
    return false;
  });
  return any;
}

int32_t Redact(std::span<char> text) {
  std::vector<Span> spans;
  ForEachSecret({text.data(), text.size()}, [&](const Span& span) {
    spans.push_back(span);
    return true;
  });
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  int32_t masked = 0;
  size_t covered = 0;
  for (const Span& span : spans) {
    if (span.begin >= covered) ++masked;
    covered = std::max(covered, span.end);
    std::fill(text.begin() + static_cast<ptrdiff_t>(span.begin),
              text.begin() + static_cast<ptrdiff_t>(span.end), '*');
  }
  return masked;
}

std::string RedactValue(std::string_view name, std::string_view value) {
  const SecretName kind = ClassifyName(name);
  if (kind != SecretName::kNo && IsSecretValue(kind, value)) return std::string(value.size(), '*');
  std::string masked(value);
  Redact(masked);
  return masked;
}

void RedactArguments(std::span<std::string> argv) {
  std::string flag;          // whose value is the next argument
  std::string_view program;  // the last one that takes passwords
  bool first = false;        // right behind it
  CommandSecret secret;
  for (std::string& argument : argv) {
    const bool is_flag = argument.size() > 1 && argument[0] == '-';
    std::string name;
    std::string_view value = argument;
    if (is_flag) {
      const size_t begin = argument.find_first_not_of('-');
      const size_t equals = argument.find('=');
      name = begin == std::string::npos ? "" : argument.substr(begin, equals - begin);
      value = equals == std::string::npos ? std::string_view() : value.substr(equals + 1);
    }
    size_t begin = secret.in_next ? SecretIn(argument, secret.after) : CommandSecret::kNone;
    secret = program.empty() ? CommandSecret{} : FindCommandSecret(program, argument, first);
    begin = std::min(begin, secret.begin);
    const std::string masked = RedactValue(is_flag ? name : flag, value);
    argument.replace(argument.size() - value.size(), value.size(), masked);
    if (begin < argument.size())
      std::fill(argument.begin() + static_cast<ptrdiff_t>(begin), argument.end(), '*');
    flag = is_flag && value.empty() ? name : std::string();
    first = TakesSecrets(argument);
    if (first) program = argument;
  }
}

}  // namespace rankscope::logs
