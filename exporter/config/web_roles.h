// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a client of the HTTP listener may see. Rows of web.roles give users of basic authentication
// and names of client certificates a role. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "detectors/model/result.h"

namespace rankscope::http {

// Each sees what those before it see, and more.
enum class Role {
  kNone,     // did not say who it is, and has to
  kMetrics,  // numbers and health
  kVerdict,  // verdicts and the page, without what quotes a job's output or the kernel log
  kLog,      // everything, and may have the configuration read again
};

std::string_view RoleName(Role role);  // none | metrics | verdict | log

struct RoleRow {
  bool of_user = false;  // of a user; otherwise of a name in a verified certificate
  std::string name;
  Role role = Role::kMetrics;
};

// user:NAME=ROLE or san:NAME=ROLE.
Result<RoleRow> ParseRole(std::string_view text);

// Of who has authenticated as `user` (empty: as none) with a certificate of these names. The user's
// row goes before the certificate's, of which the greatest counts. Without any row everybody who
// authenticates sees everything, as in other exporters; where there are rows, who has none is
// granted the least.
Role RoleOf(const std::vector<RoleRow>& rows, std::string_view user,
            const std::vector<std::string>& sans);

}  // namespace rankscope::http
