// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/model/xids.h"

#include <algorithm>
#include <array>

namespace rankscope {
namespace {

constexpr std::array kXids = {
#define XID(code, kind, action, meaning) Xid{code, XidClass::kind, XidAction::action, meaning},
#include "detectors/model/xids.inc"
#undef XID
};

static_assert(std::is_sorted(kXids.begin(), kXids.end(),
                             [](const Xid& a, const Xid& b) { return a.code < b.code; }));

}  // namespace

Xid FindXid(int64_t code) {
  const auto found = std::lower_bound(kXids.begin(), kXids.end(), code,
                                      [](const Xid& xid, int64_t of) { return xid.code < of; });
  if (found != kXids.end() && found->code == code) return *found;
  Xid unknown;
  unknown.code = static_cast<int32_t>(std::clamp<int64_t>(code, -1, INT32_MAX));
  return unknown;
}

std::string_view XidActionPhrase(XidAction action) {
  switch (action) {
    case XidAction::kNone:
      return {};
    case XidAction::kRestartApp:
      return "restart the program";
    case XidAction::kResetGpu:
      return "reset the GPU";
    case XidAction::kRestartNode:
      return "restart the node, or power-cycle it if that does not help";
    case XidAction::kInspect:
      return "inspect the GPU, its power supply and its links";
    case XidAction::kUpdateDriver:
      return "update the driver";
  }
  return {};
}

}  // namespace rankscope
