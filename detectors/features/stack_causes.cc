// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/stack_causes.h"

#include <array>
#include <cstddef>

namespace rankscope::features {
namespace {

// Alternatives are joined by '|'. A frame belongs to the first row of which it contains an
// alternative and, where `within` is given, around which some frame contains one of those; a stack
// to its innermost frame that belongs to any. Frames that only say that somebody waits
// (threading:wait, queue:get, selectors:select) are in no row on purpose.
struct PythonRow {
  StackCause cause;
  std::string_view frame;
  std::string_view within;
};

constexpr std::array kPython = {
    PythonRow{StackCause::kLoadCollective,
              ":all_gather|:broadcast|:scatter|:_all_gather|:reduce_scatter|:gather",
              ":load_state_dict|:load_checkpoint|:_load_state_dict|:load_sharded|:load_model"},
    PythonRow{StackCause::kTokenDispatch,
              "token_dispatcher:|:token_dispatch|:token_permutation|:all_to_all|_AllToAll:", ""},
    PythonRow{StackCause::kBarrier, "c10d:barrier|:monitored_barrier|:wait_for_everyone", ""},
    PythonRow{
        StackCause::kRendezvous,
        ":init_process_group|:rendezvous|rendezvous:|:_create_c10d_store|:store_based_barrier", ""},
    PythonRow{StackCause::kCollective,
              "distributed_c10d:|:all_reduce|:allreduce|:reduce_scatter|:all_gather", ""},
    PythonRow{StackCause::kSynchronize,
              "torch.cuda:synchronize|torch.cuda.streams:synchronize|cuda.streams:wait", ""},
    PythonRow{StackCause::kGarbageCollection,
              ":gc_collect|:collect_garbage|garbage_collection:|gc:collect|:run_gc|:_gc_step", ""},
    PythonRow{StackCause::kDebugger, "pdb:|bdb:|debugpy|pydevd|ipdb|:breakpointhook|:set_trace",
              ""},
    // torch/utils/file_baton.py: whoever does not build an extension waits for who does, and for
    // ever where that one died and left its lock file.
    PythonRow{StackCause::kBuildLock, "file_baton:wait", ""},
    PythonRow{StackCause::kFileLock,
              "filelock|fasteners|portalocker|:_acquire_lock|:acquire_file_lock|"
              ":flock|:lockf",
              ""},
    PythonRow{
        StackCause::kCompile,
        "torch._inductor|torch._dynamo|triton.compiler|triton.runtime|torch.utils.cpp_extension|"
        ":_compile|async_compile",
        ""},
    PythonRow{
        StackCause::kDataLoader,
        "dataloader:__next__|dataloader:_next_data|dataloader:_get_data|dataloader:_try_get_data|"
        "dataloader:_shutdown_workers|dataloader:_reset",
        ""},
    PythonRow{
        StackCause::kSave,
        "torch.serialization:save|torch.serialization:_save|:save_checkpoint|:save_state_dict|"
        ":save_model|:_save_checkpoint|:async_save",
        ""},
    PythonRow{StackCause::kDownload,
              "huggingface_hub|urllib|requests.|http.client:|fsspec|s3fs|boto|:snapshot_download|"
              ":hf_hub_download|smart_open",
              ""},
    PythonRow{
        StackCause::kLoad,
        "torch.serialization:load|torch.serialization:_load|:load_checkpoint|:from_pretrained", ""},
};

struct KernelRow {
  StackCause cause;
  std::string_view functions;  // beginnings of names
};

// Where Python's frames are not known. What is left out says nothing: a futex and a socket are what
// a thread waits in whatever it waits for. No backend of collectives waits in a read of a pipe.
constexpr std::array kKernel = {
    KernelRow{StackCause::kDebugger, "ptrace_stop|n_tty_read"},
    KernelRow{
        StackCause::kFileLock,
        "flock_lock_inode_wait|locks_lock_inode_wait|posix_lock_inode_wait|fcntl_setlk|"
        "__do_sys_flock|do_lock_file_wait|nlmclnt_lock|nfs_flock|nfs4_proc_lock|ll_file_flock"},
    KernelRow{StackCause::kFuse, "fuse_|__fuse_|request_wait_answer"},
    KernelRow{StackCause::kNetworkFile,
              "nfs_|nfs4_|rpc_|__rpc_|ll_|ptlrpc_|osc_|lov_|cl_|ceph_|cifs_|smb2_|"
              "gpfs|beegfs|wekafs|afs_|p9_|v9fs_"},
    KernelRow{StackCause::kDriver, "nvidia_|nv_|_nv|os_acquire_|uvm_"},
    KernelRow{
        StackCause::kLocalFile,
        "io_schedule|blk_|jbd2_|ext4_|xfs_|btrfs_|folio_wait|wait_on_page|submit_bio|do_fsync|"
        "vfs_fsync"},
    KernelRow{StackCause::kRendezvous, "inet_csk_accept|inet_stream_connect|inet_wait_for_connect"},
    KernelRow{StackCause::kSleep, "hrtimer_nanosleep|do_nanosleep|clock_nanosleep"},
    KernelRow{StackCause::kChild, "do_wait|kernel_wait4|wait_consider_task"},
    KernelRow{StackCause::kFifo, "wait_for_partner|fifo_open"},
    KernelRow{StackCause::kPipe, "pipe_read|anon_pipe_read|fifo_pipe_read|pipe_wait"},
};

struct NameRow {
  StackCause cause;
  std::string_view name;
  std::string_view phrase;
};

constexpr std::array kNames = {
    NameRow{StackCause::kUnknown, "unknown", "does not move"},
    NameRow{StackCause::kCollective, "collective", "waits in a collective for other ranks"},
    NameRow{StackCause::kBarrier, "barrier", "waits at a barrier for other ranks"},
    NameRow{StackCause::kTokenDispatch, "token_dispatch",
            "waits for other ranks in its token dispatch"},
    NameRow{StackCause::kLoadCollective, "load_collective",
            "waits for the other ranks' parts of a checkpoint that it loads"},
    NameRow{StackCause::kRendezvous, "rendezvous", "waits for other ranks to join"},
    NameRow{StackCause::kSynchronize, "synchronize",
            "waits for the GPU to finish the launched work"},
    NameRow{StackCause::kDataLoader, "dataloader", "waits for its data loader"},
    NameRow{StackCause::kGarbageCollection, "gc", "collects garbage"},
    NameRow{StackCause::kCompile, "compile", "waits for a compiler"},
    NameRow{StackCause::kSave, "save", "saves a checkpoint"},
    NameRow{StackCause::kLoad, "load", "loads a checkpoint"},
    NameRow{StackCause::kFileLock, "file_lock", "waits for a file lock that another process holds"},
    NameRow{StackCause::kBuildLock, "build_lock",
            "waits for the lock of the cache of compiled extensions"},
    NameRow{StackCause::kDownload, "download", "waits for a download"},
    NameRow{StackCause::kDebugger, "debugger", "is held by a debugger"},
    NameRow{StackCause::kSleep, "sleep", "sleeps in a timed wait"},
    NameRow{StackCause::kNetworkFile, "network_file", "waits for a network file system"},
    NameRow{StackCause::kLocalFile, "disk", "waits for a local disk"},
    NameRow{StackCause::kDriver, "driver", "waits inside the GPU driver"},
    NameRow{StackCause::kChild, "child", "waits for a child process to end"},
    NameRow{StackCause::kPipe, "pipe", "waits for another process to write to a pipe"},
    NameRow{StackCause::kFuse, "fuse", "waits for a FUSE file system"},
    NameRow{StackCause::kFifo, "fifo", "waits for another process to open a named pipe (FIFO)"},
    NameRow{StackCause::kPeer, "peer",
            "waits for the answer of a process that is not part of the job"},
};
static_assert(kNames.size() == kStackCauses);

// Calls `match` with each element of a list until it says true.
template <typename Match>
bool AnyOf(std::string_view list, char separator, Match match) {
  while (!list.empty()) {
    const size_t end = list.find(separator);
    if (match(list.substr(0, end))) return true;
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
  }
  return false;
}

bool Contains(std::string_view frame, std::string_view alternatives) {
  return AnyOf(alternatives, '|', [frame](std::string_view one) {
    return !one.empty() && frame.find(one) != std::string_view::npos;
  });
}

StackCause CauseOfFrame(std::string_view frame, std::string_view around) {
  for (const PythonRow& row : kPython) {
    if (!Contains(frame, row.frame)) continue;
    if (row.within.empty() ||
        AnyOf(around, ';', [&row](std::string_view outer) { return Contains(outer, row.within); }))
      return row.cause;
  }
  return StackCause::kUnknown;
}

StackCause CauseOfKernel(std::string_view function) {
  for (const KernelRow& row : kKernel) {
    if (AnyOf(row.functions, '|',
              [function](std::string_view name) { return function.starts_with(name); }))
      return row.cause;
  }
  return StackCause::kUnknown;
}

const NameRow& Row(StackCause cause) {
  for (const NameRow& row : kNames) {
    if (row.cause == cause) return row;
  }
  return kNames.front();
}

}  // namespace

StackCause CauseOf(const Stack& stack) {
  StackCause cause = StackCause::kUnknown;
  const auto by_kernel = [&cause](std::string_view function) {
    cause = CauseOfKernel(function);
    return cause != StackCause::kUnknown;
  };
  // What the kernel knows for certain goes before what the frames around it are for: a save that
  // waits for NFS is NFS.
  AnyOf(stack.kernel, ';', by_kernel);
  if (cause == StackCause::kUnknown) by_kernel(stack.wchan);
  const bool certain = cause == StackCause::kNetworkFile || cause == StackCause::kFuse ||
                       cause == StackCause::kFileLock || cause == StackCause::kDriver ||
                       cause == StackCause::kLocalFile;
  if (certain) return cause;
  const StackCause below = cause;
  std::string_view around = stack.python;
  const bool found = AnyOf(stack.python, ';', [&](std::string_view frame) {
    const size_t end = around.find(';');
    around = end == std::string_view::npos ? std::string_view() : around.substr(end + 1);
    cause = CauseOfFrame(frame, around);
    return cause != StackCause::kUnknown;
  });
  if (found) return cause;
  if (below == StackCause::kUnknown && stack.fd == "terminal") return StackCause::kDebugger;
  if (below == StackCause::kUnknown && stack.foreign) return StackCause::kPeer;
  return below;
}

std::string_view CauseName(StackCause cause) {
  return Row(cause).name;
}

std::string_view CausePhrase(StackCause cause) {
  return Row(cause).phrase;
}

bool IsVictim(StackCause cause) {
  return cause == StackCause::kUnknown ||
         (cause >= StackCause::kCollective && cause <= StackCause::kSynchronize);
}

}  // namespace rankscope::features
