// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What a wrapper has handed over: its recording's folder, its log, the pipes of its command.
// Whatever is done with a descriptor of a user's can hang for as long as he likes (his file system
// may be a program of his own): looking at it, reading it, closing it. So everything here, the
// destructor too, is called on that user's thread, one call at a time, and gives back what it has
// read in batches of bounded size.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "detectors/logs/text/assembler.h"
#include "detectors/model/observation.h"
#include "exporter/loop/owned_fd.h"
#include "exporter/replay/follower.h"
#include "exporter/run/child.h"
#include "exporter/run/peer.h"
#include "exporter/run/protocol.h"
#include "exporter/run/wrapper_words.h"

namespace rankscope::run {

struct Batch {
  std::vector<Heard> heard;
  bool more = false;    // there may be more to read at once
  bool closed = false;  // Drain: nobody can write into the pipes any more
  int64_t gaps = 0;     // so far: what was recorded and could not be read
  int64_t foreign = 0;  // in this batch: what a wrapper may not say
};

class RunFiles {
 public:
  // A batch comes of at most so many bytes, and one frame (1 MiB).
  static constexpr int64_t kBatchBytes = 64 * 1024;

  RunFiles(std::vector<OwnedFd> fds, const HelloMessage& hello, Peer peer);

  // Whether these are a recording, a log and pipes, and which process is the command. The first
  // call.
  bool Check();

  // After Check: the process that the wrapper has forked; pid 0 where it has not shown one.
  ProcessKey root() const { return words_.root.key; }
  // Taken by the loop's thread, for whom they are pipes and wait for nobody.
  OwnedFd TakeLife() { return std::move(life_); }
  OwnedFd TakeStream(int stream) { return std::move(streams_[static_cast<size_t>(stream)]); }
  bool has_stream(int stream) const {
    return static_cast<bool>(streams_[static_cast<size_t>(stream)]);
  }

  // From the first observation behind `after_seq`; the slot tells the wrappers of a job apart.
  void Begin(int slot, int64_t after_seq);
  // The recording, as far as it has grown.
  Batch ReadRecording();
  // After the wrapper's death: what the log holds beyond the recorded text.
  Batch ReadLog();
  // After the guardian's too: the pipes, into the log and into lines. Takes over their
  // descriptors.
  void TakePipes(std::array<OwnedFd, kStreams> streams);
  Batch Drain();

 private:
  void Hear(const Observation& observation, Batch& batch);
  bool ReadLogPiece(Batch& batch);
  bool DrainStream(OwnedFd& stream, Batch& batch);
  void FeedLog(std::string_view bytes, Batch& batch);

  WrapperWords words_;
  uint32_t stream_bits_ = 0;
  OwnedFd directory_;
  OwnedFd log_;
  OwnedFd life_;
  std::array<OwnedFd, kStreams> streams_;
  int slot_ = 0;
  std::optional<replay::Follower> follower_;

  std::array<int64_t, kStreams> recorded_{};  // where the recorded text of each stream ends
  std::optional<logs::LineAssembler> log_lines_;
  int64_t log_offset_ = 0;  // of the log, up to which its text was read
};

}  // namespace rankscope::run
