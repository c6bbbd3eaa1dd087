// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a packet of the run socket, from both sides, and as a wrapper's recording: what is
// taken is within the protocol's bounds, and of what a wrapper has recorded only its own job, its
// own child and its own lines pass, as the kernel knows them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "detectors/logs/text/assembler.h"
#include "detectors/recording/recording.h"
#include "exporter/run/protocol.h"
#include "exporter/run/wrapper_words.h"

using namespace rankscope;
using namespace rankscope::run;

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckPacket(std::span<const char> bytes) {
  for (size_t descriptors = 0; descriptors <= kMaxFds + 1; ++descriptors) {
    if (const auto hello = ReadHello(bytes, descriptors)) {
      const std::string job_id = hello->job_id.data();
      Check(IsJobId(job_id) && job_id.find('/') == std::string::npos && hello->streams < 4);
      Check(descriptors >= kHelloFds && descriptors <= kMaxFds);
      // What is said again is heard the same; behind the name nothing is said.
      HelloMessage again = *hello;
      again.job_id = {};
      std::memcpy(again.job_id.data(), job_id.data(), job_id.size());
      const auto heard = ReadHello(BytesOf(again), descriptors);
      Check(heard && job_id == heard->job_id.data() && heard->root_pid == hello->root_pid);
    }
    if (const auto verdict = ReadVerdict(bytes, descriptors)) {
      Check(descriptors == 1);
      Check(verdict->json_bytes + verdict->text_bytes <= 2 * kVerdictCap);
    }
  }
  if (const auto stream = ReadStream(bytes)) Check(*stream < kMaxStreams);
}

WrapperWords Words() {
  WrapperWords words;
  words.job_id = "run-1000-0a1b2c3d";
  words.claimed_root = {7, 70};
  words.peer.uid = 1000;
  words.peer.process = {100, 1000};
  words.root.key = {101, 1001};
  words.root.cgroup = "/user.slice";
  words.root.ns_pids = {101, 7};
  return words;
}

void CheckHeard(const WrapperWords& words, Heard heard) {
  const Observation& observation = heard.Bound();
  if (const auto* mark = std::get_if<RunMark>(&observation.kind)) {
    Check(mark->job_id == words.job_id && mark->uid == words.peer.uid && !mark->from_folder);
    Check(mark->root == words.root.key && mark->what != RunMark::What::kLost &&
          mark->what != RunMark::What::kDisowned);
  } else if (const auto* start = std::get_if<ProcessStart>(&observation.kind)) {
    Check(start->key == words.root.key && start->parent == words.peer.process);
    Check(start->uid == words.peer.uid && start->cgroup == words.root.cgroup);
    Check(start->job_id == words.job_id && start->ns_pids == words.root.ns_pids);
  } else {
    const auto* line = std::get_if<LogLine>(&observation.kind);
    Check(line != nullptr && line->job_id == words.job_id && line->writer == ProcessKey{});
    Check(line->stream >= 1 && line->stream <= 2 && line->text.size() <= logs::kLineCap);
    Check(line->offset >= 0 && line->lost_before >= 0 && line->cut_bytes >= 0);
    Check(line->offset <= INT64_MAX / 4 && line->lost_before <= INT64_MAX / 4);
  }
}

void CheckWords(const WrapperWords& words, const Observation& observation) {
  Sifted sifted = words.Sift(observation);
  Check(!sifted.heard || !sifted.foreign);
  if (sifted.heard) CheckHeard(words, *std::move(sifted.heard));
}

// A random recording names this very job too rarely.
void Adopt(const WrapperWords& words, Observation& observation) {
  if (auto* mark = std::get_if<RunMark>(&observation.kind)) mark->job_id = words.job_id;
  if (auto* line = std::get_if<LogLine>(&observation.kind)) line->job_id = words.job_id;
  if (auto* start = std::get_if<ProcessStart>(&observation.kind)) {
    start->job_id = words.job_id;
    start->key = words.claimed_root;
  }
}

void CheckRecording(std::string_view bytes) {
  const WrapperWords words = Words();
  recording::Decoder decoder;
  const auto header = [](const recording::Header&) {};
  const auto observation = [&words](const Observation& heard) {
    CheckWords(words, heard);
    Observation own = heard;
    Adopt(words, own);
    CheckWords(words, own);
  };
  decoder.Feed(bytes, header, observation);
  decoder.Finish(header, observation);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char* const bytes = reinterpret_cast<const char*>(data);
  CheckPacket({bytes, std::min(size, kPacketCap)});
  CheckRecording({bytes, size});
  return 0;
}
