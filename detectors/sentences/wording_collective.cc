// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

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

// "rank 5 has", "ranks 0-4 have"
std::string Verb(const Evidence& e, std::string_view one, std::string_view many) {
  return std::string(e.ranks.size() == 1 ? one : many);
}

std::string WaitingText(const Evidence& e) {
  const std::string seconds = Number(e.observed.value_or(0));
  if (e.Capture("how") == "sync") {
    return Whose(e) + Verb(e, " has", " have") +
           " not come back from a synchronisation with the card for " + seconds + " s";
  }
  return Whose(e) + Verb(e, " has", " have") + " a collective in flight for " + seconds +
         " s: its watchdog asks, and it is not through";
}

std::string AbsentText(const Evidence& e) {
  const std::string seconds = Number(e.observed.value_or(0));
  std::string text =
      Whose(e) + Verb(e, " has", " have") + " entered no collective for " + seconds + " s";
  if (const std::string_view behind = e.Capture("behind"); !behind.empty())
    text += " and stands " + std::string(behind) + " behind its peers";
  if (e.Capture("how") == "flight") text += ", and none of its own is in flight";
  if (e.Capture("how") == "sync") text += ", and waits for nothing on the card";
  if (const std::string_view launch = e.Capture("launch"); !launch.empty())
    text += "; its newest kernel was launched " + std::string(launch) + " s ago";
  return text;
}

std::string AdvanceText(const Evidence& e) {
  std::string text =
      Whose(e) + ": up to " + std::string(e.Capture("entered")) + " collectives entered";
  if (const std::string_view completed = e.Capture("completed"); !completed.empty())
    text += ", " + std::string(completed) + " seen to end";
  text += ", the newest " + Number(e.observed.value_or(0)) + " s ago";
  if (const std::string_view pause = e.Capture("pause"); !pause.empty())
    text += "; pauses of up to " + std::string(pause) + " s are usual here";
  return text;
}

}  // namespace

std::string CollectiveText(const Evidence& e) {
  if (e.kind == EvidenceKind::kCommunicator) {
    return Whose(e) + Verb(e, " has", " have") + " been making a communicator for " +
           Number(e.observed.value_or(0)) + " s";
  }
  if (e.kind != EvidenceKind::kCollectives) return {};
  if (e.Capture("role") == "waiting") return WaitingText(e);
  if (e.Capture("role") == "absent") return AbsentText(e);
  return AdvanceText(e);
}

}  // namespace rankscope::engine
