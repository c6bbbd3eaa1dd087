// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// E2: a resume that did not resume. A checkpoint that cannot be loaded says so; one that was never
// loaded, or only in part, shows in where the training begins again. That a run should have resumed
// must be said by somebody: the command, the program, or an earlier attempt that left a checkpoint.
#include <cmath>

#include "detectors/families/curve.h"
#include "detectors/families/rows.h"

namespace rankscope::families {
namespace {

using features::Cause;
using features::JobFeatures;
using features::kNoEvidence;
using features::ResumeFeatures;

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

// Where the loss begins: with the earlier attempt's beginning, and clear of its end.
bool LossBeginsAgain(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  const double head = f.loss.first_three;
  if (!std::isfinite(head) || !std::isfinite(resume.earlier_first_loss))
    return true;  // says nothing
  const double fallen = resume.earlier_first_loss - resume.earlier_last_loss;
  const double noise = 6 * resume.earlier_noise;
  return fallen <= noise || head > resume.earlier_last_loss + std::max(noise, 0.5 * fallen);
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
};

// Somebody left a checkpoint behind, and this attempt trains from the beginning.
Silent AfterEarlierAttempt(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  const bool again = BeginsAtTheBeginning(resume) && resume.first_step < resume.earlier_last_step;
  if (!resume.earlier || resume.load_seen || !again || !LossBeginsAgain(f)) return {};
  if (HasReadCheckpoint(f)) return {};
  // Without a word of a restart it may be another program of the same script.
  return {"not_loaded",
          resume.restarted ? proto::TIER_S : proto::TIER_W,
          {resume.earlier_save_evidence, resume.earlier_loss_evidence, f.first_progress_evidence}};
}

// The command asks for a checkpoint, and the training begins without one.
Silent AfterFlag(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  // A count within the epoch says nothing of the beginning; the program's own words do.
  const bool begins =
      BeginsAtTheBeginning(resume) || (resume.counts_within_epochs && f.no_checkpoint);
  if (resume.flag_evidence == kNoEvidence || resume.load_seen || !begins) return {};
  if (HasReadCheckpoint(f)) return {};
  Silent silent{"not_loaded", proto::TIER_S, {resume.flag_evidence, f.first_progress_evidence}};
  if (f.storage.missing_evidence != kNoEvidence) {
    silent.tier = proto::TIER_C;  // the kernel's word beside the command's
    silent.root.push_back(f.storage.missing_evidence);
  }
  if (f.no_checkpoint) {
    silent.tier = proto::TIER_C;
    silent.root.push_back(f.no_checkpoint_evidence);
  }
  return silent;
}

// The program announces a step that its records deny.
Silent AfterAnnouncement(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  if (!resume.announced || !BeginsAtTheBeginning(resume)) return {};
  if (f.no_checkpoint) {
    return {"not_loaded",
            proto::TIER_S,
            {resume.load_evidence, f.no_checkpoint_evidence, f.first_progress_evidence}};
  }
  if (!(resume.loaded_step > resume.first_step + 2 * std::max(resume.interval, 1.0))) return {};
  // Weights that were loaded show in a loss that has little left to lose.
  constexpr double kInitial = 0.25;  // of its logarithm
  const bool initial = f.loss.start > 0 && f.loss.end > 0 &&
                       std::log(f.loss.start / f.loss.end) > kInitial && Learned(f);
  return {initial ? "not_loaded" : "partial",
          proto::TIER_S,
          {resume.load_evidence, f.first_progress_evidence}};
}

// Megatron-LM and DeepSpeed say that they found nothing where they looked. On a first start that is
// how it should be; elsewhere than where the run saves, or after a restart, it is not.
Silent AfterMiss(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  if (!f.no_checkpoint || resume.load_seen || HasReadCheckpoint(f)) return {};
  if (resume.looked_elsewhere) {
    return {"not_loaded", proto::TIER_S, {f.no_checkpoint_evidence, f.leave.save}};
  }
  if (resume.restarts > 0 && !resume.earlier)  // what the first attempt left is not known
    return {"not_loaded", proto::TIER_W, {f.no_checkpoint_evidence, f.first_progress_evidence}};
  return {};
}

// The weights came back, and what makes the optimizer go on did not.
Silent InPart(const JobFeatures& f) {
  const ResumeFeatures& resume = f.resume;
  if (resume.partial.empty() || resume.partial == "rng") return {};
  const bool meant = resume.announced || resume.flag_evidence != kNoEvidence || resume.earlier ||
                     resume.restarts > 0 || (resume.load_seen && resume.partial == "schedule");
  if (!meant) return {};
  return {"partial", proto::TIER_S, {resume.partial_evidence}};
}

Silent SilentResume(const JobFeatures& f) {
  if (f.Primary() != nullptr || f.progress < kFewRecords) return {};
  for (const auto look : {AfterEarlierAttempt, AfterFlag, AfterAnnouncement, AfterMiss, InPart}) {
    Silent silent = look(f);
    if (!silent.sub.empty()) return silent;
  }
  return {};
}

}  // namespace

Finding EvaluateE2(const JobFeatures& f) {
  const Cause* primary = f.Primary();
  if (primary != nullptr) {
    if (!IsLoadCrash(primary->incident())) return {};
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
  finding.sub = silent.sub == "partial" ? "partial" : "not_loaded";
  finding.tier = silent.tier;
  finding.domain = proto::DOMAIN_WORKLOAD;
  finding.component = "checkpoint";
  finding.symptom = "wrong_result";
  for (const features::EvidenceRef ref : silent.root) Show(ref, finding);
  finding.root = finding.shows;
  Show(f.resume.load_evidence, finding);
  ShowCurve(f, finding);
  ShowLeave(f, finding);
  if (f.exit_known) Show(f.exit_evidence, finding);
  finding.values = {{"part", f.resume.partial.empty() ? "state" : f.resume.partial}};
  if (std::isfinite(f.resume.first_step))
    finding.values.push_back({"first_step", Number(f.resume.first_step)});
  Show(f.storage.missing_evidence, finding);
  // The files are seen: what is open is only whether it was meant.
  if (!f.storage.seen) finding.open.push_back(Question::kResumeMeant);
  return finding;
}

RuledOut RuleOutE2(const JobFeatures& f) {
  for (const Cause& cause : f.causes) {
    if (IsLoadCrash(cause.incident()))
      return Excluded("the checkpoint error is not what ended the run", {cause.evidence});
  }
  const ResumeFeatures& resume = f.resume;
  if (resume.load_seen && std::isfinite(resume.loaded_step) && !resume.counts_within_epochs &&
      resume.first_step >= resume.loaded_step) {
    return Excluded("the resume was honoured: from step " + Number(resume.loaded_step) +
                        ", first record at step " + Number(resume.first_step),
                    {resume.load_evidence, f.first_progress_evidence});
  }
  if (HasReadCheckpoint(f) && f.storage.read_evidence != kNoEvidence)
    return Excluded("a checkpoint was read", {f.storage.read_evidence});
  // Text shows a load that fails or contradicts itself; whether a resume was meant that nobody
  // mentions is the scheduler's and the disk's.
  return NotDecidable(proto::STORE_SCHEDULER);
}

}  // namespace rankscope::families
