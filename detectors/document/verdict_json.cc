// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/document/verdict_json.h"

#include <cstdint>

#include "detectors/document/json_writer.h"
#include "detectors/document/verdict_parts.h"
#include "detectors/document/verdict_words.h"

namespace rankscope {

namespace {

void WriteCitation(const proto::Citation& cite, JsonWriter& w) {
  if (cite.c_case() == proto::Citation::C_NOT_SET) return;
  w.Key("cite");
  w.Open('{');
  switch (cite.c_case()) {
    case proto::Citation::kLog:
      w.Text("stream", cite.log().stream());
      w.Integer("offset", cite.log().offset());
      w.Text("line", cite.log().line());
      break;
    case proto::Citation::kPromql:
      w.Text("promql", cite.promql());
      break;
    case proto::Citation::kScheduler:
      w.Text("job_id", cite.scheduler().job_id());
      w.Text("field", cite.scheduler().field());
      w.Text("value", cite.scheduler().value());
      w.Text("origin", cite.scheduler().origin());
      break;
    case proto::Citation::kKernel:
      w.Text("source", cite.kernel().source());
      w.Text("text", cite.kernel().text());
      break;
    case proto::Citation::kProcess:
      w.Integer("pid", cite.process().process().pid());
      w.Text("what", cite.process().what());
      w.Text("value", cite.process().value());
      break;
    case proto::Citation::C_NOT_SET:
      break;
  }
  w.Close('}');
}

void WriteEvidence(const proto::Evidence& evidence, JsonWriter& w) {
  w.Open('{');
  w.Integer("id", evidence.id());
  w.Text("text", evidence.text());
  w.Text("store", Word(evidence.store()));
  w.TextIfAny("signal", evidence.signal());
  if (evidence.has_observed()) {
    w.Real("observed", SixDigits(evidence.observed()));
  } else {
    w.TextIfAny("observed", evidence.observed_text());
  }
  if (evidence.has_expected()) w.Real("expected", SixDigits(evidence.expected()));
  w.TextIfAny("unit", evidence.unit());
  if (evidence.has_rank()) w.Integer("rank", evidence.rank());
  if (evidence.begin_ns() != 0) w.Time("begin", evidence.begin_ns());
  if (evidence.end_ns() != 0) w.Time("end", evidence.end_ns());
  WriteCitation(evidence.cite(), w);
  w.Close('}');
}

void WriteIdentity(const proto::Verdict& verdict, JsonWriter& w) {
  w.Text("job_id", verdict.job_id());
  w.Integer("attempt", verdict.attempt().ordinal());
  w.Text("state", Word(verdict.state()));
  w.Integer("revision", verdict.revision());
  w.Text("node", verdict.node());
  w.Text("scope", Word(verdict.scope()));
  w.Text("code", verdict.code());
  w.Text("family", verdict.family());
  w.TextOrNull("sub", verdict.sub());
  w.TextOrNull("fault_class", verdict.fault_class());
  w.TextOrNull("exception_type", verdict.exception_type());
  w.TextOrNull("signal", verdict.signal());
  w.Text("domain", Word(verdict.domain()));
  w.Real("confidence", verdict.confidence());
  w.Text("tier", Word(verdict.tier()));
  w.TextOrNull("ground", Word(verdict.ground()));
  w.Text("phase", Word(verdict.phase()));
  w.Time("onset", verdict.onset_ns());
  w.Time("detected", verdict.detected_ns());
  w.Integers("ranks", verdict.ranks());
  w.Texts("nodes", verdict.nodes());
  w.Texts("gpus", verdict.gpus());
  w.TextOrNull("framework", verdict.framework());
  w.IntegerOrNull("exit_code", verdict.exit_known(), verdict.exit_code());
}

void WriteTriage(const proto::Verdict& verdict, JsonWriter& w) {
  w.Key("triage");
  w.Open('{');
  w.TextOrNull("severity", verdict.triage().severity());
  w.Bool("running", verdict.triage().running());
  w.TextOrNull("when", verdict.triage().when());
  w.TextOrNull("symptom", verdict.triage().symptom());
  w.Close('}');
  w.Key("localization");
  w.Open('{');
  w.TextOrNull("scope", verdict.localization().scope());
  w.Close('}');
  w.Key("isolation");
  w.Open('{');
  w.TextOrNull("component", verdict.isolation().component());
  w.Integers("ruled_in_by", verdict.isolation().ruled_in_by());
  w.Close('}');
}

void WriteClaims(const proto::Verdict& verdict, JsonWriter& w) {
  WriteShows(verdict, w);
  w.Key("implies");
  w.Open('[');
  for (const auto& implication : verdict.implies()) {
    w.Open('{');
    w.Text("text", implication.text());
    w.TextOrNull("remedy", implication.remedy());
    w.Text("domain", Word(implication.domain()));
    w.Integers("evidence", implication.evidence());
    w.Close('}');
  }
  w.Close(']');
  w.Key("cannot_decide");
  w.Open('[');
  for (const auto& open : verdict.cannot_decide()) {
    w.Open('{');
    w.Text("question", open.question());
    w.Text("needs", Word(open.needs()));
    w.Text("why", StoreWord(open.why()));
    w.Close('}');
  }
  w.Close(']');
  w.Key("next_tests");
  w.Open('[');
  for (const auto& test : verdict.next_tests()) {
    w.Open('{');
    w.Text("command", test.command());
    w.Text("expects", test.expects());
    w.Close('}');
  }
  w.Close(']');
}

// `ruled_out` and `undecidable` are views of the one list of families.
void WriteFamilies(const proto::Verdict& verdict, JsonWriter& w) {
  w.Key("ruled_out");
  w.Open('[');
  for (const auto& family : verdict.families()) {
    if (family.state() != proto::FamilyState::RULED_OUT) continue;
    w.Open('{');
    w.Text("code", family.code());
    w.Text("by", family.by());
    w.Integers("evidence", family.evidence());
    w.Close('}');
  }
  w.Close(']');
  w.Key("undecidable");
  w.Open('[');
  for (const auto& family : verdict.families()) {
    if (family.state() != proto::FamilyState::NOT_DECIDABLE) continue;
    w.Open('{');
    w.Text("code", family.code());
    w.Text("needs", Word(family.needs()));
    w.Text("why", StoreWord(family.why()));
    w.TextIfAny("by", family.by());
    w.Close('}');
  }
  w.Close(']');
}

void WriteRemedies(const proto::Verdict& verdict, JsonWriter& w) {
  w.Key("cause_chain");
  w.Open('[');
  for (const auto& cause : verdict.cause_chain()) {
    w.Open('{');
    w.Integer("evidence", cause.evidence());
    w.Text("role", Word(cause.role()));
    w.Close('}');
  }
  w.Close(']');
  w.Key("resolution");
  w.Open('{');
  w.Texts("immediate", verdict.resolution().immediate());
  w.Texts("structural", verdict.resolution().structural());
  w.Texts("verify", verdict.resolution().verify());
  w.Close('}');
  w.Text("retry_outlook", Word(verdict.retry_outlook()));
  w.Real("wasted_gpu_seconds", SixDigits(verdict.wasted_gpu_seconds()));
  w.Key("warnings");
  w.Open('[');
  for (const auto& warning : verdict.warnings()) {
    w.Open('{');
    w.Text("kind", warning.kind());
    w.Text("subject", warning.subject());
    w.TextOrNull("severity", warning.severity());
    w.Text("text", warning.text());
    w.Integers("evidence", warning.evidence());
    w.TextOrNull("remedy", warning.remedy());
    w.Close('}');
  }
  w.Close(']');
}

void WriteQuality(const proto::DataQuality& quality, JsonWriter& w) {
  w.Key("data_quality");
  w.Open('{');
  w.Bool("exact", quality.exact());
  w.Integer("lost_bytes", quality.lost_bytes());
  w.Key("sources");
  w.Open('[');
  for (const auto& source : quality.sources()) {
    w.Open('{');
    w.Text("source", source.name());
    w.Text("state", SourceWord(source.state()));
    w.TextIfAny("reason", source.reason());
    w.Close('}');
  }
  w.Close(']');
  w.Integer("lost_events", quality.lost_events());
  w.Real("clock_uncertainty_s", SixDigits(quality.clock_uncertainty_s()));
  w.IntegerOrNull("truncated_at", quality.truncated_at() != 0, quality.truncated_at());
  w.Texts("notes", quality.notes());
  w.Close('}');
}

void WriteDisposition(const proto::Disposition& how, JsonWriter& w) {
  w.Key("disposition");
  w.Open('{');
  w.TextOrNull("kind", how.kind());
  w.TextOrNull("by", how.by());
  w.IntegerOrNull("uid", how.has_uid(), how.uid());
  w.TextOrNull("reason", how.reason());
  w.Time("at", how.at_ns());
  w.Close('}');
}

void WriteHistory(const proto::Verdict& verdict, JsonWriter& w) {
  w.Key("history");
  w.Open('[');
  for (const auto& change : verdict.history()) {
    w.Open('{');
    w.Time("at", change.at_ns());
    w.Text("from", change.from());
    w.Text("to", change.to());
    w.TextOrNull("why", change.why());
    w.Close('}');
  }
  w.Close(']');
}

void WriteVerdict(const proto::Verdict& verdict, std::string_view file, JsonWriter& w) {
  w.Open('{');
  w.TextIfAny("file", file);
  w.Integer("schema", 1);
  WriteIdentity(verdict, w);
  WriteTriage(verdict, w);
  WriteClaims(verdict, w);
  WriteFamilies(verdict, w);
  WriteRemedies(verdict, w);
  WriteQuality(verdict.data_quality(), w);
  WriteAttempts(verdict, w);
  WriteDisposition(verdict.disposition(), w);
  WriteHistory(verdict, w);
  w.TextOrNull("amended_by", verdict.amended_by());
  w.Time("updated", verdict.updated_ns());
  w.Close('}');
}

}  // namespace

void WriteReference(const proto::Verdict& verdict, JsonWriter& w) {
  w.Integer("attempt", verdict.attempt().ordinal());
  w.Text("state", Word(verdict.state()));
  w.Integer("revision", verdict.revision());
  w.Text("code", verdict.code());
  w.Text("family", verdict.family());
  w.Real("confidence", verdict.confidence());
}

void WriteShows(const proto::Verdict& verdict, JsonWriter& w) {
  w.Key("shows");
  w.Open('[');
  for (const auto& evidence : verdict.shows()) WriteEvidence(evidence, w);
  w.Close(']');
}

void WriteShownCauses(const proto::Verdict& verdict, JsonWriter& w) {
  w.Key("cause_chain");
  w.Open('[');
  for (const auto& cause : verdict.cause_chain()) {
    w.Open('{');
    w.Text("role", Word(cause.role()));
    w.Integer("evidence", cause.evidence());
    for (const auto& evidence : verdict.shows()) {
      if (evidence.id() != cause.evidence()) continue;
      w.Key("shows");
      WriteEvidence(evidence, w);
      break;
    }
    w.Close('}');
  }
  w.Close(']');
}

void WriteAttempts(const proto::Verdict& verdict, JsonWriter& w) {
  w.Key("attempts");
  w.Open('[');
  for (const auto& attempt : verdict.attempts()) {
    w.Open('{');
    w.Integer("attempt", attempt.attempt().ordinal());
    w.Text("code", attempt.code());
    w.Text("family", attempt.family());
    w.TextOrNull("sub", attempt.sub());
    w.Real("confidence", attempt.confidence());
    w.Time("end", attempt.end_ns());
    w.Integer("last_step", attempt.last_step());
    w.Integers("evidence", attempt.evidence());
    w.Close('}');
  }
  w.Close(']');
}

std::string VerdictToJson(const proto::Verdict& verdict, std::string_view file) {
  JsonWriter w;
  WriteVerdict(verdict, file, w);
  return w.Take();
}

std::string DocumentToJson(const proto::VerdictDocument& document) {
  JsonWriter w;
  w.Open('{');
  w.Integer("schema", 1);
  w.Text("node", document.node());
  w.Key("verdicts");
  w.Open('[');
  for (const auto& verdict : document.verdicts()) WriteVerdict(verdict, {}, w);
  w.Close(']');
  w.Close('}');
  return w.Take();
}

}  // namespace rankscope
