// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/text/secret_commands.h"

#include <algorithm>
#include <array>

namespace rankscope::logs {
namespace {

enum class Where : unsigned char { kNext, kAttached, kEither };

struct FlagRow {
  std::string_view program;
  std::string_view flag;
  Where where;
  char after = 0;
  bool first = false;  // only as the first argument
};

constexpr std::array kFlags = {
    FlagRow{"curl", "-u", Where::kEither, ':'},
    FlagRow{"curl", "--user", Where::kEither, ':'},
    FlagRow{"curl", "-U", Where::kEither, ':'},
    FlagRow{"curl", "--proxy-user", Where::kEither, ':'},
    FlagRow{"curl", "-b", Where::kEither, '='},
    FlagRow{"curl", "--cookie", Where::kEither, '='},
    FlagRow{"curl", "--oauth2-bearer", Where::kEither},
    FlagRow{"mysql", "-p", Where::kAttached},
    FlagRow{"mysqldump", "-p", Where::kAttached},
    FlagRow{"mysqladmin", "-p", Where::kAttached},
    FlagRow{"mariadb", "-p", Where::kAttached},
    FlagRow{"mariadb-dump", "-p", Where::kAttached},
    FlagRow{"sshpass", "-p", Where::kEither, 0, true},
    FlagRow{"redis-cli", "-a", Where::kEither},
    FlagRow{"redis-cli", "--pass", Where::kEither},
    FlagRow{"mongo", "-p", Where::kEither},
    FlagRow{"mongosh", "-p", Where::kEither},
    FlagRow{"mongodump", "-p", Where::kEither},
    FlagRow{"ldapsearch", "-w", Where::kEither},
    FlagRow{"ldapmodify", "-w", Where::kEither},
    FlagRow{"sqlcmd", "-P", Where::kEither},
    FlagRow{"smbclient", "-U", Where::kEither, '%'},
    FlagRow{"lftp", "-u", Where::kEither, ','},
    FlagRow{"wandb", "login", Where::kNext, 0, true},
};

}  // namespace

bool TakesSecrets(std::string_view program) {
  program = program.substr(program.rfind('/') + 1);
  return std::any_of(kFlags.begin(), kFlags.end(),
                     [program](const FlagRow& row) { return row.program == program; });
}

size_t SecretIn(std::string_view value, char after) {
  if (value.empty() || value.front() == '-' || value.front() == '$') return CommandSecret::kNone;
  if (after == 0) return 0;
  const size_t mark = value.find(after);
  return mark == std::string_view::npos || mark + 1 == value.size() ? CommandSecret::kNone
                                                                    : mark + 1;
}

CommandSecret FindCommandSecret(std::string_view program, std::string_view argument, bool first) {
  program = program.substr(program.rfind('/') + 1);
  CommandSecret secret;
  for (const FlagRow& row : kFlags) {
    if (row.program != program || !argument.starts_with(row.flag) || (row.first && !first))
      continue;
    std::string_view value = argument.substr(row.flag.size());
    secret.after = row.after;
    if (value.empty()) {
      secret.in_next = row.where != Where::kAttached;
      return secret;
    }
    const bool is_long = row.flag.starts_with("--");
    if (row.where == Where::kNext || (is_long && value.front() != '=')) continue;
    if (is_long) value.remove_prefix(1);
    const size_t at = SecretIn(value, row.after);
    if (at != CommandSecret::kNone) secret.begin = argument.size() - value.size() + at;
    return secret;
  }
  return secret;
}

}  // namespace rankscope::logs
