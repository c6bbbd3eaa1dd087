// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/verdict/hazards.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "detectors/sentences/evidence_text.h"
#include "detectors/sentences/render.h"

namespace rankscope::engine {
namespace {

using features::Evidence;
using windows::Surrounding;
using Where = HazardCondition::Where;
using Test = HazardCondition::Test;

// Whether `matches` holds for one of the alternatives in a list.
bool AnyOf(std::string_view list, char separator, auto&& matches) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(separator), list.size());
    if (matches(list.substr(0, end))) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// The next number of a version, and what follows its dot; -1 where there is none.
int64_t TakeNumber(std::string_view& version) {
  size_t digits = 0;
  int64_t number = 0;
  constexpr size_t kMostDigits = 9;
  while (digits < version.size() && digits < kMostDigits && version[digits] >= '0' &&
         version[digits] <= '9') {
    number = number * 10 + (version[digits++] - '0');
  }
  if (digits == 0) return -1;
  version.remove_prefix(digits);
  if (version.starts_with('.')) {
    version.remove_prefix(1);
  } else {
    version = {};  // "1.9.2-aws", "2.21.5+cuda12.4": what follows is no number of the version
  }
  return number;
}

// Only of what begins like a version: "1.7.4aws", "v1.14.0".
bool VersionBelow(std::string_view version, std::string_view bound) {
  if (version.starts_with('v')) version.remove_prefix(1);
  if (version.find('.') == std::string_view::npos) return false;
  while (!bound.empty()) {
    const int64_t wanted = TakeNumber(bound);
    const int64_t number = TakeNumber(version);
    if (number < 0 && wanted > 0) return true;  // "1.17" is older than "1.17.2"
    if (number != wanted) return number < wanted;
  }
  return false;
}

// Mount points that clusters use for what all nodes see. A guess, and said to be one.
bool LooksShared(std::string_view path) {
  constexpr std::array<std::string_view, 12> kRoots = {
      "/fsx",  "/lustre", "/gpfs",  "/nfs",    "/efs",     "/beegfs",
      "/weka", "/shared", "/home/", "/cephfs", "/mnt/nfs", "/mnt/lustre"};
  return std::any_of(kRoots.begin(), kRoots.end(),
                     [path](std::string_view root) { return path.starts_with(root); });
}

bool Holds(const HazardCondition& condition, const Surrounding& seen) {
  if (condition.where == Where::kNowhere || seen.variable != (condition.where == Where::kVariable))
    return false;
  const auto named = [&seen](std::string_view name) { return seen.name == name; };
  if (!AnyOf(condition.name, '|', named)) return false;
  const std::string_view value = seen.value;
  switch (condition.test) {
    case Test::kSet:
      return !value.empty();
    case Test::kOneOf:
      return AnyOf(condition.value, '|', [value](std::string_view one) { return value == one; });
    case Test::kBegins:
      return AnyOf(condition.value, '|',
                   [value](std::string_view one) { return value.starts_with(one); });
    case Test::kContains:
      return value.find(condition.value) != std::string_view::npos;
    case Test::kVersionBelow:
      return VersionBelow(value, condition.value);
    case Test::kSharedPath:
      return LooksShared(value);
  }
  return false;
}

const Surrounding* Find(const HazardCondition& condition, const windows::Surroundings& all) {
  for (const Surrounding& seen : all.all()) {
    if (Holds(condition, seen)) return &seen;
  }
  return nullptr;
}

// The symptom that is seen in this run, empty when there is none.
std::string SymptomOf(const HazardRow& row, const features::JobFeatures& f,
                      const proto::Verdict& verdict) {
  std::string seen;
  AnyOf(row.symptoms, ' ', [&](std::string_view symptom) {
    const bool family = verdict.code() == symptom;
    const bool warned =
        std::any_of(verdict.warnings().begin(), verdict.warnings().end(),
                    [symptom](const proto::Warning& warning) { return warning.kind() == symptom; });
    const bool caused =
        std::any_of(f.causes.begin(), f.causes.end(), [&](const features::Cause& cause) {
          const Evidence* evidence = f.At(cause.evidence);
          return evidence != nullptr && cause.role != features::Cause::Role::kRecovered &&
                 sentences::EvidenceSignal(evidence->kind) == symptom;
        });
    const bool raised = verdict.exception_type().ends_with(symptom);
    if (!family && !warned && !caused && !raised) return false;
    seen = family ? verdict.code() + " " + verdict.family() : std::string(symptom);
    return true;
  });
  return seen;
}

Evidence EvidenceOf(const Surrounding& seen, const windows::JobWindow& job) {
  Evidence evidence;
  evidence.begin = evidence.end = seen.t;
  evidence.ranks = seen.ranks;
  evidence.values = {{FieldId::kSetting, seen.name + "=" + seen.value},
                     {FieldId::kName, seen.name},
                     {FieldId::kValue, seen.value}};
  if (seen.offset >= 0) {
    const auto stream = job.streams().find(seen.stream);
    if (stream != job.streams().end()) evidence.stream = stream->second.name;
    evidence.offset = seen.offset;
    evidence.line = seen.line;
  } else {
    evidence.store = proto::STORE_PROCESS;
    evidence.process = seen.process;
  }
  return evidence;
}

// What is said of every hazard after its own sentence.
constexpr sentences::Template kHazardTail =
    "[, on {ranks}][; supported: this run shows {symptom}] ({reference})";

}  // namespace

std::string DescribeCondition(const HazardCondition& condition) {
  std::string text(condition.name);
  const auto alternatives = [](std::string_view list) {
    std::string words;
    AnyOf(list, '|', [&words](std::string_view one) {
      words += (words.empty() ? "" : ", ") + std::string(one);
      return false;
    });
    return words;
  };
  text = alternatives(text);
  switch (condition.test) {
    case Test::kSet:
      return text + " set";
    case Test::kOneOf:
      return text + " = " + alternatives(condition.value);
    case Test::kBegins:
      return text + " begins with " + alternatives(condition.value);
    case Test::kContains:
      return text + " contains " + std::string(condition.value);
    case Test::kVersionBelow:
      return text + " below " + std::string(condition.value);
    case Test::kSharedPath:
      return text + " on a shared file system";
  }
  return text;
}

void AddHazards(const VerdictContext& context, EvidenceWriter& writer, proto::Verdict& verdict) {
  const windows::Surroundings& surroundings = context.job->surroundings();
  if (surroundings.all().empty()) return;
  for (const HazardRow& row : Hazards()) {
    const Surrounding* seen = Find(row.condition, surroundings);
    if (seen == nullptr || Find(row.unless, surroundings) != nullptr) continue;
    Evidence evidence = EvidenceOf(*seen, *context.job);
    std::string text = sentences::RenderWhole(row.text, evidence);
    if (text.empty()) continue;
    const std::string symptom = SymptomOf(row, *context.features, verdict);
    evidence.values.Set(FieldId::kSymptom, symptom).Set(FieldId::kReference, row.source);
    text += sentences::Render(kHazardTail, evidence);
    proto::Warning& warning = *verdict.add_warnings();
    warning.set_kind("known_hazard");
    warning.set_subject(std::string(row.name));
    warning.set_severity(symptom.empty() ? "info" : "warning");
    warning.set_text(text);
    warning.set_remedy(std::string(row.remedy));
    warning.add_evidence(writer.Add(evidence, "setting", std::move(text)));
  }
}

}  // namespace rankscope::engine
