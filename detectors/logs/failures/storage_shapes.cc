// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

struct StorageRow {
  std::string_view text;
  std::string_view name;  // value of the field `errno`
};

// Sockets fail so, too; of a path they say that the client of its file system is gone: the process
// of a FUSE mount (gcsfuse, s3fs, sshfs) died, or Lustre's server threw the client out.
constexpr std::string_view kNotConnected = "Transport endpoint is not connected";
constexpr std::string_view kShutDown = "Cannot send after transport endpoint shutdown";

constexpr StorageRow kTexts[] = {
    {"No space left on device", "ENOSPC"},
    {"Disk quota exceeded", "EDQUOT"},
    {"Input/output error", "EIO"},
    {"Read-only file system", "EROFS"},
    {"Stale file handle", "ESTALE"},
    {"PytorchStreamWriter failed", ""},
    {"Error while creating shared memory segment /dev/shm/nccl-", ""},  // NCCL's shmutils.cc
    {". unexpected pos ", ""},  // its archive is shorter than what it wrote: a write was cut
    {"OSError: [Errno 5]", "EIO"},
    {"[Errno 28]", "ENOSPC"},
    {"[Errno 122]", "EDQUOT"},
    {"[Errno 116]", "ESTALE"},
    {kNotConnected, "ENOTCONN"},
    {kShutDown, "ESHUTDOWN"},
};

constexpr std::string_view kAnchors[] = {"No space left on device",
                                         "Disk quota exceeded",
                                         "PytorchStreamWriter failed",
                                         "Input/output error",
                                         "Read-only file system",
                                         "Stale file handle",
                                         kNotConnected,
                                         kShutDown};

// EIO is also what transports call a request that failed (UCX's UCS_ERR_IO_ERROR, verbs, libfabric,
// MPI above them), and what a terminal says that is gone.
bool IsOfADevice(std::string_view text) {
  static constexpr std::string_view kWords[] = {
      "UCX ",     "ucx ",    "UCS_ERR", "ibv_", "mlx4_", "mlx5_",
      "rdma",     "RDMA",    "btl_",    "pml_", "mtl_",  "libfabric",
      "NET/IB",   "NET/OFI", "psm2",    "hfi1", "stty:", "terminal process group",
      "tcgetattr"};
  // "[host:pid:0:pid] rndv.c:943  Fatal: failed to ...": ucs_fatal().
  return ContainsAny(text, kWords) || (Contains(text, "Fatal: ") && Contains(text, ".c:"));
}

// "[Errno 107] Transport endpoint is not connected: '/mnt/set/17.tar'", "ls: cannot access
// '/mnt/set': Transport endpoint is not connected".
bool IsOfAPath(std::string_view text, std::string_view words) {
  const std::string_view before = Before(text, words);
  return After(text, words).starts_with(": '") || ContainsAny(before, {" '/", ": /"}) ||
         before.starts_with("/");
}

void ParseStorage(const CleanLine& line, RecordList& out) {
  if (HasOwnRow(line.text)) return;
  Incident incident = MakeIncident(IncidentKind::kStorage, line, "storage");
  if (!ReadStorage(line.text, incident)) return;
  if (IsWarningLevel(line.text) || IsRetry(line.text)) incident.role = Role::kCascade;
  out.push_back(std::move(incident));
}

// What file systems and their clients log in the kernel when they give up: the device failed, the
// server threw the client out, the file system is read-only from here on.
struct KernelRow {
  std::string_view text;
  std::string_view with;  // must be in the line, too
  std::string_view errno_name;
  bool hangs;  // who uses it waits, and may come back
};
constexpr KernelRow kKernel[] = {
    {"Remounting filesystem read-only", "EXT4-fs (", "EROFS", false},
    {"Detected aborted journal", "EXT4-fs error (", "EIO", false},
    {"Filesystem has been shut down due to", "XFS (", "EIO", false},
    {"forced readonly", "BTRFS ", "EROFS", false},
    {"This client was evicted by ", "in progress operations using this service will fail", "EIO",
     false},
    {" was lost; in progress operations using this service will wait", "Lustre", "", true},
    {"Lost membership in cluster", "nmounting file systems", "ESTALE", true},
    {"Lock reclaim failed!", "nfs4_reclaim_open_state", "EIO", false},
};
constexpr std::string_view kKernelAnchors[] = {
    "Remounting filesystem read-only",      "Detected aborted journal",
    "Filesystem has been shut down due to", "forced readonly",
    "This client was evicted by ",          " was lost; in progress operations",
    "Lost membership in cluster",           "Lock reclaim failed!"};

void ParseKernel(const CleanLine& line, RecordList& out) {
  for (const KernelRow& row : kKernel) {
    if (!Contains(line.text, row.text) || !Contains(line.text, row.with)) continue;
    Incident incident = MakeIncident(IncidentKind::kStorage, line, "file_system");
    if (row.hangs) incident.sub = subs::kHang;
    AddField(incident, "errno", row.errno_name);
    AddField(incident, "device", Capped(Between(line.text, " (", ")"), 64));
    incident.rank = -1;
    out.push_back(std::move(incident));
    return;
  }
}

constexpr ShapeRow kRows[] = {
    {"file_system", "a file system or its client gives up", kKernelAnchors, ParseKernel,
     "[90210.1] XFS (nvme2n1p1): Filesystem has been shut down due to log error (0x2)."},
    {"storage", "a file system refuses to write or read", kAnchors, ParseStorage,
     "cp: error writing '/scratch/run4/step_900.pt': No space left on device"},
};

}  // namespace

bool ReadStorage(std::string_view text, Incident& incident) {
  for (const StorageRow& row : kTexts) {
    if (!Contains(text, row.text)) continue;
    if (row.name == "EIO" && IsOfADevice(text)) continue;
    const bool endpoint = row.text == kNotConnected || row.text == kShutDown;
    if (endpoint && (IsOfADevice(text) || !IsOfAPath(text, row.text))) continue;
    incident.kind = IncidentKind::kStorage;
    AddField(incident, "errno", row.name);
    // Shared memory is memory behind a file's interface.
    if (ContainsAny(text, {"/dev/shm", "</torch_", "shared memory"})) incident.sub = "shm";
    AddField(incident, "path", Capped(Between(text, "'", "'"), 255));
    return true;
  }
  return false;
}

std::span<const ShapeRow> StorageShapes() {
  return kRows;
}

}  // namespace rankscope::logs
