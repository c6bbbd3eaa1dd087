// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/stack_causes.h"

#include <gtest/gtest.h>

namespace rankscope::features {
namespace {

StackCause Python(std::string_view frames) {
  return CauseOf({frames, "", "", ""});
}
StackCause Kernel(std::string_view functions, std::string_view fd = "") {
  return CauseOf({"", functions, "", fd});
}

TEST(StackCauses, PythonFrames) {
  EXPECT_EQ(Python("megatron.core.transformer.moe.token_dispatcher:token_permutation;train:step"),
            StackCause::kTokenDispatch);
  EXPECT_EQ(Python("torch.cuda:synchronize;train:main"), StackCause::kSynchronize);
  EXPECT_EQ(Python("torchtitan.tools.utils:gc_collect;train:main"), StackCause::kGarbageCollection);
  EXPECT_EQ(
      Python("torch.distributed.distributed_c10d:all_gather_object;dcp:load_state_dict;train:main"),
      StackCause::kLoadCollective);
  EXPECT_EQ(Python("triton.compiler.compiler:compile;model:forward"), StackCause::kCompile);
  EXPECT_EQ(Python("threading:wait;queue:get;torch.utils.data.dataloader:_try_get_data;train:main"),
            StackCause::kDataLoader);
  EXPECT_EQ(Python("torch.serialization:_save;torch.serialization:save;train:main"),
            StackCause::kSave);
  EXPECT_EQ(Python("filelock._unix:_acquire;filelock._api:acquire;train:main"),
            StackCause::kFileLock);
  EXPECT_EQ(Python("torch.distributed.distributed_c10d:barrier;train:main"), StackCause::kBarrier);
  EXPECT_EQ(Python("ssl:read;http.client:begin;requests.sessions:send;train:main"),
            StackCause::kDownload);
  EXPECT_EQ(Python("pdb:cmdloop;bdb:trace_dispatch;train:main"), StackCause::kDebugger);
}

TEST(StackCauses, WhatTheKernelSaysOfAnOpenAndOfASocket) {
  EXPECT_EQ(Kernel("wait_for_partner;fifo_open;do_dentry_open"), StackCause::kFifo);
  EXPECT_EQ(CauseOf({"", "wait_woken;tcp_recvmsg", "", "socket", true}), StackCause::kPeer);
  EXPECT_EQ(CauseOf({"", "wait_woken;tcp_recvmsg", "", "socket"}), StackCause::kUnknown);
  EXPECT_EQ(CauseOf({"torch.distributed.distributed_c10d:barrier;train:main",
                     "wait_woken;tcp_recvmsg", "", "socket", true}),
            StackCause::kBarrier)
      << "its frames say more than its socket";
}

// Frames that look like one of the above and are not.
TEST(StackCauses, NearMisses) {
  EXPECT_EQ(Python("tokenizers.dispatch:encode;train:main"), StackCause::kUnknown);
  EXPECT_EQ(Python("audio.sync:synchronize;train:main"), StackCause::kUnknown);
  EXPECT_EQ(Python("metrics:collect;train:main"), StackCause::kUnknown);
  EXPECT_EQ(Python("torch.distributed.distributed_c10d:all_gather;fsdp:_unshard;train:main"),
            StackCause::kCollective)
      << "an all-gather that loads nothing";
  EXPECT_EQ(Python("re:compile;train:main"), StackCause::kUnknown);
  EXPECT_EQ(Python("threading:wait;queue:get;logging.handlers:dequeue"), StackCause::kUnknown);
  EXPECT_EQ(Python("train:load_batch;train:main"), StackCause::kUnknown);
  EXPECT_EQ(Python("threading:acquire;train:main"), StackCause::kUnknown);
  EXPECT_EQ(Python("game:barrier_height_of;train:main"), StackCause::kUnknown);
  EXPECT_EQ(Python("data.downloaded:__getitem__;train:main"), StackCause::kUnknown);
  EXPECT_EQ(Python(""), StackCause::kUnknown);
}

TEST(StackCauses, TheInnermostFrameThatTellsDecides) {
  EXPECT_EQ(
      Python("torch.distributed.distributed_c10d:all_reduce;torch.utils.data.dataloader:__next__"),
      StackCause::kCollective)
      << "a collective inside a loader waits for peers";
  EXPECT_EQ(Python("torch.utils.data.dataloader:__next__;torchtitan.tools.utils:gc_collect"),
            StackCause::kDataLoader);
}

TEST(StackCauses, TheKernelsFunctionsWithoutPython) {
  EXPECT_EQ(Kernel("locks_lock_inode_wait;__do_sys_flock"), StackCause::kFileLock);
  EXPECT_EQ(Kernel("rpc_wait_bit_killable;nfs4_proc_open"), StackCause::kNetworkFile);
  EXPECT_EQ(Kernel("inet_csk_accept;inet_accept"), StackCause::kRendezvous);
  EXPECT_EQ(Kernel("hrtimer_nanosleep"), StackCause::kSleep);
  EXPECT_EQ(Kernel("do_wait;kernel_wait4"), StackCause::kChild);
  EXPECT_EQ(Kernel("n_tty_read"), StackCause::kDebugger);
  EXPECT_EQ(Kernel("pipe_read;vfs_read", "pipe"), StackCause::kPipe);
  EXPECT_EQ(Kernel("wait_woken", "terminal"), StackCause::kDebugger);
  // What a thread waits in whatever it waits for.
  EXPECT_EQ(Kernel("futex_wait_queue;futex_wait"), StackCause::kUnknown);
  EXPECT_EQ(Kernel("tcp_recvmsg;sock_recvmsg", "socket"), StackCause::kUnknown);
  EXPECT_EQ(CauseOf({"", "", "rpc_wait_bit_killable", ""}), StackCause::kNetworkFile);
}

TEST(StackCauses, AFileSystemThatHangsGoesBeforeWhatItIsUsedFor) {
  EXPECT_EQ(CauseOf({"torch.serialization:save;train:main", "nfs_file_fsync", "", ""}),
            StackCause::kNetworkFile);
  EXPECT_EQ(CauseOf({"torch.utils.data.dataloader:__next__", "hrtimer_nanosleep", "", ""}),
            StackCause::kDataLoader);
}

TEST(StackCauses, EveryCauseHasItsWords) {
  for (int i = 0; i < kStackCauses; ++i) {
    EXPECT_FALSE(CauseName(static_cast<StackCause>(i)).empty()) << i;
    EXPECT_FALSE(CausePhrase(static_cast<StackCause>(i)).empty()) << i;
  }
  EXPECT_TRUE(IsVictim(StackCause::kCollective));
  EXPECT_TRUE(IsVictim(StackCause::kUnknown));
  EXPECT_FALSE(IsVictim(StackCause::kDataLoader));
}

}  // namespace
}  // namespace rankscope::features
