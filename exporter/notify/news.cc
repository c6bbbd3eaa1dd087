// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/notify/news.h"

#include <string_view>

namespace rankscope::exporter::notify {
namespace {

using Status = Notification::Status;

// While a run goes on, nobody is woken for a guess; its end is told whatever is known of it.
constexpr double kSureEnough = 0.6;

// What flaps says nothing new: the end is still told.
constexpr int kMostLiveMessages = 6;

bool IsIll(const rankscope::proto::Verdict& verdict) {
  const std::string& severity = verdict.triage().severity();
  return severity == "critical" || severity == "warning";
}

Status WhileItRuns(const rankscope::proto::Verdict& verdict) {
  const std::string& symptom = verdict.triage().symptom();
  if (verdict.confidence() < kSureEnough) return Notification::STATUS_UNSPECIFIED;
  if (symptom == "hang") return Notification::HUNG;
  if (symptom == "wrong_result" && IsIll(verdict)) return Notification::DIVERGED;
  return Notification::STATUS_UNSPECIFIED;
}

Status AtItsEnd(const rankscope::proto::Verdict& verdict) {
  const std::string_view kind = verdict.disposition().kind();
  const bool wrong = verdict.triage().symptom() == "wrong_result" && IsIll(verdict);
  if (kind == "completed") return wrong ? Notification::DIVERGED : Notification::COMPLETED;
  if (kind == "failed" || kind == "killed" || kind == "by_launcher" || kind == "node_lost")
    return Notification::FAILED;
  if (kind.empty() || kind == "unknown") {
    if (verdict.code() == "G1") return Notification::COMPLETED;
    return wrong                                       ? Notification::DIVERGED
           : verdict.triage().severity() == "critical" ? Notification::FAILED
                                                       : Notification::STOPPED;
  }
  return Notification::STOPPED;
}

bool IsLive(Status status) {
  return status == Notification::HUNG || status == Notification::DIVERGED;
}

}  // namespace

std::optional<News> NewsOf(const rankscope::proto::Verdict& verdict, const proto::ToldJob* told,
                           int64_t uid) {
  // Another attempt is another story, told in the same thread.
  const bool same = told != nullptr && told->attempt() == verdict.attempt().ordinal();
  const Status before = same ? told->status() : Notification::STATUS_UNSPECIFIED;
  News news;
  if (verdict.state() == rankscope::proto::FINAL) {
    news.status = AtItsEnd(verdict);
    const auto& end = verdict.disposition();
    news.own = end.kind() == "cancelled" && end.has_uid() && end.uid() == uid && uid >= 0 &&
               !IsLive(before);
    if (!same || !told->final()) return news;
    if (told->code() == verdict.code() && before == news.status) return std::nullopt;
    news.corrects = true;
    return news;
  }
  if (verdict.state() != rankscope::proto::LIVE || (same && told->final())) return std::nullopt;
  if (same && told->messages() >= kMostLiveMessages) return std::nullopt;
  news.status = WhileItRuns(verdict);
  if (news.status != Notification::STATUS_UNSPECIFIED) {
    if (before == news.status && told->code() == verdict.code()) return std::nullopt;
    news.corrects = IsLive(before);
    return news;
  }
  const bool well = verdict.triage().severity() != "critical" && verdict.code() != "U0";
  if (!IsLive(before) || !well) return std::nullopt;
  news.status = Notification::RECOVERED;
  return news;
}

}  // namespace rankscope::exporter::notify
