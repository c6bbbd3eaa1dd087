// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// E2: a resume that did not resume. A checkpoint that cannot be loaded says so; one that was never
// loaded, or only in part, shows in where the training begins again. That a run should have resumed
// must be said by somebody: the command, the submit line, the program, the scheduler that begins it
// anew, or an earlier attempt, here or elsewhere, that left a checkpoint.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"
#include "detectors/features/checkpoint_place.h"
#include "detectors/model/subs.h"

namespace rankscope::families::silent_resume {

using features::Cause;
using features::JobFeatures;
using features::kNoEvidence;
using features::ParentFeatures;
using features::ResumeFeatures;

namespace {

// Training records before the beginning can be judged.
constexpr int64_t kFewRecords = 3;

bool IsLoadCrash(const logs::Incident& incident) {
  return incident.kind == logs::IncidentKind::kException &&
         incident.frame == logs::FrameKind::kCheckpointLoad;
}

// The first record is one of a training's first: its step is within a logging interval of 0.
bool BeginsAtTheBeginning(const ResumeFeatures& resume) {
  return !resume.counts_within_epochs && std::isfinite(resume.first_step) &&
         resume.first_step <= 1 + std::max(resume.interval, 1.0);
}

// Where only a share of the epochs is printed: the first record is one interval behind 0.
bool BeginsWithNoEpoch(const ResumeFeatures& resume) {
  constexpr double kIntervals = 2;
  return std::isnan(resume.first_step) && resume.epoch_interval > 0 &&
         resume.first_epoch <= kIntervals * resume.epoch_interval;
}

// The loss falls as that of a training that begins.
bool FallsFromTheBeginning(const JobFeatures& f) {
  constexpr double kInitial = 0.25;  // of its logarithm
  return f.loss.start > 0 && f.loss.end > 0 && std::log(f.loss.start / f.loss.end) > kInitial &&
         Learned(f);
}

// "--resume auto", "--resume=auto", "--auto-resume": what asks for a checkpoint if there is one. A
// first start finds none, and is right.
bool AsksIfAny(const JobFeatures& f) {
  const features::Evidence* const asked = f.At(f.resume.flag_evidence);
  if (asked == nullptr) return false;
  const std::string_view flag = asked->values.Text(FieldId::kFlag);
  constexpr std::string_view kIfAny[] = {"auto", "if_available", "allow"};
  const size_t value = flag.find_first_of("= ");
  if (value == std::string_view::npos) return flag == "--auto-resume" || flag == "--auto_resume";
  return std::find(std::begin(kIfAny), std::end(kIfAny), flag.substr(value + 1)) !=
         std::end(kIfAny);
}

// The losses of the run before.
struct LossBefore {
  double first, last, noise;
  double fallen() const { return first - last; }
  double scatter() const { return 6 * noise; }
};

// Where the loss begins: with the earlier attempt's beginning, and clear of its end.
bool LossBeginsAgain(const JobFeatures& f, const LossBefore& before) {
  const double head = f.loss.first_three;
  if (!std::isfinite(head) || !std::isfinite(before.first)) return true;  // says nothing
  return before.fallen() <= before.scatter() ||
         head > before.last + std::max(before.scatter(), 0.5 * before.fallen());
}

// It begins where the run before began, too, and that run's loss had clearly fallen since. Another
// model, or another set of data, begins elsewhere.
bool LossBeginsLike(const JobFeatures& f, const LossBefore& before) {
  const double head = f.loss.first_three;
  return before.fallen() > before.scatter() &&
         std::abs(head - before.first) <= std::max(before.scatter(), 0.25 * before.fallen());
}

// Whatever the text says: less than this of a checkpoint is a look at what kind of file it is.
constexpr int64_t kLoadBytes = 1024;

bool HasReadCheckpoint(const JobFeatures& f) {
  return f.storage.checkpoint_bytes_read >= kLoadBytes;
}

struct Silent {
  std::string_view sub;  // empty: nothing is wrong
  proto::Tier tier = proto::TIER_S;
  std::vector<features::EvidenceRef> root;
  Ground cap = proto::GROUND_RECORD;
};

// Somebody left a checkpoint behind, and this attempt trains from the beginning.
Silent AfterEarlierAttempt(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  const bool again =
      (BeginsAtTheBeginning(resume) && resume.first_step < resume.earlier_last_step) ||
      (BeginsWithNoEpoch(resume) && resume.first_epoch < resume.earlier_last_epoch);
  const LossBefore before{resume.earlier_first_loss, resume.earlier_last_loss,
                          resume.earlier_noise};
  if (!resume.earlier || resume.load_seen || !again || !LossBeginsAgain(f, before)) return {};
  if (HasReadCheckpoint(f)) return {};
  // Without a word of a restart it may be another program of the same script.
  return {subs::kNotLoaded,
          resume.restarted ? proto::TIER_S : proto::TIER_W,
          {resume.earlier_save_evidence, resume.earlier_loss_evidence, f.first_progress_evidence}};
}

// The same where the run before was on other nodes, or was another job: its summary tells of it.
// Who only waited for that job may be anything, so much has to agree, and the finding stays weak.
Silent AfterParent(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  const ParentFeatures& parent = resume.parent;
  if (!parent.known || parent.finished || !parent.saved || resume.fresh) return {};
  if (resume.load_seen || HasReadCheckpoint(f)) return {};
  if (!BeginsAtTheBeginning(resume) || !(resume.first_step < parent.last_step)) return {};
  const LossBefore before{parent.first_loss, parent.last_loss, parent.noise};
  if (!LossBeginsAgain(f, before)) return {};
  const bool alike = parent.same_program && parent.same_length && LossBeginsLike(f, before);
  if (!parent.rerun && (!alike || resume.weights_read)) return {};
  Silent silent{subs::kNotLoaded,
                parent.rerun ? proto::TIER_S : proto::TIER_W,
                {parent.rerun_evidence, parent.evidence, f.first_progress_evidence}};
  // Beside the scheduler's word that it is a rerun, the kernel's or the program's that it looked
  // for what to go on from. A first start of something else looks, too.
  for (const features::EvidenceRef looked :
       {f.storage.missing_evidence, f.no_checkpoint_evidence}) {
    if (looked == kNoEvidence) continue;
    if (parent.rerun) silent.tier = proto::TIER_C;
    silent.root.push_back(looked);
  }
  return silent;
}

// The command asks for a checkpoint, and the training begins without one.
Silent AfterFlag(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  // A count within the epoch says nothing of the beginning; the program's own words do.
  const bool begins = BeginsAtTheBeginning(resume) || BeginsWithNoEpoch(resume) ||
                      (resume.counts_within_epochs && f.no_checkpoint);
  if (resume.flag_evidence == kNoEvidence || resume.load_seen || !begins) return {};
  if (HasReadCheckpoint(f) || AsksIfAny(f)) return {};
  // A program may read weights without a word: where nothing but the text is known, it has to say
  // that it begins, or its curve has to.
  if (resume.flag_in_text && !f.no_checkpoint && !FallsFromTheBeginning(f)) return {};
  Silent silent{subs::kNotLoaded, proto::TIER_S, {resume.flag_evidence, f.first_progress_evidence}};
  if (f.storage.missing_evidence != kNoEvidence) {
    silent.tier = proto::TIER_C;  // the kernel's word beside the command's
    silent.root.push_back(f.storage.missing_evidence);
  }
  if (f.no_checkpoint) {
    if (!resume.flag_in_text) silent.tier = proto::TIER_C;
    silent.root.push_back(f.no_checkpoint_evidence);
  } else if (resume.flag_in_text) {
    silent.cap = cap::kLookalike;
  }
  return silent;
}

// The program announces a step that its records deny.
Silent AfterAnnouncement(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  Silent silent{subs::kNotLoaded, proto::TIER_S, {resume.load_evidence, f.first_progress_evidence}};
  // Weights alone are announced in the same words, so the curve has to say that they are not there:
  // weights that were loaded show in a loss that has little left to lose.
  const bool initial = FallsFromTheBeginning(f);
  const bool earlier_epoch = resume.loaded_epoch >= 2 && resume.first_epoch <= 1;
  if (earlier_epoch && initial) {
    silent.cap = cap::kLookalike;
    return silent;
  }
  if (!resume.announced) return {};
  const bool by_epochs = BeginsWithNoEpoch(resume);
  if (!BeginsAtTheBeginning(resume) && !by_epochs) return {};
  if (f.no_checkpoint) {
    silent.root.insert(silent.root.begin() + 1, f.no_checkpoint_evidence);
    return silent;
  }
  const bool steps = f.step_unit == logs::StepUnit::kSteps;
  if (by_epochs || !steps || std::isnan(resume.loaded_step)) {
    // Which step it read is not said, or none is printed: some count anew after each start.
    silent.cap = cap::kLookalike;
    return initial ? silent : Silent{};
  }
  if (!(resume.loaded_step > resume.first_step + 2 * std::max(resume.interval, 1.0))) return {};
  if (!initial) silent.sub = subs::kPartial;
  return silent;
}

// Megatron-LM and DeepSpeed say that they found nothing where they looked; of others the kernel
// says it, or the command, which asks for what there is. On a first start that is how it should be;
// elsewhere than where the run saves, or after a restart, it is not.
Silent AfterMiss(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  const features::EvidenceRef looked = f.no_checkpoint ? f.no_checkpoint_evidence
                                       : AsksIfAny(f)  ? resume.flag_evidence
                                                       : kNoEvidence;
  if (looked == kNoEvidence || resume.load_seen || HasReadCheckpoint(f)) return {};
  // Where the steps go on something was read, whatever was missed before.
  const bool counts = !resume.counts_within_epochs && std::isfinite(resume.first_step);
  if (counts ? !BeginsAtTheBeginning(resume) : !f.no_checkpoint) return {};
  if (resume.looked_elsewhere) {
    return {subs::kNotLoaded, proto::TIER_S, {f.no_checkpoint_evidence, f.leave.save}};
  }
  const bool nothing_left = resume.parent.known && (resume.parent.finished || !resume.parent.saved);
  if (resume.restarts > 0 && !resume.earlier && !nothing_left) {
    // What the run before left is not known.
    return {subs::kNotLoaded, proto::TIER_W, {looked, f.first_progress_evidence}};
  }
  return {};
}

// The weights came back, and what makes the optimizer go on did not.
Silent InPart(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  if (resume.partial.empty() || resume.partial == "rng") return {};
  const bool meant = resume.announced || resume.flag_evidence != kNoEvidence || resume.earlier ||
                     resume.restarts > 0 || (resume.load_seen && resume.partial == "schedule");
  if (!meant) return {};
  return {subs::kPartial, proto::TIER_S, {resume.partial_evidence}};
}

Silent SilentResume(const JobFeatures& f) {
  if (f.Primary() != nullptr || f.progress < kFewRecords) return {};
  Silent weak;
  for (const auto look :
       {AfterEarlierAttempt, AfterParent, AfterFlag, AfterAnnouncement, AfterMiss, InPart}) {
    Silent silent = look(f);
    if (silent.sub.empty()) continue;
    if (silent.tier != proto::TIER_W) return silent;
    if (weak.sub.empty()) weak = std::move(silent);
  }
  return weak;
}

// What stands between the run before and a verdict; empty: nothing is known of one.
RuledOut RuleOutByParent(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  const ParentFeatures& parent = resume.parent;
  if (parent.job_id.empty() || resume.flag_evidence != kNoEvidence) return {};
  FieldValues who = {{FieldId::kParent, parent.kind == "restart" ? "" : parent.job_id},
                     {FieldId::kFirstStep, resume.first_step},
                     {FieldId::kStep, parent.last_step},
                     {FieldId::kWrote, parent.wrote}};
  if (!parent.known) {
    return NotDecidable(proto::STORE_SCHEDULER, Reason::kNothingLeft, who);
  }
  if (parent.finished)
    return Excluded(Reason::kParentDone, {parent.rerun_evidence, parent.evidence}, who);
  if (!parent.saved)
    return Excluded(Reason::kParentSavedNothing, {parent.rerun_evidence, parent.evidence}, who);
  if (!resume.counts_within_epochs && f.progress > 0 && !BeginsAtTheBeginning(resume) &&
      std::isfinite(resume.first_step) && std::isfinite(parent.last_step)) {
    return Excluded(Reason::kParentContinued, {parent.evidence, f.first_progress_evidence}, who);
  }
  return NotDecidable(proto::STORE_SCHEDULER, Reason::kParentSaved, who);
}

}  // namespace

Finding Evaluate(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary != nullptr) {
    // Behind a training it is the next command that loads, what the run itself has saved.
    if (!IsLoadCrash(primary->incident()) || f.progress > 0) return {};
    Finding finding = FromPrimary(f);
    finding.sub = "load_crash";
    finding.domain = proto::DOMAIN_WORKLOAD;
    finding.component = "checkpoint";
    return finding;
  }
  const Silent silent = SilentResume(f);
  if (silent.sub.empty()) return {};
  Finding finding;
  finding.matched = true;
  finding.sub = silent.sub == subs::kPartial ? subs::kPartial : subs::kNotLoaded;
  finding.tier = silent.tier;
  finding.cap = silent.cap;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "checkpoint";
  finding.symptom = "wrong_result";
  for (const features::EvidenceRef ref : silent.root) Show(ref, finding);
  finding.root = finding.shows;
  Show(f.resume.load_evidence, finding);
  ShowCurve(f, finding);
  ShowLeave(f, finding);
  if (f.exit_known) Show(f.exit_evidence, finding);
  finding.values = {{FieldId::kPart, f.resume.partial.empty() ? "state" : f.resume.partial}};
  finding.values.Set(FieldId::kFirstStep, f.resume.first_step);
  const ParentFeatures& parent = f.resume.parent;
  Show(parent.rerun_evidence, finding);
  Show(parent.evidence, finding);
  if (!parent.wrote.empty() && !f.resume.looked.empty() && finding.sub == subs::kNotLoaded &&
      !features::MayBeOneFolder(parent.wrote, f.resume.looked)) {
    finding.advice = "elsewhere";
    finding.values.Set(FieldId::kWrote, parent.wrote).Set(FieldId::kLooked, f.resume.looked);
  }
  Show(f.storage.missing_evidence, finding);
  if (finding.tier == proto::TIER_W && parent.known && !parent.rerun &&
      f.resume.flag_evidence == kNoEvidence) {
    finding.open.push_back(Question::kFollowMeant);
    finding.values.Set(FieldId::kParent, parent.job_id);
  }
  // The files are seen: what is open is only whether it was meant.
  if (!f.storage.seen) finding.open.push_back(Question::kResumeMeant);
  return finding;
}

RuledOut RuleOut(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (IsLoadCrash(cause.incident()))
      return Excluded(Reason::kOtherEvent, {cause.evidence}, {{FieldId::kWhat, "checkpoint"}});
  }
  const ResumeFeatures& resume = f.resume;
  const bool steps = f.step_unit == logs::StepUnit::kSteps;
  if (resume.load_seen && std::isfinite(resume.loaded_step) && !resume.counts_within_epochs &&
      steps && resume.first_step >= resume.loaded_step) {
    return Excluded(
        Reason::kResumed, {resume.load_evidence, f.first_progress_evidence},
        {{FieldId::kSavedStep, resume.loaded_step}, {FieldId::kFirstStep, resume.first_step}});
  }
  if (HasReadCheckpoint(f) && f.storage.read_evidence != kNoEvidence)
    return Excluded(Reason::kCheckpointRead, {f.storage.read_evidence},
                    {{FieldId::kBytes, f.storage.checkpoint_bytes_read}});
  if (RuledOut out = RuleOutByParent(f); out.by != Reason::kNone) return out;
  // Text shows a load that fails or contradicts itself; whether a resume was meant that nobody
  // mentions is the scheduler's and the disk's.
  return NotDecidable(proto::STORE_SCHEDULER, Reason::kResumeUnknown);
}

}  // namespace rankscope::families::silent_resume
