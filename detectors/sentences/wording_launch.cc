// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

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

std::string Whose(const Evidence& e) {
  const std::string who = RankList(e.ranks);
  return who.empty() ? "a rank" : who;
}

std::string Percent(double share) {
  return Number(std::round(1000 * share) / 10) + " %";
}

std::string PercentOf(std::string_view share) {
  return Percent(std::strtod(std::string(share).c_str(), nullptr));
}

std::string Bytes(double bytes) {
  constexpr double kMiB = 1024.0 * 1024;
  if (bytes >= 1024 * kMiB) return Number(bytes / (1024 * kMiB)) + " GiB";
  if (bytes >= kMiB) return Number(bytes / kMiB) + " MiB";
  return Number(bytes) + " B";
}

// What was left out is said with the number.
std::string Counted(const Evidence& e) {
  const std::string_view share = e.Capture("share");
  if (share.empty() || share == "1") return {};
  return " (counted in " + PercentOf(share) + " of the time)";
}

std::string LaunchesText(const Evidence& e) {
  return Whose(e) + ": the newest kernel was launched " + Number(e.observed.value_or(0)) +
         " s ago; " + std::string(e.Capture("rate")) + " a second before that" + Counted(e);
}

std::string SharesText(const Evidence& e) {
  std::string text =
      Whose(e) + ", " + std::string(e.Capture("seconds")) + " s: " + PercentOf(e.Capture("sync")) +
      " of the wall in synchronisation, " + PercentOf(e.Capture("launching")) + " in launches of " +
      std::string(e.Capture("call_us")) + " us each, " + PercentOf(e.Capture("copying")) +
      " in copies, " + Percent(e.observed.value_or(0)) + " in none of these; " +
      std::string(e.Capture("syncs")) + " synchronisations per launch";
  if (const std::string_view stalls = e.Capture("stalls"); !stalls.empty())
    text += "; " + std::string(stalls) + " pauses of 2 s and more, " +
            std::string(e.Capture("stalled")) + " s in all";
  if (const std::string_view cpu = e.Capture("cpu"); !cpu.empty())
    text += "; " + std::string(cpu) + " of a core in use";
  return text + Counted(e);
}

std::string CallsText(const Evidence& e) {
  const std::string_view role = e.Capture("role");
  if (role == "environment")
    return std::string(e.Capture("setting")) + " is in the environment of " + Whose(e);
  if (role == "error") {
    return Whose(e) + ": " + std::string(e.Capture("call")) + " failed with code " +
           Number(e.observed.value_or(0)) + "; " + std::string(e.Capture("errors")) +
           " such failures";
  }
  if (role == "slow") {
    return Whose(e) + " waits " + Percent(e.observed.value_or(0)) +
           " of the wall for the card or for peers, over " + std::string(e.Capture("seconds")) +
           " s; it waits least in " + PercentOf(e.Capture("identity")) + " of them";
  }
  if (role == "peers") {
    return Whose(e) + ": wait " + Percent(e.observed.value_or(0)) + " of the wall, over " +
           std::string(e.Capture("seconds")) + " s (median)";
  }
  return SharesText(e);
}

std::string AllocationText(const Evidence& e) {
  std::string text = Whose(e) + ": the card refused ";
  text += e.observed ? Bytes(*e.observed) : std::string("an allocation");
  if (const std::string_view call = e.Capture("call"); !call.empty())
    text += " asked by " + std::string(call);
  if (const std::string_view failures = e.Capture("failures"); failures != "1" && failures != "0")
    text += ", the newest of " + std::string(failures) + " refusals";
  return text;
}

}  // namespace

std::string LaunchText(const Evidence& e) {
  switch (e.kind) {
    case EvidenceKind::kLaunches:
      return LaunchesText(e);
    case EvidenceKind::kCudaCalls:
      return CallsText(e);
    case EvidenceKind::kAllocationFailed:
      return AllocationText(e);
    default:
      return {};
  }
}

}  // namespace rankscope::engine
