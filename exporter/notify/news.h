// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether a verdict is something to tell, after what was told of the job before. Pure; any thread.
//
//   told before      verdict now                        told then
//   nothing          live, hangs or learns wrongly      hung, diverged
//   nothing          final                              failed, stopped, diverged, completed
//   hung, diverged   live, healthy or only slow         recovered
//   hung, diverged   live, ill in another way           the other, as a correction
//   hung, diverged   final                              its end
//   recovered        as nothing, in the same thread
//   an end           final, another one                 the other, as a correction
//
// What is neither (a rank has died, and the others are about to) waits for the end.
#pragma once

#include <optional>

#include "detectors/proto/verdict.pb.h"
#include "exporter/proto/notification.pb.h"

namespace rankscope::exporter::notify {

using Notification = proto::Notification;

struct News {
  Notification::Status status = Notification::STATUS_UNSPECIFIED;
  bool corrects = false;
  bool own = false;  // the owner of the job has ended it, and knows
};

// `told`: null = nothing. `uid` of the job's owner; below 0 = not known.
std::optional<News> NewsOf(const rankscope::proto::Verdict& verdict, const proto::ToldJob* told,
                           int64_t uid);

}  // namespace rankscope::exporter::notify
