// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/told.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace rankscope::attribution {
namespace {

constexpr RankKeyRow kRankKeys[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMIX_RANK", "", ""},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
};

constexpr size_t kJobIdCap = 32;
constexpr size_t kAddressCap = 64;       // a name or an address; longer ones are none of a node's
constexpr int64_t kMaxComponents = 128;  // of a heterogeneous job; slurm.h, MAX_HET_JOB_COMPS

// What may stand in an id or a name wherever it is shown.
std::string_view Name(std::string_view text, size_t cap) {
  const auto shown = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == ':' || c == '+';
  };
  return text.size() <= cap && std::all_of(text.begin(), text.end(), shown) ? text
                                                                            : std::string_view();
}

// -1: not a number as launchers and Slurm print them.
int64_t NumberIn(std::string_view text) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 ? number : -1;
}

std::string Digits(std::string_view text) {
  return NumberIn(text) >= 0 && text.size() <= kJobIdCap ? std::string(text) : std::string();
}

// slurm/slurm.h: SLURM_BATCH_SCRIPT, SLURM_EXTERN_CONT, SLURM_INTERACTIVE_STEP.
std::string StepIn(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kSpecial[] = {
      {"4294967291", "batch"}, {"4294967292", "extern"}, {"4294967290", "interactive"}};
  for (const auto& [number, word] : kSpecial) {
    if (text == number) return std::string(word);
  }
  return Digits(text);
}

std::string Text(int64_t number) {
  return number < 0 ? std::string() : std::to_string(number);
}

constexpr std::string_view kItsCgroup = "its cgroup";

std::string InEnvironment(std::string_view key) {
  return std::string(key) + " in its environment";
}

}  // namespace

Told::Told(const ProcessStart& start) : start_(start), cgroup_(ReadCgroup(start.cgroup)) {
  told_ = start.complete || !start.env.empty() || !start.cgroup.empty();
  for (const RankKeyRow& row : kRankKeys) {
    if (Int(row.rank, -1) < 0) continue;
    rank_keys_ = &row;
    break;
  }
}

std::string_view Told::Value(std::string_view key) const {
  for (const KeyValue& entry : start_.env) {
    if (entry.key == key) return entry.value;
  }
  return {};
}

int32_t Told::Int(std::string_view key, int32_t absent) const {
  const int64_t number = NumberIn(Value(key));
  return number < 0 || number > INT32_MAX ? absent : static_cast<int32_t>(number);
}

int32_t Told::rank() const {
  return rank_keys_ == nullptr ? -1 : Int(rank_keys_->rank, -1);
}

Word Told::FromEnvironment(std::string_view key) const {
  return {InEnvironment(key), std::string(Name(Value(key), kAddressCap))};
}

Word Told::EnvironmentJob() const {
  for (const std::string_view key : {"SLURM_JOB_ID", "SLURM_JOBID"}) {
    const std::string_view id = Name(Value(key), kJobIdCap);
    if (!id.empty() && id.front() != '-' && id.front() != '.')
      return {InEnvironment(key), std::string(id)};
  }
  return {};
}

int32_t Told::HetComponent() const {
  const int64_t whole = NumberIn(Value("SLURM_HET_JOB_ID")), own = NumberIn(cgroup_.job_id);
  if (whole < 0 || own < whole || own - whole >= kMaxComponents) return -1;
  return static_cast<int32_t>(own - whole);
}

bool Told::IsHetLeader(std::string_view job_id) const {
  return !job_id.empty() && job_id == Value("SLURM_HET_JOB_ID") && HetComponent() >= 0;
}

std::vector<Word> Told::OfRankKeys(std::string_view RankKeyRow::*key) const {
  std::vector<Word> words;
  for (const RankKeyRow& row : kRankKeys) {
    if (!(row.*key).empty() && Int(row.rank, -1) >= 0)
      words.push_back({std::string(row.*key), Text(Int(row.*key, -1))});
  }
  return words;
}

// Slurm's versions number a task's directory on its node or in its step; SLURM_PROCID is always of
// the step.
std::vector<Word> Told::Task() const {
  const int32_t directory = cgroup_.task;
  const int32_t in_step = Int("SLURM_PROCID", -1), on_node = Int("SLURM_LOCALID", -1);
  Word by_cgroup{std::string(kItsCgroup), Text(directory)};
  Word by_environment{InEnvironment("SLURM_PROCID"), Text(in_step)};
  if (in_step >= 0 && (directory < 0 || directory == in_step || directory == on_node))
    return {by_environment};
  return {by_cgroup, by_environment};
}

std::vector<Word> Told::Of(Fact fact) const {
  const std::string by_cgroup(kItsCgroup);
  const auto number = [this](std::string_view key) {
    return Word{InEnvironment(key), Text(Int(key, -1))};
  };
  switch (fact) {
    case Fact::kStep:
      return {{by_cgroup, cgroup_.step_id},
              {InEnvironment("SLURM_STEP_ID"), StepIn(Value("SLURM_STEP_ID"))},
              {InEnvironment("SLURM_STEPID"), StepIn(Value("SLURM_STEPID"))}};
    case Fact::kTask:
      return Task();
    case Fact::kRank:
      return OfRankKeys(&RankKeyRow::rank);
    case Fact::kLocalRank:
      return OfRankKeys(&RankKeyRow::local_rank);
    case Fact::kWorldSize:
      return OfRankKeys(&RankKeyRow::world_size);
    case Fact::kNodeRank:
      return {number("GROUP_RANK"), number("SLURM_NODEID"), number("JOB_COMPLETION_INDEX")};
    case Fact::kNode:
      return {{by_cgroup, cgroup_.node_name}, FromEnvironment("SLURMD_NODENAME")};
    case Fact::kMaster:
      return {FromEnvironment("MASTER_ADDR")};
    case Fact::kContainer:
      return {{by_cgroup, cgroup_.container_id}};
    case Fact::kPod:
      return {{by_cgroup, cgroup_.pod_uid}};
    case Fact::kArray:
      return {{InEnvironment("SLURM_ARRAY_JOB_ID"), Digits(Value("SLURM_ARRAY_JOB_ID"))}};
    case Fact::kHet:
      return {{InEnvironment("SLURM_HET_JOB_ID"), Digits(Value("SLURM_HET_JOB_ID"))}};
    case Fact::kJob:
    case Fact::kLauncher:
      return {};  // by its parent, too: attribution
  }
  return {};
}

std::string Settle(ProcessInfo& info, Fact fact, const std::vector<Word>& words) {
  std::erase_if(info.provenance, [fact](const Provenance& known) { return known.fact == fact; });
  const Word* won = nullptr;
  Provenance how;
  how.fact = fact;
  for (const Word& word : words) {
    if (word.value.empty()) continue;
    if (won == nullptr) {
      won = &word;
      how.by = word.by;
    } else if (word.value != won->value) {
      how.against += (how.against.empty() ? "" : ", ") + word.by + " says " + word.value;
    }
  }
  if (won == nullptr) return {};
  info.provenance.push_back(std::move(how));
  return won->value;
}

void AddJobFacts(const Told& told, const ProcessInfo& process, JobFacts& facts) {
  const auto add = [&told](std::string& text, std::string_view key) {
    if (text.empty()) text = told.Value(key).substr(0, JobFacts::kTextCap);
  };
  add(facts.name, "SLURM_JOB_NAME");
  add(facts.user, "SLURM_JOB_USER");
  add(facts.account, "SLURM_JOB_ACCOUNT");
  add(facts.partition, "SLURM_JOB_PARTITION");
  add(facts.qos, "SLURM_JOB_QOS");
  add(facts.nodes, "SLURM_JOB_NUM_NODES");
  add(facts.nodes, "SLURM_NNODES");
  add(facts.tasks, "SLURM_NTASKS");
  add(facts.dependency, "SLURM_JOB_DEPENDENCY");
  if (facts.array_job_id.empty()) facts.array_job_id = process.array_job_id;
  if (facts.array_task.empty()) facts.array_task = process.array_task;
  if (facts.het_job_id.empty()) facts.het_job_id = process.het_job_id;
  // Of a launcher that Slurm started, the inner one gives the ranks.
  const bool outer = facts.launcher == "srun" || facts.launcher == "sbatch";
  if (facts.launcher.empty() || (outer && process.role == ProcessRole::kRank))
    facts.launcher = process.launcher;
}

}  // namespace rankscope::attribution
