// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/io/io_facts.h"

#include <linux/magic.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "detectors/model/event_types.h"

namespace rankscope::probes {
namespace {

struct NumberRow {
  uint64_t number;
  std::string_view name;
};
constexpr std::array kFileSystems = {
    NumberRow{TMPFS_MAGIC, "tmpfs"},     NumberRow{EXT4_SUPER_MAGIC, "ext4"},
    NumberRow{XFS_SUPER_MAGIC, "xfs"},   NumberRow{BTRFS_SUPER_MAGIC, "btrfs"},
    NumberRow{NFS_SUPER_MAGIC, "nfs"},   NumberRow{OVERLAYFS_SUPER_MAGIC, "overlay"},
    NumberRow{FUSE_SUPER_MAGIC, "fuse"}, NumberRow{CEPH_SUPER_MAGIC, "ceph"},
    NumberRow{0x0bd00bd0, "lustre"},     NumberRow{V9FS_MAGIC, "9p"},
    NumberRow{0x47504653, "gpfs"},       NumberRow{0x19830326, "beegfs"},
    NumberRow{0x2fc12fc1, "zfs"},        NumberRow{F2FS_SUPER_MAGIC, "f2fs"},
    NumberRow{CIFS_SUPER_MAGIC, "cifs"}, NumberRow{SMB2_SUPER_MAGIC, "cifs"},
};
constexpr std::array kCalls = {
    NumberRow{SYS_write, "write"},         NumberRow{SYS_pwrite64, "pwrite"},
    NumberRow{SYS_writev, "writev"},       NumberRow{SYS_pwritev2, "pwritev"},
    NumberRow{SYS_ftruncate, "ftruncate"}, NumberRow{SYS_fallocate, "fallocate"},
    NumberRow{SYS_fsync, "fsync"},         NumberRow{SYS_fdatasync, "fdatasync"},
    NumberRow{SYS_close, "close"},         NumberRow{SYS_sendfile, "sendfile"},
    NumberRow{SYS_openat, "open"},         NumberRow{SYS_newfstatat, "stat"},
};
constexpr std::array kClasses = {
    NumberRow{RS_IO_CHECKPOINT, "checkpoint"},
    NumberRow{RS_IO_DATA, "data"},
    NumberRow{RS_IO_SHARED_MEMORY, "shared_memory"},
};

std::string_view Find(const auto& rows, uint64_t number, std::string_view otherwise) {
  for (const NumberRow& row : rows) {
    if (row.number == number) return row.name;
  }
  return otherwise;
}

std::string Text(const char* chars, size_t room) {
  return {chars, strnlen(chars, room)};
}

Event Make(EventType type, const ProcessKey& process, const FileNames& names, uint64_t begin_ns) {
  Event event;
  event.type = WireType(type);
  event.process = process;
  event.str = {{"name", names.name}, {"directory", names.directory}};
  event.begin = {static_cast<int64_t>(begin_ns)};
  return event;
}

int64_t Milliseconds(uint64_t from_ns, uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<int64_t>((to_ns - from_ns) / 1'000'000) : 0;
}

Event Written(const rs_io_file& file, const ProcessKey& process, uint64_t bytes, uint64_t end_ns,
              bool complete, bool main_thread) {
  const int64_t milliseconds = Milliseconds(file.opened_ns, end_ns);
  Event event = Make(EventType::kCheckpointWritten, process, NamesOf(file), file.opened_ns);
  event.num = {
      {"bytes", static_cast<int64_t>(bytes)},
      {"seconds", (milliseconds + 500) / 1000},
      {"milliseconds", milliseconds},
      {"microseconds",
       end_ns > file.opened_ns ? static_cast<int64_t>((end_ns - file.opened_ns) / 1000) : 0},
      {"complete", complete ? 1 : 0},
      {"main_thread", main_thread ? 1 : 0}};
  return event;
}

}  // namespace

FileNames NamesOf(const rs_io_file& file) {
  return {Text(file.name, RS_FILE_NAME), Text(file.directory, RS_FILE_DIRECTORY)};
}

FileNames NamesOf(const rs_io_failure& failure) {
  if (failure.is_path == 0)
    return {Text(failure.name, RS_FILE_NAME), Text(failure.directory, RS_FILE_DIRECTORY)};
  // Both fields together are one text.
  const auto* const begin = reinterpret_cast<const char*>(&failure) + offsetof(rs_io_failure, name);
  const std::string path = Text(begin, RS_FILE_NAME + RS_FILE_DIRECTORY);
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {path, {}};
  const size_t before = slash == 0 ? std::string::npos : path.rfind('/', slash - 1);
  const size_t from = before == std::string::npos ? 0 : before + 1;
  return {path.substr(slash + 1), path.substr(from, slash - from)};
}

std::string_view FileSystemName(uint64_t magic) {
  return Find(kFileSystems, magic, magic == 0 ? "" : "other");
}

std::string_view CallName(uint32_t number) {
  return Find(kCalls, number, "other");
}

Event FailureEvent(const rs_io_failure_key& key, const rs_io_failure& failure,
                   const ProcessKey& process) {
  const bool missing = key.error == ENOENT;
  Event event = Make(missing ? EventType::kFileMissing : EventType::kFileError, process,
                     NamesOf(failure), failure.first_ns);
  event.str.push_back({"call", std::string(CallName(key.call))});
  event.str.push_back({"class", std::string(Find(kClasses, key.class_, "other"))});
  event.str.push_back({"filesystem", std::string(FileSystemName(failure.file_system))});
  event.num = {{"errno", static_cast<int64_t>(key.error)},
               {"times", static_cast<int64_t>(failure.times)}};
  return event;
}

Event WrittenEvent(const rs_io_event& closed, const ProcessKey& process, bool complete) {
  return Written(closed.file, process, closed.bytes, closed.header.time_ns,
                 complete && closed.size > 0, (closed.file.flags & RS_IO_MAIN_THREAD) != 0);
}

Event AbandonedEvent(const rs_io_file& file, const ProcessKey& process, uint64_t now_ns) {
  return Written(file, process, 0, now_ns, false, false);
}

Event ReadEvent(const rs_io_event& closed, const ProcessKey& process) {
  Event event =
      Make(EventType::kCheckpointRead, process, NamesOf(closed.file), closed.file.opened_ns);
  event.num = {{"bytes", static_cast<int64_t>(closed.bytes)},
               {"size", static_cast<int64_t>(closed.size)},
               {"milliseconds", Milliseconds(closed.file.opened_ns, closed.header.time_ns)},
               {"mapped", (closed.file.flags & RS_IO_MAPPED) != 0 ? 1 : 0}};
  return event;
}

Event SpaceEvent(const ProcessKey& process, std::string_view file_system, int64_t free_bytes,
                 int64_t total_bytes, bool bus_error) {
  Event event;
  event.type = WireType(EventType::kFileSpace);
  event.process = process;
  event.str = {{"filesystem", std::string(file_system)}};
  event.num = {
      {"free_bytes", free_bytes}, {"total_bytes", total_bytes}, {"bus_error", bus_error ? 1 : 0}};
  return event;
}

Event HangEvent(const ProcessKey& process, std::string_view call, double seconds) {
  Event event;
  event.type = WireType(EventType::kFileCallHangs);
  event.process = process;
  event.str = {{"call", std::string(call)}};
  event.num = {{"seconds", static_cast<int64_t>(seconds)}};
  return event;
}

}  // namespace rankscope::probes
