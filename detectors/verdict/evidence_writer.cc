// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/verdict/evidence_writer.h"

#include <cmath>
#include <utility>

#include "detectors/sentences/evidence_text.h"
#include "detectors/sentences/render.h"

namespace rankscope::engine {

using features::Evidence;
using features::EvidenceRef;
using sentences::EvidenceSignal;
using sentences::EvidenceText;

int64_t EvidenceWriter::Cite(EvidenceRef ref) {
  const Evidence* evidence = f_.At(ref);
  if (evidence == nullptr) return -1;
  if (const auto known = numbers_.find(ref); known != numbers_.end()) return known->second;
  const auto number = static_cast<uint32_t>(verdict_.shows_size());
  numbers_[ref] = number;
  Write(*evidence, EvidenceSignal(evidence->kind), EvidenceText(*evidence), number,
        *verdict_.add_shows());
  verdict_.mutable_shows(static_cast<int>(number))
      ->set_observed_text(std::string(sentences::ObservedText(*evidence)));
  for (std::string& fact : sentences::Facts(sentences::FindRow(*evidence).facts, *evidence)) {
    assertions_.push_back(
        {Assertion::Of::kEvidence, static_cast<int32_t>(number), std::move(fact)});
  }
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
  const auto cited = [&evidence](FieldId id) { return std::string(evidence.values.Text(id)); };
  if (evidence.offset >= 0) {
    proto::LogRef* log = out.mutable_cite()->mutable_log();
    log->set_stream(evidence.stream);
    log->set_offset(evidence.offset);
    log->set_line(evidence.line);
  } else if (std::string query = cited(FieldId::kQuery); !query.empty()) {
    out.mutable_cite()->set_promql(std::move(query));
  } else if (evidence.store == proto::STORE_SCHEDULER) {
    proto::SchedulerRef* ref = out.mutable_cite()->mutable_scheduler();
    const std::string other = cited(FieldId::kOfJob);
    ref->set_job_id(other.empty() ? verdict_.job_id() : other);
    ref->set_field(cited(FieldId::kField));
    ref->set_value(cited(FieldId::kValue));
    ref->set_origin(cited(FieldId::kOrigin));
  } else if (evidence.store == proto::STORE_KERNEL || evidence.store == proto::STORE_NCCL) {
    proto::KernelRef* ref = out.mutable_cite()->mutable_kernel();
    ref->set_source(cited(FieldId::kShape));
    ref->set_text(evidence.line);
    ref->set_t_ns(Wall(evidence.begin));
  } else if (evidence.store == proto::STORE_PROCESS) {
    proto::ProcRef* ref = out.mutable_cite()->mutable_process();
    ref->mutable_process()->set_pid(evidence.process.pid);
    ref->mutable_process()->set_start_ticks(evidence.process.start_ticks);
    ref->set_what(std::string(signal));
    ref->set_value(evidence.observed ? sentences::Number(*evidence.observed)
                                     : cited(FieldId::kSetting));
  }
}

}  // namespace rankscope::engine
