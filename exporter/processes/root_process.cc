// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/processes/root_process.h"

#include <linux/auxvec.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "exporter/loop/small_file.h"
#include "exporter/loop/user_identity.h"
#include "exporter/loop/user_threads.h"
#include "exporter/processes/proc_text.h"

namespace rankscope::collectors {
namespace {

constexpr int kMaxDepth = 256;
constexpr int kInit = 1;
constexpr uint32_t kNoLogin = ~0u;

// A number other than 0 directly after `name`, wherever that stands.
bool HasOther(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const char* const begin = text.data() + at + name.size();
    uint32_t uid = 0;
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), uid);
    if (error == std::errc() && end != begin && uid != 0) return true;
  }
  return false;
}

uint32_t LoginOf(const std::string& folder) {
  const std::string text = ReadSmallFile(folder + "/loginuid");  // none without CONFIG_AUDIT
  uint32_t uid = kNoLogin;
  std::from_chars(text.data(), text.data() + text.size(), uid);
  return uid;
}

// Who starts the daemon by hand is trusted, in whatever session: what stands behind both says
// nothing.
bool IsOfAnothersSession(const std::string& proc_root, const std::string& folder) {
  const uint32_t login = LoginOf(folder);
  const std::string self = proc_root + "/self";
  if (login != kNoLogin && login != 0 && login != LoginOf(self)) return true;
  return NamesAnotherUser(ReadSmallFile(folder + "/cgroup")) &&
         !NamesAnotherUser(ReadSmallFile(self + "/cgroup"));
}

int64_t ParentOf(const std::string& status) {
  return FindNumber(status, "PPid").value_or(-1);
}

std::set<int64_t> OwnAncestors(const std::string& proc_root) {
  std::set<int64_t> ancestors = {0, kInit};
  std::string folder = proc_root + "/self";
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const int64_t parent = ParentOf(ReadSmallFile(folder + "/status"));
    if (parent <= kInit) break;
    ancestors.insert(parent);
    folder = proc_root + '/' + std::to_string(parent);
  }
  return ancestors;
}

bool IsRoots(const std::string& folder, const std::string& status) {
  const auto who = exporter::ParseIdentity(status);
  if (!who || who->uid != 0) return false;
  const auto exec = ParseAuxiliaryVector(ReadSmallFile(folder + "/auxv"));
  return exec && exec->uid == 0 && !exec->secure;
}

}  // namespace

std::optional<ExecFacts> ParseAuxiliaryVector(std::string_view bytes) {
  ExecFacts facts;
  bool has_uid = false;
  bool has_secure = false;
  for (; bytes.size() >= 2 * sizeof(uint64_t); bytes.remove_prefix(2 * sizeof(uint64_t))) {
    uint64_t entry[2];
    std::memcpy(entry, bytes.data(), sizeof entry);
    if (entry[0] == AT_UID) {
      facts.uid = entry[1];
      has_uid = true;
    } else if (entry[0] == AT_SECURE) {
      facts.secure = entry[1] != 0;
      has_secure = true;
    }
  }
  return has_uid && has_secure ? std::optional(facts) : std::nullopt;
}

bool NamesAnotherUser(std::string_view cgroup) {
  return HasOther(cgroup, "/user-") || HasOther(cgroup, "/uid_");
}

bool IsRootsOwn(const std::string& proc_root, const ProcessKey& process) {
  const exporter::ProcessAccess access;
  if (IsOfAnothersSession(proc_root, proc_root + '/' + std::to_string(process.pid))) return false;
  // 0: the parent is outside of our pid namespace.
  const std::set<int64_t> trusted = OwnAncestors(proc_root);
  int64_t pid = process.pid;
  for (int depth = 0; depth < kMaxDepth && pid >= 0; ++depth) {
    if (depth > 0 && trusted.contains(pid)) return true;
    const std::string folder = proc_root + '/' + std::to_string(pid);
    const std::string status = ReadSmallFile(folder + "/status");
    if (!IsRoots(folder, status)) return false;
    pid = ParentOf(status);
  }
  return false;
}

}  // namespace rankscope::collectors
