// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/secret_names.h"

#include <algorithm>
#include <array>
#include <span>

#include "detectors/logs/text/number.h"

namespace rankscope::logs {
namespace {

constexpr size_t kMaxWords = 12;  // of a name; a longer one is a path
constexpr size_t kMaxName = 128;

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

bool Same(std::string_view word, std::string_view lower) {
  if (word.size() != lower.size()) return false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (Lower(word[i]) != lower[i]) return false;
  }
  return true;
}

bool In(std::string_view word, std::span<const std::string_view> list) {
  return std::any_of(list.begin(), list.end(),
                     [word](std::string_view entry) { return Same(word, entry); });
}

// Words of a name: split at '_', '-', '.', and where lower case turns to upper.
struct Words {
  std::array<std::string_view, kMaxWords> word;
  size_t count = 0;
};

Words Split(std::string_view name) {
  Words words;
  size_t begin = 0;
  for (size_t i = 0; i <= name.size(); ++i) {
    const bool mark = i == name.size() || name[i] == '_' || name[i] == '-' || name[i] == '.';
    const bool hump = !mark && i > begin && name[i] >= 'A' && name[i] <= 'Z' &&
                      name[i - 1] >= 'a' && name[i - 1] <= 'z';
    if (!mark && !hump) continue;
    if (i > begin && words.count < kMaxWords)
      words.word[words.count++] = name.substr(begin, i - begin);
    begin = mark ? i + 1 : i;
  }
  return words;
}

// What makes "..._token" a secret: who issues it or what it opens. A word before it that is none of
// these says which piece of text it is (pad_token, image_token, next_token).
constexpr std::string_view kIssuers[] = {
    "auth",     "access",   "api",     "bearer",     "hf",        "hub",      "huggingface",
    "github",   "gh",       "gitlab",  "bot",        "wandb",     "session",  "id",
    "refresh",  "security", "secret",  "oauth",      "jwt",       "user",     "login",
    "client",   "service",  "slack",   "aws",        "azure",     "google",   "openai",
    "neptune",  "comet",    "clearml", "mlflow",     "swanlab",   "csrf",     "xsrf",
    "vault",    "k8s",      "kube",    "account",    "admin",     "master",   "deploy",
    "read",     "write",    "my",      "app",        "docker",    "registry", "npm",
    "pypi",     "telegram", "discord", "modelscope", "replicate", "sas",      "private",
    "personal", "notebook", "jupyter"};

}  // namespace

SecretName ClassifyName(std::string_view name) {
  while (!name.empty() && !IsWordByte(name.front())) name.remove_prefix(1);
  if (name.empty() || name.size() > kMaxName) return SecretName::kNo;
  const Words words = Split(name);
  for (size_t i = 0; i < words.count; ++i) {
    const std::string_view word = words.word[i];
    const bool last = i + 1 == words.count;
    static constexpr std::string_view kPasswords[] = {"password", "passwd", "passphrase",
                                                      "passwords"};
    if (In(word, kPasswords)) return SecretName::kPassword;
    static constexpr std::string_view kKeys[] = {"secret",     "secrets",     "apikey",
                                                 "credential", "credentials", "accesskey"};
    if (In(word, kKeys)) return SecretName::kKey;
    static constexpr std::string_view kOpeners[] = {"api", "access", "private", "auth", "account"};
    if (!last && In(word, kOpeners) && Same(words.word[i + 1], "key")) return SecretName::kKey;
    // MYSQL_PWD; PWD and OLDPWD are folders.
    if (last && i > 0 && Same(word, "pwd")) return SecretName::kKey;
    if (last && Same(word, "token") && (i == 0 || In(words.word[i - 1], kIssuers)))
      return SecretName::kToken;
  }
  // Names in one piece: HFTOKEN, MYSQLPASSWORD.
  const std::string_view end = words.word[words.count == 0 ? 0 : words.count - 1];
  if (end.size() > 8 && Same(end.substr(end.size() - 8), "password")) return SecretName::kPassword;
  if (words.count == 1 &&
      (Same(end, "hftoken") || Same(end, "authtoken") || Same(end, "accesstoken"))) {
    return SecretName::kToken;
  }
  return SecretName::kNo;
}

bool IsSecretValue(SecretName kind, std::string_view value) {
  if (kind == SecretName::kNo || value.empty()) return false;
  static constexpr std::string_view kNothing[] = {
      "none",     "null", "true", "false", "nil",   "str",   "string", "undefined",
      "optional", "bool", "no",   "yes",   "unset", "empty", "missing"};
  if (In(value, kNothing)) return false;
  // Masked already, or a place holder: ***, <token>, ${TOKEN}, $TOKEN, {{ token }}.
  if (std::all_of(value.begin(), value.end(), [](char c) { return c == '*' || c == '.'; }))
    return false;
  if (kind == SecretName::kKey && value.front() == '/') return false;  // where it is kept
  if (value.front() == '<' || value.front() == '$' || value.front() == '{') return false;
  if (kind == SecretName::kPassword) return true;
  if (kind == SecretName::kKey) return value.size() >= 4;
  if (WholeNumber(value)) return false;
  const bool digit = std::any_of(value.begin(), value.end(), IsDigit);
  return (value.size() >= 8 && digit) || value.size() >= 20;
}

}  // namespace rankscope::logs
