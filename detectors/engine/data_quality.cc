// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/engine/data_quality.h"

#include <algorithm>
#include <string>

#include "detectors/sentences/remarks.h"

namespace rankscope::engine {
namespace {

using sentences::Remark;
using sentences::RemarkText;

using windows::Hearing;
using windows::JobWindow;
using windows::SourceGap;
using windows::UnheardSpan;
using windows::UnheardWhy;

// Of more streams or spans nobody reads; the counts hold them all.
constexpr int kMostTold = 8;

class DataWriter {
 public:
  DataWriter(const DataContext& context, const proto::Verdict& verdict, proto::DataQuality& quality)
      : job_(*context.job),
        output_unread_(context.output_unread),
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
  void Note(Remark remark, const FieldValues& values = {}) {
    quality_.add_notes(RemarkText(remark, values));
  }

  // Text that came through no wrapper, which keeps what it reads, is heard at the moment it is
  // written or never.
  bool HeardAtOnce() const {
    return !job_.wrapped() || std::any_of(job_.streams().begin(), job_.streams().end(),
                                          [](const auto& each) { return each.second.ranked(); });
  }

  // Seconds after the job began.
  FieldValue After(Timestamp t) const {
    return {FieldId::kAfter, std::max(0.0, (t - job_.begin()).seconds())};
  }

  void TellSpans() {
    const auto skipped = static_cast<int64_t>(hearing_.spans().size()) - kMostTold;
    int64_t at = 0;
    for (const UnheardSpan& span : hearing_.spans()) {
      if (at++ < skipped) continue;
      const bool away = span.why == static_cast<uint8_t>(UnheardWhy::kAway);
      const char* const text = !HeardAtOnce() ? "" : span.output_read ? "read" : "unread";
      Note(Remark::kNotObserved, {{FieldId::kSeconds, (span.end - span.begin).seconds()},
                                  After(span.begin),
                                  {FieldId::kWhat, away ? "away" : "stopped"},
                                  {FieldId::kHow, text}});
    }
    if (hearing_.times() > kMostTold) {
      Note(Remark::kNotObservedOften,
           {{FieldId::kTimes, hearing_.times()}, {FieldId::kSeconds, hearing_.total().seconds()}});
    }
  }

  void TellEarlierProcesses() {
    if (hearing_.earlier_processes() == 0) return;
    Note(Remark::kEarlierProcesses, {{FieldId::kProcesses, hearing_.earlier_processes()},
                                     {FieldId::kHow, job_.wrapped()            ? ""
                                                     : hearing_.earlier_read() ? "read"
                                                                               : "unread"}});
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
        Note(Remark::kLostBytes, {{FieldId::kStream, stream.name},
                                  {FieldId::kBytes, stream.lost_bytes},
                                  {FieldId::kUpTo, stream.lost_up_to}});
      }
      if (stream.cut_bytes > 0) {
        Note(Remark::kCutBytes,
             {{FieldId::kStream, stream.name}, {FieldId::kBytes, stream.cut_bytes}});
      }
    }
    if (more > 0) Note(Remark::kMoreStreams, {{FieldId::kStreams, more}});
    if (hearing_.lines_dropped() > 0) {
      Note(Remark::kUnfollowedStreams,
           {{FieldId::kLines, hearing_.lines_dropped()},
            {FieldId::kStreams, static_cast<int64_t>(JobWindow::kMaxStreams)}});
    }
    if (job_.incidents().dropped() > 0) {
      Note(Remark::kErrorsLeftOut, {{FieldId::kErrors, job_.incidents().dropped()}});
    }
  }

  void TellSources() {
    for (const SourceGap& gap : hearing_.sources()) {
      if (gap.lost > 0) {
        lost_events_ += gap.lost;
        Note(Remark::kSourceLost, {{FieldId::kSource, gap.name}, {FieldId::kNumber, gap.lost}});
      }
      if (gap.late) {
        Note(Remark::kSourceLate, {{FieldId::kSource, gap.name}, After(gap.first + gap.total)});
      } else if (gap.since.ns != 0) {
        Note(Remark::kSourceGone, {{FieldId::kSource, gap.name}, After(gap.since)});
      } else if (gap.was_absent()) {
        Note(Remark::kSourceAway, {{FieldId::kSource, gap.name},
                                   {FieldId::kSeconds, gap.total.seconds()},
                                   After(gap.first)});
      }
    }
  }

  void TellEnd() {
    if (!job_.wrapper_note().empty()) quality_.add_notes(job_.wrapper_note());
    const windows::JobEnd& end = job_.end();
    if (end.from_folder) Note(Remark::kEndFromFolder);
    if (end.wrapper_lost && !end.status_known) Note(Remark::kWrapperEnded);
    if (!end.streams_closed && verdict_.state() == proto::FINAL) {
      Note(Remark::kStreamsOpen);
    }
    if (output_unread_) Note(Remark::kOutputUnread);
  }

  const JobWindow& job_;
  const bool output_unread_;
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
