// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a traceback's words and frames make of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

using ::testing::SizeIs;

struct KindCase {
  const char* line;
  IncidentKind kind;
  Role role;
  const char* sub;
};

TEST(TracebackKind, ContentDecidesTheKind) {
  const KindCase cases[] = {
      {"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.79 GiB total "
       "capacity; 5.01 GiB "
       "already allocated; 9.81 MiB free; 5.20 GiB reserved in total by PyTorch)",
       IncidentKind::kCudaOom, Role::kInitiating, ""},
      {"RuntimeError: CUDA error: out of memory", IncidentKind::kCudaOom, Role::kInitiating, ""},
      {"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
       IncidentKind::kCudaOom, Role::kInitiating, "library"},
      {"RuntimeError: CUDA error: an illegal memory access was encountered",
       IncidentKind::kCudaError, Role::kInitiating, ""},
      {"torch.AcceleratorError: CUDA error: out of memory", IncidentKind::kCudaOom,
       Role::kInitiating, ""},
      {"MemoryError", IncidentKind::kHostOom, Role::kInitiating, ""},
      {"OSError: [Errno 12] Cannot allocate memory", IncidentKind::kHostOom, Role::kInitiating, ""},
      {"OSError: [Errno 28] No space left on device: '/s/out.pt'", IncidentKind::kStorage,
       Role::kInitiating, ""},
      {"RuntimeError: [enforce fail at inline_container.cc:588] . PytorchStreamWriter failed "
       "writing file data/3",
       IncidentKind::kStorage, Role::kInitiating, ""},
      {"RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed. ",
       IncidentKind::kSignalDeath, Role::kInitiating, "dataloader_worker"},
      {"RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:84] Timed out waiting 15000ms for "
       "recv operation to "
       "complete",
       IncidentKind::kCollectiveTimeout, Role::kInitiating, ""},
      {"RuntimeError: [../gloo/transport/tcp/pair.cc:598] Connection closed by peer "
       "[10.0.0.9]:1234",
       IncidentKind::kPeerLost, Role::kCascade, ""},
      {"ConnectionResetError: [Errno 104] Connection reset by peer", IncidentKind::kPeerLost,
       Role::kCascade, ""},
      {"torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while "
       "trying to connect "
       "to (node4, 29400).",
       IncidentKind::kRendezvous, Role::kInitiating, "timeout"},
      {"torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
       "network address. "
       "port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
       IncidentKind::kRendezvous, Role::kInitiating, "port_in_use"},
      {"RuntimeError: Stop_waiting response is expected", IncidentKind::kRendezvous,
       Role::kInitiating, "store_lost"},
      {"torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError", IncidentKind::kRendezvous,
       Role::kInitiating, "join"},
      {"torch.distributed.elastic.multiprocessing.api.SignalException: Process 812 got signal: 15",
       IncidentKind::kTerminated, Role::kInitiating, ""},
      {"KeyboardInterrupt", IncidentKind::kTerminated, Role::kInitiating, ""},
      {"AssertionError: Rank 3: found NaN in local forward loss calculation. Device: 3",
       IncidentKind::kNonFiniteLoss, Role::kInitiating, ""},
      {"RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running "
       "collective: ALLREDUCE",
       IncidentKind::kException, Role::kInitiating, "desync"},
      {"RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via "
       "c10d key-value store "
       "by store->get('0'), but store->get('0') got error: Connection reset by peer",
       IncidentKind::kRendezvous, Role::kInitiating, "store_lost"},
      {"torch.distributed.DistBackendError: NCCL error in: "
       "torch/csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled system "
       "error. Last error: socketProgress: Connection closed by remote peer n2<5>",
       IncidentKind::kPeerLost, Role::kCascade, ""},
      {"requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, "
       "'Connection reset by "
       "peer'))",
       IncidentKind::kException, Role::kInitiating, ""},
      {"ValueError: lower the batch size if CUDA out of memory appears", IncidentKind::kException,
       Role::kInitiating, ""},
  };
  for (const KindCase& c : cases) {
    const auto got = RunTraceback(
        std::string(
            "Traceback (most recent call last):\n  File \"t.py\", line 1, in run\n    go()\n") +
        c.line + "\n");
    ASSERT_THAT(got, SizeIs(1)) << c.line;
    EXPECT_EQ(got[0].kind, c.kind) << c.line;
    EXPECT_EQ(got[0].role, c.role) << c.line;
    EXPECT_EQ(got[0].sub, c.sub) << c.line;
  }
}

TEST(TracebackKind, FramesDecideThePlace) {
  struct Case {
    const char* frame;
    FrameKind kind;
  };
  const Case cases[] = {
      {"  File \"/e/site-packages/transformers/modeling_utils.py\", line 1, in from_pretrained\n   "
       " x()\n",
       FrameKind::kAssetLoad},
      {"  File \"/e/site-packages/torch/distributed/rendezvous.py\", line 1, in _env\n    x()\n",
       FrameKind::kRendezvous},
      {"  File \"/e/site-packages/torch/distributed/c10d_logger.py\", line 1, in wrapper\n    "
       "x()\n",
       FrameKind::kCollective},
      {"  File \"/u/save.py\", line 1, in dump\n    torch.save(state, path)\n",
       FrameKind::kCheckpointSave},
      {"  File \"/u/train.py\", line 1, in main\n    net.load_state_dict(blob)\n",
       FrameKind::kCheckpointLoad},
      {"  File \"/u/train.py\", line 1, in <module>\n    from kernels import fused\n",
       FrameKind::kImport},
      {"  File \"/usr/lib/python3.11/argparse.py\", line 1, in error\n    x()\n",
       FrameKind::kConfig},
      {"  File \"/e/site-packages/torch/nn/modules/linear.py\", line 1, in forward\n    x()\n",
       FrameKind::kTrainStep},
      {"  File \"/e/site-packages/torch/utils/data/dataloader.py\", line 1, in __next__\n    x()\n",
       FrameKind::kDataLoader},
      {"  File \"/u/x.py\", line 1, in main\n    x()\n", FrameKind::kUnknown},
  };
  for (const Case& c : cases) {
    const auto got = RunTraceback(std::string("Traceback (most recent call last):\n") + c.frame +
                                  "RuntimeError: no\n");
    ASSERT_THAT(got, SizeIs(1)) << c.frame;
    EXPECT_EQ(got[0].frame, c.kind) << c.frame;
  }
}

TEST(TracebackKind, AConnectionToADataLoadersWorkerIsNoPeer) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/home/u/fit.py\", line 88, in <module>\n"
      "    for batch in loader:\n"
      "  File \"/opt/lib/torch/utils/data/dataloader.py\", line 1120, in _try_get_data\n"
      "    data = self._data_queue.get(timeout=timeout)\n"
      "  File \"/opt/lib/torch/multiprocessing/reductions.py\", line 305, in rebuild_storage_fd\n"
      "    fd = df.detach()\n"
      "  File \"/usr/lib/python3.11/multiprocessing/connection.py\", line 378, in _recv\n"
      "    chunk = read(handle, remaining)\n"
      "ConnectionResetError: [Errno 104] Connection reset by peer\n");
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].kind, IncidentKind::kException);
  EXPECT_EQ(got[0].role, Role::kInitiating);
}

TEST(TracebackKind, AConnectionOfTheProcessGroupIsAPeer) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/home/u/fit.py\", line 88, in <module>\n"
      "    dist.all_reduce(loss)\n"
      "  File \"/opt/lib/torch/distributed/distributed_c10d.py\", line 1320, in all_reduce\n"
      "    work = default_pg.allreduce([tensor], opts)\n"
      "RuntimeError: [/job/gloo/transport/tcp/pair.cc:589] Connection closed by peer "
      "[10.0.0.1]:7\n");
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].kind, IncidentKind::kPeerLost);
}

TEST(TracebackKind, FramesOfSavesThatFail) {
  const auto frame = [](std::string file, std::string function, std::string code) {
    const auto got =
        RunTraceback("Traceback (most recent call last):\n  File \"/w/" + file + "\", line 9, in " +
                     function + "\n    " + code + "\nRuntimeError: it failed\n");
    return got.empty() ? FrameKind::kUnknown : got[0].frame;
  };
  EXPECT_EQ(frame("torch/serialization.py", "__exit__", "self.file_like.write_end_of_file()"),
            FrameKind::kCheckpointSave);
  EXPECT_EQ(frame("torch/distributed/checkpoint/filesystem.py", "_write_item", "stream.write(b)"),
            FrameKind::kCheckpointSave);
  EXPECT_EQ(frame("torch/distributed/checkpoint/filesystem.py", "read_data", "stream.read()"),
            FrameKind::kCheckpointLoad);
  EXPECT_EQ(frame("safetensors/torch.py", "save_model", "serialize_file(flat, filename)"),
            FrameKind::kCheckpointSave);
  EXPECT_NE(frame("safetensors/torch.py", "load_file", "with safe_open(filename) as f:"),
            FrameKind::kCheckpointSave);
  EXPECT_EQ(frame("orbax/checkpoint/async_checkpointer.py", "check_for_errors", "raise e"),
            FrameKind::kCheckpointSave);
  EXPECT_EQ(frame("orbax/checkpoint/checkpointer.py", "restore", "return self._restore(d)"),
            FrameKind::kCheckpointLoad);
}

}  // namespace
}  // namespace rankscope::logs
