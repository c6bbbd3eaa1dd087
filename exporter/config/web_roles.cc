// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/config/web_roles.h"

#include <algorithm>
#include <iterator>

namespace rankscope::http {
namespace {

constexpr std::string_view kNames[] = {"none", "metrics", "verdict", "log"};

}  // namespace

std::string_view RoleName(Role role) {
  return kNames[static_cast<size_t>(role)];
}

Result<RoleRow> ParseRole(std::string_view text) {
  const Error bad{"'" + std::string(text.substr(0, 80)) +
                  "' is not user:NAME=ROLE or san:NAME=ROLE with one of metrics, verdict, log"};
  RoleRow row;
  row.of_user = text.starts_with("user:");
  if (!row.of_user && !text.starts_with("san:")) return bad;
  const size_t colon = text.find(':');
  const size_t equals = text.rfind('=');  // a URI may have one itself
  if (equals == std::string_view::npos || equals <= colon + 1) return bad;
  row.name = text.substr(colon + 1, equals - colon - 1);
  const auto* const name =
      std::find(std::begin(kNames) + 1, std::end(kNames), text.substr(equals + 1));
  if (name == std::end(kNames)) return bad;
  row.role = static_cast<Role>(name - std::begin(kNames));
  return row;
}

Role RoleOf(const std::vector<RoleRow>& rows, std::string_view user,
            const std::vector<std::string>& sans) {
  if (rows.empty()) return Role::kLog;
  Role role = Role::kMetrics;
  for (const RoleRow& row : rows) {
    if (row.of_user) {
      if (!user.empty() && row.name == user) return row.role;
    } else if (std::find(sans.begin(), sans.end(), row.name) != sans.end()) {
      role = std::max(role, row.role);
    }
  }
  return role;
}

}  // namespace rankscope::http
