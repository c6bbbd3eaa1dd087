// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/verdict/verdict_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <variant>

#include "detectors/families/family_names.h"
#include "detectors/model/ascii.h"
#include "detectors/model/subs.h"
#include "detectors/sentences/questions.h"
#include "detectors/sentences/reasons.h"
#include "detectors/sentences/remarks.h"
#include "detectors/sentences/render.h"
#include "detectors/verdict/advice.h"
#include "detectors/verdict/evidence_writer.h"
#include "detectors/verdict/nodes.h"
#include "detectors/verdict/rank_logs.h"
#include "detectors/verdict/remedies.h"
#include "detectors/verdict/warnings.h"

namespace rankscope::engine {
namespace {

using families::FamilyRow;
using families::Finding;

using features::Cause;
using features::EvidenceRef;
using features::JobFeatures;
using sentences::RankList;
using sentences::SignalName;

void DescribeCurve(const JobFeatures& f, FieldValues& values) {
  values.Set(FieldId::kLossStart, f.loss.start).Set(FieldId::kLossEnd, f.loss.end);
  values.Set(FieldId::kLosses, f.loss.points).Set(FieldId::kLines, f.lines);
  if (f.metric.values > 0) values.Set(FieldId::kSaid, "loss or reward");
  if (f.loss.points == 1) values.Set(FieldId::kLastLoss, f.loss.last);
}

// The cards that what began it speaks of, each once. A log that somebody printed names them by
// their places on the bus.
void AddCards(const Finding& finding, const JobFeatures& f, proto::Verdict& verdict) {
  for (const FieldId name : {FieldId::kGpuUuid, FieldId::kBusId}) {
    std::set<std::string> cards;
    for (const EvidenceRef ref : finding.root) {
      const features::Evidence* evidence = f.At(ref);
      if (evidence == nullptr) continue;
      if (const std::string_view card = evidence->values.Text(name); !card.empty())
        cards.emplace(card);
    }
    for (const std::string& card : cards) verdict.add_gpus(card);
    if (!cards.empty()) return;
  }
}

// Commands quote these. The text of a job may name any host: none of its words may become an option
// or a second command there.
bool IsQuotedByCommands(FieldId id) {
  constexpr std::array kIds = {FieldId::kHost, FieldId::kPort, FieldId::kJobId, FieldId::kParent,
                               FieldId::kTheNode};
  return std::find(kIds.begin(), kIds.end(), id) != kIds.end();
}

bool IsOneWord(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("._:%+-").find(c) != std::string_view::npos;
  };
  return !text.starts_with('-') && std::all_of(text.begin(), text.end(), plain);
}

// What Slurm calls a job: its number, with that of a task of an array.
bool IsJobNumber(std::string_view job_id) {
  return !job_id.empty() &&
         std::ranges::all_of(job_id, [](char c) { return IsDigit(c) || c == '_'; });
}

FieldValues WithoutHostileWords(const FieldValues& values) {
  FieldValues safe;
  for (const FieldValue& value : values) {
    const auto* const text = std::get_if<std::string>(&value.value);
    if (text == nullptr || !IsQuotedByCommands(value.id) || IsOneWord(*text)) safe.Set(value);
  }
  return safe;
}

// Values that sentences may quote: the finding's own, then those of the evidence that began it.
FieldValues SentenceValues(const VerdictContext& context) {
  const Finding& finding = *context.finding;
  const JobFeatures& f = *context.features;
  FieldValues values = finding.values;
  const std::string who = RankList(finding.ranks);
  values.Set(FieldId::kJobId, IsJobNumber(f.job_id) ? f.job_id : "")
      .Set(FieldId::kSignal, finding.signal == 0 ? "" : SignalName(finding.signal))
      .Set(FieldId::kWho, who.empty() ? "a process" : who)
      .Set(FieldId::kWhere, who.empty() ? "the node" : "the node of " + who);
  for (const EvidenceRef ref : finding.root) {
    const features::Evidence* evidence = f.At(ref);
    if (evidence == nullptr) continue;
    if (evidence->process.pid != 0) values.Set(FieldId::kPid, int64_t{evidence->process.pid});
    values.Append(evidence->values);
  }
  DescribeCurve(f, values);
  return WithoutHostileWords(values);
}

void AddSentences(const sentences::TemplateList& list, const FieldValues& values, auto* out) {
  list.ForEach([&values, out](sentences::Template text) {
    if (std::string sentence = sentences::Render(text, values); !sentence.empty())
      out->Add(std::move(sentence));
  });
}

// What is to be done now, and what instead if the run ends while this stands.
void AddResolution(const RemedyRow& remedy, const FieldValues& now, const FieldValues& ended,
                   proto::Resolution& resolution) {
  AddSentences(remedy.immediate, now, resolution.mutable_immediate());
  AddSentences(remedy.structural, now, resolution.mutable_structural());
  AddSentences(remedy.verify, now, resolution.mutable_verify());
  AddSentences(remedy.immediate, ended, resolution.mutable_immediate_ended());
  AddSentences(remedy.verify, ended, resolution.mutable_verify_ended());
}

std::string_view Symptom(const Finding& finding, const JobFeatures& f) {
  if (!finding.symptom.empty()) return finding.symptom;
  if (f.running || finding.sub == subs::kNoTraining) return {};
  if (f.world_size > 1 && finding.ranks.size() == 1) return "one_rank_crashed";
  return "all_ranks_crashed";
}

std::string_view When(const JobFeatures& f) {
  // Without a training record, calls tell that it had begun.
  constexpr double kBegun = 100;
  if (f.progress == 0 && f.collectives.entered < kBegun && f.launches.launches < 10 * kBegun)
    return "start";
  if (f.timed && (f.now - f.begin) > Seconds(2 * 3600)) return "after_hours";
  return f.progress > 0 && f.steps <= 10 ? "first_steps" : "after_warmup";
}

std::string_view Severity(std::string_view code, std::string_view sub) {
  if (code == "G1") return sub == subs::kUnverifiable ? "info" : "ok";
  if (code == "U0") return sub == subs::kTooEarly || sub == subs::kNoTraining ? "info" : "warning";
  constexpr std::array kLesser = {"X20", "F2", "E3", "D1", "D2", "D3", "X17"};
  if (std::find(kLesser.begin(), kLesser.end(), code) != kLesser.end()) return "warning";
  return "critical";
}

proto::Availability Why(const JobFeatures& f, proto::Store store) {
  return static_cast<proto::Availability>(f.store(store));
}

void AddFamilies(const VerdictContext& context, EvidenceWriter& evidence, BuiltVerdict& built) {
  proto::Verdict& verdict = built.document;
  const JobFeatures& f = *context.features;
  for (const families::FamilyName& name : families::FamilyNames()) {
    proto::FamilyState* state = verdict.add_families();
    state->set_code(std::string(name.code));
    if (name.code == context.family->code) {
      state->set_state(proto::FamilyState::RULED_IN);
      state->set_score(verdict.confidence());
      for (const EvidenceRef ref : context.finding->root) {
        if (const int64_t number = evidence.Cite(ref); number >= 0)
          state->add_evidence(static_cast<uint32_t>(number));
      }
      continue;
    }
    for (const families::FamilyRow& row : families::Families()) {
      if (row.code != name.code) continue;
      const families::RuledOut out = row.rule_out(f);
      state->set_state(out.state);
      state->set_by(sentences::ReasonText(out.by, out.values));
      state->set_waits(out.by == families::Reason::kGoesOn);
      for (std::string& fact : sentences::ReasonFacts(out.by, out.values)) {
        built.assertions.push_back(
            {Assertion::Of::kFamily, verdict.families_size() - 1, std::move(fact)});
      }
      for (const EvidenceRef ref : out.evidence) {
        if (const int64_t number = evidence.Cite(ref); number >= 0)
          state->add_evidence(static_cast<uint32_t>(number));
      }
      if (out.state == proto::FamilyState::NOT_DECIDABLE) {
        state->set_needs(out.needs);
        state->set_why(Why(f, out.needs));
      }
    }
  }
}

void AddOpenQuestions(const VerdictContext& context, const FieldValues& values,
                      const FieldValues& ended, BuiltVerdict& built) {
  proto::Verdict& verdict = built.document;
  // A question is about the process of the root; of others the answer may be known.
  const auto& root = context.finding->root;
  const features::Evidence* of = root.empty() ? nullptr : context.features->At(root.front());
  for (const families::Question question : context.finding->open) {
    const sentences::QuestionRow& row = sentences::FindQuestion(question);
    proto::Open* open = verdict.add_cannot_decide();
    open->set_question(sentences::Render(row.text, values));
    open->set_needs(row.needs);
    open->set_why(Why(*context.features, row.needs));
    for (std::string& fact :
         of == nullptr ? sentences::Facts(row.facts, values) : sentences::Facts(row.facts, *of)) {
      built.assertions.push_back(
          {Assertion::Of::kQuestion, verdict.cannot_decide_size() - 1, std::move(fact)});
    }
    std::string command = sentences::Render(row.next_test, values);
    if (command.empty()) continue;
    proto::NextTest* test = verdict.add_next_tests();
    test->set_command(std::move(command));
    test->set_expects(sentences::Render(row.next_expects, values));
    test->set_of_running(sentences::Render(row.next_test, ended).empty());
  }
}

using Spoke = std::array<bool, features::kStores>;

// Which stores hold evidence that the finding shows.
Spoke StoresOf(const Finding& finding, const JobFeatures& f) {
  Spoke spoke{};
  for (const EvidenceRef ref : finding.shows) {
    if (std::find(finding.against.begin(), finding.against.end(), ref) != finding.against.end())
      continue;
    if (const features::Evidence* evidence = f.At(ref))
      spoke[static_cast<size_t>(evidence->store)] = true;
  }
  spoke[proto::STORE_UNSPECIFIED] = false;
  return spoke;
}

bool TwoStoresSpeak(const Finding& finding, const JobFeatures& f) {
  const Spoke spoke = StoresOf(finding, f);
  return std::count(spoke.begin(), spoke.end(), true) > 1;
}

// Which stores spoke for the verdict and which said nothing.
std::string StoreAgreement(const Finding& finding, const JobFeatures& f) {
  const Spoke spoke = StoresOf(finding, f);
  std::string agree, silent;
  for (size_t i = 1; i < features::kStores; ++i) {
    std::string name = proto::Store_Name(static_cast<proto::Store>(i)).substr(6);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return static_cast<char>(c | 0x20); });
    if (spoke[i]) {
      agree += (agree.empty() ? "" : ", ") + name;
    } else if (f.stores[i] == Availability::kUp && name != finding.contradicted_by) {
      silent += (silent.empty() ? "" : ", ") + name;
    }
  }
  if (agree.empty()) return {};
  return sentences::RemarkText(sentences::Remark::kRestsOn,
                               {{FieldId::kAgree, agree},
                                {FieldId::kSilent, silent},
                                {FieldId::kContradicted, std::string(finding.contradicted_by)}});
}

// Further lines worth showing with evidence: of what began the end, and of what confirms it.
int32_t QuotesOf(const JobFeatures& f, EvidenceRef ref) {
  for (const Cause& cause : f.causes) {
    if (cause.evidence != ref) continue;
    const bool telling = &cause == f.Primary() || cause.role == Cause::Role::kSupport;
    return telling ? cause.quotes : 0;
  }
  return 0;
}

}  // namespace

Sureness SurenessOf(const FamilyRow& family, const Finding& finding, const JobFeatures& f) {
  proto::Ground ground = families::GroundOf(finding.tier);
  if (ground == proto::GROUND_TWO_SOURCES && finding.cap > ground && TwoStoresSpeak(finding, f))
    ground = proto::GROUND_TWO_STORES;
  ground = std::min(ground, finding.cap);
  if (f.generic && f.Primary() == nullptr) ground = std::min(ground, families::cap::kLookalike);
  return {ground, families::Confidence(family.group, ground) * finding.contradiction};
}

namespace {

void AddAttempt(const windows::JobWindow& job, proto::Verdict& verdict) {
  verdict.set_job_id(job.job_id());
  proto::Attempt* attempt = verdict.mutable_attempt();
  attempt->set_slurm_restart(job.attempt().slurm_restart);
  attempt->set_elastic_restart(job.attempt().elastic_restart);
  attempt->set_ordinal(job.attempt().ordinal);
}

proto::Cause::Role RoleInChain(const Cause& cause, const Finding& finding) {
  const bool root =
      std::find(finding.root.begin(), finding.root.end(), cause.evidence) != finding.root.end();
  if (root) return proto::Cause::ROOT;
  if (cause.role == Cause::Role::kRecovered) return proto::Cause::RECOVERED;
  return cause.role == Cause::Role::kSupport ? proto::Cause::CONTEXT : proto::Cause::CASCADE;
}

// What a hang brings about, while nothing has ended it: peers that wait, and text that stops.
std::array<EvidenceRef, 4> OfVictims(const VerdictContext& context) {
  constexpr EvidenceRef kNone = features::kNoEvidence;
  const JobFeatures& f = *context.features;
  if (context.family->group != families::Group::kHang) return {kNone, kNone, kNone, kNone};
  return {f.collectives.waiting_evidence, f.gpu.spin_evidence, f.reports.standing_evidence,
          f.silence_evidence};
}

// From what began it to what came of it last.
void AddCauseChain(const VerdictContext& context, EvidenceWriter& evidence,
                   proto::Verdict& verdict) {
  const JobFeatures& f = *context.features;
  const Finding& finding = *context.finding;
  std::set<EvidenceRef> linked;
  const auto link = [&](EvidenceRef ref, proto::Cause::Role role) {
    if (!linked.insert(ref).second) return;
    const int64_t number = evidence.Cite(ref);
    if (number < 0) return;
    proto::Cause* const added = verdict.add_cause_chain();
    added->set_evidence(static_cast<uint32_t>(number));
    added->set_role(role);
  };
  const auto shown = [&finding](EvidenceRef ref) {
    return std::find(finding.shows.begin(), finding.shows.end(), ref) != finding.shows.end();
  };
  const auto is_event = [&f](EvidenceRef ref) {
    return std::any_of(f.causes.begin(), f.causes.end(),
                       [ref](const Cause& cause) { return cause.evidence == ref; });
  };
  if (context.family->group == families::Group::kHealth) return;
  const auto victims = OfVictims(context);
  const auto is_victim = [&victims](EvidenceRef ref) {
    return std::find(victims.begin(), victims.end(), ref) != victims.end();
  };
  // That peers wait is where it began only as long as nobody knows for whom.
  const bool known = std::any_of(finding.root.begin(), finding.root.end(), [&](EvidenceRef ref) {
    return !is_victim(ref) && f.At(ref) != nullptr;
  });
  // What is no event that may end a run: a counter, a record of a node, a rank that stands still.
  for (const EvidenceRef ref : finding.root) {
    if (!is_event(ref) && !(known && is_victim(ref))) link(ref, proto::Cause::ROOT);
  }
  for (const EvidenceRef ref : victims) {
    if (known && f.At(ref) != nullptr && shown(ref)) link(ref, proto::Cause::CASCADE);
  }
  for (const Cause& cause : f.causes) {
    if (shown(cause.evidence)) link(cause.evidence, RoleInChain(cause, finding));
  }
  if (f.exit_known && f.exit_code != 0 && !linked.empty() && shown(f.exit_evidence))
    link(f.exit_evidence, proto::Cause::CASCADE);
}

void AddSureness(const VerdictContext& context, proto::Verdict& verdict) {
  const Sureness sureness = SurenessOf(*context.family, *context.finding, *context.features);
  verdict.set_confidence(sureness.confidence);
  verdict.set_ground(sureness.ground);
  verdict.set_contradicted(context.finding->contradiction < 1);
}

}  // namespace

BuiltVerdict BuildVerdict(const VerdictContext& context) {
  const JobFeatures& f = *context.features;
  const Finding& finding = *context.finding;
  const std::string_view code = context.family->code;
  BuiltVerdict built;
  proto::Verdict& verdict = built.document;
  AddAttempt(*context.job, verdict);
  verdict.set_scope(proto::SCOPE_JOB);
  verdict.set_node(std::string(context.node));
  verdict.set_code(std::string(code));
  verdict.set_family(std::string(families::FindFamily(code).family));
  verdict.set_sub(std::string(finding.sub));
  verdict.set_fault_class(std::string(finding.fault_class));
  verdict.set_exception_type(finding.exception_type);
  if (finding.signal != 0) verdict.set_signal(SignalName(finding.signal));
  verdict.set_domain(finding.domain);
  verdict.set_tier(finding.tier);
  AddSureness(context, verdict);
  verdict.set_phase(f.phase);
  verdict.set_framework(f.framework);
  if (finding.onset.ns != 0 && context.wall_offset_ns != 0)
    verdict.set_onset_ns(finding.onset.ns + context.wall_offset_ns);
  verdict.set_exit_known(f.command_exit_known);
  if (f.command_exit_known) verdict.set_exit_code(f.command_exit_code);
  for (const int32_t rank : finding.ranks) verdict.add_ranks(rank);
  for (std::string& node : NodesConcerned(context)) verdict.add_nodes(std::move(node));
  AddCards(finding, *context.features, verdict);

  EvidenceWriter evidence(f, context.wall_offset_ns, built);
  for (const EvidenceRef ref : finding.shows) {
    evidence.Cite(ref);
    for (int32_t i = 1; i <= QuotesOf(f, ref); ++i) evidence.Cite(ref + i);
  }

  proto::Triage* triage = verdict.mutable_triage();
  triage->set_severity(std::string(Severity(code, finding.sub)));
  triage->set_running(f.running);
  triage->set_when(std::string(When(f)));
  triage->set_symptom(std::string(Symptom(finding, f)));
  verdict.mutable_localization()->set_scope(finding.ranks.empty()       ? "job"
                                            : finding.ranks.size() == 1 ? "rank"
                                                                        : "ranks");
  proto::Isolation* isolation = verdict.mutable_isolation();
  isolation->set_component(std::string(finding.component));
  for (const EvidenceRef ref : finding.root) {
    if (const int64_t number = evidence.Cite(ref); number >= 0)
      isolation->add_ruled_in_by(static_cast<uint32_t>(number));
  }

  const FieldValues ended = SentenceValues(context);
  FieldValues values = ended;
  if (f.running) values.Set(FieldId::kRunning, "yes");
  const std::string_view advice = AdviceOf(code, finding, f);
  const RemedyRow& remedy = FindRemedy(code, advice.empty() ? finding.sub : advice);
  std::string implied = sentences::Render(remedy.implies, values);
  if (implied.empty()) implied = families::FindFamily(code).what;
  proto::Implication* implication = verdict.add_implies();
  implication->set_text(implied);
  implication->set_remedy(std::string(remedy.remedy));
  implication->set_domain(finding.domain);
  for (const uint32_t number : isolation->ruled_in_by()) implication->add_evidence(number);
  if (std::string agreement = StoreAgreement(finding, f); !agreement.empty()) {
    proto::Implication* stores = verdict.add_implies();
    stores->set_text(std::move(agreement));
    stores->set_remedy("none");
    stores->set_domain(finding.domain);
  }
  AddResolution(remedy, values, ended, *verdict.mutable_resolution());
  verdict.set_retry_outlook(finding.retry != proto::RETRY_OUTLOOK_UNSPECIFIED ? finding.retry
                                                                              : remedy.retry);
  verdict.set_wasted_gpu_seconds(finding.wasted_gpu_seconds);
  AddOpenQuestions(context, values, ended, built);
  AddFamilies(context, evidence, built);

  AddWarnings(context, evidence, verdict);
  AddCauseChain(context, evidence, verdict);
  DescribeRankLogs(context, evidence, verdict);
  return built;
}

}  // namespace rankscope::engine
