// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/landmarks.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "detectors/features/says_failed.h"
#include "detectors/model/ascii.h"
#include "detectors/windows/completed_save.h"
#include "detectors/windows/series/statistics.h"

namespace rankscope::features {
namespace {

using logs::MarkerKind;
using windows::LastWords;
using windows::SaidLine;

bool HasAny(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [text](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

bool HasDigit(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// A word of its own or a part of a name ("train/loss", "eval_loss", "test-accuracy").
bool HasWord(std::string_view text, std::string_view word) {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !letter(text[at - 1])) && (end == text.size() || !letter(text[end])))
      return true;
  }
  return false;
}

bool HasAnyWord(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [text](std::string_view word) { return HasWord(text, word); });
}

// A denial, or somebody else's business.
bool Denies(std::string_view lower) {
  return HasAny(lower,
                {"not ", "n't ", "fail", "error", "incomplete", "unsuccess", "warn", "will "});
}

// "wed mar  4 10:11:12 utc 2026": date(1), so the words are those of a script around the program,
// which goes on whatever became of it.
bool IsDatedByAScript(std::string_view lower) {
  for (const std::string_view day : {"mon ", "tue ", "wed ", "thu ", "fri ", "sat ", "sun "}) {
    const size_t at = lower.find(day);
    constexpr size_t kClock = 11;  // behind "wed mar  4 "
    if (at == std::string_view::npos || lower.size() < at + kClock + 8) continue;
    const std::string_view clock = lower.substr(at + kClock, 8);
    if (clock[2] == ':' && clock[5] == ':' && HasDigit(clock)) return true;
  }
  return false;
}

// A library has come up, as NCCL tells of each rank: "NCCL INFO comm 0x55d0 ... - Init COMPLETE".
bool IsOfStart(std::string_view lower) {
  return HasAny(lower, {" nccl info ", " init complete", "initialized", "initialization"});
}

bool SaysDone(std::string_view lower) {
  return !IsDatedByAScript(lower) && !IsOfStart(lower) &&
         HasAnyWord(lower, {"complete", "completed", "finished", "done", "success", "successful",
                            "successfully"}) &&
         !Denies(lower);
}

// As a traceback prints it; a dump of stacks has no comma there.
bool IsFrameLine(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos || !text.substr(begin).starts_with("File \"")) return false;
  const size_t line = text.find("\", line ");
  return line != std::string_view::npos && text.find(", in ", line) != std::string_view::npos;
}

// A frame of a traceback is none, whatever its file is called.
bool IsResult(std::string_view lower) {
  return HasDigit(lower) && lower.find("file \"") == std::string_view::npos &&
         HasAnyWord(lower, {"loss", "losses", "accuracy", "acc", "metrics", "metric", "perplexity",
                            "ppl", "bleu", "rouge", "auc", "map", "wer", "score", "reward"}) &&
         !HasAny(lower, {"warn", "error", "saving", "saved"});
}

// Without the blanks that fill a table or a terminal's width.
std::string Squeezed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((c == ' ' || c == '\t') && !out.empty() && out.back() == ' ') continue;
    out.push_back(c == '\t' ? ' ' : c);
  }
  return out;
}

// A curve drawn with blocks is no number.
bool IsDrawing(std::string_view text) {
  return text.find("\xe2\x96") != std::string_view::npos;
}

// What a tracker or Python itself prints around the program's own end.
bool IsAfterword(std::string_view text) {
  return text.starts_with("wandb:") || text.find("warnings.warn") != std::string_view::npos ||
         text.find("Warning:") != std::string_view::npos ||
         text.find("destroy_process_group") != std::string_view::npos;
}

// How often it says that it saves, and how long that takes it.
void DescribeCadence(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f) {
  const windows::SaveTracker& saves = window.training.saves();
  StorageFeatures& storage = f.storage;
  storage.told_saves = saves.saves();
  storage.told_interval = saves.Interval();
  storage.told_step = saves.last().value;
  if (storage.told_saves == 0 || std::isnan(storage.told_interval)) return;
  Evidence evidence = citer.Quote(EvidenceKind::kSaveCadence, saves.last());
  evidence.observed = static_cast<double>(storage.told_saves);
  evidence.times = storage.told_saves;
  evidence.values = {{FieldId::kInterval, static_cast<int64_t>(storage.told_interval)}};
  const double seconds =
      (std::max(window.clock.last_progress(), window.phase.since()) - window.first_progress.t)
          .seconds();
  if (f.timed && window.first_progress.present() && seconds > 0) {
    storage.told_share = window.phase.save_seconds() / seconds;
    evidence.values.Set(FieldId::kTimePercent, static_cast<int64_t>(100 * storage.told_share));
  }
  storage.told_evidence = citer.Add(std::move(evidence));
}

// What an attempt reaches is lost where the next one does not begin behind its beginning: of steps
// that count from the beginning of the training, not of an epoch that it went on with.
bool BeginsNoLater(const windows::AttemptWindow& window, double before, double first) {
  const double epoch = window.clock.first_epoch();
  return !CountsWithinEpochs(window) && !(epoch >= 1) && first <= before;
}

}  // namespace

void DescribeLeave(const windows::JobWindow& job, const windows::AttemptWindow& window,
                   Citer& citer, JobFeatures& f) {
  const windows::MarkerSeen& saved = window.marker(MarkerKind::kSaveEnd);
  f.leave.save = citer.AddMarker(EvidenceKind::kLastSave,
                                 saved.count > 0 ? saved : window.marker(MarkerKind::kSaveBegin));
  DescribeCadence(window, citer, f);
  f.leave.evaluation =
      citer.AddMarker(EvidenceKind::kLastEvaluation, window.marker(MarkerKind::kEval));
  if (window.first_progress.present()) {
    f.first_progress_evidence = citer.AddPoint(EvidenceKind::kFirstProgress, window.first_progress);
  }
  if (!f.ended || &window != &job.now()) return;
  const auto quote = [&](EvidenceKind kind, const SaidLine& line) {
    Evidence evidence = citer.Quote(kind, line.stream, line.offset, line.text, line.t);
    constexpr size_t kQuoted = 160;
    size_t begin = line.text.find_first_not_of(" \t\r");
    if (begin == std::string::npos) begin = 0;
    evidence.values = {{FieldId::kSaid, Squeezed(line.text.substr(begin)).substr(0, kQuoted)}};
    return citer.Add(std::move(evidence));
  };
  bool behind_records = true;
  bool inside = false;  // of a traceback
  for (size_t age = 0; age < LastWords::kLines; ++age) {
    const SaidLine& line = job.last_words().At(age);
    if (line.offset < 0) break;
    behind_records = behind_records && !line.record;
    if (line.record) continue;
    if (f.leave.last_line == kNoEvidence && !IsAfterword(line.text))
      f.leave.last_line = quote(EvidenceKind::kLastLine, line);
    const std::string lower = LowerAscii(line.text);
    if (age == 0 && EndsAbruptly(line.text, lower))
      f.leave.failure = quote(EvidenceKind::kSaidFailed, line);
    if (line.bar || IsDrawing(line.text)) continue;
    // The output ends within a traceback: its last line is a frame, or the code below one.
    const bool ends_here = age == 0 || (age == 1 && inside);
    inside = age == 0 && line.text.starts_with("    ");
    if (ends_here && IsFrameLine(line.text)) {
      f.leave.failure = quote(EvidenceKind::kSaidFailed, line);
      continue;
    }
    if (f.leave.done == kNoEvidence && SaysDone(lower))
      f.leave.done = quote(EvidenceKind::kSaidDone, line);
    if (behind_records && f.leave.failure == kNoEvidence && f.leave.done == kNoEvidence &&
        !IsAfterword(line.text) && SaysFailed(line.text, lower))
      f.leave.failure = quote(EvidenceKind::kSaidFailed, line);
    if (!IsResult(lower)) continue;
    if (f.leave.result == kNoEvidence) f.leave.result = quote(EvidenceKind::kResult, line);
    if (f.leave.train_result == kNoEvidence && HasWord(lower, "train") && HasWord(lower, "loss"))
      f.leave.train_result = quote(EvidenceKind::kResult, line);
  }
}

void DescribeLossScale(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f) {
  const windows::LossScaleTracker& tracker = window.loss_scale;
  LossScaleFeatures& scale = f.loss_scale;
  scale.falls = tracker.falls();
  if (scale.falls == 0) return;
  scale.value = tracker.scale();
  scale.records_before = tracker.records_at_first();
  scale.step_before = tracker.step_at_first();
  scale.records_since = window.progress - tracker.records_at_last();
  if (scale.falls > 1) {
    Evidence first = citer.Quote(EvidenceKind::kLossScale, tracker.first());
    first.values.Set(FieldId::kFalls, 1);
    scale.first_evidence = citer.Add(std::move(first));
  }
  Evidence last = citer.Quote(EvidenceKind::kLossScale, tracker.last());
  last.values.Set(FieldId::kFalls, static_cast<int64_t>(scale.falls));
  scale.last_evidence = citer.Add(std::move(last));
}

void DescribeReward(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f) {
  const windows::RewardTracker& tracker = window.reward;
  RewardFeatures& reward = f.reward;
  reward.records = tracker.records();
  if (reward.records == 0) return;
  reward.trailing_flat = tracker.trailing_flat();
  reward.ever_differed = tracker.ever_differed();
  reward.first = tracker.first_reward();
  reward.last = tracker.last_reward();
  reward.best = tracker.best_reward();
  reward.kl_records = tracker.kl_records();
  reward.usual_kl = tracker.usual_kl();
  reward.kl_rose_early = tracker.rose_early();
  reward.last_kl = tracker.last_kl();
  reward.reward_records = tracker.reward_records();
  reward.best_median = tracker.best_median();
  reward.early_clipped = tracker.early_clipped();
  reward.late_clipped = tracker.late_clipped();
  if (tracker.last_clipped().present()) {
    Evidence clipped = citer.Quote(EvidenceKind::kRewardClipped, tracker.last_clipped());
    clipped.observed = reward.late_clipped;
    clipped.expected = reward.early_clipped;
    reward.clipped_evidence = citer.Add(std::move(clipped));
  }
  reward.first_evidence = citer.AddPoint(EvidenceKind::kReward, tracker.first());
  if (tracker.last().index > tracker.first().index)
    reward.last_evidence = citer.AddPoint(EvidenceKind::kReward, tracker.last());
  if (tracker.flat().present()) {
    Evidence flat = citer.Quote(EvidenceKind::kRewardFlat, tracker.flat());
    flat.times = reward.trailing_flat;
    reward.flat_evidence = citer.Add(std::move(flat));
  }
  if (tracker.highest_kl().present()) {
    Evidence kl = citer.Quote(EvidenceKind::kKl, tracker.highest_kl());
    kl.expected = reward.usual_kl;
    reward.kl_evidence = citer.Add(std::move(kl));
  }
}

namespace {

// Its ranks meet at an address that no other node reaches; and one command starts them all, which
// is none of them.
bool MeetsOnThisNode(const windows::JobWindow& job) {
  const auto& told = job.now().kernel.network.coordinators();
  const bool loopback =
      !told.empty() &&
      std::all_of(told.begin(), told.end(), [](const windows::Coordinator& coordinator) {
        const std::string& host = coordinator.host;
        return host == "localhost" || host == "::1" || host.starts_with("127.");
      });
  return loopback && job.root().pid != 0 &&
         std::none_of(job.ranks().begin(), job.ranks().end(),
                      [&job](const auto& rank) { return rank.second.process == job.root(); });
}

}  // namespace

void DescribeMissingRanks(const windows::JobWindow& job, Citer& citer, JobFeatures& f) {
  // A launcher numbers the ranks of a node one after the other.
  constexpr int32_t kMostOfANode = 1024;
  const bool all_here = job.local_world_size() == 0 && MeetsOnThisNode(job);
  const int32_t expected = all_here ? job.world_size() : job.local_world_size();
  if (expected < 2 || expected > kMostOfANode || job.ranks().empty()) return;
  std::set<int32_t> seen;
  int32_t first = all_here ? 0 : -1;
  for (const auto& [rank, window] : job.ranks()) {
    if (all_here) {
      seen.insert(rank);
      continue;
    }
    if (window.local_rank < 0 || window.local_rank > rank) return;
    const int32_t base = rank - window.local_rank;
    if (first >= 0 && base != first) return;  // of several nodes, or numbered in another way
    first = base;
    seen.insert(rank);
  }
  for (int32_t rank = first; rank < first + expected; ++rank) {
    if (!seen.contains(rank)) f.missing_ranks.push_back(rank);
  }
  if (f.missing_ranks.empty()) return;
  f.missing_seconds = job.RunningSeconds(job.last_rank_start(), f.now);
  Evidence evidence;
  evidence.kind = EvidenceKind::kMissingRanks;
  evidence.store = proto::STORE_PROCESS;
  evidence.ranks = f.missing_ranks;
  evidence.expected = expected;
  evidence.begin = job.last_rank_start();
  evidence.end = f.now;
  evidence.values = {{FieldId::kSeconds, std::floor(f.missing_seconds)}};
  f.missing_evidence = citer.Add(std::move(evidence));
}

// Of several targets the one that is missed most.
void DescribeTarget(const windows::Targets& targets, const windows::AttemptWindow& window,
                    Citer& citer, JobFeatures& f) {
  constexpr int64_t kRecords = 8;  // past the warm-up, for a median
  TargetFeatures& found = f.target;
  std::string_view measure;
  for (size_t i = 0; i < kSpeedNames.size(); ++i) {
    const double target = targets.value(static_cast<Speed>(i));
    if (!(target > 0)) continue;
    const auto& speeds = window.training.speed(i);
    double reached = windows::Median(speeds.ToVector());
    auto records = static_cast<int64_t>(speeds.size());
    // A run that prints records without their time has a clock of steps all the same.
    const bool steps = static_cast<Speed>(i) == Speed::kSteps;
    if (records == 0 && steps && f.step_seconds > 0 &&
        f.progress >= windows::TrainingTracker::kWarmUp + kRecords) {
      reached = 1 / f.step_seconds;
      records = kRecords;
    }
    if (records < kRecords || !(reached > 0)) continue;
    if (found.known() && reached / target >= found.reached / found.target) continue;
    found = {target, reached, records};
    measure = kSpeedNames[i];
  }
  if (!found.known()) return;
  Evidence evidence = citer.Quote(EvidenceKind::kTarget, window.last_progress);
  evidence.observed = found.reached;
  evidence.expected = found.target;
  evidence.values = {{FieldId::kMeasure, std::string(measure.substr(0, measure.find('_')))},
                     {FieldId::kShare, found.reached / found.target},
                     {FieldId::kRecords, found.records}};
  if (!targets.partition().empty())
    evidence.values.Set(FieldId::kBy, "partition " + targets.partition());
  found.evidence = citer.Add(std::move(evidence));
}

void DescribeMetric(const windows::AttemptWindow& window, Citer& citer, JobFeatures& f) {
  const windows::MetricRow* row = window.training.metrics().Longest();
  if (row == nullptr) return;
  MetricFeatures& metric = f.metric;
  metric.values = row->values;
  metric.changes = row->changes;
  metric.trailing_nonfinite = row->trailing_nonfinite;
  metric.first = row->first;
  metric.last = row->last.value;
  Evidence evidence = citer.Quote(EvidenceKind::kMetricSeries, row->last);
  evidence.observed = metric.last;
  if (std::isfinite(metric.first)) evidence.expected = metric.first;
  evidence.times = metric.values;
  evidence.values = {{FieldId::kName, row->name}};
  metric.evidence = citer.Add(std::move(evidence));
  const windows::MetricRow* lost = window.training.metrics().NotFinite();
  if (lost == nullptr) return;
  metric.lost = lost->trailing_nonfinite;
  Evidence not_finite = citer.Quote(EvidenceKind::kLossNonFinite, lost->first_nonfinite);
  if (std::isfinite(lost->first)) not_finite.expected = lost->first;
  not_finite.times = metric.lost;
  not_finite.values.Set(FieldId::kName, lost->name);
  metric.lost_evidence = citer.Add(std::move(not_finite));
}

void DescribeCompiler(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f) {
  const windows::MarkerSeen& begun = window.marker(MarkerKind::kCompileBegin);
  const windows::MarkerSeen& ended = window.marker(MarkerKind::kCompileEnd);
  if (begun.count == 0) return;
  const bool later =
      begun.stream == ended.stream ? begun.offset > ended.offset : begun.last > ended.last;
  f.compiler.open = ended.count == 0 || later;
  f.compiler.last_thing = f.compiler.open && window.progress_at_compile == window.progress;
  f.compiler.what = begun.text;
  f.compiler.seconds = job.RunningSeconds(begun.last, f.now);
  f.compiler.evidence = citer.AddMarker(EvidenceKind::kCompiling, begun);
}

void DescribeRestarts(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f) {
  RestartFeatures& restarts = f.restarts;
  if (&window != &job.now()) return;
  restarts.count = job.attempt().ordinal - 1 - static_cast<int64_t>(job.earlier().size());
  restarts.recent = f.timed ? 0 : restarts.count;
  constexpr Duration kHalfHour = Seconds(1800);
  const Timestamp last = job.end().ended ? std::min(job.end().t, f.now) : f.now;
  // Attempts at the end, this one among them, that came no further than those before.
  double best = -1;
  double begun = logs::kAbsent;
  windows::CompletedSave furthest;
  const auto follow = [&](int64_t progress, double first, double highest,
                          const windows::CompletedSave& saved) {
    const windows::Advance by_save = windows::CompareSaves(furthest, saved);
    if (saved.present && by_save != windows::Advance::kNoFurther) furthest = saved;
    // Who prints no steps counts records, of which each attempt may have as many: where
    // checkpoints are known, these say how far it came.
    const bool counts = progress > 0 && std::isfinite(highest);
    const bool by_saves = !counts && furthest.present;
    const double reached = std::isfinite(highest) ? highest : static_cast<double>(progress);
    const bool anew =
        counts && by_save != windows::Advance::kFurther && BeginsNoLater(window, begun, first);
    const bool further = by_saves ? by_save != windows::Advance::kNoFurther
                                  : progress > 0 && reached > best && !anew;
    if (progress > 0) begun = first;
    best = std::max(best, progress > 0 ? reached : -1);
    restarts.without_advance = further ? 0 : restarts.without_advance + 1;
    restarts.advanced = further ? restarts.advanced + 1 : 0;
    restarts.by_saves = !further && (restarts.by_saves || by_saves);
  };
  for (const windows::EarlierAttempt& earlier : job.earlier()) {
    ++restarts.count;
    if (!f.timed || (!earlier.past && last - earlier.end < kHalfHour)) ++restarts.recent;
    follow(earlier.progress, earlier.first_step, earlier.highest_step, earlier.completed);
    if (!earlier.finished) continue;
    // A training that came to its end was not restarted: what follows is another.
    restarts.count = restarts.recent = 0;
    restarts.without_advance = restarts.advanced = 0;
    restarts.by_saves = false;
    furthest = {};
    best = -1;
    begun = logs::kAbsent;
  }
  if (restarts.count == 0) return;
  if (f.ended || window.progress > 0)  // one that has just begun has not failed
    follow(window.progress, window.clock.first_step(), window.clock.reached(),
           windows::NewestCompletedSave(window, last));
  restarts.best_step = best;
  const windows::MarkerSeen& marker = window.marker(MarkerKind::kRestart);
  Evidence evidence = marker.count > 0 ? citer.Quote(EvidenceKind::kRestarts, marker) : Evidence{};
  evidence.kind = EvidenceKind::kRestarts;
  if (marker.count == 0) {
    evidence.store = proto::STORE_PROCESS;
    evidence.process = job.root();
  }
  evidence.observed = restarts.count;
  evidence.values = {{FieldId::kWithoutAdvance, static_cast<int64_t>(restarts.without_advance)}};
  if (restarts.by_saves) {
    std::string saved = furthest.name;
    if (std::isfinite(furthest.step)) {
      saved += (saved.empty() ? "step " : ", step ") +
               std::to_string(static_cast<int64_t>(std::clamp(furthest.step, 0.0, 1e15)));
    }
    evidence.values.Set(FieldId::kSaved, saved.empty() ? "of no known step" : saved);
  }
  restarts.evidence = citer.Add(std::move(evidence));
}

}  // namespace rankscope::features
