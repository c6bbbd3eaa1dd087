// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/generator/world.h"

#include <algorithm>
#include <cmath>

#include "tests/generator/text.h"

namespace rankscope::generator {

// Slurm, "Control Group v2": a step's processes are below user, its slurmstepd in slurm.
std::string World::CgroupOf(const char* leaf) const {
  if (!plan.slurm) return "/user.slice/user-1000.slice/session-1.scope";
  return "/system.slice/slurmstepd.scope/job_" + plan.job_id + "/step_0/" + leaf;
}

World::World(const Options& options, Plan drawn, Random from)
    : plan(std::move(drawn)),
      random(from.Fork(1)),
      without_(options.without),
      steps_(from.Fork(2)) {
  truth.seed = plan.seed;
  truth.family = "G1";
  truth.healthy = true;
  truth.accepted = {"U0"};  // where nothing shows that it learned; no fault is named
  truth.observed_node = plan.NodeName(plan.observed_node);
  truth.node = truth.observed_node;
  truth.dialect = plan.dialect;
  truth.world = plan.ranks;
  truth.nodes = plan.nodes;
  for (const std::string& store : StoreNames()) {
    if (std::find(without_.begin(), without_.end(), store) == without_.end() &&
        (store != "slurm" || plan.slurm) && (store != "nccl" || plan.ranks > 1))
      truth.stores.push_back(store);
  }
  next_pid_ = random.Int(2000, 3'000'000);
  stage_share_.assign(static_cast<size_t>(plan.pipeline), 1);
  for (double& share : stage_share_) share = 1 - 0.04 * random.Unit();
}

double World::TrainBegin() const {
  return 2 + plan.import_seconds + plan.rendezvous_seconds + plan.load_seconds +
         plan.compile_seconds + plan.warmup_steps * plan.warmup_factor * plan.step_seconds;
}

double World::Onset(double from, double to) {
  const double begin = std::min(TrainBegin(), 0.5 * horizon());
  const double onset = begin + (horizon() - begin) * random.Share(from, to);
  // It is a part of the training: this goes on beyond it.
  Reserve(onset, 0);
  return onset;
}

void World::Reserve(double onset, double seconds) {
  plan.minutes = std::clamp((onset + seconds) / 60, plan.minutes, 60.0);
  plan.time_limit = std::max(plan.time_limit, std::ceil(plan.minutes) * 60 + 60);
  // Nor does the program come to its end before.
  const double until = std::min(onset + seconds, horizon());
  plan.max_steps =
      std::max(plan.max_steps, plan.first_step + static_cast<int>(until / plan.step_seconds) + 1);
}

int World::PickRank() {
  if (plan.nodes == 1 || random.Chance(0.8))
    return plan.first_local() + random.Int(0, plan.per_node - 1);
  return random.Int(0, plan.ranks - 1);
}

void World::Blame(std::vector<int> ranks, double onset) {
  truth.healthy = false;
  truth.onset = onset;
  truth.ranks = ranks;
  truth.gpus.clear();
  truth.culprit_seen = ranks.empty();
  for (const int rank : ranks) {
    truth.gpus.push_back(rank % plan.per_node);
    truth.culprit_seen = truth.culprit_seen || plan.IsLocal(rank);
    if (!plan.IsLocal(rank)) watched.push_back(rank);
  }
  if (!ranks.empty()) truth.node = plan.NodeOf(ranks.front());
}

std::string World::GpuUuid(int rank) const {
  return Text("GPU-%08x-%04x-4000-8000-%012x", static_cast<unsigned>(plan.seed & 0xffffffffu),
              static_cast<unsigned>(rank / plan.per_node),
              static_cast<unsigned>(rank % plan.per_node));
}

std::string World::BusId(int rank) const {
  return Text("0000:%02x:00", 0x18 + 0x10 * (rank % plan.per_node));
}

Life* World::LifeOf(int rank) {
  const auto found = life_of_.find(rank);
  return found == life_of_.end() ? nullptr : &lives_[found->second];
}

ProcessKey World::KeyOf(int rank) const {
  const auto found = life_of_.find(rank);
  return found == life_of_.end() ? ProcessKey{} : lives_[found->second].key;
}

void World::All(Doing doing, double from, double to) {
  for (const auto& [rank, index] : life_of_) lives_[index].Do(doing, from, to);
}

void World::Tell(double t, Source source, decltype(Observation::kind) kind) {
  Item& item = items_.emplace_back();
  item.t = t;
  item.mark = mark_;
  item.source = source;
  item.observation.kind = std::move(kind);
}

void World::SayLine(int rank, double t, std::string text, bool error, Source source,
                    std::string stream) {
  Item& item = items_.emplace_back();
  item.t = t;
  item.mark = mark_;
  item.source = source;
  item.text = std::move(text);
  item.stream_name = std::move(stream);
  LogLine line;
  line.stream = static_cast<uint32_t>(100 + 2 * (rank + 1) + (error ? 1 : 0));
  line.job_id = plan.job_id;
  line.end = LineEnd::kLf;
  if (item.text.starts_with('\r')) {  // a bar is drawn over the one before
    item.text.erase(0, 1);
    line.end = LineEnd::kCr;
  }
  if (source == Source::kRun) line.stream = 1;  // the wrapper has one pipe for all
  line.rank = source == Source::kStdio ? rank : -1;
  if (source == Source::kStdio) line.writer = rank < 0 ? launcher_ : KeyOf(rank);
  if (source == Source::kStdio && rank >= 0) line.local_rank = rank % plan.per_node;
  int64_t& end = stream_ends_[item.stream_name];
  line.offset = end;
  end += static_cast<int64_t>(item.text.size()) + 1;
  item.observation.kind = std::move(line);
}

void World::Say(int rank, double t, std::string text, bool error) {
  const bool here = rank < 0 || plan.IsLocal(rank);
  if (!here) {
    // Other nodes' text is in the one file that slurmstepd writes on the first node.
    if (plan.slurm && plan.file_output && plan.observed_node == 0)
      SayLine(rank, t, std::move(text), error, Source::kStdoutTail,
              "slurm-" + plan.job_id + ".out");
    return;
  }
  const std::string stream = error ? "stderr" : "stdout";
  if (plan.wrapper) return SayLine(rank, t, std::move(text), error, Source::kRun, "output");
  SayLine(rank, t, std::move(text), error, Source::kStdio,
          rank < 0 ? stream + Text(" of torchrun (pid %d)", launcher_.pid)
                   : "rank " + std::to_string(rank) + " " + stream);
}

void World::SayScheduler(double t, std::string text) {
  if (!plan.slurm || (plan.observed_node != 0 && !plan.file_output)) return;
  SayLine(-1, t, std::move(text), true, Source::kStdoutTail, "slurm-" + plan.job_id + ".out");
}

void World::Kernel(double t, std::string type, std::string text, int rank, int code) {
  if (rank >= 0 && !plan.IsLocal(rank)) return;
  KernelEvent event;
  event.kmsg_seq = 40000 + static_cast<int64_t>(t * 10);
  event.type = KernelEventTypeOf(type);
  event.text = std::move(text);
  event.code = code;
  if (rank >= 0 && code != 0) event.gpu_bus_id = BusId(rank);
  if (rank >= 0 && event.type != KernelEventType::kPcie) event.victim = KeyOf(rank);
  Tell(t, Source::kKmsg, std::move(event));
}

void World::Fact(double t, const std::string& field, const std::string& value,
                 const std::string& node) {
  if (!plan.slurm || value.empty()) return;
  SchedulerFact fact;
  fact.job_id = plan.job_id;
  fact.field = field;
  fact.value = value;
  fact.origin = plan.controller_events ? "scontrol" : "sacct";
  fact.wall_ns = Wall(t + plan.skew);
  fact.node = node;
  Tell(t, Source::kSlurm, std::move(fact));
}

void World::Happen(double t, Source source, EventType type, int rank, std::vector<KeyValue> str,
                   std::vector<IntKeyValue> num, double lasted) {
  if (rank >= 0 && !plan.IsLocal(rank)) return;
  Event event;
  event.type = WireType(type);
  if (rank >= 0) event.process = KeyOf(rank);
  event.str = std::move(str);
  event.num = std::move(num);
  event.begin = {plan.boot_ns + static_cast<int64_t>((t - lasted) * 1e9)};
  Tell(t, source, std::move(event));
}

void World::Signal(double t, int rank, int signo, int si_code, const ProcessKey& sender,
                   const std::string& comm, int uid, const std::string& cgroup) {
  if (rank >= 0 && !plan.IsLocal(rank)) return;
  SignalSent sent;
  sent.target = rank < 0 ? launcher_ : KeyOf(rank);
  sent.signo = signo;
  sent.si_code = si_code;
  // The kernel itself sends what is above 0: nobody is its sender, and the cgroup is the target's.
  const bool by_kernel = si_code > 0;
  if (!by_kernel) sent.sender = sender;
  if (!by_kernel) sent.sender_comm = comm;
  if (!by_kernel) sent.sender_uid = static_cast<uint32_t>(uid);
  sent.sender_cgroup = by_kernel ? CgroupOf("user/task_0") : cgroup;
  Tell(t, Source::kProcess, std::move(sent));
}

void World::Die(double t, int rank, int wait_status) {
  ProcessExit exit;
  exit.wait_status = wait_status;
  exit.status_known = true;
  exit.core = wait_status == 6 || wait_status == 11;
  if (rank < 0) {
    exit.key = launcher_;
  } else {
    Life* const life = LifeOf(rank);
    if (life == nullptr || life->died < kForever) return;
    exit.key = life->key;
    life->died = t;
    life_of_.erase(rank);
    if (!plan.IsLocal(rank)) return;
  }
  Tell(t, Source::kProcess, std::move(exit));
}

void World::Traceback(int rank, double t, const std::vector<std::string>& frames,
                      const std::string& exception) {
  // torch/distributed/distributed_c10d.py installs its hook with the process group.
  const auto life = life_of_.find(rank);
  const bool grouped = life == life_of_.end() || lives_[life->second].grouped < t;
  const std::string prefix = plan.rank_prefix && grouped ? Text("[rank%d]: ", rank) : "";
  Say(rank, t, prefix + "Traceback (most recent call last):", true);
  for (const std::string& frame : frames) {
    const size_t bar = frame.find('|');
    Say(rank, t, prefix + "  File " + frame.substr(0, bar), true);
    if (bar != std::string::npos) Say(rank, t, prefix + "    " + frame.substr(bar + 1), true);
  }
  Say(rank, t, prefix + exception, true);
}

void World::Run() {
  std::sort(watched.begin(), watched.end());
  watched.erase(std::unique(watched.begin(), watched.end()), watched.end());
  // A time limit is known from the beginning.
  if (!interruptions.empty() && !ending_fixed && plan.slurm && random.Chance(0.2)) {
    hang_end = Ending::kTimeLimit;
    plan.time_limit = std::max(60.0, std::floor((horizon() - 50) / 60) * 60);
  }
  slurmstepd_ = {next_pid_++, 5000};
  BeginMachine();
  BeginScheduler(1.2);
  t_ = 0.5;
  for (attempt_ = 0; attempt_ < attempts && !over_; ++attempt_) {
    if (Attempt()) Complete();
    if (attempt_ + 1 >= attempts || over_) continue;
    t_ += between_attempts;
    if (requeued) BeginAgain();
  }
  if (!over_) ended_ = kForever;
  truth.seconds = horizon();
  if (truth.disposition.empty()) truth.disposition = "running";
}

// The scheduler has started the job anew, on the same nodes, and it goes on from what it saved.
void World::BeginAgain() {
  if (t_ >= horizon()) return;
  ++plan.restarts;
  slurmstepd_ = {next_pid_++, slurmstepd_.start_ticks + static_cast<int64_t>(t_ * 100)};
  plan.resumes = saved_step_ > 0;
  plan.first_step = saved_step_;
  BeginScheduler(t_);
  t_ += 1;
}

}  // namespace rankscope::generator
