// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <cmath>
#include <cstdlib>

#include "detectors/families/family.h"
#include "detectors/sentences/wording.h"
#include "detectors/sentences/wording_rooms.h"

namespace rankscope::engine {
namespace {

using families::Number;
using features::Evidence;
using features::EvidenceKind;

std::string Percent(double share) {
  return Number(std::round(100 * share)) + " %";
}

std::string Card(const Evidence& e) {
  const std::string ranks = RankList(e.ranks);
  return "GPU " + std::string(e.Capture("gpu")) + (ranks.empty() ? "" : " of " + ranks);
}

struct Reason {
  uint32_t bit;
  std::string_view words;
};
constexpr std::array kReasons = {
    Reason{0x8, "a hardware slowdown"},
    Reason{0x20, "heat, by software"},
    Reason{0x40, "heat, by hardware"},
    Reason{0x80, "the power brake"},
};

std::string Reasons(std::string_view number) {
  const auto bits = static_cast<uint32_t>(std::strtoul(std::string(number).c_str(), nullptr, 10));
  std::string text;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) == 0) continue;
    text += (text.empty() ? "" : " and ") + std::string(reason.words);
  }
  return text;
}

std::string What(const Evidence& e) {
  const std::string_view what = e.Capture("what");
  if (what == "ecc") return " uncorrected memory errors";
  return what == "remapped" ? " memory rows replaced for uncorrectable errors"
                            : " failed row remaps";
}

std::string Gib(double bytes) {
  return Number(std::round(bytes / (1 << 30) * 10) / 10) + " GiB";
}

std::string Cards(const Evidence& e) {
  const std::string ranks = RankList(e.ranks);
  return families::Counted(static_cast<double>(e.times), "card") +
         (ranks.empty() ? "" : " (" + ranks + ")");
}

std::string Known(std::string_view before, std::string_view value, std::string_view after) {
  return value.empty() ? std::string()
                       : std::string(before) + std::string(value) + std::string(after);
}

std::string WaitingText(const Evidence& e) {
  const double value = e.observed.value_or(0);
  const std::string_view what = e.Capture("what");
  if (what == "cold") {
    return "nothing has run on " + Cards(e) + Known(" for ", e.Capture("seconds"), " s") +
           ": the engine for at most " + Percent(value) + " of the last minute";
  }
  if (what == "level") {
    return "in each of the last five minutes the engines of " + Cards(e) +
           Known(" ran for at least ", e.Capture("engine"), " %") + " and their SMs for at most " +
           Percent(value);
  }
  return Cards(e) + " wait inside a kernel" + Known(" for ", e.Capture("seconds"), " s") +
         ": the engine runs for 90 % of each look and more, the SMs for " + Percent(value);
}

std::string FaultText(const Evidence& e) {
  const std::string_view type = e.Capture("type");
  std::string text;
  if (type == "sxid") text = "an NVSwitch reported an error";
  if (type == "pcie") text = "an error of the PCIe bus was logged";
  if (type == "machine_check") text = "the processor or firmware reported a hardware error";
  if (type == "memory") text = "the memory controller reported an error";
  if (type == "hung_task") text = "a task has not run for minutes";
  if (type == "disk") text = "a local disk reported an error";
  if (type == "efa") text = "the EFA adapter reported an error";
  if (type == "network_file") {
    text = "the file server " + std::string(e.Capture("device")) +
           (e.observed ? " has not answered for " + Number(*e.observed) + " s"
                       : " did not answer, and does again");
  } else {
    text += Known(" at ", e.Capture("device"), "");
  }
  const std::string who = RankList(e.ranks);
  if (!who.empty()) text += " (" + who + ")";
  if (e.times > 1) text += ", " + std::to_string(e.times) + " times";
  return text + ": " + e.line;
}

std::string NvlinkText(const Evidence& e) {
  if (e.Capture("unit").empty()) return {};
  std::string text = ": " + std::string(e.Capture("unit")) +
                     (e.Capture("severity") == "Fatal" ? ", fatal" : ", not fatal") +
                     Known(", on link ", e.Capture("link"), "") +
                     Known(", subcode ", e.Capture("subcode"), "");
  if (e.Capture("made_by") == "peer") text += ", made by the device at the other end";
  return text;
}

// "as Slurm says"
std::string Source(const Evidence& e) {
  struct Row {
    std::string_view source, words;
  };
  constexpr Row kRows[] = {
      {"devices", "as its device cgroup says"},        {"slurm", "as Slurm says"},
      {"container", "as NVIDIA_VISIBLE_DEVICES says"}, {"uuid", "as CUDA_VISIBLE_DEVICES says"},
      {"ordinal", "as CUDA_VISIBLE_DEVICES says"},     {"mapping", "as the prolog's file says"}};
  for (const Row& row : kRows) {
    if (row.source == e.Capture("source")) return std::string(row.words);
  }
  return "by the processes on it";
}

std::string ClaimText(const Evidence& e) {
  const double value = e.observed.value_or(0);
  if (e.kind == EvidenceKind::kGpuCards) {
    return families::Counted(e.expected.value_or(0), "card") +
           Known(" (GPU ", e.Capture("cards"), ")") + " of this node " +
           (e.expected == 1 ? "is" : "are") + " the job's, " + Source(e) +
           ", and processes of it have computed on " + Number(value);
  }
  const std::string job = "GPU " + std::string(e.Capture("gpu")) + " is the job's, " + Source(e);
  if (e.kind == EvidenceKind::kGpuOutside) {
    return job + "; none of its processes computes there, and " + std::string(e.Capture("name")) +
           " (pid " + std::string(e.Capture("pid")) + "), which is not one, does, with " +
           Gib(value);
  }
  const std::string should = RankList(e.ranks);
  return job + (should.empty() ? "" : ", for " + should) +
         ", and no process of the job has computed on it in " + Number(value) + " s" +
         Known("; of its memory ", e.Capture("used"), " MiB are in use") +
         Known(", at most ", e.Capture("rise"), " MiB more than at first");
}

}  // namespace

std::string XidText(const Evidence& e) {
  const bool library = e.store == proto::STORE_GPU;
  const bool coded = e.Capture("shape") != "fallen_off_bus";
  std::string text = library ? "the driver's library reported " : "the driver reported ";
  text += coded ? "Xid " + std::string(e.Capture("code")) : "that the card has fallen off the bus";
  return text + Known(" on ", e.Capture("bus_id"), "") + Known(" (", e.Capture("meaning"), ")") +
         NvlinkText(e) + Known(": ", e.Capture("action"), "");
}

std::string GpuText(const Evidence& e) {
  const double value = e.observed.value_or(0);
  switch (e.kind) {
    case EvidenceKind::kGpuActivity: {
      std::string text = "the engine of " + Card(e) + " ran for " + Percent(value) +
                         " of the last minute" +
                         Known(", at most ", e.Capture("busiest"), " % in any of the last five");
      text += Known(", with ", e.Capture("used"), " MiB held");
      return text + (value < 0.02 && e.Capture("idle") != "0"
                         ? Known("; nothing has run on it for ", e.Capture("idle"), " s")
                         : "");
    }
    case EvidenceKind::kGpuThrottle:
      return Card(e) + " was held down by " + Reasons(e.Capture("bits")) + " for at least " +
             Percent(value) + " of its busy time in each of the last two minutes" +
             Known(": ", e.Capture("clock"), " MHz") +
             (e.Capture("best") == "0" ? "" : Known(" against ", e.Capture("best"), " MHz")) +
             Known(", at ", e.Capture("temperature"), " degrees Celsius");
    case EvidenceKind::kGpuErrors:
      return Card(e) + " counted " + Number(value) + What(e) + " under the run" +
             Known(", after ", e.Capture("before"), " before it");
    case EvidenceKind::kGpuForeign:
      return Number(std::round(value / (1 << 30) * 10) / 10) + " GiB of " + Card(e) +
             " are held by processes that are not the job's, most by " +
             std::string(e.Capture("name")) + " (pid " + std::string(e.Capture("pid")) + ")";
    case EvidenceKind::kGpuLatent:
      if (e.Capture("what") == "xid") {
        return Card(e) + " has waited since before the run for what Xid " +
               std::string(e.Capture("code")) + Known(" (", e.Capture("meaning"), ")") +
               " asks for" + Known(": ", e.Capture("do"), "");
      }
      if (e.Capture("what") == "remap_pending")
        return Card(e) +
               " has had memory rows to replace since before the run, which a reset of it "
               "would do";
      return Card(e) + " has had " + Number(value) + What(e) +
             " since before the run, and none has come under it";
    case EvidenceKind::kGpuWaits:
      return WaitingText(e);
    case EvidenceKind::kGpuPeers: {
      const bool sm = e.Capture("what") == "sm";
      std::string text = std::string(sm ? "the SMs of " : "the engine of ") + Card(e) +
                         " ran for " + Percent(value) + " of the last minute, those of its " +
                         std::string(e.Capture("peers")) + " peers for " +
                         Percent(e.expected.value_or(0));
      if (sm)
        text += Known(", while the engines ran for ", e.Capture("engine"), " %") +
                Known(" and ", e.Capture("peers_engine"), " %");
      return text + Known("; its clock is ", e.Capture("clock"), " MHz") +
             Known(", theirs ", e.Capture("peers_clock"), " MHz");
    }
    case EvidenceKind::kGpuMemory:
      return "memory of " + Card(e) + " went from " +
             Gib(std::strtod(std::string(e.Capture("first")).c_str(), nullptr)) + " to " +
             Gib(value) + " of " + Gib(e.expected.value_or(0)) +
             " at most, as looks of a second see it";
    case EvidenceKind::kGpuClean:
      return "no uncorrected memory error and no replaced or failed memory row was counted under "
             "the run on any of " +
             Cards(e);
    case EvidenceKind::kGpuCards:
    case EvidenceKind::kGpuUnused:
    case EvidenceKind::kGpuOutside:
      return ClaimText(e);
    case EvidenceKind::kGpuWork:
      return "all of " + Cards(e) + " worked: the engine for at least " + Percent(value) +
             " of the time" + Known(", the SMs for ", e.Capture("sm"), " %");
    case EvidenceKind::kGpuLost:
      return "the driver calls " + Card(e) + " lost, for " + Number(value) +
             " s now: it answers nothing over its bus";
    case EvidenceKind::kKernelFault:
      return FaultText(e);
    default:
      return {};
  }
}

}  // namespace rankscope::engine
