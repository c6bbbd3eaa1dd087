// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/run/run_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "exporter/run/clock.h"
#include "exporter/run/process_facts.h"

namespace rankscope::run {
namespace {

// A folder with this many runs of one name is a loop of somebody's making.
constexpr int kMaxSiblings = 10'000;

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

Error Failure(const std::string& what, const std::string& path, int error) {
  return {what + " " + path + ": " + std::strerror(error) +
          "; name a writable directory with --dir or RANKSCOPE_RUN_DIR"};
}

void AppendJsonText(std::string_view text, std::string& out) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      // Bytes above ASCII as Latin-1 code points: the file is valid JSON whatever the argument
      // held.
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string HeaderText(const RunHeader& header) {
  std::string out = "{\"schema\":1,\"job_id\":";
  AppendJsonText(header.job_id, out);
  out += ",\"argv\":[";
  for (size_t i = 0; i < header.argv.size(); ++i) {
    if (i > 0) out += ',';
    AppendJsonText(header.argv[i], out);
  }
  out += "],\"cwd\":";
  AppendJsonText(header.cwd, out);
  out += ",\"host\":";
  AppendJsonText(header.host, out);
  out += ",\"wrapper_pid\":" + std::to_string(header.wrapper_pid);
  out += ",\"started\":";
  AppendJsonText(WallText(header.started_wall_ns), out);
  out += ",\"log\":\"log\",\"tool_version\":";
  AppendJsonText(header.tool_version, out);
  out += "}\n";
  return out;
}

// False: errno says why.
bool WriteWhole(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// File systems without fsync say EINVAL: they give what they can.
bool Sync(int fd) {
  return fsync(fd) == 0 || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
}

// Makes the folders above `path`, and durable where it made them. False: errno says why.
bool MakeParents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (mkdir(folder.c_str(), 0777) == 0) {
      const std::string above = folder.substr(0, folder.rfind('/') + 1);
      const OwnedFd fd(open(above.c_str(), kDirectoryFlags));
      if (fd) fsync(fd.get());
    } else if (errno != EEXIST) {
      return false;
    }
  }
  return true;
}

// A folder in which no log existed, and now does: that is the claim. Or an errno, and what it was
// about.
struct Claimed {
  OwnedFd directory;
  OwnedFd log;
  int error = 0;
};

Claimed Claim(const std::string& path) {
  Claimed claimed;
  bool there = mkdir(path.c_str(), 0777) == 0 || errno == EEXIST;
  // Most often the folders above are there: they are looked at only when they are not.
  if (!there && errno == ENOENT && MakeParents(path)) {
    there = mkdir(path.c_str(), 0777) == 0 || errno == EEXIST;
  }
  if (!there) {
    claimed.error = errno;
    return claimed;
  }
  claimed.directory = OwnedFd(open(path.c_str(), kDirectoryFlags));
  if (claimed.directory) {
    claimed.log = OwnedFd(openat(claimed.directory.get(), "log",
                                 O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  }
  if (!claimed.log) claimed.error = errno;
  return claimed;
}

std::string Absolute(const std::string& path, const std::string& cwd) {
  if (path.starts_with('/')) return path;
  return (cwd == "/" ? "" : cwd) + "/" + path;
}

}  // namespace

Result<RunDirectory> CreateRunDirectory(const std::string& wanted, const RunHeader& header) {
  std::string base = Absolute(wanted, header.cwd);
  while (base.size() > 1 && base.back() == '/') base.pop_back();

  for (int sibling = 1; sibling <= kMaxSiblings; ++sibling) {
    std::string path = sibling == 1 ? base : base + "." + std::to_string(sibling);
    Claimed claimed = Claim(path);
    if (claimed.error == EEXIST) continue;
    if (claimed.error != 0) return Failure("cannot write the run's directory", path, claimed.error);

    const int directory = claimed.directory.get();
    const OwnedFd file(
        openat(directory, "run.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
    // The file's fsync commits the journal with both names on ext4 and XFS; the folder's says so
    // where it does not.
    if (!file || !WriteWhole(file.get(), HeaderText(header)) || !Sync(file.get()) ||
        !Sync(directory)) {
      const int error = errno;
      unlinkat(directory, "run.json", 0);
      unlinkat(directory, "log", 0);
      return Failure("cannot write", path + "/run.json", error);
    }
    return RunDirectory{std::move(path), std::move(claimed.directory), std::move(claimed.log)};
  }
  return Error{"no free name for the run's directory: " + base + " to " + base + "." +
               std::to_string(kMaxSiblings) + " exist; remove old runs"};
}

namespace {

// Below a folder of the user's own the run has its name; elsewhere a name that nobody knows before.
std::vector<std::string> OtherPlaces(const RunHeader& header, char* const* environment) {
  std::vector<std::string> places;
  const auto add = [&](std::string_view folder, std::string_view below) {
    if (folder.starts_with('/')) places.push_back(std::string(folder) + std::string(below));
  };
  const std::string of_job = "/rankscope/runs/" + header.job_id;
  add(EnvironmentValue(environment, "XDG_STATE_HOME"), of_job);
  add(EnvironmentValue(environment, "HOME"), "/.local/state" + of_job);
  for (const std::string_view folder : {EnvironmentValue(environment, "TMPDIR"),
                                        std::string_view("/tmp"), std::string_view("/dev/shm")}) {
    add(folder, "/rankscope-run-XXXXXX");
  }
  return places;
}

}  // namespace

RunPlace FindOtherPlace(const std::string& problem, const RunHeader& header,
                        char* const* environment) {
  for (std::string& place : OtherPlaces(header, environment)) {
    const bool new_name = place.ends_with("XXXXXX");
    if (new_name && mkdtemp(place.data()) == nullptr) continue;
    Result<RunDirectory> run = CreateRunDirectory(place, header);
    if (!run && new_name) rmdir(place.c_str());
    if (!run) continue;
    std::string note = problem + "; the log is in " + run->path;
    return {*std::move(run), std::move(note)};
  }
  return {{}, problem + "; no other directory is writable either, so no log is kept"};
}

RunPlace FindRunPlace(const std::string& wanted, const RunHeader& header,
                      char* const* environment) {
  Result<RunDirectory> run = CreateRunDirectory(wanted, header);
  if (run) return {*std::move(run), {}};
  return FindOtherPlace(run.error(), header, environment);
}

Status ReplaceFile(const RunDirectory& run, const std::string& name, std::string_view content) {
  const std::string draft = "." + name + ".new";
  const OwnedFd fd(openat(run.directory.get(), draft.c_str(),
                          O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return Error{run.path + "/" + name + ": " + std::strerror(errno)};
  if (!WriteWhole(fd.get(), content)) {
    Error error{run.path + "/" + name + ": " + std::strerror(errno)};
    unlinkat(run.directory.get(), draft.c_str(), 0);
    return error;
  }
  if (renameat(run.directory.get(), draft.c_str(), run.directory.get(), name.c_str()) != 0) {
    return Error{run.path + "/" + name + ": " + std::strerror(errno)};
  }
  return {};
}

}  // namespace rankscope::run
