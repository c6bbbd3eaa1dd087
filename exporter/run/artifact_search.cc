// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/artifact_search.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

namespace rankscope::run {
namespace {

constexpr size_t kMostDepth = 32;

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;

using Parts = std::vector<std::string>;

Parts PartsOf(std::string_view path) {
  Parts parts;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0 && path.substr(0, slash) != ".") parts.emplace_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

bool IsWild(const std::string& part) {
  return part.find_first_of("*?[") != std::string::npos;
}

std::string WhyNot(const struct stat& info) {
  if (S_ISREG(info.st_mode)) return {};
  if (S_ISLNK(info.st_mode)) return "a symbolic link";
  if (S_ISFIFO(info.st_mode)) return "a pipe";
  if (S_ISSOCK(info.st_mode)) return "a socket";
  return "a device";
}

class Search {
 public:
  explicit Search(const std::function<bool()>& late) : late_(late) {}

  void Pattern(const std::string& pattern, const std::string& cwd) {
    Parts parts = PartsOf(pattern);
    // The last part is always looked up below an open folder.
    size_t typed = 0;
    while (typed + 1 < parts.size() && !IsWild(parts[typed])) ++typed;
    std::string base = pattern.starts_with('/') ? "/" : cwd + "/";
    std::string name;
    for (size_t i = 0; i < typed; ++i) {
      base += parts[i] + '/';
      if (parts[i] != "..") name += parts[i] + '/';
    }
    const OwnedFd folder(open(base.c_str(), kFolderFlags));
    parts.erase(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(typed));
    if (!folder) {
      Note(pattern + ": " + std::strerror(errno));
    } else if (!parts.empty()) {
      const size_t before = out_.files.size();
      Walk(folder.get(), {base, name}, parts, 0, 0);
      if (out_.files.size() == before && out_.note.empty()) Note(pattern + ": nothing matches");
    }
  }

  FoundFiles Take() {
    std::stable_sort(
        out_.files.begin(), out_.files.end(),
        [](const FoundFile& a, const FoundFile& b) { return a.mtime_ns > b.mtime_ns; });
    return std::move(out_);
  }

 private:
  struct Place {
    std::string path, name;
  };

  void Note(const std::string& what) { out_.note += (out_.note.empty() ? "" : "; ") + what; }

  bool GoesOn() {
    if (++entries_ > kMostEntries || out_.files.size() >= kMostFound || late_()) {
      if (!std::exchange(full_, true)) Note("not all folders could be searched");
    }
    return !full_;
  }

  void Walk(int folder, const Place& place, const Parts& parts, size_t at, size_t depth) {
    if (depth > kMostDepth) return;
    const bool any_depth = parts[at] == "**";
    if (any_depth && at + 1 < parts.size()) Walk(folder, place, parts, at + 1, depth + 1);
    const std::string& part = parts[at];
    if (!IsWild(part)) return Entry(folder, place, part, parts, at, depth);
    const std::unique_ptr<DIR, CloseFolder> list(fdopendir(openat(folder, ".", kFolderFlags)));
    if (list == nullptr) return;
    for (const dirent* entry = readdir(list.get()); entry != nullptr && GoesOn();
         entry = readdir(list.get())) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (any_depth ? name[0] != '.' : fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0)
        Entry(folder, place, name, parts, at, depth);
    }
  }

  void Entry(int folder, const Place& place, const std::string& name, const Parts& parts, size_t at,
             size_t depth) {
    struct stat info {};
    if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
    const Place here{place.path + name, place.name + name};
    const bool any_depth = parts[at] == "**";
    const bool last = at + 1 == parts.size();
    if (S_ISDIR(info.st_mode)) {
      if (last && !any_depth) return;
      const OwnedFd below(openat(folder, name.c_str(), kFolderFlags | O_NOFOLLOW));
      if (below)
        Walk(below.get(), {here.path + '/', here.name + '/'}, parts, any_depth ? at : at + 1,
             depth + 1);
    } else if (last && seen_.insert({info.st_dev, info.st_ino}).second) {
      out_.files.push_back({here.name, here.path, info.st_size,
                            int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
                            info.st_dev, info.st_ino, WhyNot(info)});
    }
  }

  const std::function<bool()>& late_;
  FoundFiles out_;
  std::set<std::pair<dev_t, ino_t>> seen_;
  size_t entries_ = 0;
  bool full_ = false;
};

}  // namespace

FoundFiles SearchFiles(const std::vector<std::string>& patterns, const std::string& cwd,
                       const std::function<bool()>& late) {
  Search search(late);
  for (const std::string& pattern : patterns) search.Pattern(pattern, cwd);
  return search.Take();
}

OwnedFd OpenFound(const FoundFile& file) {
  OwnedFd fd(open(file.path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0) return {};
  const bool same =
      S_ISREG(info.st_mode) && info.st_dev == file.device && info.st_ino == file.inode;
  return same ? std::move(fd) : OwnedFd();
}

}  // namespace rankscope::run
