// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/gpu/xid_ledger.h"

#include <algorithm>
#include <optional>

#include "detectors/model/xids.h"

namespace rankscope::collectors {
namespace {

constexpr int32_t kOffTheBus = 79;
constexpr int32_t kRecoveryChanged = 154;

size_t Place(XidNeed need) {
  return static_cast<size_t>(need);
}

std::optional<XidNeed> NeedOf(RecoveryAction action) {
  switch (action) {
    case RecoveryAction::kResetGpu:
    case RecoveryAction::kDrainAndReset:
      return XidNeed::kResetGpu;
    case RecoveryAction::kReboot:
      return XidNeed::kReboot;
    case RecoveryAction::kUntold:
    case RecoveryAction::kNone:
    case RecoveryAction::kDrainPeers:
      return std::nullopt;
  }
  return std::nullopt;
}

// A program is begun again by whoever runs it, and a driver updated at leisure: nothing waits.
std::optional<XidNeed> NeedOf(const Xid& xid) {
  if (xid.kind == XidClass::kUnknown) return std::nullopt;
  switch (xid.action) {
    case XidAction::kResetGpu:
      return XidNeed::kResetGpu;
    case XidAction::kRestartNode:
      return XidNeed::kReboot;
    case XidAction::kInspect:
      return XidNeed::kInspect;
    case XidAction::kNone:
    case XidAction::kRestartApp:
    case XidAction::kUpdateDriver:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

void XidLedger::Unmet::Add(Timestamp t) {
  const int64_t second = t.ns / Seconds(1).ns;
  Second& slot = seconds_[static_cast<size_t>(second) % seconds_.size()];
  if (slot.second != second) slot = {second, 0};
  ++slot.count;
}

bool XidLedger::Unmet::Take(Timestamp t) {
  const int64_t now = t.ns / Seconds(1).ns;
  Second* oldest = nullptr;
  for (Second& slot : seconds_) {
    if (slot.count == 0 || now - slot.second > kSame.ns / Seconds(1).ns) continue;
    if (oldest == nullptr || slot.second < oldest->second) oldest = &slot;
  }
  if (oldest == nullptr) return false;
  --oldest->count;
  return true;
}

bool XidLedger::Unmet::any(Timestamp t) const {
  const int64_t now = t.ns / Seconds(1).ns;
  return std::any_of(seconds_.begin(), seconds_.end(), [now](const Second& slot) {
    return slot.count > 0 && now - slot.second <= kSame.ns / Seconds(1).ns;
  });
}

XidLedger::Entry* XidLedger::FindOrAdd(const XidTold& xid) {
  const Key key{xid.card, xid.code};
  const auto found = xids_.find(key);
  if (found != xids_.end()) return &found->second;
  if (xids_.size() >= kMaxXids) {
    ++lost_;
    return nullptr;
  }
  return &xids_[key];
}

bool XidLedger::Add(Teller teller, const XidTold& xid, Timestamp t) {
  Ask(xid, t, false);
  Entry* const entry = FindOrAdd(xid);
  if (entry == nullptr) return true;
  const auto own = static_cast<size_t>(teller);
  entry->last = std::max(entry->last, t);
  if (entry->unmet[1 - own].Take(t)) return false;
  entry->unmet[own].Add(t);
  ++entry->count;
  if (teller == Teller::kLibrary && on_library_) on_library_();
  return true;
}

void XidLedger::AddOld(const XidTold& xid, Timestamp t) {
  Ask(xid, t, true);
  if (Entry* const entry = FindOrAdd(xid)) entry->last = std::max(entry->last, t);
}

void XidLedger::AddLoss(std::string_view card, Timestamp t, bool old) {
  Ask(card, XidNeed::kReboot, kOffTheBus, t, old);
}

void XidLedger::AddCard(std::string_view card) {
  if (card.empty() || known_.size() >= kMaxCards || IsCard(card)) return;
  known_.emplace(card);
}

void XidLedger::AddSxid(int32_t code, bool fatal) {
  const std::pair key{code, fatal};
  if (sxids_.size() >= kMaxSxids && !sxids_.contains(key)) {
    ++lost_;
    return;
  }
  ++sxids_[key];
}

bool XidLedger::OnlyLibrary(std::string_view card, int32_t code, Timestamp t) const {
  const auto found = xids_.find(Key{card, code});
  return found != xids_.end() && found->second.unmet[static_cast<size_t>(Teller::kLibrary)].any(t);
}

void XidLedger::Ask(const XidTold& xid, Timestamp t, bool old) {
  if (xid.code == kRecoveryChanged && xid.recovery == RecoveryAction::kNone) {
    OnSettled(xid.card);
    return;
  }
  const std::optional<XidNeed> need =
      xid.code == kRecoveryChanged ? NeedOf(xid.recovery) : NeedOf(FindXid(xid.code));
  if (need && !xid.nonfatal) Ask(xid.card, *need, xid.code, t, old);
}

void XidLedger::Ask(std::string_view name, XidNeed need, int32_t code, Timestamp t, bool old) {
  if (name.empty()) return;
  auto found = cards_.find(name);
  if (found == cards_.end()) {
    if (cards_.size() >= kMaxCards) {
      ++lost_;
      return;
    }
    found = cards_.emplace(std::string(name), Card{}).first;
  }
  Card& card = found->second;
  (old ? card.old : card.needs)[Place(need)] = true;
  // The driver's own summary follows the error that it sums up.
  if (code == kRecoveryChanged && card.code != 0) return;
  card.code = code;
  card.since = t;
}

void XidLedger::OnReset(std::string_view name, bool returned) {
  if (returned) {
    OnSettled(name);
    return;
  }
  const auto found = cards_.find(name);
  if (found == cards_.end()) return;
  for (auto* needs : {&found->second.old, &found->second.needs}) {
    const bool reboot = (*needs)[Place(XidNeed::kReboot)];
    needs->fill(false);
    (*needs)[Place(XidNeed::kReboot)] = reboot;
  }
}

void XidLedger::OnSettled(std::string_view name) {
  const auto found = cards_.find(name);
  if (found != cards_.end()) cards_.erase(found);
}

void XidLedger::OnNothingAsked(std::string_view name) {
  const auto found = cards_.find(name);
  if (found == cards_.end()) return;
  found->second.old[Place(XidNeed::kResetGpu)] = false;
  found->second.old[Place(XidNeed::kReboot)] = false;
}

XidPending XidLedger::PendingOf(std::string_view name) const {
  XidPending pending;
  pending.card = name;
  const auto found = cards_.find(name);
  if (found == cards_.end()) return pending;
  bool any = false;
  for (size_t i = 0; i < pending.needs.size(); ++i) {
    pending.needs[i] = found->second.old[i] || found->second.needs[i];
    any = any || pending.needs[i];
  }
  if (!any) return pending;
  pending.code = found->second.code;
  pending.since = found->second.since;
  return pending;
}

XidReport XidLedger::Report() const {
  XidReport report;
  report.heard = heard(Teller::kKernelLog) || heard(Teller::kLibrary);
  for (const auto& [key, entry] : xids_)
    report.counts.push_back({key.first, key.second, entry.count, entry.last});
  for (const auto& [name, card] : cards_) {
    XidPending pending = PendingOf(name);
    if (pending.code != 0) report.pending.push_back(std::move(pending));
  }
  for (const auto& [key, count] : sxids_) report.switches.push_back({key.first, key.second, count});
  return report;
}

}  // namespace rankscope::collectors
