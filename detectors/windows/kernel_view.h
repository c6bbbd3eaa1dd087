// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is seen of an attempt from below its text: by probes in the kernel and in its libraries, and
// in what NCCL and PyTorch report of themselves. One tracker for each concern, all fed with
// everything. Single writer.
#pragma once

#include "detectors/windows/fault_log.h"
#include "detectors/windows/trackers/checkpoint_tracker.h"
#include "detectors/windows/trackers/collective_tracker.h"
#include "detectors/windows/trackers/gpu_tracker.h"
#include "detectors/windows/trackers/launch_tracker.h"
#include "detectors/windows/trackers/network_tracker.h"
#include "detectors/windows/trackers/port_tracker.h"
#include "detectors/windows/trackers/report_tracker.h"
#include "detectors/windows/trackers/speaker.h"
#include "detectors/windows/trackers/stillness_tracker.h"
#include "detectors/windows/trackers/storage_tracker.h"
#include "detectors/windows/trackers/wait_tracker.h"

namespace rankscope::windows {

struct KernelView {
  NetworkTracker network;
  StorageTracker storage;
  WaitTracker waits;
  StillnessTracker stillness;
  LaunchTracker launches;
  CollectiveTracker collectives;
  ReportTracker reports;
  CheckpointTracker checkpoints;
  PortTracker rdma;
  GpuTracker gpus;
  FaultLog faults;

  void OnEvent(const Event& event, const Speaker& speaker, Timestamp t);
  void OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t);
  void OnProcessExit(const ProcessKey& process);

  template <class A>
  void Fields(A& a) {
    a(network, storage, waits, launches, collectives, reports, checkpoints, rdma, gpus, faults,
      stillness);
  }
};

}  // namespace rankscope::windows
