// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The Xids of the node's GPUs, whoever tells them, and what each GPU waits for since. The
// kernel's log and the driver's library tell of the same error, in either order and sometimes only
// one of them: it is counted once. What an error asks for stands until something shows that it was
// done: silence does not. Shared by the sources kmsg and nvml; loop thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "detectors/model/gpu_reading.h"
#include "detectors/model/time.h"

namespace rankscope::collectors {

// Told by the driver itself, in the words of an Xid 154 or as a value of the GPU.
enum class RecoveryAction : int8_t {
  kUntold = -1,
  kNone,
  kResetGpu,
  kReboot,
  kDrainPeers,
  kDrainAndReset,
};

// One error, as much as its teller knows of it.
struct XidTold {
  std::string_view card;  // PciCard of its place
  int32_t code = 0;
  RecoveryAction recovery = RecoveryAction::kUntold;  // of an Xid 154
  bool nonfatal = false;  // the link that it is of corrected it, says the line
};

class XidLedger {
 public:
  enum class Teller : uint8_t { kKernelLog, kLibrary };

  // How far apart the two may tell of one error. The driver prints it and wakes the library's
  // waiters from one function, so what lies between is the waiters' delay: a loop that works
  // through a burst of the log (some 100 ms), a library that is waited for again after a GPU was
  // lost. Each telling of one is set off against one of the other, so two errors within the window
  // that one teller tells are two; of two that each teller missed one of, one is counted.
  static constexpr Duration kSame = Seconds(5);
  // Sixteen GPUs with as many kinds of errors each; what does not fit is lost().
  static constexpr size_t kMaxXids = 256;
  static constexpr size_t kMaxCards = 64;
  static constexpr size_t kMaxSxids = 64;

  // Counted, unless the other teller has told it; whether it was.
  bool Add(Teller teller, const XidTold& xid, Timestamp t);
  // Of before this program began: known, and not counted. In the order of the log.
  void AddOld(const XidTold& xid, Timestamp t);
  // A GPU that is gone, without a code.
  void AddLoss(std::string_view card, Timestamp t, bool old);

  // Of an NVSwitch; only the log tells of these.
  void AddSxid(int32_t code, bool fatal);

  // A GPU that the driver's library has named. What it has once named stays a GPU, lost or not.
  void AddCard(std::string_view card);
  bool IsCard(std::string_view card) const { return known_.find(card) != known_.end(); }
  bool any_card() const { return !known_.empty(); }

  // Whether the library told of an error within kSame that the log has not.
  bool OnlyLibrary(std::string_view card, int32_t code, Timestamp t) const;

  // The GPU was reset; `returned`: it had been gone, and is there again.
  void OnReset(std::string_view card, bool returned);
  // The driver says of the GPU, which had asked for something, that it asks for nothing more.
  void OnSettled(std::string_view card);
  // The driver says now that the GPU asks for nothing: what stands only from before this program
  // began was settled in between.
  void OnNothingAsked(std::string_view card);

  // Called when the library has told of an error that the log has not.
  void set_on_library(std::function<void()> on_library) { on_library_ = std::move(on_library); }
  void SetHeard(Teller teller, bool heard) { heard_[static_cast<size_t>(teller)] = heard; }
  bool heard(Teller teller) const { return heard_[static_cast<size_t>(teller)]; }

  XidReport Report() const;
  // What the GPU waits for; needs are all false where it waits for nothing.
  XidPending PendingOf(std::string_view card) const;
  int64_t lost() const { return lost_; }

 private:
  // Tellings of one teller that the other has not met yet, by the second in which they came.
  class Unmet {
   public:
    void Add(Timestamp t);
    bool Take(Timestamp t);  // one of within kSame
    bool any(Timestamp t) const;

   private:
    struct Second {
      int64_t second = -1;
      int64_t count = 0;
    };
    std::array<Second, 6> seconds_{};  // kSame, and the one that is under way
  };
  struct Entry {
    int64_t count = 0;
    Timestamp last;
    std::array<Unmet, 2> unmet;  // by teller
  };
  struct Card {
    // From before this program began, and since.
    std::array<bool, kXidNeedNames.size()> old{}, needs{};
    int32_t code = 0;
    Timestamp since;
  };
  using Key = std::pair<std::string, int32_t>;  // GPU and code

  Entry* FindOrAdd(const XidTold& xid);
  void Ask(const XidTold& xid, Timestamp t, bool old);
  void Ask(std::string_view card, XidNeed need, int32_t code, Timestamp t, bool old);

  std::map<Key, Entry> xids_;
  std::map<std::string, Card, std::less<>> cards_;
  std::map<std::pair<int32_t, bool>, int64_t> sxids_;  // by code, and whether it is fatal
  std::set<std::string, std::less<>> known_;
  std::array<bool, 2> heard_{};
  std::function<void()> on_library_;
  int64_t lost_ = 0;
};

}  // namespace rankscope::collectors
