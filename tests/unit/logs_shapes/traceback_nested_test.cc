// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Tracebacks inside the message of another exception: workers, spawned processes, Ray tasks,
// groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

using ::testing::SizeIs;

TEST(TracebackNested, WorkerTracebackInsideTheMessageIsTheRealOne) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"fit.py\", line 20, in <module>\n"
      "    for batch in loader:\n"
      "KeyError: Caught KeyError in DataLoader worker process 2.\n"
      "Original Traceback (most recent call last):\n"
      "  File \"/e/site-packages/torch/utils/data/_utils/worker.py\", line 308, in _worker_loop\n"
      "    data = fetcher.fetch(index)\n"
      "  File \"/u/pairs.py\", line 7, in __getitem__\n"
      "    return row['label']\n"
      "KeyError: 'label'\n\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].message, "'label'");
  EXPECT_EQ(got[0].file, "/u/pairs.py:7");
  EXPECT_EQ(got[0].frame, FrameKind::kDataset);
}

TEST(TracebackNested, SpawnedProcessNamesTheInnerException) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"fit.py\", line 20, in <module>\n"
      "    mp.spawn(work, nprocs=4)\n"
      "torch.multiprocessing.spawn.ProcessRaisedException: \n"
      "\n"
      "-- Process 3 terminated with the following error:\n"
      "Traceback (most recent call last):\n"
      "  File \"/u/work.py\", line 7, in work\n"
      "    assert n > 0\n"
      "AssertionError: n\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "AssertionError");
  EXPECT_EQ(got[0].role, Role::kInitiating);
  EXPECT_EQ(got[0].local_rank, 3);
}

TEST(TracebackNested, SpawnedProcessKilledBySignal) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"fit.py\", line 20, in <module>\n"
      "    mp.spawn(work, nprocs=4)\n"
      "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal "
      "SIGKILL\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].kind, IncidentKind::kSignalDeath);
  EXPECT_EQ(got[0].role, Role::kWrapper);
  EXPECT_EQ(got[0].signal, 9);
  EXPECT_EQ(got[0].local_rank, 1);
}

TEST(TracebackNested, RemoteTracebackChains) {
  const auto got = RunTraceback(
      "multiprocessing.pool.RemoteTraceback: \n"
      "\"\"\"\n"
      "Traceback (most recent call last):\n"
      "  File \"/u/prep.py\", line 7, in tokenize\n"
      "    int(x)\n"
      "ValueError: invalid literal\n"
      "\"\"\"\n"
      "\n"
      "The above exception was the direct cause of the following exception:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"/u/prep.py\", line 30, in main\n"
      "    pool.map(tokenize, rows)\n"
      "ValueError: invalid literal\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "ValueError");
  EXPECT_EQ(got[0].cause_type, "ValueError");
}

TEST(TracebackNested, RayTaskErrorIsItsInnerType) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"driver.py\", line 3, in main\n"
      "    ray.get(ref)\n"
      "ray.exceptions.RayTaskError(KeyError): ray::Roll.step() (pid=7, ip=10.0.0.2)\n"
      "  File \"/u/roll.py\", line 9, in step\n"
      "    return table[key]\n"
      "KeyError: 'reward'\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "KeyError");
  EXPECT_EQ(got[0].message, "'reward'");
  EXPECT_EQ(got[0].file, "/u/roll.py:9");
}

TEST(TracebackNested, RayTaskErrorWithoutFramesKeepsTheInnerType) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"driver.py\", line 3, in main\n"
      "    ray.get(ref)\n"
      "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Actor.fit() (pid=7, ip=10.0.0.2)\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "OutOfMemoryError");
  EXPECT_EQ(got[0].kind, IncidentKind::kCudaOom);
}

TEST(TracebackNested, ExceptionGroupNamesItsFirstMember) {
  const auto got = RunTraceback(
      "  + Exception Group Traceback (most recent call last):\n"
      "  |   File \"a.py\", line 5, in <module>\n"
      "  |     asyncio.run(main())\n"
      "  | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)\n"
      "  +-+---------------- 1 ----------------\n"
      "    | Traceback (most recent call last):\n"
      "    |   File \"a.py\", line 9, in fetch\n"
      "    |     raise TimeoutError('slow')\n"
      "    | TimeoutError: slow\n"
      "    +------------------------------------\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "TimeoutError");
  EXPECT_EQ(got[0].file, "a.py:9");
}

}  // namespace
}  // namespace rankscope::logs
