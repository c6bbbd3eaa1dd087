// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/verdict/evidence_writer.h"

#include <cmath>
#include <utility>

#include "detectors/families/family.h"
#include "detectors/sentences/wording.h"

namespace rankscope::engine {

using features::Evidence;
using features::EvidenceRef;

int64_t EvidenceWriter::Cite(EvidenceRef ref) {
  const Evidence* evidence = f_.At(ref);
  if (evidence == nullptr) return -1;
  if (const auto known = numbers_.find(ref); known != numbers_.end()) return known->second;
  const auto number = static_cast<uint32_t>(verdict_.shows_size());
  numbers_[ref] = number;
  Write(*evidence, EvidenceSignal(evidence->kind), EvidenceText(*evidence), number,
        *verdict_.add_shows());
  verdict_.mutable_shows(static_cast<int>(number))->set_observed_text(ObservedText(*evidence));
  return number;
}

uint32_t EvidenceWriter::Add(const Evidence& evidence, std::string_view signal, std::string text) {
  const auto number = static_cast<uint32_t>(verdict_.shows_size());
  Write(evidence, signal, std::move(text), number, *verdict_.add_shows());
  return number;
}

void EvidenceWriter::Write(const Evidence& evidence, std::string_view signal, std::string text,
                           uint32_t number, proto::Evidence& out) const {
  out.set_id(number);
  out.set_store(evidence.store);
  out.set_signal(std::string(signal));
  out.set_text(std::move(text));
  if (evidence.observed) out.set_observed(*evidence.observed);
  if (evidence.expected && std::isfinite(*evidence.expected)) out.set_expected(*evidence.expected);
  out.set_unit(std::string(evidence.unit));
  out.set_begin_ns(Wall(evidence.begin));
  out.set_end_ns(Wall(evidence.end));
  if (evidence.ranks.size() == 1) out.set_rank(evidence.ranks.front());
  if (evidence.offset >= 0) {
    proto::LogRef* log = out.mutable_cite()->mutable_log();
    log->set_stream(evidence.stream);
    log->set_offset(evidence.offset);
    log->set_line(evidence.line);
  } else if (const std::string_view captured = evidence.Capture("query"); !captured.empty()) {
    out.mutable_cite()->set_promql(std::string(captured));
  } else if (evidence.store == proto::STORE_SCHEDULER) {
    proto::SchedulerRef* ref = out.mutable_cite()->mutable_scheduler();
    const std::string_view other = evidence.Capture("of_job");
    ref->set_job_id(other.empty() ? verdict_.job_id() : std::string(other));
    ref->set_field(std::string(evidence.Capture("field")));
    ref->set_value(std::string(evidence.Capture("value")));
    ref->set_origin(std::string(evidence.Capture("origin")));
  } else if (evidence.store == proto::STORE_KERNEL ||
             (evidence.store == proto::STORE_NCCL && evidence.Capture("query").empty())) {
    proto::KernelRef* ref = out.mutable_cite()->mutable_kernel();
    ref->set_source(std::string(evidence.Capture("shape")));
    ref->set_text(evidence.line);
    ref->set_t_ns(Wall(evidence.begin));
  } else if (evidence.store == proto::STORE_PROCESS) {
    proto::ProcRef* ref = out.mutable_cite()->mutable_process();
    ref->mutable_process()->set_pid(evidence.process.pid);
    ref->mutable_process()->set_start_ticks(evidence.process.start_ticks);
    ref->set_what(std::string(signal));
    ref->set_value(evidence.observed ? families::Number(*evidence.observed)
                                     : std::string(evidence.Capture("setting")));
  } else if (const std::string_view promql = evidence.Capture("query"); !promql.empty()) {
    out.mutable_cite()->set_promql(std::string(promql));
  }
}

}  // namespace rankscope::engine
