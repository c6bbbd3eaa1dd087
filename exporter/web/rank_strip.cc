// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/web/rank_strip.h"

#include <sys/wait.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "detectors/model/wait_class.h"
#include "exporter/web/html.h"

namespace rankscope::web {
namespace {

// A collective takes milliseconds; one that is this old is waited for.
constexpr double kWaitsSeconds = 10;

struct RankState {
  std::string_view kind;  // a class of the style sheet
  std::string words;
};

std::string SignalWords(int signal) {
  const char* const name = sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : "SIG" + std::string(name);
}

// What the main thread waits for, behind "waits".
std::string_view WaitWords(WaitClass what) {
  switch (what) {
    case WaitClass::kFutex:
      return "for a lock of its own";
    case WaitClass::kSocket:
      return "for a socket or a pipe";
    case WaitClass::kNetworkFile:
      return "for a network file system";
    case WaitClass::kBlock:
      return "for a disk";
    case WaitClass::kGpu:
      return "for the GPU's driver";
    case WaitClass::kSleep:
      return "asleep by its own choice";
    case WaitClass::kStopped:
      return "stopped";
    case WaitClass::kFileLock:
      return "for a file lock";
    case WaitClass::kChild:
      return "for a child process";
    case WaitClass::kRunning:
    case WaitClass::kRunnable:
    case WaitClass::kOther:
      break;
  }
  return "in the kernel";
}

RankState StateOf(const RankStatus& rank) {
  if (rank.exit_known) {
    if (WIFSIGNALED(rank.wait_status))
      return {"failed", "killed by " + SignalWords(WTERMSIG(rank.wait_status))};
    const int code = WEXITSTATUS(rank.wait_status);
    return {code == 0 ? "done" : "failed", "exited with code " + std::to_string(code)};
  }
  if (!rank.alive) return {"gone", "ended; how is not known"};
  constexpr double kUninterruptible = 2, kStopped = 3;
  const double process = rank.signals[SignalId::kProcessState];
  if (process == kStopped) return {"waits", "stopped"};
  const double oldest = rank.signals[SignalId::kOldestCollectiveSeconds];
  if (oldest >= kWaitsSeconds) return {"waits", "in a collective for " + LengthText(oldest)};
  const double sync = rank.signals[SignalId::kOldestSyncSeconds];
  if (sync >= kWaitsSeconds) return {"waits", "waits for its GPU for " + LengthText(sync)};
  if (process == kUninterruptible) return {"waits", "in the kernel, uninterruptible"};
  const double waited = rank.signals[SignalId::kMainWaitSeconds];
  const WaitClass what = WaitClassOf(rank.signals[SignalId::kMainWaitClass]);
  if (waited >= kWaitsSeconds && !IsOnCpu(what))
    return {"waits", "waits " + std::string(WaitWords(what)) + " for " + LengthText(waited)};
  return {"runs", "runs"};
}

std::string GpusOf(const JobStatus& job, int32_t rank) {
  std::string gpus;
  for (const JobGpuStatus& gpu : job.gpus) {
    if (std::find(gpu.ranks.begin(), gpu.ranks.end(), rank) == gpu.ranks.end()) continue;
    gpus += (gpus.empty() ? "" : ",") + std::to_string(gpu.index);
  }
  return gpus;
}

bool IsCulprit(const JobStatus& job, int32_t rank) {
  const auto& ranks = job.verdict.ranks();
  return job.verdict.code() != "G1" && std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::string Told(const JobStatus& job, const RankStatus& rank, const RankState& state) {
  std::string told = "rank " + std::to_string(rank.rank);
  if (!rank.place.node.empty()) told += " on " + rank.place.node;
  if (const std::string gpus = GpusOf(job, rank.rank); !gpus.empty()) told += ", GPU " + gpus;
  told += ": " + state.words;
  if (IsCulprit(job, rank.rank)) told += "; the verdict names it";
  return told;
}

void AppendCell(const JobStatus& job, const RankStatus& rank, bool first, std::string& out) {
  const RankState state = StateOf(rank);
  const std::string told = Escaped(Told(job, rank, state));
  out.append("<li class=\"").append(state.kind);
  if (IsCulprit(job, rank.rank)) out.append(" culprit");
  out.append("\" tabindex=\"").append(first ? "0" : "-1");
  out.append("\" title=\"").append(told).append("\"><span aria-hidden=\"true\">");
  out.append(std::to_string(rank.rank)).append("</span><span class=\"told-only\">").append(told);
  out.append("</span></li>\n");
}

void AppendRow(const JobStatus& job, const RankStatus& rank, std::string& out) {
  const auto number = [&out](double value) {
    out.append("<td class=\"number\">").append(NumberText(value)).append("</td>");
  };
  out.append("<tr><th scope=\"row\">").append(std::to_string(rank.rank)).append("</th><td>");
  AppendEscaped(rank.place.node, out);
  out.append("</td><td>").append(GpusOf(job, rank.rank)).append("</td><td>");
  out.append(std::to_string(rank.process.pid)).append("</td><td>");
  AppendEscaped(StateOf(rank).words, out);
  out.append("</td>");
  number(rank.signals[SignalId::kCollectivesCompleted]);
  number(rank.signals[SignalId::kOldestCollectiveSeconds]);
  number(rank.signals[SignalId::kKernelLaunches]);
  number(rank.signals[SignalId::kResidentBytes] / (1 << 30));
  out.append("</tr>\n");
}

}  // namespace

void AppendRanks(const JobStatus& job, std::string& out) {
  if (job.ranks.empty()) return;
  out.append("<h2>Ranks</h2>\n<ol class=\"ranks\" aria-label=\"Ranks\">\n");
  for (const RankStatus& rank : job.ranks) AppendCell(job, rank, &rank == &job.ranks.front(), out);
  out.append("</ol>\n<p class=\"key soft\">");
  for (const auto& [kind, words] : {std::pair("runs", "runs"),
                                    {"waits", "waits"},
                                    {"failed", "failed"},
                                    {"done", "exited with code 0"},
                                    {"gone", "ended, how is not known"}}) {
    out.append("<span class=\"").append(kind).append("\"></span>").append(words).append(" ");
  }
  const auto elsewhere = static_cast<int64_t>(job.world_size) - std::ssize(job.ranks);
  if (elsewhere > 0)
    out.append(std::to_string(elsewhere)).append(" of the job's ranks are not on this node.");
  out.append(
      "</p>\n<details id=\"rank-table\"><summary>as a table</summary><div class=\"wide\" "
      "tabindex=\"0\" role=\"region\" aria-label=\"Ranks as a table\"><table><thead>"
      "<tr><th>Rank</th><th>Node</th><th>GPU</th><th>Process</th><th>State</th>"
      "<th class=\"number\">Collectives</th><th class=\"number\">Oldest, s</th>"
      "<th class=\"number\">Launches</th><th class=\"number\">Memory, GiB</th></tr></thead>"
      "<tbody>\n");
  for (const RankStatus& rank : job.ranks) AppendRow(job, rank, out);
  out.append("</tbody></table></div></details>\n");
}

}  // namespace rankscope::web
