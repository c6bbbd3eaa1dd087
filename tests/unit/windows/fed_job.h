// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A job window that is fed with text and processes, and lines to feed it with.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "detectors/logs/reader.h"
#include "detectors/model/event_types.h"
#include "detectors/windows/job_window.h"

namespace rankscope::windows {

inline constexpr char kTraceback[] =
    "Traceback (most recent call last):\n"
    "  File \"/home/u/train.py\", line 9, in <module>\n"
    "    main()\n"
    "ValueError: no\n";
inline constexpr char kBanner[] =
    "[INFO] [logging.py:96:log_dist] [Rank -1] DeepSpeed info: version=0.9.1, git-hash=unknown\n";
inline constexpr char kRestart[] =
    "[default] Worker group FAILED. 2/3 attempts left; will restart worker group\n";
inline constexpr char kSlurmKilled[] =
    "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-02-03T04:05:06 ***\n";

inline std::string Steps(int from, int to) {
  std::string text;
  for (int step = from; step <= to; ++step)
    text +=
        "step " + std::to_string(step) + " loss 1." + std::to_string(1000 + step) + " lr 0.01\n";
  return text;
}

class JobWindowTest : public ::testing::Test {
 protected:
  void Say(double second, const std::string& text, uint32_t stream = 1) {
    const Timestamp t = At(second);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = text.find('\n', begin);
      const std::string one = text.substr(begin, end - begin);
      LogLine line;
      line.stream = stream;
      line.stream_name = "log";
      line.text = one;
      line.offset = offset_;
      line.end = LineEnd::kLf;
      offset_ += static_cast<int64_t>(one.size()) + 1;
      if (past_) {
        Event event;
        event.type = WireType(EventType::kOutputRead);
        event.num = {{"stream", stream}, {"end", offset_}};
        job_.OnPastText(event);
      }
      job_.OnLine(line, t);
      for (const logs::Record& record : readers_[stream].Feed(line, t))
        job_.OnRecord(record, stream, &line, t);
      begin = end + 1;
    }
  }
  void Flush(double second) {
    for (auto& [stream, reader] : readers_) {
      for (const logs::Record& record : reader.Flush())
        job_.OnRecord(record, stream, nullptr, At(second));
    }
  }
  void StartRank(double second, int32_t pid, int32_t rank, int32_t elastic, int32_t slurm = 0) {
    attribution::ProcessInfo process;
    process.key = {pid, pid};
    process.role = attribution::ProcessRole::kRank;
    process.rank = rank;
    process.world_size = 2;
    process.elastic_restart = elastic;
    process.slurm_restart = slurm;
    job_.OnProcessStart(process, false, At(second));
  }
  static Timestamp At(double second) { return {static_cast<int64_t>((1000 + second) * 1e9)}; }

  JobWindow job_{"j", At(0)};
  std::map<uint32_t, logs::Reader> readers_;
  int64_t offset_ = 0;
  bool past_ = false;  // what is said now was read from a file later
};

}  // namespace rankscope::windows
