// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// A job that says things, and which of them began it all: shared by the tests of causes.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "detectors/features/causes.h"

namespace rankscope::features {

using logs::FrameKind;
using logs::Incident;
using logs::IncidentKind;
using Role = Cause::Role;

inline Incident Of(IncidentKind kind, int32_t rank = -1) {
  Incident incident;
  incident.kind = kind;
  incident.rank = rank;
  incident.shape = "x";
  return incident;
}
inline Incident Exception(int32_t rank = -1) {
  Incident incident = Of(IncidentKind::kException, rank);
  incident.exception_type = "ValueError";
  return incident;
}
inline Incident Death(int32_t signal, int32_t rank = -1, int32_t pid = 0) {
  Incident incident = Of(IncidentKind::kSignalDeath, rank);
  incident.signal = signal;
  incident.pid = pid;
  return incident;
}
inline Incident Scheduler(std::string sub) {
  Incident incident = Of(IncidentKind::kSchedulerEnd);
  incident.sub = std::move(sub);
  return incident;
}
inline Incident CodeOf(IncidentKind kind, std::string key, std::string value) {
  Incident incident = Of(kind);
  incident.fields = {{std::move(key), std::move(value)}};
  return incident;
}
inline Incident Wrapped(Incident incident) {
  incident.role = logs::Role::kWrapper;
  return incident;
}
inline Incident Cascading(Incident incident) {
  incident.role = logs::Role::kCascade;
  return incident;
}

class CausesTest : public ::testing::Test {
 protected:
  CausesTest() {
    f_.ended = true;
    f_.running = false;
    f_.timed = true;
  }
  static Timestamp At(double second) { return {static_cast<int64_t>((1000 + second) * 1e9)}; }

  void Say(double second, Incident incident, uint32_t stream = 1) {
    incident.offset = offset_ += 100;
    job_.OnRecord(incident, stream, nullptr, At(second));
  }
  void Train(double second, int records) {
    LogLine line;
    line.stream = 1;
    for (int i = 0; i < records; ++i) {
      logs::Progress progress;
      progress.format = "pytorch_loop";
      progress.loss_text = "1";
      progress.loss = 1;
      job_.OnRecord(progress, 1, &line, At(second));
      ++f_.progress;
    }
  }
  void EndTraining(double second) {
    logs::Marker marker;
    marker.kind = logs::MarkerKind::kTrainEnd;
    marker.offset = offset_ += 100;
    marker.line = "done";
    job_.OnRecord(marker, 1, nullptr, At(second));
    f_.train_end = true;
  }
  void Exit(int code) {
    f_.exit_known = true;
    f_.exit_code = code;
  }

  std::vector<Cause> Order() { return OrderCauses(job_, f_); }
  IncidentKind First() {
    const std::vector<Cause> causes = Order();
    EXPECT_FALSE(causes.empty());
    EXPECT_EQ(causes.front().role, Role::kInitiating);
    return causes.front().incident().kind;
  }
  Role RoleOf(IncidentKind kind) {
    for (const Cause& cause : Order()) {
      if (cause.incident().kind == kind) return cause.role;
    }
    ADD_FAILURE() << "no such cause";
    return Role::kTeardown;
  }

  windows::JobWindow job_{"j", At(0)};
  JobFeatures f_;
  int64_t offset_ = 0;
};

}  // namespace rankscope::features
