// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/job_window.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "detectors/model/job_summary.h"
#include "detectors/windows/another_job.h"
#include "detectors/windows/completed_save.h"
#include "detectors/windows/ended_well.h"
#include "detectors/windows/records_behind.h"
#include "detectors/windows/said_worker.h"
#include "detectors/windows/series/statistics.h"
#include "detectors/windows/trackers/event_fields.h"

namespace rankscope::windows {
namespace {

using logs::Incident;
using logs::IncidentKind;
using logs::MarkerKind;
using logs::Role;

// The last of a job's processes end with the one that started them, or soon after it.
constexpr Duration kLeftBehind = Seconds(2);
constexpr size_t kMaxEndedWell = 4096;  // ranks of one node

// NaN: not known, or longer than anybody would wait for it.
double RoundSeconds(const StepClock& clock, int32_t world_size) {
  constexpr double kLong = 10;
  const double step = clock.MaxStepSeconds(world_size);
  return std::isfinite(clock.MedianStepSeconds()) || step < kLong ? step : logs::kAbsent;
}

}  // namespace

JobWindow::JobWindow(std::string job_id, Timestamp begin)
    : job_id_(std::move(job_id)), begin_(begin) {
  attempts_.current().begin = begin;
  hearing_.Begin(begin);
}

double JobWindow::RunningSeconds(Timestamp from, Timestamp to) const {
  double seconds = (to - from).seconds() - suspension_.Within(from, to).seconds();
  // Of the time in which nobody listened, what has been taken off already.
  for (const UnheardSpan& span : hearing_.spans()) {
    const Timestamp begin = std::max(span.begin, from);
    const Timestamp end = std::min(span.end, to);
    if (end > begin) seconds -= (end - begin).seconds() - suspension_.Within(begin, end).seconds();
  }
  return seconds > 0 ? seconds : 0;
}

void JobWindow::OnRunBegin(const RunMark& mark, Timestamp t) {
  // Of processes alone, which may be those that started this wrapper, nothing has begun yet.
  const bool was_here = wrapped_ || end_.ended || !ranks_.empty();
  if (was_here && mark.slurm_restart > attempt().slurm_restart)
    BeginRequeued(mark.slurm_restart, t);
  attempts_.RaiseRestarts(mark.slurm_restart, 0);
  wrapped_ = true;
  argv_ = mark.argv;
  command_.clear();
  for (const std::string& argument : mark.argv) {
    if (!command_.empty()) command_ += ' ';
    command_ += argument;
  }
  attempts_.current().kernel.network.OnCommand(command_);
  command_.resize(std::min<size_t>(command_.size(), 200));
  constexpr size_t kNoteCap = 400;
  size_t end = std::min(mark.error.size(), kNoteCap);
  while (end > 0 && end < mark.error.size() && (mark.error[end] & 0xc0) == 0x80) --end;
  wrapper_note_ = mark.error.substr(0, end);
  if (attempt().ordinal == 1) begin_ = t;
  attempts_.current().begin = t;
  root_ = mark.root;
  if (mark.world_size > 0) world_size_ = mark.world_size;
}

void JobWindow::OnRunEnd(const RunMark& mark, Timestamp t) {
  switch (mark.what) {
    case RunMark::What::kEnd:
      end_.ended = true;
      end_.t = t;
      end_.status_known = mark.status_known;
      end_.wait_status = mark.wait_status;
      end_.error = mark.error;
      end_.from_folder = mark.from_folder;
      if (mark.status_known && mark.error.empty()) NoteCommandDeath(t);
      break;
    case RunMark::What::kStreamsClosed:
      end_.streams_closed = true;
      end_.streams_closed_t = t;
      break;
    case RunMark::What::kLost:
      end_.wrapper_lost = true;
      if (!end_.streams_closed) {
        end_.streams_closed = true;
        end_.streams_closed_t = t;
      }
      break;
    case RunMark::What::kBegin:
    case RunMark::What::kDisowned:
    case RunMark::What::kUnspecified:
      break;
  }
}

// The command itself died by a signal, or is a shell that says so of its last child (128 + N).
void JobWindow::NoteCommandDeath(Timestamp t) {
  const int signal = end_.wait_status & 0x7f;
  const int code = (end_.wait_status >> 8) & 0xff;
  constexpr int kShellCodes[] = {128 + 4, 128 + 6, 128 + 7,
                                 128 + 8, 128 + 9, 128 + 11};  // ILL ABRT BUS FPE KILL SEGV
  const bool by_shell = signal == 0 && std::find(std::begin(kShellCodes), std::end(kShellCodes),
                                                 code) != std::end(kShellCodes);
  if (signal == 0 && !by_shell) return;
  Candidate candidate;
  candidate.incident.kind = IncidentKind::kSignalDeath;
  candidate.incident.signal = signal != 0 ? signal : code - 128;
  candidate.incident.shape = signal != 0 ? "wait_status" : "exit_code";
  candidate.incident.pid = root_.pid;
  if (world_size_ <= 1) candidate.incident.rank = 0;
  for (const auto& [number, rank] : ranks_) {
    if (rank.process == root_) candidate.incident.rank = number;
  }
  candidate.incident.t = t;
  candidate.store = proto::STORE_PROCESS;
  candidate.attempt = attempts_.ordinal_now();
  candidate.progress_before = now().progress;
  candidate.process = root_;
  incidents_.Add(std::move(candidate));
}

void JobWindow::OnProcessStart(const attribution::ProcessInfo& process, bool again, Timestamp t) {
  in_past_ = false;
  if (!again) {
    ++processes_seen_;
    ++processes_alive_;
  }
  single_program_.OnStart(process, process.key == root_);
  if (array_task_.empty() && !process.array_job_id.empty() && !process.array_task.empty())
    array_task_ = process.array_job_id + '_' + process.array_task;
  heterogeneous_ = heterogeneous_ || !process.het_job_id.empty();
  const bool over = end_.ended;
  // What was requeued begins with its script, wherever its ranks come to run.
  if (over && process.slurm_restart > attempt().slurm_restart)
    BeginRequeued(process.slurm_restart, t);
  if (!wrapped_ && !over && command_.empty()) command_ = process.command;
  if (!wrapped_) {
    end_ = {};  // a job known only by its processes lives while one does
    // The first of them is there before whom it starts.
    if (!again && processes_alive_ == 1) root_ = process.key;
  }
  // A script's count is that of all that it will start.
  if (attempt().ordinal == 1 && !wrapped_ && !over && ranks_.empty())
    attempts_.RaiseRestarts(process.slurm_restart, 0);
  if (process.role == attribution::ProcessRole::kLauncher)
    attempts_.current().kernel.network.OnCommand(process.command);
  if (process.role != attribution::ProcessRole::kRank) return;
  steps_.OnRankStart(process, t);
  world_size_ = std::max(world_size_, process.world_size);
  // Only the launcher tells of its restarts in text.
  const bool told = process.elastic_restart > attempt().elastic_restart;
  if (told || process.slurm_restart > attempt().slurm_restart) {
    if (told && !attempts_.RestartIsUntold()) {
      attempts_.SeeRestart();
    } else if (processes_seen_ > 1 && !ranks_.empty()) {
      BeginAttempt(t);
      if (told) attempts_.SeeRestart();
    }
    attempts_.RaiseRestarts(process.slurm_restart, process.elastic_restart);
  }
  attempts_.current().kernel.network.OnCommand(process.command);
  if (process.rank < 0 || (ranks_.size() >= kMaxRanks && !ranks_.contains(process.rank))) return;
  RankWindow& rank = ranks_[process.rank];
  if (rank.process != process.key) last_rank_start_ = t;
  rank.rank = process.rank;
  rank.local_rank = process.local_rank;
  rank.process = process.key;
  rank.namespace_pid = process.inner_pid;
  rank.node = process.node_name;
}

void JobWindow::OnProcessLeft(const ProcessKey& key, Timestamp t) {
  std::erase_if(ranks_, [&key](const auto& entry) { return entry.second.process == key; });
  suspension_.OnProcessGone(key, t);
  --processes_seen_;
  processes_alive_ = std::max<int64_t>(0, processes_alive_ - 1);
  if (wrapped_ || processes_alive_ > 0) return;
  end_.ended = true;
  end_.t = t;
  end_.streams_closed = true;
  end_.streams_closed_t = t;
}

void JobWindow::WithdrawRank(const ProcessKey& key, int32_t rank) {
  const auto found = ranks_.find(rank);
  if (found != ranks_.end() && found->second.process == key) ranks_.erase(found);
}

void JobWindow::OnEnvironment(const attribution::ProcessInfo& process,
                              const std::vector<KeyValue>& environment, Timestamp t) {
  if (process.role != attribution::ProcessRole::kRank) return;
  for (const KeyValue& entry : environment) {
    if (entry.key == "SLURM_JOB_NODELIST" && entry.value.size() <= kNodeListCap)
      node_list_ = entry.value;
    if (entry.key == "LOCAL_WORLD_SIZE")
      local_world_size_ = std::max(0, std::atoi(entry.value.c_str()));
  }
  surroundings_.OnEnvironment(environment, process.key, process.rank, t);
  parents_.OnEnvironment(environment, t);
  attempts_.current().kernel.network.OnEnvironment(environment);
}

void JobWindow::OnArguments(const attribution::ProcessInfo& process,
                            const std::vector<std::string>& arguments) {
  // A launcher's hold those of its ranks, a shell's do not.
  const bool rank = process.role == attribution::ProcessRole::kRank;
  if (wrapped_ || arguments.empty() || !(rank || process.key == root_)) return;
  if (rank || argv_.empty()) argv_ = arguments;
  if (rank) steps_.OnProgram(process, ProgramOf(arguments));
}

void JobWindow::OnProcessExit(const attribution::ProcessInfo& process, Timestamp t) {
  processes_alive_ = std::max<int64_t>(0, processes_alive_ - 1);
  last_process_exit_ = t;
  suspension_.OnProcessGone(process.key, t);
  steps_.OnRankExit(process, t);
  attempts_.current().kernel.OnProcessExit(process.key);
  if (wrapped_ && end_.wrapper_lost && !end_.ended && process.key == root_) {
    // The wrapper cannot tell any more how its command ended; the kernel does.
    end_.ended = true;
    end_.t = t;
    end_.status_known = process.status_known;
    end_.wait_status = process.wait_status;
  }
  if (!wrapped_ && process.key == root_ &&
      (process.role == attribution::ProcessRole::kLauncher || world_size_ <= 1)) {
    end_.t = t;
    end_.status_known = process.status_known;
    end_.wait_status = process.wait_status;
  }
  if (process.role == attribution::ProcessRole::kRank && process.rank >= 0 &&
      process.rank < world_size_ && ended_well_.size() < kMaxEndedWell) {
    ended_well_[process.rank] = process.status_known && process.wait_status == 0;
  }
  if (!wrapped_ && processes_alive_ == 0) {
    // Whom it left behind may end otherwise, and it is they who have the last word.
    if (t - end_.t > kLeftBehind) end_.status_known = false;
    if (!end_.status_known) TakeStatusOfRanks();
    end_.ended = true;
    end_.t = t;
    end_.streams_closed = true;
    end_.streams_closed_t = t;
  }
  // Of a rank, or of the wrapped command.
  const bool leads = process.role == attribution::ProcessRole::kLauncher || process.key == root_;
  TakeRequest(process, leads || process.role == attribution::ProcessRole::kRank, t);
  TakeSignal(process, process.role == attribution::ProcessRole::kRank || process.key == root_);
  if (!process.status_known || process.role != attribution::ProcessRole::kRank) return;
  Incident incident;
  const bool well = process.wait_status == 0;  // which is an incident where its peers train on
  if (well && KnowsWhoEndedWell(incidents_, ranks_)) return;
  const int signal = process.wait_status & 0x7f;
  incident.kind = signal != 0 ? IncidentKind::kSignalDeath : IncidentKind::kNonZeroExit;
  incident.role = well ? Role::kAdvice : signal != 0 ? Role::kInitiating : Role::kWrapper;
  incident.signal = signal;
  incident.exit_code = signal != 0 ? 0 : (process.wait_status >> 8) & 0xff;
  incident.rank = process.rank;
  incident.local_rank = process.local_rank;
  incident.pid = process.key.pid;
  incident.shape = well ? kEndedWell : "wait_status";
  incident.t = t;
  Candidate candidate;
  candidate.incident = std::move(incident);
  candidate.store = proto::STORE_PROCESS;
  candidate.attempt = attempts_.ordinal_now();
  candidate.progress_before = now().progress;
  candidate.process = process.key;
  incidents_.Add(std::move(candidate));
}

// What started the ranks may be a script that is not known as a launcher. Where all ranks are of
// this node and each exited with 0, so did the run.
void JobWindow::TakeStatusOfRanks() {
  const bool all =
      world_size_ > 0 && ended_well_.size() == static_cast<size_t>(world_size_) &&
      std::all_of(ended_well_.begin(), ended_well_.end(), [](const auto& of) { return of.second; });
  if (!all) return;
  end_.status_known = end_.by_ranks = true;
  end_.wait_status = 0;
}

void JobWindow::OnPastText(const Event& event) {
  const auto stream = static_cast<uint32_t>(NumberOf(event, "stream"));
  if (past_texts_.size() < kMaxStreams || past_texts_.contains(stream))
    past_texts_[stream] = {NumberOf(event, "end"), {NumberOf(event, "written")}};
}

void JobWindow::OnLine(const LogLine& line, Timestamp t) {
  if (streams_.size() >= kMaxStreams && !streams_.contains(line.stream))
    return hearing_.OnLineDropped();
  StreamWindow& stream = streams_[line.stream];
  if (stream.name.empty()) stream.name = line.stream_name;
  ++stream.lines;
  stream.bytes +=
      static_cast<int64_t>(line.text.size()) + line.cut_bytes + (line.end == LineEnd::kLf ? 1 : 0);
  NoteLoss(line, stream);
  stream.cut_bytes += line.cut_bytes;
  stream.redactions += line.redactions;
  stream.last = t;
  stream.open_end = line.end == LineEnd::kClosed;
  const auto past = past_texts_.find(line.stream);
  in_past_ = past != past_texts_.end() && line.offset < past->second.end;
  if (in_past_) {
    stream.dates.Advance(line.text);
    stream.past_torn = stream.past_torn || line.lost_before > 0;
  }
  last_text_ = t;
  if (line.rank >= 0 || line.local_rank >= 0 || line.printed_ms != 0) NoteSpeaker(line, stream, t);
  last_words_.Add(line.stream, line.offset, line.text, t);
}

void JobWindow::OnRecord(const logs::Record& record, uint32_t stream, const LogLine* line,
                         Timestamp t) {
  if (const auto* progress = std::get_if<logs::Progress>(&record)) {
    if (line != nullptr) OnProgress(*progress, *line, t);
  } else if (const auto* incident = std::get_if<Incident>(&record)) {
    if (!OfAnotherJob(*incident, {job_id_, array_task_, heterogeneous_}))
      OnIncident(*incident, stream, t);
  } else {
    OnMarker(std::get<logs::Marker>(record), stream, line, t);
  }
}

void JobWindow::OnProgress(const logs::Progress& progress, const LogLine& line, Timestamp t) {
  StepClock::Interval interval;
  interval.past = in_past_;
  const Timestamp written = in_past_ ? past_texts_[line.stream].written : Timestamp{};
  const auto add = [&](AttemptWindow& attempt) {
    const Timestamp last_progress = attempt.clock.last_progress();
    interval.suspended = suspension_.Within(last_progress, t) + hearing_.Within(last_progress, t);
    interval.disturbed = attempt.training.disturbed();
    attempt.kernel.stillness.OnStep(progress.step, attempt.clock,
                                    hearing_.StoppedWithin(last_progress, t), t);
    if (!in_past_) attempt.kernel.waits.OnRecord();
    attempt.OnProgress(progress, line, interval, t);
    attempt.last_written = written;
  };
  if (!TakesProgress(progress, line, t)) return;
  StreamWindow& stream = streams_[line.stream];
  if (in_past_ && !std::exchange(stream.past_torn, false))
    interval.printed_ms = stream.dates.Advance({});
  // Of text that was written before, nobody knows who wrote it.
  if (!in_past_) steps_.OnProgress(line.writer, t);
  if (attempts_.BeginsAgain(progress)) {
    BeginAttempt(t, Processes::kSame);
    attempts_.NoteBegin(line.stream, line.offset);  // a traceback is complete some records later
  }
  if (attempts_.IsSecondTraining()) ConfirmSuspected(t);
  last_words_.MarkRecord();
  attempts_.NoteRecord();
  attempts_.Each(add);
  // A median of 128 steps costs more than reading the record, and a few steps hardly move it.
  constexpr int64_t kFirst = 32, kEach = 16;
  if (const int64_t records = now().clock.records(); records <= kFirst || records % kEach == 0)
    leads_.OnStepSeconds(RoundSeconds(now().clock, world_size_));
}

void JobWindow::OnIncident(const Incident& incident, uint32_t stream, Timestamp t) {
  if (incident.rank >= 0 || incident.local_rank >= 0) ranked_text_ = true;
  if (attempts_.suspected() && IsTerminal(incident) && incident.role == Role::kInitiating &&
      !IsDeathReport(incident) && !ranked_text_ && world_size_ <= 1) {
    ConfirmSuspected(t);
  }
  Candidate candidate;
  candidate.incident = incident;
  // An exception is complete some lines, or a pause, after it was said.
  if (incident.t.ns == 0 || incident.t > t) candidate.incident.t = t;
  candidate.store = proto::STORE_LOG;
  candidate.stream = stream;
  candidate.attempt = attempts_.ordinal_now();
  candidate.progress_before = now().progress - RecordsBehind(last_words_, stream, incident.offset);
  candidate.past = in_past_;
  if (const auto speaker = streams_.find(stream); speaker != streams_.end()) {
    const StreamWindow& window = speaker->second;
    candidate.printed_ms = window.printed_ms;
    candidate.stream_progress_before = window.progress;
    Incident& said = candidate.incident;
    TakeRankOfWorker(said);
    // A launcher's report is of another process than the one that writes it.
    if (said.rank < 0 && said.local_rank < 0 && said.role != Role::kWrapper) {
      said.rank = window.rank;
      said.local_rank = window.local_rank;
    }
    // A launcher that was read after the workers of a restart still tells of what went before.
    if (!window.ranked() && attempts_.RestartIsSeenOnly() && ranked_streams())
      candidate.attempt = attempts_.OrdinalOfLateLauncher();
  }
  const bool of_previous = attempts_.IsOfPrevious(stream, incident.offset, candidate.incident.t);
  candidate.attempt -= of_previous ? 1 : 0;
  if (of_previous || candidate.progress_before < 0) candidate.progress_before = 0;
  incidents_.Add(std::move(candidate));
  if (!of_previous) attempts_.NoteIncident(incident, stream, t);
}

void JobWindow::OnMarker(const logs::Marker& marker, uint32_t stream, const LogLine* line,
                         Timestamp t) {
  const bool begins = marker.kind == MarkerKind::kBanner ||
                      marker.kind == MarkerKind::kTrainBegin ||
                      marker.kind == MarkerKind::kLauncherBegin;
  const bool restart = marker.kind == MarkerKind::kRestart && marker.name != "slurm_requeue";
  if (restart) {
    if (attempts_.TellRestartInText()) BeginAttempt(t);
  } else if (begins && attempts_.terminal() && !attempts_.suspected() && MayBegin(stream)) {
    attempts_.Suspect(t);
  } else if (marker.kind == MarkerKind::kTrainBegin && !ranked_streams() &&
             (now().marker(MarkerKind::kTrainEnd).count > 0 || IsOfAnotherProgram(marker))) {
    // One training after another in one log: the last one is judged.
    BeginAttempt(t, Processes::kSame);
  }
  if (begins || restart) {
    attempts_.NoteBegin(stream,
                        marker.line.empty() && line != nullptr ? line->offset : marker.offset);
  }
  const auto note = [&](AttemptWindow& attempt) {
    MarkerSeen& seen = attempt.markers[static_cast<size_t>(marker.kind)];
    // A command that is shown behind training records is of what comes next.
    if (marker.kind == MarkerKind::kResumeAsked && attempt.progress > 0) return;
    // The summary that counts the steps says more than the farewell that follows it.
    if (marker.kind == MarkerKind::kTrainEnd && seen.count > 0 && std::isfinite(seen.number) &&
        !std::isfinite(marker.number)) {
      ++seen.count;
      return;
    }
    if (seen.count++ == 0) seen.first = t;
    seen.last = t;
    seen.name = marker.name;
    // Where a checkpoint was looked for stands in another line than that there is none.
    if (marker.kind != MarkerKind::kNoCheckpoint || !marker.text.empty())
      seen.text.assign(marker.text.substr(0, logs::kCitationCap));
    seen.number = marker.number;
    seen.stream = stream;
    const bool quoted = !marker.line.empty() || line == nullptr;
    seen.offset = quoted ? marker.offset : line->offset;
    seen.line.assign((quoted ? marker.line : line->text).substr(0, logs::kCitationCap));
    attempt.phase.OnMarker(marker.kind, t);
    attempt.training.OnMarker(marker, stream, line, t);
    if (marker.kind == MarkerKind::kLossScale) {
      attempt.loss_scale.OnLowered(marker.number, attempt.progress, attempt.clock.last_step(),
                                   stream, seen.offset, seen.line, t);
    }
    if (marker.kind == MarkerKind::kCompileBegin || marker.kind == MarkerKind::kCompileEnd)
      attempt.progress_at_compile = attempt.progress;
    if (marker.kind == MarkerKind::kBanner && !marker.text.empty())
      attempt.framework.assign(marker.text.substr(0, 64));
    if (marker.kind == MarkerKind::kTrainBegin && std::isfinite(marker.number))
      attempt.clock.SetTotalSteps(marker.number);
  };
  attempts_.Each(note);
  if (marker.kind == MarkerKind::kFact) {
    const MarkerSeen& seen = now().marker(marker.kind);
    surroundings_.OnFact(marker, stream, seen.offset, seen.line, t);
  }
  if (attempts_.suspected() && marker.kind == MarkerKind::kTrainEnd) ConfirmSuspected(t);
}

// A trainer that says once in its life that it begins, and says so behind training records: a log
// that is written on by the next run, whose predecessor was ended without a word. Loops of one's
// own and fairseq say it at each epoch.
bool JobWindow::IsOfAnotherProgram(const logs::Marker& begin) const {
  constexpr std::string_view kOnce[] = {"hf_train_begin", "mmcv_begin", "megatron_begin",
                                        "titan_begin"};
  constexpr int64_t kRecords = 3;  // before it: ranks that share a log begin at different times
  return now().progress >= kRecords &&
         std::find(std::begin(kOnce), std::end(kOnce), begin.name) != std::end(kOnce);
}

Attempts::Close JobWindow::CloseNow() const {
  return {last_process_exit_, end_.ended ? std::optional(end_.t) : std::nullopt, in_past_};
}

void JobWindow::BeginAttempt(Timestamp t, Processes processes) {
  attempts_.Begin(t, processes, CloseNow(), incidents_);
}

void JobWindow::BeginRequeued(int32_t slurm_restart, Timestamp t) {
  in_past_ = false;
  attempts_.BeginRequeued(slurm_restart, t, CloseNow(), incidents_);
  steps_.Clear();
  end_ = {};
  wrapped_ = false;
}

}  // namespace rankscope::windows
