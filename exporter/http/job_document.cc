// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/http/job_document.h"

#include <algorithm>
#include <set>

#include "detectors/document/verdict_json.h"

namespace rankscope::http {
namespace {

// What only the engine reads is no part of a document; see verdict.proto.
proto::Verdict Published(proto::Verdict verdict) {
  if (verdict.has_resolution()) {
    verdict.mutable_resolution()->clear_immediate_ended();
    verdict.mutable_resolution()->clear_verify_ended();
  }
  for (proto::NextTest& test : *verdict.mutable_next_tests()) test.clear_of_running();
  for (proto::FamilyState& family : *verdict.mutable_families()) family.clear_waits();
  return verdict;
}

std::string AsField(const proto::Verdict& judged) {
  constexpr char kVerdicts = 3 << 3 | 2;  // VerdictDocument.verdicts, length-delimited
  const proto::Verdict verdict = Published(judged);
  const std::string bytes = verdict.SerializeAsString();
  std::string out(1, kVerdicts);
  for (size_t rest = bytes.size();; rest >>= 7) {
    out.push_back(static_cast<char>((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0)));
    if (rest <= 0x7F) break;
  }
  return out + bytes;
}

std::string Render(const proto::Verdict& verdict, Form form) {
  switch (form) {
    case Form::kText:
      return VerdictToText(verdict);
    case Form::kProtobuf:
      return AsField(verdict);
    default:
      return VerdictToJson(verdict);
  }
}

// Whether it was read in text, of a job's output or of the kernel's log.
bool IsOfText(const proto::Evidence& evidence) {
  return evidence.cite().has_log() || !evidence.cite().kernel().text().empty() ||
         evidence.store() == proto::STORE_LOG;
}

void Withhold(std::string& text) {
  if (!text.empty()) text = kWithheld;
}

void WithholdAll(google::protobuf::RepeatedPtrField<std::string>& texts) {
  if (texts.empty()) return;
  texts.Clear();
  *texts.Add() = kWithheld;
}

void WithholdEvidence(proto::Evidence& evidence) {
  Withhold(*evidence.mutable_text());
  Withhold(*evidence.mutable_observed_text());
  if (evidence.cite().has_log()) Withhold(*evidence.mutable_cite()->mutable_log()->mutable_line());
  if (evidence.cite().has_kernel()) {
    Withhold(*evidence.mutable_cite()->mutable_kernel()->mutable_text());
  }
}

}  // namespace

SharedPart JobDocument::Verdict(Form form, bool log_text) const {
  return verdicts_[static_cast<size_t>(form)][log_text ? 1 : 0].Get([&] {
    return log_text ? Render(job_->verdict, form)
                    : Render(http::WithoutLogText(job_->verdict), form);
  });
}

proto::Verdict WithoutLogText(proto::Verdict verdict) {
  std::set<uint32_t> of_text;
  for (proto::Evidence& evidence : *verdict.mutable_shows()) {
    if (!IsOfText(evidence)) continue;
    of_text.insert(evidence.id());
    WithholdEvidence(evidence);
  }
  if (of_text.empty()) return verdict;
  // What rests on such evidence quotes its words, and so does what names none: advice quotes the
  // run's own values.
  const auto quotes = [&of_text](const auto& ids) {
    return ids.empty() ||
           std::any_of(ids.begin(), ids.end(), [&](uint32_t id) { return of_text.contains(id); });
  };
  for (proto::Implication& one : *verdict.mutable_implies()) {
    if (quotes(one.evidence())) Withhold(*one.mutable_text());
  }
  for (proto::Warning& one : *verdict.mutable_warnings()) {
    if (quotes(one.evidence())) Withhold(*one.mutable_text());
    if (quotes(one.evidence())) Withhold(*one.mutable_remedy());
  }
  for (proto::FamilyState& one : *verdict.mutable_families()) {
    if (!one.evidence().empty() && quotes(one.evidence())) Withhold(*one.mutable_by());
  }
  if (verdict.has_resolution()) {
    WithholdAll(*verdict.mutable_resolution()->mutable_immediate());
    WithholdAll(*verdict.mutable_resolution()->mutable_structural());
    WithholdAll(*verdict.mutable_resolution()->mutable_verify());
  }
  verdict.clear_next_tests();
  return verdict;
}

JobStatus WithoutLogText(JobStatus job) {
  job.verdict = WithoutLogText(std::move(job.verdict));
  Withhold(job.command);
  return job;
}

}  // namespace rankscope::http
