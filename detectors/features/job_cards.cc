// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which cards are the job's, and those of them that nothing of it computes on.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "detectors/features/gpu_signature.h"
#include "detectors/features/landmarks.h"

namespace rankscope::features {
namespace {

using windows::ClaimedGpu;
using windows::GpuWindow;

// By the name of the program or of what it runs. A server's or a notebook's card is idle until
// somebody comes, and a shell waits for a user.
bool IsInteractive(const windows::JobWindow& job) {
  constexpr std::array<std::string_view, 12> kPrograms = {
      "jupyter", "ipykernel", "ipython", "notebook",  "code-server", "tensorboard",
      "uvicorn", "gunicorn",  "gradio",  "streamlit", "api_server",  "sshd"};
  constexpr std::array<std::string_view, 5> kShells = {"bash", "sh", "zsh", "tmux", "screen"};
  const auto last = [](std::string_view path) { return path.substr(path.find_last_of('/') + 1); };
  const std::vector<std::string>& argv = job.argv();
  if (argv.empty()) return true;  // nobody knows
  std::string_view shell = last(argv.front());
  if (shell.starts_with('-')) shell.remove_prefix(1);  // a login's
  // It keeps a place for whoever comes later.
  if (shell == "sleep" || shell == "tail") return true;
  // A shell with a script runs it.
  const bool script = argv.size() > 2 || (argv.size() == 2 && !argv[1].starts_with('-'));
  if (!script && std::find(kShells.begin(), kShells.end(), shell) != kShells.end()) return true;
  constexpr size_t kLooked = 4;  // of the arguments: `python -m jupyter lab`
  for (size_t i = 0; i < argv.size() && i < kLooked; ++i) {
    const std::string_view name = last(argv[i]);
    const bool known =
        std::any_of(kPrograms.begin(), kPrograms.end(),
                    [name](std::string_view program) { return name.find(program) != name.npos; });
    if (known) return true;
  }
  return false;
}

// Of used memory, over the lowest before it. What somebody else's run gives back as this one
// begins is none.
double RiseOf(const GpuWindow& window) {
  double lowest = std::numeric_limits<double>::infinity();
  double rise = 0;
  for (const double peak : window.memory.Peaks()) {
    if (!std::isfinite(peak)) continue;
    lowest = std::min(lowest, peak);
    rise = std::max(rise, peak - lowest);
  }
  return rise;
}

Evidence Of(EvidenceKind kind, const UnusedGpu& gpu, Timestamp begin, Timestamp now) {
  Evidence evidence;
  evidence.kind = kind;
  evidence.store = proto::STORE_GPU;
  evidence.ranks = gpu.ranks;
  evidence.begin = begin;
  evidence.end = now;
  evidence.values = {{FieldId::kGpu, gpu.index},
                     {FieldId::kGpuUuid, gpu.uuid},
                     {FieldId::kSource, std::string(gpu.source)}};
  return evidence;
}

void CiteOutside(const GpuWindow& window, Citer& citer, JobFeatures& f, UnusedGpu& gpu) {
  const auto most = std::max_element(
      window.holders.begin(), window.holders.end(),
      [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
  if (most == window.holders.end() || most->second.own) return;
  gpu.foreign_bytes = window.ForeignBytes();
  // The server of MPS computes for others, and drivers differ in whether they list those too.
  if (most->second.name.starts_with("nvidia-cuda-mps")) return;
  Evidence evidence = Of(EvidenceKind::kGpuOutside, gpu, f.now, f.now);
  evidence.observed = gpu.foreign_bytes;
  evidence.unit = "By";
  evidence.values.Set(FieldId::kName, most->second.name)
      .Set(FieldId::kPid, int64_t{most->first.pid})
      .Set(FieldId::kQuery, GpuQuery(evidence, {gpu.uuid}, f));
  gpu.outside_evidence = citer.Add(std::move(evidence));
}

UnusedGpu Measure(const ClaimedGpu& card, Citer& citer, JobFeatures& f) {
  const GpuWindow& window = *card.gpu;
  UnusedGpu gpu;
  gpu.index = window.index;
  gpu.uuid = window.uuid;
  gpu.source = attribution::NameOf(card.word);
  gpu.ranks = card.ranks;
  gpu.ran = window.active.ns != 0;
  gpu.rise = RiseOf(window);
  CiteOutside(window, citer, f, gpu);
  if (window.written == 0) return gpu;
  const windows::GpuSecond& look = window.newest(0);
  gpu.told = window.processes_told && window.state == "up" && std::isfinite(look.engine) &&
             std::isfinite(look.memory_used);
  gpu.used = look.memory_used;
  gpu.looked_seconds = (f.now - window.first).seconds();
  if (!gpu.told || gpu.foreign_bytes > 0) return gpu;
  Evidence evidence = Of(EvidenceKind::kGpuUnused, gpu, window.first, f.now);
  evidence.observed = std::floor(gpu.looked_seconds);
  evidence.unit = "s";
  evidence.values.Set(FieldId::kUsed, gpu.used)
      .Set(FieldId::kRise, gpu.rise)
      .Set(FieldId::kQuery, GpuQuery(evidence, {gpu.uuid}, f));
  gpu.evidence = citer.Add(std::move(evidence));
  return gpu;
}

}  // namespace

void DescribeJobCards(const windows::JobWindow& job, const windows::AttemptWindow& window,
                      Citer& citer, JobFeatures& f) {
  const windows::GpuClaims& claims = job.gpu_claims();
  const std::vector<ClaimedGpu> cards = claims.Of(window.kernel.gpus);
  f.gpu.cards = cards.size();
  f.gpu.hidden = claims.hidden();
  f.gpu.divided = claims.mig();
  f.gpu.interactive = IsInteractive(job);
  if (cards.empty()) return;
  Evidence evidence;
  evidence.kind = EvidenceKind::kGpuCards;
  evidence.store = proto::STORE_GPU;
  evidence.begin = f.begin;
  evidence.end = f.now;
  attribution::GpuWord word = attribution::GpuWord::kNobody;
  std::string indexes;
  std::vector<std::string> uuids;
  double used = 0;
  for (const ClaimedGpu& card : cards) {
    f.gpu.divided = f.gpu.divided || card.gpu->mig;
    word = std::max(word, card.word);
    indexes += (indexes.empty() ? "" : ", ") + std::to_string(card.gpu->index);
    uuids.push_back(card.gpu->uuid);
    used += card.gpu->held ? 1 : 0;
    if (!card.gpu->held) f.gpu.unused.push_back(Measure(card, citer, f));
  }
  evidence.observed = used;
  evidence.expected = static_cast<double>(cards.size());
  evidence.values = {{FieldId::kCards, indexes},
                     {FieldId::kSource, std::string(attribution::NameOf(word))},
                     {FieldId::kQuery, GpuQuery(evidence, uuids, f)}};
  f.gpu.cards_evidence = citer.Add(std::move(evidence));
}

}  // namespace rankscope::features
