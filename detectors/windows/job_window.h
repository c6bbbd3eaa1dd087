// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Everything that is remembered of one job, bounded: trackers of the current attempt, the incident
// log of all attempts, per rank rings, streams. Fed with attributed facts and records in order;
// read by features. Single writer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "detectors/attribution/attribution.h"
#include "detectors/attribution/gpu_environment.h"
#include "detectors/logs/record.h"
#include "detectors/logs/text/printed_time.h"
#include "detectors/model/launch_gaps.h"
#include "detectors/model/signal_table.h"
#include "detectors/windows/attempts.h"
#include "detectors/windows/gpu_claims.h"
#include "detectors/windows/hearing.h"
#include "detectors/windows/incident_log.h"
#include "detectors/windows/kernel_log_spans.h"
#include "detectors/windows/last_words.h"
#include "detectors/windows/parent_job.h"
#include "detectors/windows/scheduler_history.h"
#include "detectors/windows/series/sample_rings.h"
#include "detectors/windows/single_program.h"
#include "detectors/windows/step_table.h"
#include "detectors/windows/surroundings.h"
#include "detectors/windows/targets.h"
#include "detectors/windows/trackers/cgroup_kills.h"
#include "detectors/windows/trackers/lead_tracker.h"
#include "detectors/windows/trackers/process_totals.h"
#include "detectors/windows/trackers/suspension_tracker.h"

namespace rankscope::windows {

struct StreamWindow {
  std::string name;
  int64_t lines = 0;
  int64_t bytes = 0;
  int64_t lost_bytes = 0;    // its own word, and what offsets leave out
  int64_t lost_up_to = 0;    // where the newest of them end
  int64_t next_offset = -1;  // of the byte behind its last line; below 0 = no line yet
  int64_t cut_bytes = 0;
  int64_t redactions = 0;
  Timestamp last;
  // Of a rank's own stream; -1 = not known.
  int32_t rank = -1;
  int32_t local_rank = -1;
  int32_t restart = -1;
  int64_t printed_ms = 0;    // newest time its lines print, where the source orders by it
  bool open_end = false;     // its last line has no terminator
  int64_t progress = 0;      // training records in it, of a rank's own stream only
  CitedPoint last_progress;  // the same
  int32_t begun = 0;         // attempts that its text has begun
  // Of lines that were read later: the date that they print, and whether some are missing since the
  // newest record.
  logs::PrintedClock dates;
  bool past_torn = false;

  bool ranked() const { return rank >= 0 || local_rank >= 0; }

  template <class A>
  void Fields(A& a) {
    a(name, lines, bytes, lost_bytes, lost_up_to, next_offset, cut_bytes, redactions, last, rank,
      local_rank, restart, printed_ms, open_end, progress, last_progress, begun, dates, past_torn);
  }
};

// What the scheduler has told of the job's life, and when it was.
struct SchedulerMark {
  Timestamp t;
  std::string field;  // submit | start | state | event
  std::string value;
  std::string reason;  // as it was told with it; empty = none
  std::string origin;

  template <class A>
  void Fields(A& a) {
    a(t, field, value, reason, origin);
  }
};

struct RankWindow {
  int32_t rank = -1;
  int32_t local_rank = -1;
  ProcessKey process;
  int32_t namespace_pid = 0;  // in its own pid namespace; 0: the machine's
  std::string node;           // Slurm's name for the node; empty: not known
  SampleRings rings;
  // Gaps between launches by length, as they were told last: a histogram has no history here, since
  // rings of all its counts would take 20 kB of each rank.
  bool launch_gaps_counted = false;
  LaunchGapCounts launch_gaps{};

  // As the process sees itself.
  int64_t inner_pid() const { return namespace_pid > 0 ? namespace_pid : process.pid; }

  template <class A>
  void Fields(A& a) {
    a(rank, local_rank, process, namespace_pid, node, rings, launch_gaps_counted, launch_gaps);
  }
};

struct JobEnd {
  bool ended = false;
  Timestamp t;
  bool status_known = false;
  int32_t wait_status = 0;
  // The status is what all its ranks ended with: who started them is not known.
  bool by_ranks = false;
  bool from_folder = false;  // as the run's own folder has it: the wrapper had ended
  std::string error;         // why the command could not be executed
  bool wrapper_lost = false;
  bool streams_closed = false;
  Timestamp streams_closed_t;

  template <class A>
  void Fields(A& a) {
    a(ended, t, status_known, wait_status, by_ranks, from_folder, error, wrapper_lost,
      streams_closed, streams_closed_t);
  }
};

// The boot of the node that the job began under, and the one that it was met under since.
struct BootSeen {
  static constexpr size_t kIdCap = 64;
  std::string node;
  std::string id, again;  // `again`: empty = the same

  template <class A>
  void Fields(A& a) {
    a(node, id, again);
  }
};

class JobWindow {
 public:
  static constexpr size_t kMaxStreams = 4096;
  static constexpr size_t kMaxRanks = 16384;
  static constexpr size_t kMaxSchedulerMarks =
      48;  // of a job that is requeued all night the newest
  static constexpr size_t kMarkTextCap = 96;
  static constexpr size_t kNodeListCap = 512;  // a longer list is left out: a part of it is wrong
  static constexpr size_t kMaxPendingSignals = 512;  // one to each rank of a large node, twice

  JobWindow() = default;
  JobWindow(std::string job_id, Timestamp begin);

  void OnRunBegin(const RunMark& mark, Timestamp t);
  void OnRunEnd(const RunMark& mark, Timestamp t);
  // A process of this job began or ended; `process` is attribution's view of it. `again`: it was
  // known, and has told more.
  void OnProcessStart(const attribution::ProcessInfo& process, bool again, Timestamp t);
  void OnProcessExit(const attribution::ProcessInfo& process, Timestamp t);
  // A process that was taken for this job's is another's.
  void OnProcessLeft(const ProcessKey& key, Timestamp t);
  // The process that was taken for this rank is none.
  void WithdrawRank(const ProcessKey& key, int32_t rank);
  // What a process of this job was started with.
  void OnArguments(const attribution::ProcessInfo& process,
                   const std::vector<std::string>& arguments);
  // The settings in the environment of a process of this job.
  void OnEnvironment(const attribution::ProcessInfo& process,
                     const std::vector<KeyValue>& environment, Timestamp t);
  // What a prolog's files give the job. Of a job that has had no process here and no wrapper, the
  // last card taken back is its end on this node.
  void OnGpuMapping(std::vector<attribution::GpuName> cards, Timestamp t);
  // What the environment of a process of this job says of its GPUs.
  void OnGpuEnvironment(const attribution::ProcessInfo& process,
                        const attribution::GpuEnvironment& told);
  void OnLine(const LogLine& line, Timestamp t);
  // `line`: the line that completed the record; null when the stream ended.
  void OnRecord(const logs::Record& record, uint32_t stream, const LogLine* line, Timestamp t);
  void OnSample(const Speaker& who, const SampleBatch& batch, Timestamp t);
  // Up to which offset of a stream what is told next was written some time before.
  void OnPastText(const Event& event);
  // The count of OOM kills in the cgroup of its processes; `own`: that is the job's own.
  void OnOomKills(double kills, bool own, Timestamp t) { oom_kills_.OnCount(kills, own, t); }
  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  // `sender`: null when it is no process of a job.
  void OnSignal(const SignalSent& signal, const attribution::ProcessInfo& target,
                const attribution::ProcessInfo* sender, Timestamp t);
  void OnSchedulerRecord(const SchedulerRecord& record, const WallClock& clock);
  void OnSchedulerFact(const SchedulerFact& fact, const WallClock& clock);
  // Under which boot this node is, whenever that is told.
  void OnBoot(std::string_view node, std::string_view boot_id);
  // `read`: what its text says, where that is a failure.
  void OnKernelEvent(const KernelEvent& event, const attribution::ProcessInfo* victim,
                     const std::optional<logs::Incident>& read, Timestamp t);
  // What befell the node. `victim`: the process of this job that it befell; null = none.
  void OnNodeFault(const KernelEvent& event, const attribution::ProcessInfo* victim, Timestamp t) {
    attempts_.current().kernel.faults.OnKernelEvent(event, victim == nullptr ? 0 : victim->key.pid,
                                                    victim == nullptr ? -1 : victim->rank, t);
  }
  // The card of this bus, where a process of the job computes on it, or has; null: it is not one.
  const GpuWindow* HeldGpu(std::string_view bus_id) const {
    return now().kernel.gpus.HeldAt(bus_id);
  }

  const std::string& job_id() const { return job_id_; }
  const std::vector<std::string>& argv() const { return argv_; }
  const std::string& command() const { return command_; }
  // What the wrapper could not do as it was asked to; empty: nothing.
  const std::string& wrapper_note() const { return wrapper_note_; }
  Timestamp begin() const { return begin_; }
  const JobEnd& end() const { return end_; }
  bool wrapped() const { return wrapped_; }
  const SingleProgram& single_program() const { return single_program_; }
  // The newest numbers that sources have sent of the job as a whole.
  const JobSignals& sampled() const { return sampled_; }
  const ProcessTotals& process_totals() const { return process_totals_; }
  // The wrapped command; without a wrapper the first process of the job; pid 0 = not known.
  const ProcessKey& root() const { return root_; }
  int32_t world_size() const { return world_size_; }
  // The job's nodes in Slurm's short form, as its processes were given them; empty: not known.
  const std::string& node_list() const { return node_list_; }
  const Attempt& attempt() const { return attempts_.attempt(); }
  // "7_3" of a task of an array; empty: it is none, or it is not told.
  const std::string& array_task() const { return array_task_; }
  const AttemptWindow& now() const { return attempts_.current(); }
  const IncidentLog& incidents() const { return incidents_; }
  const std::map<uint32_t, StreamWindow>& streams() const { return streams_; }
  const std::map<int32_t, RankWindow>& ranks() const { return ranks_; }
  // Since when this node's kernel log has been read without a break; nullopt: it is not.
  void SetKernelLog(const KernelLogSpans* spans) { kernel_log_ = spans; }
  const KernelLogSpans* kernel_log() const { return kernel_log_; }
  const Surroundings& surroundings() const { return surroundings_; }
  const GpuClaims& gpu_claims() const { return gpu_claims_; }
  const SuspensionTracker& suspension() const { return suspension_; }
  const CgroupKills& oom_kills() const { return oom_kills_; }
  // What of it was not observed.
  const Hearing& hearing() const { return hearing_; }
  Hearing& hearing() { return hearing_; }
  // Seconds between the two in which the job was not suspended and somebody listened; 0 where `to`
  // is the earlier one.
  double RunningSeconds(Timestamp from, Timestamp to) const;
  const SchedulerHistory& scheduler() const { return scheduler_; }
  const StepTable& steps() const { return steps_; }
  const BootSeen& boot() const { return boot_; }
  const ParentJobs& parents() const { return parents_; }
  // Whether the scheduler has told of a state in which the job does not go on.
  bool scheduler_told_state() const;
  const std::deque<SchedulerMark>& scheduler_marks() const { return scheduler_marks_; }
  // Of attempts that are over, oldest first; of more than Attempts::kMaxSpans the newest.
  const std::deque<AttemptSpan>& attempt_spans() const { return attempts_.spans(); }
  int64_t processes_seen() const { return processes_seen_; }
  int64_t processes_alive() const { return processes_alive_; }
  Timestamp last_process_exit() const { return last_process_exit_; }
  Timestamp last_text() const { return last_text_; }
  // Ranks write to streams of their own, side by side: what one says before or after another is
  // known only from printed times.
  bool ranked_streams() const { return ranked_streams_ > 1; }
  bool ranked_text() const { return ranked_text_; }            // lines carry a rank prefix
  const LastWords& last_words() const { return last_words_; }  // of the current attempt
  // Attempts before the current one, oldest first; of more than Attempts::kMaxEarlier the
  // newest.
  const std::deque<EarlierAttempt>& earlier() const { return attempts_.earlier(); }

  const LeadTracker& leads() const { return leads_; }
  const Targets& targets() const { return targets_; }
  // How many ranks run on this node, by the environment of its ranks; 0 = it does not say.
  int32_t local_world_size() const { return local_world_size_; }
  Timestamp last_rank_start() const { return last_rank_start_; }

  // Attempts that have ended since the engine last looked, oldest first; it judges each before the
  // window forgets it.
  bool attempt_ended() const { return !attempts_.ended().empty(); }
  const AttemptWindow& previous() const { return attempts_.ended().front().window; }
  const Attempt& previous_attempt() const { return attempts_.ended().front().attempt; }
  Timestamp previous_end() const { return attempts_.ended().front().end; }
  void TakeEndedAttempt() { attempts_.ended().pop_front(); }

  template <class A>
  void Fields(A& a) {
    a(job_id_, argv_, command_, begin_, end_, wrapped_, world_size_, attempts_, incidents_,
      streams_, ranks_, processes_seen_, processes_alive_, last_process_exit_, last_text_,
      ranked_text_, root_, surroundings_, ranked_streams_, progress_stream_, last_words_,
      pending_signals_, ended_well_, gpu_claims_, scheduler_, boot_, parents_, suspension_,
      scheduler_state_attempt_, scheduler_marks_, array_task_, heterogeneous_, hearing_,
      wrapper_note_, single_program_, past_texts_, in_past_, node_list_, steps_, leads_,
      leads_attempt_, oom_kills_, targets_, local_world_size_, last_rank_start_);
    // Restored from damaged bytes.
    while (scheduler_marks_.size() > kMaxSchedulerMarks) scheduler_marks_.pop_front();
  }

 private:
  void OnProgress(const logs::Progress& progress, const LogLine& line, Timestamp t);
  void OnIncident(const logs::Incident& incident, uint32_t stream, Timestamp t);
  void OnMarker(const logs::Marker& marker, uint32_t stream, const LogLine* line, Timestamp t);
  void NoteCommandDeath(Timestamp t);
  void TakeStatusOfRanks();
  void NoteScheduler(const SchedulerRecord& record, const WallClock& clock);
  void AddSchedulerMark(SchedulerMark mark);
  bool IsTold(const logs::Incident& xid, Timestamp t) const;
  int32_t AttemptOf(const SchedulerRun* run, Timestamp t, bool clocked) const;
  // `happened`: when, where that is known.
  void TakeSchedulerState(std::string_view field, const SchedulerHistory::State& state,
                          std::optional<Timestamp> happened, Timestamp now);
  void TakeSchedulerEnd(std::string_view field, const SchedulerHistory::State& told, Timestamp t,
                        bool clocked);
  void TakeReturnToQueue(Timestamp t);
  void OnStepFact(const SchedulerFact& fact, const WallClock& clock);
  void TakeRequest(const attribution::ProcessInfo& process, bool counts, Timestamp t);
  void TakeSignal(const attribution::ProcessInfo& process, bool counts);
  void NoteSpeaker(const LogLine& line, StreamWindow& stream, Timestamp t);
  static void NoteLoss(const LogLine& line, StreamWindow& stream);
  void CompareRanks(const SampleBatch& batch, const Speaker& speaker, Timestamp t);
  bool TakesProgress(const logs::Progress& progress, const LogLine& line, Timestamp t);
  bool MayBegin(uint32_t stream);
  using Processes = Attempts::Processes;
  bool IsOfAnotherProgram(const logs::Marker& begin) const;
  void BeginAttempt(Timestamp t, Processes processes = Processes::kNew);
  void BeginRequeued(int32_t slurm_restart, Timestamp t);
  void ConfirmSuspected(Timestamp t);
  Attempts::Close CloseNow() const;

  std::string job_id_;
  std::string array_task_;
  bool heterogeneous_ = false;  // Slurm runs it in parts that have numbers of their own
  const KernelLogSpans* kernel_log_ = nullptr;  // the engine's, told anew before each judgement
  std::vector<std::string> argv_;
  std::string command_;
  std::string wrapper_note_;
  std::string node_list_;
  Timestamp begin_;
  JobEnd end_;
  bool wrapped_ = false;
  int32_t world_size_ = 0;
  Attempts attempts_;
  IncidentLog incidents_;
  std::map<uint32_t, StreamWindow> streams_;
  // What was read from a file some time after it was written, so that its arrival tells no time.
  struct PastText {
    int64_t end = 0;    // up to this offset
    Timestamp written;  // when the file was last written before it was read; 0 = not known

    template <class A>
    void Fields(A& a) {
      a(end, written);
    }
  };
  std::map<uint32_t, PastText> past_texts_;  // by stream
  bool in_past_ = false;                     // the newest line was
  std::map<int32_t, RankWindow> ranks_;
  SchedulerHistory scheduler_;
  StepTable steps_;
  BootSeen boot_;
  ParentJobs parents_;
  std::deque<SchedulerMark> scheduler_marks_;
  int32_t scheduler_state_attempt_ = 0;  // of which attempt the newest state is
  Surroundings surroundings_;
  GpuClaims gpu_claims_;  // of all attempts: a restart does not change what the job was given
  SuspensionTracker suspension_;
  CgroupKills oom_kills_;
  Hearing hearing_;
  SingleProgram single_program_;
  JobSignals sampled_;                  // not saved: a source sends them again after a restart
  ProcessTotals process_totals_;        // the same
  std::map<int32_t, bool> ended_well_;  // by rank: its newest process exited with 0
  ProcessKey root_;
  int64_t processes_seen_ = 0;
  int64_t processes_alive_ = 0;
  Timestamp last_process_exit_;
  Timestamp last_text_;
  LastWords last_words_;
  std::deque<Candidate> pending_signals_;  // sent, and the target not yet ended
  bool ranked_text_ = false;
  int32_t ranked_streams_ = 0;    // ranks that have streams of their own
  uint32_t progress_stream_ = 0;  // whose records speak for the job where each rank prints them
  Targets targets_;               // of all attempts
  int32_t local_world_size_ = 0;
  Timestamp last_rank_start_;
  LeadTracker leads_;          // of the current attempt
  int32_t leads_attempt_ = 0;  // which one that was
};

}  // namespace rankscope::windows
