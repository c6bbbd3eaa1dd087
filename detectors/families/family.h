// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A failure family: does it look like me *now*, and if not, what rules me out? Stateless, timeless
// functions of JobFeatures in an explicit table. The engine alone has memory and makes sentences; a
// family returns references and names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detectors/families/confidence.h"
#include "detectors/families/reason.h"
#include "detectors/features/job_features.h"
#include "detectors/model/time.h"

namespace rankscope::families {

// Questions that a verdict leaves open; the row (question, store that would decide it, next test)
// is in sentences/questions.inc.
enum class Question : uint8_t {
  kWhoKilled,          // who sent the signal, or which limit was hit
  kNativeCrashSite,    // which library crashed
  kWhoseAbort,         // whether NCCL's watchdog or another library aborted the process
  kMemoryKnob,         // which setting to change
  kRendezvousTrigger,  // coordinator, firewall or DNS
  kHangTrigger,        // why the rank never arrived
  kConnectionTrigger,  // what broke a connection
  kHangCulprit,        // which rank did not arrive
  kDivergenceCause,    // learning rate, precision, data
  kHungOrSlow,         // at the time limit: progressing or stuck
  kCorrectness,        // whether it learned: no training record is readable
  kDidNotFall,         // whether it learned: the loss that was read does not tell
  kOwnWords,           // whether it learned: it prints a loss or reward, and no record
  kNotTraining,        // whether it trained at all
  kObjectiveScale,     // whether a loss may be as large as this one
  kWhoCancelled,
  kWhyExit,  // abnormal exit, no text
  kExitStatusUnknown,
  kFixSemantics,  // whether the obvious fix is the right one
  kHardwareOrSoftware,
  kTooEarly,
  kStalls,              // whether a run that has stopped printing goes on
  kResumeMeant,         // whether the run was meant to go on at all
  kRewardCause,         // reward function, sampling or policy
  kCompilerAlive,       // whether the compiler, or whoever holds its lock, still works
  kWaitOrSmallKernels,  // whether cards wait in collectives, or run kernels that do not fill them
  kTransportCost,       // how long the cards wait for a transport that is known to be slow
  kStragglerCause,      // why one card does more, or less, than its peers
  kWhyNodeFailed,
  kNodeOrDaemon,    // whether the node itself went down
  kWhoRequeued,     // owner, operator or the job's own script
  kLastCheckpoint,  // whether the save that the end came into is complete
  kRerun,           // what became of it after it was put back
  kFollowMeant,     // whether a run that waited for another was to go on from it
  kLast = kFollowMeant,
};
inline constexpr int kQuestions = static_cast<int>(Question::kLast) + 1;

struct Finding {
  bool matched = false;
  std::string_view sub;          // at most 16 values per family
  std::string_view fault_class;  // A1
  std::string exception_type;
  int32_t signal = 0;
  proto::Domain domain = proto::DOMAIN_UNKNOWN;
  proto::Tier tier = proto::TIER_S;
  Ground cap = proto::GROUND_RECORD;           // of confidence; one of families::cap
  double contradiction = 1.0;                  // 0.5 per store that contradicts without explanation
  std::string_view contradicted_by;            // exit | gpu | reports
  std::vector<features::EvidenceRef> against;  // of shows: what contradicts
  proto::RetryOutlook retry =
      proto::RETRY_OUTLOOK_UNSPECIFIED;  // unspecified: as the remedy's row says
  std::string_view advice;               // row of the remedies, where the sub does not tell it
  std::string_view symptom;              // empty: the engine derives it from who failed
  std::string_view component;            // what the fault is isolated to
  std::vector<int32_t> ranks;
  std::vector<features::EvidenceRef> shows;  // in the order of the story
  std::vector<features::EvidenceRef> root;   // of shows: what began it
  std::vector<Question> open;
  bool of_gap = false;            // it is about a time in which nobody listened, by a witness of it
  double wasted_gpu_seconds = 0;  // 0 = not known, or none
  FieldValues values;             // for the sentences
  Timestamp onset;
};

// Why a family is not the answer.
struct RuledOut {
  proto::FamilyState::S state = proto::FamilyState::NOT_DECIDABLE;
  Reason by = Reason::kNone;  // the deciding counter-signal
  FieldValues values;         // its numbers
  std::vector<features::EvidenceRef> evidence;
  proto::Store needs = proto::STORE_UNSPECIFIED;  // NOT_DECIDABLE: what would decide
};

struct FamilyRow {
  std::string_view code;
  Group group;
  bool incident;   //  explains the primary cause; else judges the whole run
  Duration hold;   // must match this long before it is raised
  Duration clear;  // must be absent this long before it falls
  Finding (*evaluate)(const features::JobFeatures& f);
  RuledOut (*rule_out)(const features::JobFeatures& f);
};

// Every family of FamilyNames(), in order of precedence: those that explain the primary cause
// first.
std::span<const FamilyRow> Families();

// --- shared by the families' files ---

// The finding of a family that the primary cause belongs to: evidence, ranks, onset, tier by how
// many voices agree.
Finding FromPrimary(const features::JobFeatures& f);

// What only the job's own text says of hardware, or of others than its own processes, is the claim
// of whoever may print there, however its processes ended.
void HoldToItsWord(const features::JobFeatures& f, Finding& finding);

// No line has it, for families that only text can show here. `what` is of words.inc, "no_text".
RuledOut NoSuchText(const features::JobFeatures& f, std::string_view what);
RuledOut NotDecidable(proto::Store needs, Reason by = Reason::kNone, FieldValues values = {});
RuledOut Excluded(Reason by, std::vector<features::EvidenceRef> evidence = {},
                  FieldValues values = {});
// The command's exit status says that it is not this.
RuledOut Exited(const features::JobFeatures& f, std::vector<features::EvidenceRef> evidence);

// Whether an incident of this kind is among the causes in any role.
const features::Cause* FindCause(const features::JobFeatures& f, logs::IncidentKind kind);

// Seconds of silence after which a run that made progress counts as hung: max(floor, 10 x step, 3 x
// the p99 of records without saves and evaluations), with the budgets of these.
double HangTimeout(const features::JobFeatures& f);

}  // namespace rankscope::families
