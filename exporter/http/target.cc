// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/target.h"

#include <algorithm>

namespace rankscope::http {
namespace {

// Nobody asks with more; Prometheus repeats collect[]= a dozen times at most.
constexpr size_t kMaxParameters = 64;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsControl(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

}  // namespace

std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    if (IsControl(c)) return std::nullopt;
    out.push_back(c);
  }
  return out;
}

Result<std::string> DecodePath(std::string_view path) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!path.starts_with(scheme)) continue;
    const size_t slash = path.find('/', scheme.size());
    path = slash == std::string_view::npos ? "/" : path.substr(slash);
    break;
  }
  if (!path.starts_with('/')) return Error{"the path does not begin with '/'"};
  std::optional<std::string> decoded = PercentDecode(path, false);
  if (!decoded) return Error{"the path is not percent-encoded text; write '%' as %25"};
  return *std::move(decoded);
}

Result<Parameters> ParseQuery(std::string_view query) {
  Parameters parameters;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    if (one.empty()) continue;
    if (parameters.size() == kMaxParameters) {
      return Error{"more than " + std::to_string(kMaxParameters) + " query parameters"};
    }
    const size_t equals = one.find('=');
    const auto name = PercentDecode(one.substr(0, equals), true);
    const auto value = equals == std::string_view::npos
                           ? std::optional<std::string>("")
                           : PercentDecode(one.substr(equals + 1), true);
    if (!name || !value) {
      return Error{"the query is not percent-encoded text; write '%' as %25"};
    }
    parameters.emplace_back(*name, *value);
  }
  return parameters;
}

Result<std::optional<std::string>> JobIdOf(const Parameters& parameters) {
  std::optional<std::string> job_id;
  for (const auto& [name, value] : parameters) {
    if (name != "job_id" && name != "slurm_job_id") continue;
    if (value.empty())
      return Error{name + " is empty; give a job id, or leave it out for all jobs"};
    if (job_id && *job_id != value) {
      return Error{"two different jobs are asked for ('" + *job_id + "' and '" + value +
                   "'); ask for one at a time"};
    }
    job_id = value;
  }
  return job_id;
}

}  // namespace rankscope::http
