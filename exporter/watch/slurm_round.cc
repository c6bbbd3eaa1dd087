// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/watch/slurm_round.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "exporter/slurm/text_reader.h"
#include "exporter/slurm/user_names.h"
#include "exporter/watch/job_course.h"

namespace rankscope::watch {
namespace {

using exporter::CommandOutcome;
using exporter::UserIdentity;
using exporter::slurm::Call;
using exporter::slurm::Commands;
using exporter::slurm::SlurmJob;

// slurmctld's clients try for some seconds by themselves.
constexpr Duration kDeadline = Seconds(20);

template <typename Words>
std::string Joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// His groups, as the kernel would have them of a process of his.
UserIdentity IdentityOf(int64_t uid) {
  UserIdentity who{static_cast<uint32_t>(uid)};
  constexpr size_t kBuffer = size_t{16} << 10;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kBuffer);
  if (getpwuid_r(who.uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return who;
  who.gid = entry.pw_gid;
  constexpr int kMaxGroups = 1024;
  int count = kMaxGroups;
  std::vector<gid_t> groups(kMaxGroups);
  if (getgrouplist(entry.pw_name, entry.pw_gid, groups.data(), &count) < 0) return who;
  who.groups.assign(groups.begin(), groups.begin() + count);
  return who;
}

void AskQueue(const Commands& commands, const Asking& asking, Round& round) {
  std::vector<std::string> asked;
  for (const JobChoice& choice : asking.choices) {
    if (!Has(asked, choice.Asked())) asked.push_back(choice.Asked());
  }
  const std::string separator = exporter::slurm::NewSeparator();
  const CommandOutcome outcome = commands.RunQueueOf(Joined(asked), kDeadline, separator);
  if (outcome.end != CommandOutcome::End::kDone) {
    round.answered = exporter::slurm::IsNoSuchJob(outcome);
    if (!round.answered) round.complaint = exporter::slurm::Complaint(Call::kQueue, outcome);
    round.away =
        exporter::slurm::IsNobodyThere(outcome) || outcome.end == CommandOutcome::End::kLate;
    return;
  }
  round.answered = true;
  auto read = exporter::slurm::ReadQueueText(outcome.output, separator,
                                             exporter::slurm::QueueColumns::kWithOutput);
  round.whole = read.unreadable == 0 && read.whole;
  for (SlurmJob& job : read.records) {
    const bool chosen =
        std::any_of(asking.choices.begin(), asking.choices.end(),
                    [&job](const JobChoice& choice) { return choice.Matches(job); });
    if (chosen) round.jobs.push_back(std::move(job));
  }
}

void AskAccounting(const Commands& commands, const std::vector<std::string>& ids, Round& round) {
  const std::string separator = exporter::slurm::NewSeparator();
  const CommandOutcome outcome =
      commands.Run(Call::kAccounting, Joined(ids), kDeadline, 0, separator);
  round.asked_accounting = true;
  if (outcome.end != CommandOutcome::End::kDone) {
    round.no_accounting =
        outcome.complaint.find("accounting storage is disabled") != std::string::npos;
    round.accounting_complaint = exporter::slurm::Complaint(Call::kAccounting, outcome);
    return;
  }
  round.accounted = exporter::slurm::ReadAccountingText(outcome.output, separator).records;
  exporter::slurm::NameCancellers(round.accounted);
}

}  // namespace

std::vector<std::string> ForAccounting(const Asking& asking, const std::vector<SlurmJob>& jobs) {
  std::vector<std::string> ids;
  for (const std::string& id : asking.going) {
    const bool shown = std::any_of(jobs.begin(), jobs.end(),
                                   [&id](const SlurmJob& job) { return job.job_id == id; });
    if (!shown) ids.push_back(id);
  }
  for (const SlurmJob& job : jobs) {
    const bool badly = StageOf(job) == Stage::kEnded && job.state != "COMPLETED";
    if (badly && !Has(asking.ended, job.job_id)) ids.push_back(job.job_id);
  }
  for (const std::string& number : asking.unfound) {
    const bool shown = std::any_of(jobs.begin(), jobs.end(), [&number](const SlurmJob& job) {
      return job.job_id == number || job.array_job_id == number || job.het_job_id == number;
    });
    if (!shown && !Has(ids, number)) ids.push_back(number);
  }
  return ids;
}

Round AskSlurm(const Commands& commands, const Asking& asking) {
  Round round;
  AskQueue(commands, asking, round);
  if (round.answered && round.whole) {
    const std::vector<std::string> ids = ForAccounting(asking, round.jobs);
    if (!ids.empty()) AskAccounting(commands, ids, round);
  }
  for (const std::vector<SlurmJob>* rows : {&round.jobs, &round.accounted}) {
    for (const SlurmJob& job : *rows) {
      const int64_t uid = job.uid.value_or(-1);
      const bool known =
          std::find(asking.owners.begin(), asking.owners.end(), uid) != asking.owners.end();
      if (uid < 0 || uid >= std::numeric_limits<uint32_t>::max() || known) continue;
      if (!round.identities.contains(uid)) round.identities.emplace(uid, IdentityOf(uid));
    }
  }
  return round;
}

}  // namespace rankscope::watch
