// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include "detectors/logs/reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "feed_lines.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kTraceback =
    "Traceback (most recent call last):\n"
    "  File \"/job/train.py\", line 12, in <module>\n"
    "    main()\n"
    "  File \"/job/train.py\", line 7, in main\n"
    "    raise ValueError(\"step 5 loss 3.0\")\n"
    "ValueError: step 5 loss 3.0\n";

TEST(Reader, RecordsComeInOrderWithOffsets) {
  const std::string text =
      "Initializing process group with backend gloo\nstep 1 loss 2.5\nstep 2 loss 2.25\n" +
      std::string(kTraceback);
  const Records records = ReadText(text);
  EXPECT_EQ(records.order, "mppi");
  ASSERT_EQ(records.incidents.size(), 1u);
  const Incident& incident = records.incidents[0];
  EXPECT_EQ(incident.kind, IncidentKind::kException);
  EXPECT_EQ(incident.exception_type, "ValueError");
  EXPECT_EQ(text.substr(static_cast<size_t>(incident.offset), 11), "ValueError:");
  EXPECT_EQ(incident.line, "ValueError: step 5 loss 3.0");
  EXPECT_EQ(incident.t.ns, incident.offset);
}

TEST(Reader, LinesOfATracebackAreNoRecords) {
  EXPECT_TRUE(ReadText(kTraceback).rows.empty());
}

TEST(Reader, ATracebackInARecordOfJson) {
  const Records records = ReadText(
      R"({"level": "error", "event": "crash", "exc_info": "Traceback (most recent call last):\n)"
      R"(  File \"t.py\", line 8, in train\n    x = batch['a\u0062']\nKeyError: 'ab'"})"
      "\n");
  ASSERT_EQ(records.incidents.size(), 1u);
  EXPECT_EQ(records.incidents[0].exception_type, "KeyError");
  EXPECT_EQ(records.incidents[0].message, "'ab'");
  EXPECT_EQ(records.incidents[0].function, "train");
  EXPECT_EQ(records.incidents[0].offset, 0);
  // Cut off, without an exception, and a record that only speaks of one.
  for (const std::string_view text : {
           R"({"exc_info": "Traceback (most recent call last):\n  File \"t.py\", li)",
           R"({"exc_info": "Traceback (most recent call last):\u00")",
           R"({"event": "no Traceback (most recent call last): here"})",
       })
    EXPECT_TRUE(ReadText(text).incidents.empty()) << text;
}

TEST(Reader, WhatStandsBehindABarIsALineOfItsOwn) {
  const std::string bar = " 10%|#         | 403/4000 [06:43<59:57,  1.00s/it";
  for (const auto& [rest, signal] : {
           std::pair<std::string_view, int32_t>{
               "]/var/spool/slurmd/job1/slurm_script: line 12:  2211 Killed      python train.py",
               9},
           {"]Segmentation fault (core dumped)", 11},
           {", loss=0.5]Bus error (core dumped)", 7},
       }) {
    const Records records = ReadText(bar + std::string(rest));
    ASSERT_EQ(records.incidents.size(), 1u) << rest;
    EXPECT_EQ(records.incidents[0].signal, signal) << rest;
  }
  EXPECT_TRUE(ReadText(bar + ", status=Killed]").incidents.empty());
  EXPECT_TRUE(ReadText("Killed.mp4:" + bar + "]").incidents.empty());
}

TEST(Reader, ATracebackBehindAPrefixOfAnyKind) {
  for (const std::string_view prefix :
       {"[3]: ", "Feb 03 04:05:06 ", "RANK 3 | ", "[n1:3/8] ", "> ", "2026/02/03 04:05:06 "}) {
    std::string text;
    std::string_view rest = kTraceback;
    while (!rest.empty()) {
      const size_t end = rest.find('\n') + 1;
      text += std::string(prefix) + std::string(rest.substr(0, end));
      rest.remove_prefix(end);
    }
    const Records records = ReadText(text);
    ASSERT_EQ(records.incidents.size(), 1u) << prefix;
    EXPECT_EQ(records.incidents[0].function, "main") << prefix;
  }
}

TEST(Reader, RanksKeepTheirTracebacksApart) {
  std::string text;
  std::string_view rest = kTraceback;
  while (!rest.empty()) {
    const size_t end = rest.find('\n') + 1;
    for (int rank = 0; rank < 3; ++rank) {
      text += "[rank" + std::to_string(rank) + "]: " + std::string(rest.substr(0, end));
    }
    rest.remove_prefix(end);
  }
  const Records records = ReadText(text);
  ASSERT_EQ(records.incidents.size(), 3u);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(records.incidents[static_cast<size_t>(rank)].rank, rank);
    EXPECT_EQ(records.incidents[static_cast<size_t>(rank)].function, "main");
  }
}

TEST(Reader, LocalRanksAreLocal) {
  std::string text;
  std::string_view rest = kTraceback;
  while (!rest.empty()) {
    const size_t end = rest.find('\n') + 1;
    text += "[default5]:" + std::string(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  const Records records = ReadText(text);
  ASSERT_EQ(records.incidents.size(), 1u);
  EXPECT_EQ(records.incidents[0].rank, -1);
  EXPECT_EQ(records.incidents[0].local_rank, 5);
}

TEST(Reader, ManySpeakersAreBounded) {
  std::string text;
  for (int rank = 0; rank < 500; ++rank) {
    text += std::to_string(rank) + ": Traceback (most recent call last):\n";
  }
  for (int rank = 0; rank < 500; ++rank) {
    text += std::to_string(rank) + ":   File \"a.py\", line 1, in f\n" + std::to_string(rank) +
            ": ValueError: x\n";
  }
  EXPECT_GE(ReadText(text).incidents.size(), 15u);
}

// Another process of the stream trains on while a traceback is being printed.
TEST(Reader, ProgressAmongTracebackLinesIsRead) {
  const Records records = ReadText(
      "Traceback (most recent call last):\n"
      " iteration       10/     500 | elapsed time per iteration (ms): 5.5 | lm loss: 9.0E+00 |\n"
      "  File \"/job/train.py\", line 12, in <module>\n"
      "    main()\n"
      "KeyError: 'x'\n"
      " iteration       11/     500 | elapsed time per iteration (ms): 5.5 | lm loss: 8.0E+00 |\n");
  EXPECT_EQ(records.rows.size(), 2u);
  ASSERT_EQ(records.incidents.size(), 1u);
  EXPECT_EQ(records.incidents[0].exception_type, "KeyError");
}

TEST(Reader, ATracebackEndsWhenTrainingGoesOn) {
  std::string text(kTraceback);
  for (int i = 0; i < 10; ++i) text += "step " + std::to_string(i) + " loss 2.5\n";
  Reader reader;
  LineAssembler assembler;
  Records records;
  FeedText(reader, assembler, text, records);
  EXPECT_EQ(records.incidents.size(), 1u);  // without Flush
  EXPECT_EQ(records.rows.size(), 10u);
}

TEST(Reader, DeepspeedLinesBesideAnotherDialectAreNoRecords) {
  const std::string engine =
      "[INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.001], mom=[0.9]\n";
  EXPECT_EQ(ReadText(engine + engine).rows.size(), 2u);
  const Records records = ReadText("{'loss': 2.5, 'epoch': 0.1}\n" + engine +
                                   "worker finished step 3 with loss = 1.0\n");
  ASSERT_EQ(records.rows.size(), 1u);
  EXPECT_EQ(records.rows[0].format, "hf_trainer");
}

TEST(Reader, KerasStepsAreEpochsAndEvaluateIsNoRecord) {
  const Records records = ReadText(
      "Epoch 1/2\n"
      " 50/100 [==>...] - ETA: 3s - loss: 0.75\n"
      "100/100 [======] - 6s 60ms/step - loss: 0.50 - val_loss: 0.6\n"
      "Epoch 2/2\n"
      "100/100 [======] - 6s 60ms/step - loss: 0.25 - val_loss: 0.5\n"
      "10/10 [======] - 1s 60ms/step - loss: 0.45\n");
  ASSERT_EQ(records.rows.size(), 3u);
  EXPECT_EQ(records.rows[0].step, "");
  EXPECT_EQ(records.rows[1].step, "1");
  EXPECT_EQ(records.rows[2].step, "2");
}

TEST(Reader, CarriageReturnsSplitBars) {
  const Records records = ReadText(
      "\r  1%|# | 1/100 [00:01<01:39,  1.0s/it]\r                 \r{'loss': 2.5, 'epoch': 0.1}\n"
      "\r  2%|# | 2/100 [00:02<01:38,  1.0s/it]{'loss': 2.25, 'epoch': 0.2}\r\n");
  ASSERT_EQ(records.rows.size(), 2u);
  EXPECT_EQ(records.rows[1].loss, "2.25");
}

// Half the text, the state saved and restored into a new reader, the other half: the same as in one
// go.
TEST(Reader, SaveAndRestoreAtEveryLine) {
  std::string text =
      "Epoch 1/3\nstep 1 loss 2.5\n0: Traceback (most recent call last):\n0:   File \"a.py\", line "
      "3, in f\n";
  text +=
      "1: Traceback (most recent call last):\n0:     g()\n0: KeyError: 'x'\n1:   File \"b.py\", "
      "line 3, in h\n";
  text += "1: OSError: [Errno 28] No space left on device\n100/100 [===] - 6s - loss: 0.5\n" +
          std::string(kTraceback);
  const Records whole = ReadText(text);
  for (size_t cut = 0; cut != std::string::npos + 1 && cut <= text.size();) {
    Records kept;
    Reader first;
    LineAssembler assembler;
    FeedText(first, assembler, std::string_view(text).substr(0, cut), kept);
    const std::string state = first.Save();
    Reader second;
    ASSERT_TRUE(second.Restore(state)) << cut;
    FeedText(second, assembler, std::string_view(text).substr(cut), kept);
    Keep(second.Flush(), kept);
    EXPECT_EQ(kept.order, whole.order) << cut;
    ASSERT_EQ(kept.incidents.size(), whole.incidents.size());
    for (size_t i = 0; i < kept.incidents.size(); ++i) {
      EXPECT_EQ(kept.incidents[i].exception_type, whole.incidents[i].exception_type);
      EXPECT_EQ(kept.incidents[i].offset, whole.incidents[i].offset);
    }
    const size_t next = text.find('\n', cut);
    if (next == std::string::npos) break;
    cut = next + 1;
  }
}

TEST(Reader, DamagedStateIsRefused) {
  Reader reader;
  Records kept;
  LineAssembler assembler;
  FeedText(reader, assembler, "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n",
           kept);
  const std::string state = reader.Save();
  for (size_t i = 0; i < state.size(); ++i) {
    Reader other;
    EXPECT_FALSE(other.Restore(std::string_view(state).substr(0, i)));
  }
  Reader other;
  EXPECT_FALSE(other.Restore(state + "x"));
  EXPECT_FALSE(other.Restore("nonsense"));
  EXPECT_EQ(other.Feed(LogLine{}, Timestamp{}).size(), 0u);
}

TEST(Reader, CitationIsCapped) {
  const Records records = ReadText("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB" +
                                   std::string(5000, ' ') + ".\n");
  for (const Incident& incident : records.incidents) EXPECT_LE(incident.line.size(), kCitationCap);
}

TEST(Reader, HostileInput) {
  std::string text("\0\0\xff\xfe\n\r\r\r\n", 9);
  text +=
      "{'loss': {{{{{{{{[[[[((((\n{'loss': 1.5, 'epoch': [[[\n{'loss': '\n{'\nstep 5 loss \n loss "
      "loss loss\n";
  text += "step " + std::string(5000, '9') + " loss " + std::string(5000, '9') + "\n";
  text += std::string(70000, '[') + "loss\n" + std::string(70000, '{') + "'loss': 1\n";
  text += "\x1b[\x1b[\x1b]\x1b step 3 loss\x1b\n" + std::string(3000, '\x1b') + "\n";
  text +=
      "%|| [ %|| 3/ [ %| 3/3 [<]loss=\nEpoch /\nEpoch 1/\n/ [ - loss: 3\n- loss: \n iteration "
      "/|\niteration 5/|:\n";
  text +=
      "step 1 loss 1e400 lr 1e-400\nstep 1 loss 1e99999999999999999999\n[1,[2,[3,\nEpoch: "
      "[\nEpoch: [0][\n";
  for (int i = 0; i < 200; ++i)
    text += std::string(static_cast<size_t>(i), ' ') + "step 5: loss " +
            std::string(static_cast<size_t>(i), '(') + "3\n";
  ReadText(text);
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::string noisy =
        "step 5 loss 3.5 lr 0.1 {'loss': 2.5, 'epoch': 1}  iteration 3/ 4 | lm loss: 3 | 5/5 [=] - "
        "loss: 3\n";
    for (int i = 0; i < 12; ++i) noisy[random() % noisy.size()] = static_cast<char>(random());
    ReadText(noisy);
  }
}

TEST(Reader, TenMegabytesInOneLine) {
  std::string text =
      "step 5 loss 3.5 " + std::string(size_t{10} << 20, 'x') + "\nstep 6 loss 3.0\n";
  const Records records = ReadText(text);
  ASSERT_FALSE(records.rows.empty());
  EXPECT_EQ(records.rows.back().step, "6");
}

// Plain records take a short way past the search for anchors; behind a launcher's prefix the same
// text takes the long one.
TEST(Reader, PlainRecordsReadAsTheyDoOnTheLongWay) {
  std::vector<std::string> lines = {
      "{'loss': 2.5, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.01}",
      "{\"loss\": 2.5, \"step\": 7, \"total_steps\": 90, \"train_speed(s/it)\": 0.25}",
      "{'loss': nan, 'grad_norm': nan, 'epoch': 0.01}",
      "{'loss': 2.5, 'loss_scale': 1024.0, 'reward': -0.5, 'current_steps': 3, 'epoch': 0.01} ",
      "{'loss': 2.5, 'eval_loss': 2.25, 'epoch': 0.01}",
      "{'loss': 2.5}",
      "{'loss': 2.5, 'epoch': 0.01",
      "step 5 loss 1.8 lr 0.05 step_time 0.053s",
      "step: 5, loss: 1.8, lr: 0.05, dt: 53.1ms",
      "step 5 loss 1.8 lr 0.05 step_time 12 loss_scale 3",
      "step 1,250 loss 1.8",
      "iter 10 loss 4.125 time 31.5ms grad_norm 0.5",
      "iteration 71 loss 2.5 grad_norm nan",
      "step 5 d_loss 1.8 loss 2.5",
      "loss 2.5 step 5",
      "step 5.5 loss 2.5",
      "step 5 loss 2.5.1",
  };
  for (const char* const key :
       {"global_step", "iteration", "batch", "epoch",         "train_loss", "lm_loss",
        "avg_loss",    "gnorm",     "norm",  "learning_rate", "lr",         "iter_time",
        "dt",          "ms_step",   "time",  "loss_scale",    "reward",     "g_loss",
        "val",         "test",      "best",  "tps",           "throughput"}) {
    lines.push_back("step 5 " + std::string(key) + " 1.5 loss 2.5 lr 0.1");
    lines.push_back("step: 5, loss: 2.5, " + std::string(key) + ": -1.5e-3");
    lines.push_back(std::string(key) + " 5 loss 2.5");
  }
  for (const char* const line :
       {" iteration       10/     500 | consumed samples: 1280 | elapsed time per iteration (ms): "
        "512.5 | learning rate: 1.5E-04 | lm loss: 9.1E+00 | loss scale: 1.0 | grad norm: 1.5 | "
        "num zeros: 7.0 | number of skipped iterations:   2 |",
        " [2026-02-03 04:05:06] iteration       10/     500 | loss: 2.5 | lm loss: 9.1E+00 |",
        " iteration       10/     500 | learning rate: 1.5E-04 | loss scale: 1.0 |",
        "{'loss': '2.5', 'grad_norm': '1.25', 'reward': '0.5', 'learning_rate': '5e-05', "
        "'entropy': '0.75', 'epoch': '0.01'}",
        "{'loss': 2.5, 'iter': 10, 'step': 70, 'rewards/margins': 0.5, 'epoch': 0.01}",
        "{'loss': 2.5, 'train_speed(iter/s)': 0.25, 'epoch': 0.01}",
        "step 5 loss 2.5 mfu 1.5 ms_step 12.5 kl 0.5 elapsed 12s", "step 5 loss 2.5 dt 12us",
        "step    5 loss 2.5 | lr 0.5"}) {
    lines.push_back(line);
  }
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (const std::string& line : lines) {
    // Twice, with other numbers: the second is read by what was learned from the first.
    std::string again = line;
    for (char& c : again) {
      if (c == '5') c = '3';
    }
    const Records plain = ReadText(line + "\n" + again + "\n" + line + "\n");
    const Records prefixed = ReadText("0: " + line + "\n0: " + again + "\n0: " + line + "\n");
    ASSERT_EQ(plain.order, prefixed.order) << line;
    for (size_t i = 0; i < plain.rows.size(); ++i) {
      const auto& a = plain.rows[i];
      const auto& b = prefixed.rows[i];
      EXPECT_EQ(a.format, b.format) << line;
      EXPECT_EQ(a.step, b.step) << line;
      EXPECT_EQ(a.loss, b.loss) << line;
      EXPECT_EQ(a.grad_norm, b.grad_norm) << line;
      EXPECT_EQ(a.learning_rate, b.learning_rate) << line;
      for (const auto number :
           {&Progress::step, &Progress::loss, &Progress::grad_norm, &Progress::learning_rate,
            &Progress::total_steps, &Progress::epoch, &Progress::step_seconds, &Progress::reward,
            &Progress::loss_scale, &Progress::mfu, &Progress::kl, &Progress::elapsed_seconds,
            &Progress::num_zeros, &Progress::consumed_samples, &Progress::skipped_iterations}) {
        EXPECT_TRUE(same(a.progress.*number, b.progress.*number)) << line;
      }
      EXPECT_EQ(a.progress.loss_key_missing, b.progress.loss_key_missing) << line;
    }
  }
}

}  // namespace
}  // namespace rankscope::logs
