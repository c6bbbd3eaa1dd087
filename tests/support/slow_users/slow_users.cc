// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// In front of the C library by LD_PRELOAD: a user database that does not answer for as long as the
// file of SLOW_USERS is there, as one behind a directory service that is away.
#include <dlfcn.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

extern "C" int getpwuid_r(uid_t uid, passwd* entry, char* buffer, size_t size, passwd** found) {
  using Real = int(uid_t, passwd*, char*, size_t, passwd**);
  constexpr useconds_t kPause = 20'000;
  const char* const path = std::getenv("SLOW_USERS");
  while (path != nullptr && access(path, F_OK) == 0) usleep(kPause);
  auto* const real = reinterpret_cast<Real*>(dlsym(RTLD_NEXT, "getpwuid_r"));
  return real(uid, entry, buffer, size, found);
}
