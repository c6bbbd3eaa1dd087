// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/engine/data_quality.h"

#include <algorithm>
#include <string>

#include "detectors/families/family.h"

namespace rankscope::engine {
namespace {

using families::Counted;
using families::Number;
using windows::Hearing;
using windows::JobWindow;
using windows::SourceGap;
using windows::StreamWindow;
using windows::UnheardSpan;
using windows::UnheardWhy;

// Of more streams or spans nobody reads; the counts hold them all.
constexpr int kMostTold = 8;

class DataWriter {
 public:
  DataWriter(const DataContext& context, const proto::Verdict& verdict, proto::DataQuality& quality)
      : job_(*context.job),
        hearing_(job_.hearing()),
        verdict_(verdict),
        quality_(quality),
        lost_events_(job_.incidents().dropped() + hearing_.lines_dropped()) {}

  void Write() {
    TellSpans();
    TellEarlierProcesses();
    TellStreams();
    TellSources();
    TellEnd();
    quality_.set_lost_bytes(lost_bytes_);
    quality_.set_lost_events(lost_events_);
    quality_.set_exact(quality_.notes_size() == 0 && lost_bytes_ == 0 && lost_events_ == 0);
  }

 private:
  void Note(std::string text) { quality_.add_notes(std::move(text)); }

  // Text that came through no wrapper, which keeps what it reads, is heard at the moment it is
  // written or never.
  bool HeardAtOnce() const {
    return !job_.wrapped() || std::any_of(job_.streams().begin(), job_.streams().end(),
                                          [](const auto& each) { return each.second.ranked(); });
  }

  std::string After(Timestamp t) const {
    return Number(std::max(0.0, (t - job_.begin()).seconds())) + " s after the job began";
  }

  void TellSpans() {
    const auto skipped = static_cast<int64_t>(hearing_.spans().size()) - kMostTold;
    int64_t at = 0;
    for (const UnheardSpan& span : hearing_.spans()) {
      if (at++ < skipped) continue;
      const bool away = span.why == static_cast<uint8_t>(UnheardWhy::kAway);
      Note("nothing was observed for " + Number((span.end - span.begin).seconds()) + " s, from " +
           After(span.begin) + ": rankscope " +
           (away ? "was not running" : "was stopped or had no CPU") +
           (!HeardAtOnce()     ? ""
            : span.output_read ? "; what the job printed meanwhile was read from its files"
                               : "; how much the job printed meanwhile is not known"));
    }
    if (hearing_.times() > kMostTold) {
      Note("nothing was observed " + std::to_string(hearing_.times()) + " times, together for " +
           Number(hearing_.total().seconds()) + " s; the newest are told");
    }
  }

  void TellEarlierProcesses() {
    if (hearing_.earlier_processes() == 0) return;
    const int64_t count = hearing_.earlier_processes();
    Note((count == 1 ? "a process" : std::to_string(count) + " processes") +
         " of the job ran before rankscope observed this node: what happened before that is not "
         "known" +
         (job_.wrapped() ? "" : ", nor what was printed"));
  }

  void TellStreams() {
    int told = 0, more = 0;
    for (const auto& [id, stream] : job_.streams()) {
      lost_bytes_ += stream.lost_bytes;
      if (stream.lost_bytes == 0 && stream.cut_bytes == 0) continue;
      if (told++ >= kMostTold) {
        ++more;
        continue;
      }
      if (stream.lost_bytes > 0) {
        Note(stream.name + ": " + std::to_string(stream.lost_bytes) +
             " bytes were not heard, the newest of them before byte " +
             std::to_string(stream.lost_up_to));
      }
      if (stream.cut_bytes > 0) {
        Note(stream.name + ": " + std::to_string(stream.cut_bytes) +
             " bytes cut out of over-long lines");
      }
    }
    if (more > 0) Note(Counted(more, "further stream") + " of the job lost text as well");
    if (hearing_.lines_dropped() > 0) {
      Note(Counted(static_cast<double>(hearing_.lines_dropped()), "line") +
           " of streams beyond the " + std::to_string(JobWindow::kMaxStreams) +
           " that are followed of one job were not read");
    }
    if (job_.incidents().dropped() > 0) {
      Note(Counted(static_cast<double>(job_.incidents().dropped()), "error") +
           " that the job told of found no room and were left out");
    }
  }

  void TellSources() {
    for (const SourceGap& gap : hearing_.sources()) {
      if (gap.lost > 0) {
        lost_events_ += gap.lost;
        Note("source " + gap.name + " lost " + std::to_string(gap.lost) +
             " events or bytes while the job ran; whose they were is not known");
      }
      if (gap.late) {
        Note("source " + gap.name + " was there only from " + After(gap.first + gap.total));
      } else if (gap.since.ns != 0) {
        Note("source " + gap.name + " is not there since " + After(gap.since));
      } else if (gap.was_absent()) {
        Note("source " + gap.name + " was not there for " + Number(gap.total.seconds()) +
             " s, first " + After(gap.first));
      }
    }
  }

  void TellEnd() {
    if (!job_.wrapper_note().empty()) Note(job_.wrapper_note());
    const windows::JobEnd& end = job_.end();
    if (end.from_folder)
      Note(
          "the run ended while rankscope was not running: how it ended, and what it printed last, "
          "are "
          "from the recording in the run's own folder");
    if (end.wrapper_lost && !end.status_known)
      Note("the wrapper ended before its command: how the command ended was not told");
    if (!end.streams_closed && verdict_.state() == proto::FINAL) {
      Note(
          "the streams were still open when the verdict became final: a background process holds "
          "them");
    }
  }

  const JobWindow& job_;
  const Hearing& hearing_;
  const proto::Verdict& verdict_;
  proto::DataQuality& quality_;
  int64_t lost_bytes_ = 0;
  int64_t lost_events_ = 0;
};

}  // namespace

void DescribeData(const DataContext& context, proto::Verdict& verdict) {
  proto::DataQuality* quality = verdict.mutable_data_quality();
  quality->set_clock_uncertainty_s(context.clock_uncertainty_s);
  DataWriter(context, verdict, *quality).Write();
  for (const SourceState& source : *context.sources) {
    proto::SourceState* out = quality->add_sources();
    out->set_source(source.source);
    out->set_name(source.name);
    out->set_state(static_cast<proto::Availability>(source.state));
    out->set_reason(source.reason);
    out->set_lost(source.lost);
  }
}

}  // namespace rankscope::engine
