// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/failures/traceback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "detectors/model/archive.h"
#include "tests/unit/logs_shapes/feed.h"

namespace rankscope::logs {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Traceback, ReadsTypeMessageFrameAndPlace) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/home/u/fit.py\", line 88, in <module>\n"
      "    main()\n"
      "  File \"/home/u/corpus/reader.py\", line 12, in __getitem__\n"
      "    return self.rows[key]\n"
      "           ~~~~~~~~~^^^^^\n"
      "KeyError: 'answer'\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].kind, IncidentKind::kException);
  EXPECT_EQ(got[0].role, Role::kInitiating);
  EXPECT_EQ(got[0].frame, FrameKind::kDataset);
  EXPECT_EQ(got[0].exception_type, "KeyError");
  EXPECT_EQ(got[0].message, "'answer'");
  EXPECT_EQ(got[0].file, "/home/u/corpus/reader.py:12");
  EXPECT_EQ(got[0].function, "__getitem__");
  EXPECT_EQ(got[0].line, "KeyError: 'answer'");
}

TEST(Traceback, UserFrameIsTheInnermostOutsideLibraries) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/srv/run.py\", line 4, in build\n"
      "    net = Net(width=-1)\n"
      "  File \"/opt/env/lib/python3.11/site-packages/torch/nn/init.py\", line 9, in _check\n"
      "    raise ValueError(width)\n"
      "ValueError: -1\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].file, "/srv/run.py:4");
  EXPECT_EQ(got[0].function, "build");
}

TEST(Traceback, BareTypeAndRepeatedLines) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 2, in f\n"
      "    f()\n"
      "  [Previous line repeated 970 more times]\n"
      "  File \"a.py\", line 3, in g\n"
      "    raise NotImplementedError\n"
      "NotImplementedError\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "NotImplementedError");
  EXPECT_EQ(got[0].message, "");
  EXPECT_EQ(got[0].file, "a.py:3");
}

TEST(Traceback, ChainIsOneIncidentWithLastTypeAndFirstCause) {
  for (const char* connector :
       {"During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:"}) {
    const auto got =
        RunTraceback(std::string("Traceback (most recent call last):\n"
                                 "  File \"a.py\", line 2, in f\n"
                                 "    read()\n"
                                 "FileNotFoundError: [Errno 2] No such file: 'x.json'\n"
                                 "\n") +
                     connector +
                     "\n\n"
                     "Traceback (most recent call last):\n"
                     "  File \"a.py\", line 9, in g\n"
                     "    raise OSError('gone') from e\n"
                     "OSError: gone\n"
                     "\n" +
                     connector +
                     "\n\n"
                     "Traceback (most recent call last):\n"
                     "  File \"a.py\", line 30, in h\n"
                     "    raise\n"
                     "ValueError: no settings\n");
    ASSERT_THAT(got, SizeIs(1)) << connector;
    EXPECT_EQ(got[0].exception_type, "ValueError");
    EXPECT_EQ(got[0].cause_type, "FileNotFoundError");
    EXPECT_EQ(got[0].cause_message, "[Errno 2] No such file: 'x.json'");
  }
}

TEST(Traceback, ATellingCauseOutlivesAVagueLastException) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 2, in forward\n"
      "    y = x @ w\n"
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
      "\n"
      "During handling of the above exception, another exception occurred:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 9, in cleanup\n"
      "    report()\n"
      "RuntimeError: run ended\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].kind, IncidentKind::kCudaOom);
  EXPECT_EQ(Field(got[0], "requested"), "2147483648");
  EXPECT_EQ(got[0].exception_type, "RuntimeError");
  EXPECT_EQ(got[0].cause_type, "torch.cuda.OutOfMemoryError");
}

TEST(Traceback, SeparateTracebacksAreSeparateIncidents) {
  const std::string one =
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 2, in f\n"
      "    f()\n"
      "ValueError: one\n";
  const auto got = RunTraceback(one + "next epoch\n" + one);
  EXPECT_THAT(got, SizeIs(2));
}

TEST(Traceback, InterleavedOutputDoesNotDestroyIt) {
  const auto got = RunTraceback(
      "  0%|          | 0/2 [00:00<?, ?it/s]Traceback (most recent call last):\n"
      "{'loss': 2.1}\n"
      "  File \"a.py\", line 2, in train\n"
      "step 7: all is well\n"
      "    f()\n"
      "  File \"a.py\", line 3, in f\n"
      "    1 / 0\n"
      "INFO: flushing\n"
      "ZeroDivisionError: division by zero\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "ZeroDivisionError");
  EXPECT_EQ(got[0].function, "f");
}

TEST(Traceback, CountersBetweenFramesAreNoTypes) {
  for (const char* counter :
       {"Epoch: 3", "Loss: 0.25", "Timeout: 30 s", "Iteration: 5", "Failed: 2 of 8"}) {
    const auto got = RunTraceback(std::string("Traceback (most recent call last):\n"
                                              "  File \"a.py\", line 2, in f\n"
                                              "    g()\n") +
                                  counter + "\nlib.Odd: no width\n");
    ASSERT_THAT(got, SizeIs(1)) << counter;
    EXPECT_EQ(got[0].exception_type, "lib.Odd") << counter;
  }
}

// A fault handler's stack dump has the same frame lines and no header.
TEST(Traceback, AStackDumpAfterwardsTakesNothingAway) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 2, in f\n"
      "    g()\n"
      "KeyError: 'lr'\n"
      "Fatal Python error: Aborted\n"
      "\n"
      "Thread 0x00007f01 (most recent call first):\n"
      "  File \"b.py\", line 7 in wait\n"
      "  File \"b.py\", line 9 in run\n"
      "Node: 'x'\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "KeyError");
}

TEST(Traceback, ForeignLinesAreNotClaimed) {
  TracebackMachine machine;
  RecordList out;
  const auto lines = Lines(
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 2, in f\n"
      "loss 2.31 at step 4\n");
  EXPECT_TRUE(machine.Feed(lines[0], out));
  EXPECT_TRUE(machine.Feed(lines[1], out));
  EXPECT_FALSE(machine.Feed(lines[2], out));
  EXPECT_TRUE(machine.open());
}

TEST(Traceback, TwoWritersInOneStreamGiveTwoIncidents) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 2, in f\n"
      "  File \"a.py\", line 2, in f\n"
      "    g()\n"
      "    g()\n"
      "ValueError: bad width\n"
      "ValueError: bad width\n");
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[0].message, "bad width");
  EXPECT_EQ(got[1].message, "bad width");
}

TEST(Traceback, MessageOfManyLinesIsReadForItsWords) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 2, in setup\n"
      "    dist.barrier()\n"
      "torch.distributed.DistBackendError: NCCL error in: ncclwrap.cpp:80, unhandled cuda error\n"
      "ncclUnhandledCudaError: Call to CUDA function failed.\n"
      "Last error:\n"
      "Failed to CUDA calloc async 24 bytes\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].kind, IncidentKind::kCudaOom);
  EXPECT_EQ(got[0].sub, "nccl");
  EXPECT_EQ(Field(got[0], "requested"), "24");
}

TEST(Traceback, StateDictMismatchIsACheckpointLoad) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 2, in main\n"
      "    run()\n"
      "RuntimeError: Error(s) in loading state_dict for Net:\n"
      "\tsize mismatch for head.weight: copying a param with shape [10] from checkpoint\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].frame, FrameKind::kCheckpointLoad);
}

TEST(Traceback, SyntaxErrorHasNoFunction) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"run.py\", line 1, in <module>\n"
      "    import settings\n"
      "  File \"/u/settings.py\", line 4\n"
      "    lr = = 3\n"
      "         ^\n"
      "SyntaxError: invalid syntax\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "SyntaxError");
  EXPECT_EQ(got[0].file, "/u/settings.py:4");
  EXPECT_EQ(got[0].function, "");
}

TEST(Traceback, NobodyDiesOfThese) {
  const std::string body =
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 5, in close\n"
      "    self.pipe.send(0)\n"
      "ValueError: closed\n";
  for (const char* head : {"Exception ignored in: <function Pool.__del__ at 0x7f00>\n",
                           "Exception in thread Thread-3 (pump):\n", "--- Logging error ---\n",
                           "Task exception was never retrieved\nfuture: <Task finished>\n"}) {
    const auto got = RunTraceback(head + body);
    ASSERT_THAT(got, SizeIs(1)) << head;
    EXPECT_EQ(got[0].role, Role::kCascade) << head;
    EXPECT_EQ(got[0].frame, FrameKind::kTeardown) << head;
  }
  // Without the line before it a thread is known by its outermost frame.
  const auto thread = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/usr/lib/python3.11/threading.py\", line 1038, in _bootstrap_inner\n"
      "    self.run()\n"
      "BrokenPipeError: [Errno 32] Broken pipe\n");
  ASSERT_THAT(thread, SizeIs(1));
  EXPECT_EQ(thread[0].role, Role::kCascade);
  EXPECT_EQ(RunTraceback(body)[0].role, Role::kInitiating);
}

TEST(Traceback, AnOutputThatNobodyReadsIsNoPeer) {
  const auto raised_at = [](const std::string& code) {
    return RunTraceback(
        "Traceback (most recent call last):\n  File \"a.py\", line 5, in <module>\n    " + code +
        "\nBrokenPipeError: [Errno 32] Broken pipe\n");
  };
  for (const char* code : {"print(f'step {i}', flush=True)", "sys.stdout.flush()"}) {
    ASSERT_THAT(raised_at(code), SizeIs(1));
    EXPECT_EQ(raised_at(code)[0].kind, IncidentKind::kException) << code;
    EXPECT_EQ(raised_at(code)[0].role, Role::kInitiating) << code;
  }
  EXPECT_EQ(raised_at("self.sock.sendall(data)")[0].kind, IncidentKind::kPeerLost);
}

TEST(Traceback, AsideRightAfterTheRealOne) {
  const std::string body =
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 5, in close\n"
      "    f()\n"
      "ValueError: closed\n";
  const auto got = RunTraceback(body + "Exception ignored in: <x>\n" + body);
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[0].role, Role::kInitiating);
  EXPECT_EQ(got[1].role, Role::kCascade);
}

TEST(Traceback, AsideEndsWithItsTraceback) {
  const std::string body =
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 5, in close\n"
      "    f()\n"
      "ValueError: closed\n";
  const auto got = RunTraceback("Exception ignored in: <x>\n" + body + body);
  ASSERT_THAT(got, SizeIs(2));
  EXPECT_EQ(got[0].role, Role::kCascade);
  EXPECT_EQ(got[1].role, Role::kInitiating);
}

TEST(Traceback, Wrappers) {
  for (const char* line :
       {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "subprocess.CalledProcessError: Command '['/usr/bin/python3', 'fit.py']' returned non-zero "
        "exit status 1.",
        "SystemExit: 1",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."}) {
    const auto got = RunTraceback(
        std::string(
            "Traceback (most recent call last):\n  File \"l.py\", line 1, in launch\n    go()\n") +
        line + "\n");
    ASSERT_THAT(got, SizeIs(1)) << line;
    EXPECT_EQ(got[0].role, Role::kWrapper) << line;
  }
  // A tool that the program itself called is a failure of its own.
  const auto tool = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"l.py\", line 1, in build\n"
      "    check_output(['nvcc'])\n"
      "subprocess.CalledProcessError: Command '['nvcc', '-V']' returned non-zero exit status 2.\n");
  ASSERT_THAT(tool, SizeIs(1));
  EXPECT_EQ(tool[0].role, Role::kInitiating);
}

TEST(Traceback, CutShortIsGivenUpWithoutAGuess) {
  std::string text =
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 5, in close\n";
  for (int i = 0; i < 100; ++i) text += "step " + std::to_string(i) + "\n";
  TracebackMachine machine;
  RecordList out;
  for (const CleanLine& line : Lines(text)) machine.Feed(line, out);
  EXPECT_FALSE(machine.open());
  EXPECT_THAT(out, IsEmpty());
}

TEST(Traceback, ProseAndSerialisedTextOpenNothing) {
  for (const char* line :
       {"see the Traceback (most recent call last) above for details",
        "{\"message\": \"Traceback (most recent call last):\\n  File x\", \"code\": 1}",
        "print('Traceback (most recent call last): none')"}) {
    TracebackMachine machine;
    RecordList out;
    EXPECT_FALSE(machine.Feed(Lines(line)[0], out)) << line;
    EXPECT_FALSE(machine.open()) << line;
  }
}

TEST(Traceback, KeepsTheInnermostFrames) {
  std::string text = "Traceback (most recent call last):\n";
  for (int i = 0; i < 1000; ++i) {
    text += "  File \"deep.py\", line " + std::to_string(i + 1) + ", in f\n    f()\n";
  }
  text += "RecursionError: maximum recursion depth exceeded\n";
  const auto got = RunTraceback(text);
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].file, "deep.py:1000");
}

TEST(Traceback, StateSurvivesArchiving) {
  const auto lines = Lines(
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 2, in f\n"
      "    g()\n"
      "FileNotFoundError: [Errno 2] x\n"
      "\n"
      "During handling of the above exception, another exception occurred:\n"
      "\n"
      "Traceback (most recent call last):\n"
      "  File \"a.py\", line 9, in g\n"
      "    raise\n"
      "ValueError: y\n");
  for (size_t cut = 0; cut <= lines.size(); ++cut) {
    RecordList out;
    TracebackMachine first;
    for (size_t i = 0; i < cut; ++i) first.Feed(lines[i], out);
    ArchiveWriter writer;
    first.Fields(writer);
    const std::string bytes = writer.Take();
    TracebackMachine second;
    ArchiveReader reader(bytes);
    second.Fields(reader);
    ASSERT_TRUE(reader.Complete()) << cut;
    for (size_t i = cut; i < lines.size(); ++i) second.Feed(lines[i], out);
    second.Flush(out);
    const auto got = Incidents(std::move(out));
    ASSERT_THAT(got, SizeIs(1)) << cut;
    EXPECT_EQ(got[0].exception_type, "ValueError") << cut;
    EXPECT_EQ(got[0].cause_type, "FileNotFoundError") << cut;
  }
}

TEST(Terminate, ItsWordsStandOnTheNextLine) {
  const auto got = RunTraceback(
      "terminate called after throwing an instance of 'std::system_error'\n"
      "  what():  Resource temporarily unavailable\n"
      "Aborted (core dumped)\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].kind, IncidentKind::kException);
  EXPECT_EQ(got[0].role, Role::kInitiating);
  EXPECT_EQ(got[0].exception_type, "std::system_error");
  EXPECT_EQ(got[0].message, "Resource temporarily unavailable");
  EXPECT_EQ(got[0].signal, 6);
}

TEST(Terminate, RanksThatAbortAtOnceSayTheSame) {
  const auto got = RunTraceback(
      "terminate called after throwing an instance of 'c10::Error'\n"
      "terminate called after throwing an instance of 'c10::Error'\n"
      "  what():  CUDA error: an illegal memory access was encountered\n"
      "  what():  CUDA error: an illegal memory access was encountered\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].kind, IncidentKind::kCudaError);
  EXPECT_EQ(got[0].message, "CUDA error: an illegal memory access was encountered");
}

TEST(Terminate, NothingElseIsItsMessage) {
  const auto got = RunTraceback(
      "terminate called after throwing an instance of 'int'\n"
      "the training was ended\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "int");
  EXPECT_THAT(got[0].message, IsEmpty());
}

TEST(Terminate, InsideATracebackItIsAnotherWriters) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n"
      "  File \"/home/u/fit.py\", line 88, in <module>\n"
      "terminate called after throwing an instance of 'c10::Error'\n"
      "    main()\n"
      "KeyError: 'answer'\n");
  ASSERT_THAT(got, SizeIs(1));
  EXPECT_EQ(got[0].exception_type, "KeyError");
}

TEST(Traceback, OneBlankMayStandBeforeTheLastLine) {
  const auto got = RunTraceback(
      "Traceback (most recent call last):\n  File \"fit.py\", line 3, in step\n    go()\n"
      " ValueError: batch 7 is empty\n");
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].exception_type, "ValueError");
  const auto frames = RunTraceback(
      "Traceback (most recent call last):\n File \"fit.py\", line 3, in step\n    go()\n"
      "ValueError: batch 8 is empty\n");
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].file, "fit.py:3") << "a frame's blank stays";
}

}  // namespace
}  // namespace rankscope::logs
