// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/replay/reading.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "exporter/replay/engine_state.h"
#include "exporter/replay/segments.h"

namespace rankscope::replay {

namespace {

constexpr size_t kPieceBytes = 256 * 1024;

struct FileEnd {
  int64_t good_bytes = 0;
  bool begun = false;  // a header was there
  bool whole = true;   // nothing behind good_bytes
  std::string reason;
};

// Decodes a whole file, or until `wanted` says stop.
FileEnd DecodeFile(int fd, const recording::Decoder::OnHeader& header,
                   const recording::Decoder::OnObservation& observation,
                   const std::function<bool()>& wanted) {
  recording::Decoder decoder;
  FileEnd end;
  const auto on_header = [&](const recording::Header& read) {
    end.begun = true;
    if (header) header(read);
  };
  std::vector<char> piece(kPieceBytes);
  for (int64_t at = 0; !decoder.failed() && wanted();) {
    const ssize_t size = pread(fd, piece.data(), piece.size(), at);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) {
      end.whole = false;
      end.reason = std::strerror(errno);
    }
    if (size <= 0) break;
    at += size;
    decoder.Feed({piece.data(), static_cast<size_t>(size)}, on_header, observation);
  }
  decoder.Finish(on_header, observation);
  end.good_bytes = decoder.good_bytes();
  if (decoder.failed()) {
    end.whole = false;
    end.reason = decoder.error();
  } else if (decoder.pending() > 0) {
    end.whole = false;
    end.reason =
        "ends in the middle of a frame that begins at byte " + std::to_string(end.good_bytes);
  }
  return end;
}

bool HoldsTicks(int fd) {
  bool found = false;
  DecodeFile(
      fd, nullptr,
      [&](const Observation& o) { found = found || std::holds_alternative<Tick>(o.kind); },
      [&] { return !found; });
  return found;
}

// What a file begins with: its header and, where there is one, the engine's state.
struct Head {
  std::optional<recording::Header> header;
  std::optional<EngineState> state;
};

Head ReadHead(int fd) {
  Head head;
  EngineStateJoiner joiner;
  bool at_head = true;
  DecodeFile(
      fd, [&](const recording::Header& header) { head.header = header; },
      [&](const Observation& observation) {
        const auto* part = std::get_if<EngineState>(&observation.kind);
        at_head = at_head && part != nullptr && !head.state;
        if (at_head) head.state = joiner.Add(*part);
      },
      [&] { return at_head && !head.state; });
  return head;
}

class Reading {
 public:
  explicit Reading(const ReadCallbacks& callbacks) : callbacks_(callbacks) {}

  ReadResult File(int fd) {
    ticks_recorded_ = HoldsTicks(fd);
    // A segment that was taken out of its directory begins in the middle.
    const Head head = ReadHead(fd);
    if (head.state) Restore(head, "the recording");
    const FileEnd end = Decode(fd);
    if (result_.readable) {
      Finish(end);
      Begin();
    } else {
      result_.error = end.whole ? "is empty" : end.reason;
    }
    return std::move(result_);
  }

  ReadResult Directory(int directory_fd) {
    const std::vector<int64_t> numbers = ListSegments(directory_fd);
    if (!numbers.empty() && numbers.front() == 1) {
      ticks_recorded_ = SegmentsHoldTicks(directory_fd, numbers);
      Segments(directory_fd, numbers, 0);
    } else if (numbers.empty() || !FromState(directory_fd, numbers)) {
      Merged(directory_fd, numbers);
    }
    if (result_.readable) {
      Begin();
    } else {
      result_.error = result_.notes.empty() ? "holds no recording: neither bulk-*.rec nor facts.rec"
                                            : result_.notes.back();
    }
    return std::move(result_);
  }

 private:
  void Note(std::string text) { result_.notes.push_back(std::move(text)); }

  bool Restore(const Head& head, const std::string& what) {
    SetHeader(head.header.value_or(recording::Header{}));
    if (callbacks_.restore && callbacks_.restore(*head.state)) return true;
    result_.exact = false;
    Note(what + " goes on from an engine state of another build, which cannot be taken");
    return false;
  }

  // The first header is the recording's.
  void SetHeader(const recording::Header& header) {
    if (std::exchange(header_known_, true)) return;
    header_ = header;
    if (callbacks_.header) callbacks_.header(header_);
  }

  void Begin() {
    if (std::exchange(begun_, true)) return;
    if (callbacks_.begin) callbacks_.begin(ticks_recorded_);
  }

  void Give(const Observation& observation) {
    Begin();
    ++result_.observations;
    if (callbacks_.observation) callbacks_.observation(observation);
  }

  FileEnd Decode(int fd, bool without_ticks = false) {
    return DecodeFile(
        fd,
        [this](const recording::Header& header) {
          result_.readable = true;
          SetHeader(header);
        },
        [&](const Observation& observation) {
          if (std::holds_alternative<EngineState>(observation.kind)) return;
          if (without_ticks && std::holds_alternative<Tick>(observation.kind)) return;
          Give(observation);
        },
        [] { return true; });
  }

  void Finish(const FileEnd& end) {
    if (end.whole) return;
    result_.exact = false;
    result_.truncated_at = end.good_bytes;
    Note("cut off: " + end.reason);
  }

  static bool SegmentsHoldTicks(int directory_fd, const std::vector<int64_t>& numbers) {
    return std::any_of(numbers.begin(), numbers.end(), [&](int64_t number) {
      const OwnedFd fd = OpenForReading(directory_fd, SegmentName(number));
      return fd && HoldsTicks(fd.get());
    });
  }

  // Segments in order. `before`: the number of the last one already accounted for.
  void Segments(int directory_fd, const std::vector<int64_t>& numbers, int64_t before,
                bool without_ticks = false) {
    bool hole = false;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const std::string name = SegmentName(numbers[i]);
      const OwnedFd fd = OpenForReading(directory_fd, name);
      if (!fd) {
        Note(name + ": " + std::strerror(errno));
        hole = true;
        continue;
      }
      hole = hole || (before != 0 && numbers[i] != before + 1);
      if (hole) {
        const Head head = ReadHead(fd.get());
        Note("observations before " + name + " are missing" +
             (head.state ? "" : ", and it begins with no engine state"));
        if (head.state) {
          Restore(head, name);
        } else {
          result_.exact = false;
        }
      }
      before = numbers[i];
      const FileEnd end = Decode(fd.get(), without_ticks);
      hole = !end.whole;
      if (i + 1 == numbers.size()) {
        Finish(end);
      } else if (hole) {
        Note(name + " is damaged: " + end.reason);
      }
    }
  }

  // The first segments are gone: go on from the state that the oldest one left begins with.
  bool FromState(int directory_fd, const std::vector<int64_t>& numbers) {
    const OwnedFd fd = OpenForReading(directory_fd, SegmentName(numbers.front()));
    const Head head = fd ? ReadHead(fd.get()) : Head{};
    if (!head.state || !Restore(head, SegmentName(numbers.front()))) return false;
    Note("begins with the engine's state of " + SegmentName(numbers.front()) +
         "; older segments are gone");
    ticks_recorded_ = SegmentsHoldTicks(directory_fd, numbers);
    Segments(directory_fd, numbers, numbers.front() - 1);
    return true;
  }

  // What is left when no state can be taken: the facts and the lines kept, by time, and then the
  // segments that are there. Their ticks stay out, because the part before has none.
  void Merged(int directory_fd, const std::vector<int64_t>& numbers) {
    using Identity = std::tuple<uint32_t, int64_t, int64_t>;
    const auto identity = [](const Observation& o) { return Identity{o.source, o.seq, o.t.ns}; };
    std::set<Identity> in_bulk;
    for (const int64_t number : numbers) {
      const OwnedFd fd = OpenForReading(directory_fd, SegmentName(number));
      if (!fd) continue;
      DecodeFile(
          fd.get(), nullptr,
          [&](const Observation& o) {
            if (!std::holds_alternative<LogLine>(o.kind) &&
                !std::holds_alternative<SampleBatch>(o.kind)) {
              in_bulk.insert(identity(o));
            }
          },
          [] { return true; });
    }
    struct Kept {
      int64_t t_ns;
      int64_t seq;
      std::string frame;
    };
    std::vector<Kept> kept;
    for (const char* name : {kFactsName, kProgressName}) {
      const OwnedFd fd = OpenForReading(directory_fd, name);
      if (!fd) continue;
      const FileEnd end = DecodeFile(
          fd.get(),
          [this](const recording::Header& header) {
            result_.readable = true;
            SetHeader(header);
          },
          [&](const Observation& o) {
            Kept one{o.t.ns, o.seq, {}};
            if (in_bulk.count(identity(o)) == 0 && recording::AppendObservation(o, one.frame)) {
              kept.push_back(std::move(one));
            }
          },
          [] { return true; });
      if (!end.whole) Note(std::string(name) + " is damaged: " + end.reason);
    }
    if (!result_.readable && numbers.empty()) return;
    result_.exact = false;
    Note("only facts and kept lines are left of the beginning");
    ticks_recorded_ = false;
    // Two files, each in its own order: what is equal in time and sequence stays in it.
    std::stable_sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
      return std::tie(a.t_ns, a.seq) < std::tie(b.t_ns, b.seq);
    });
    recording::Decoder decoder;
    std::string head;
    recording::AppendHeader(header_, head);
    decoder.Feed(
        head, [](const recording::Header&) {}, [](const Observation&) {});
    for (const Kept& one : kept) {
      decoder.Feed(
          one.frame, [](const recording::Header&) {},
          [this](const Observation& observation) { Give(observation); });
    }
    Segments(directory_fd, numbers, numbers.empty() ? 0 : numbers.front() - 1, true);
  }

  const ReadCallbacks& callbacks_;
  ReadResult result_;
  recording::Header header_;
  bool ticks_recorded_ = false;
  bool header_known_ = false;
  bool begun_ = false;
};

struct CloseFile {
  void operator()(FILE* file) const { std::fclose(file); }
};

// Standard input is read twice, so a pipe goes through a file without a name.
ReadResult ReadStandardInput(const ReadCallbacks& callbacks) {
  if (lseek(STDIN_FILENO, 0, SEEK_SET) == 0) return Reading(callbacks).File(STDIN_FILENO);
  ReadResult failed;
  const std::unique_ptr<FILE, CloseFile> spool(std::tmpfile());
  if (!spool) {
    failed.error = std::string("standard input: no temporary file: ") + std::strerror(errno);
    return failed;
  }
  std::vector<char> piece(kPieceBytes);
  for (;;) {
    const ssize_t size = read(STDIN_FILENO, piece.data(), piece.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    if (std::fwrite(piece.data(), 1, static_cast<size_t>(size), spool.get()) !=
        static_cast<size_t>(size)) {
      failed.error = std::string("standard input: temporary file: ") + std::strerror(errno);
      return failed;
    }
  }
  std::fflush(spool.get());
  return Reading(callbacks).File(fileno(spool.get()));
}

}  // namespace

ReadResult ReadRecording(const std::string& path, const ReadCallbacks& callbacks) {
  if (path == "-") return ReadStandardInput(callbacks);
  ReadResult failed;
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status = {};
  if (!fd || fstat(fd.get(), &status) != 0) {
    failed.error = std::strerror(errno);
    return failed;
  }
  if (S_ISDIR(status.st_mode)) return ReadRecordingDirectory(fd.get(), callbacks);
  if (!S_ISREG(status.st_mode)) {
    failed.error = "is neither a file nor a directory; use - for a pipe";
    return failed;
  }
  return Reading(callbacks).File(fd.get());
}

ReadResult ReadRecordingDirectory(int directory_fd, const ReadCallbacks& callbacks) {
  return Reading(callbacks).Directory(directory_fd);
}

}  // namespace rankscope::replay
