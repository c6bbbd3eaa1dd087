// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/daemon/privileges.h"

#include <sys/capability.h>
#include <sys/prctl.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <set>
#include <type_traits>
#include <utility>

#include "exporter/daemon/sources.h"

namespace rankscope::exporter {
namespace {

// Below it a listener needs CAP_NET_BIND_SERVICE (ip_unprivileged_port_start's default).
constexpr int kFirstFreePort = 1024;

struct CapFree {
  void operator()(void* capabilities) const { cap_free(capabilities); }
};
using Capabilities = std::unique_ptr<std::remove_pointer_t<cap_t>, CapFree>;

Error Failed(const char* what) {
  return Error{std::string(what) + ": " + std::strerror(errno)};
}

bool HasPrivilegedPort(const Config& config) {
  for (const std::string& address : config.web.listen) {
    const std::string_view port = std::string_view(address).substr(address.rfind(':') + 1);
    int number = 0;
    std::from_chars(port.data(), port.data() + port.size(), number);
    if (number > 0 && number < kFirstFreePort) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> NeededCapabilities(const Config& config, bool old_kernel) {
  std::set<std::string> needed;
  for (const SourceRow& row : SourceTable()) {
    const SourceSettings* settings = config.FindSource(row.name);
    const bool forbidden = row.in_kernel && config.ebpf.mode == "off";
    if (forbidden || (settings != nullptr && !settings->enabled)) continue;
    std::string_view rest = row.capabilities;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view name = rest.substr(0, comma);
      // A source that the kernel only helps does without.
      const bool for_programs = name == "bpf" || name == "perfmon";
      if (!for_programs || config.ebpf.mode != "off") needed.emplace(name);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    if (old_kernel && row.admin_on_old_kernels) needed.insert("sys_admin");
  }
  if (HasPrivilegedPort(config)) needed.insert("net_bind_service");
  return {needed.begin(), needed.end()};
}

Status KeepOnly(std::span<const std::string> names) {
  std::set<cap_value_t> kept;
  for (const std::string& name : names) {
    cap_value_t value = 0;
    // A kernel or a libcap older than a capability does not know its name, and needs it not.
    if (cap_from_name(("cap_" + name).c_str(), &value) == 0) kept.insert(value);
  }
  // Programs that the daemon starts run as the same user: the bounding set is what holds root back.
  // Dropping from it takes CAP_SETPCAP; who has not got that has not got root's rights either.
  for (cap_value_t value = 0; cap_get_bound(value) >= 0; ++value) {
    if (!kept.contains(value) && cap_get_bound(value) > 0 && cap_drop_bound(value) != 0 &&
        errno != EPERM) {
      return Failed("the bounding set of capabilities");
    }
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Failed("no_new_privs");
  const Capabilities now(cap_get_proc());
  const Capabilities then(cap_init());
  if (!now || !then) return Failed("the capabilities of this process");
  for (const cap_value_t value : kept) {
    for (const cap_flag_t set : {CAP_PERMITTED, CAP_EFFECTIVE}) {
      cap_flag_value_t has = CAP_CLEAR;
      if (cap_get_flag(now.get(), value, set, &has) != 0 || has != CAP_SET) continue;
      cap_set_flag(then.get(), set, 1, &value, CAP_SET);
    }
  }
  // Also empties the inheritable set, and with it the ambient one.
  if (cap_set_proc(then.get()) != 0) return Failed("the capabilities of this process");
  return {};
}

}  // namespace rankscope::exporter
