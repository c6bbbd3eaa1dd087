// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// X12: waiting for a compiler or its lock.
#include <algorithm>
#include <limits>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/model/subs.h"

namespace rankscope::families::compile_stall {

using features::Cause;
using features::JobFeatures;
using features::kNoEvidence;
using logs::IncidentKind;

namespace {

// The run was ended from outside, or gave up waiting: it did not fail.
bool EndedByWaiting(const logs::Incident& incident) {
  return (incident.kind == IncidentKind::kSchedulerEnd &&
          (incident.sub == subs::kTimeLimit || incident.sub == subs::kCancelled)) ||
         incident.kind == IncidentKind::kTerminated ||
         incident.kind == IncidentKind::kCollectiveTimeout ||
         (incident.kind == IncidentKind::kSignalDeath &&
          (incident.signal == 15 || incident.signal == 2));
}

// A long compilation is half an hour; a lock that a live process holds is let go in minutes.
constexpr double kLongCompile = 1800;
constexpr double kLongLock = 300;

// Before the first record a compilation is what a start does: too long for one, and a rank stands
// in it.
bool CompilesAtStart(const JobFeatures& f) {
  return f.progress == 0 && std::any_of(f.waits.ranks.begin(), f.waits.ranks.end(),
                                        [](const features::RankWait& rank) {
                                          return rank.cause == features::StackCause::kCompile &&
                                                 rank.main_wait_seconds >= kLongCompile;
                                        });
}

// Ranks that wait for the lock of an extension's build while nothing on the node compiles: who took
// it is gone. A compiler on another node that shares the cache would end in half an hour, too.
Finding WaitsForALockOfNobody(const JobFeatures& f) {
  if (!f.running || !f.timed || f.waits.compilers > 0 || f.Primary() != nullptr) return {};
  Finding finding;
  double seconds = std::numeric_limits<double>::infinity();
  for (const features::RankWait& rank : f.waits.ranks) {
    if (rank.cause != features::StackCause::kBuildLock) continue;
    Show(rank.snapshot_evidence, finding);
    finding.ranks.push_back(rank.rank);
    seconds = std::min(seconds, rank.still_seconds);
  }
  if (finding.ranks.empty() || seconds < kLongLock) return {};
  finding.matched = true;
  finding.sub = "lock";
  finding.tier = seconds >= kLongCompile ? proto::TIER_S : proto::TIER_W;
  finding.cap = cap::kOneSource;
  finding.domain = proto::DOMAIN_INFRASTRUCTURE;
  finding.component = "compiler";
  finding.symptom = "hang";
  finding.root = finding.shows;
  finding.onset = f.now - Seconds(seconds);
  finding.open.push_back(Question::kCompilerAlive);
  return finding;
}

// No word of it in the text, and compilers below the ranks where training records should be.
Finding CompilersInSilence(const JobFeatures& f) {
  constexpr int64_t kProgressForSilence = 3;
  if (!f.running || !f.timed || f.waits.compilers == 0 || f.Primary() != nullptr || f.train_end)
    return {};
  const bool silent = f.progress >= kProgressForSilence && f.silence_seconds >= HangTimeout(f);
  if (!silent && !CompilesAtStart(f)) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = "compile";
  finding.tier = proto::TIER_S;
  finding.cap = cap::kOneSource;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "compiler";
  finding.symptom = "hang";
  finding.shows = {f.waits.compilers_evidence};
  Show(f.silence_evidence, finding);
  for (const features::RankWait& rank : f.waits.ranks) {
    if (rank.cause == features::StackCause::kCompile) Show(rank.snapshot_evidence, finding);
  }
  finding.root = {f.waits.compilers_evidence};
  finding.values = {{FieldId::kCompilers, f.waits.compilers}};
  finding.advice = "live";
  finding.onset = silent ? f.now - Seconds(f.silence_seconds) : Timestamp{};
  return finding;
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const features::CompilerFeatures& compiler = f.compiler;
  if (!compiler.last_thing) {
    Finding lock = WaitsForALockOfNobody(f);
    return lock.matched ? lock : CompilersInSilence(f);
  }
  const Cause* primary = f.Primary();
  const bool lock = compiler.what == "lock";
  Finding finding;
  if (primary != nullptr) {
    if (!EndedByWaiting(primary->incident())) return {};
    finding = FromPrimary(f);
  } else if (f.running) {
    if (!f.timed || compiler.seconds < (lock ? kLongLock : kLongCompile)) return {};
    finding.matched = true;
    finding.onset = f.now - Seconds(compiler.seconds);
  } else {
    // Text that ends there may just have been cut there.
    if (!lock || f.exit_known) return {};
    finding.matched = true;
  }
  finding.sub = lock ? "lock" : "compile";
  finding.tier = primary != nullptr || f.running ? proto::TIER_S : proto::TIER_W;
  finding.cap = cap::kOneSource;
  finding.domain = lock ? proto::DOMAIN_INFRASTRUCTURE : proto::DOMAIN_WORKLOAD;
  finding.component = "compiler";
  finding.symptom = "hang";
  finding.shows.insert(finding.shows.begin(), compiler.evidence);
  finding.root = {compiler.evidence};
  if (f.exit_known) Show(f.exit_evidence, finding);
  finding.values = {{FieldId::kWhat, compiler.what}};
  if (f.running && f.waits.compilers > 0) {
    Show(f.waits.compilers_evidence, finding);
  } else {
    finding.open.push_back(Question::kCompilerAlive);
  }
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  if (f.compiler.evidence != kNoEvidence) {
    if (!f.compiler.open) return Excluded(Reason::kCompilerEnded, {f.compiler.evidence});
    if (!f.compiler.last_thing)
      return Excluded(Reason::kWentOn, {f.compiler.evidence, f.last_progress_evidence},
                      {{FieldId::kWhat, "compiler"}});
    if (const Cause* primary = f.Primary())
      return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "running"}});
    return NotDecidable(proto::STORE_PROCESS, Reason::kTextEndsInCompiler);
  }
  if (const Cause* primary = f.Primary();
      primary != nullptr && !EndedByWaiting(primary->incident()))
    return Excluded(Reason::kOtherEvent, {primary->evidence}, {{FieldId::kWhat, "waiting"}});
  return NotDecidable(proto::STORE_PROCESS);
}

}  // namespace rankscope::families::compile_stall
