// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What is seen of an attempt from below its text: by probes in the kernel and in its libraries, and
// in what NCCL and PyTorch report of themselves. One tracker for each concern, all fed with
// everything. Single writer.
#pragma once

#include "detectors/windows/checkpoint_tracker.h"
#include "detectors/windows/collective_tracker.h"
#include "detectors/windows/fault_log.h"
#include "detectors/windows/gpu_tracker.h"
#include "detectors/windows/launch_tracker.h"
#include "detectors/windows/network_tracker.h"
#include "detectors/windows/port_tracker.h"
#include "detectors/windows/report_tracker.h"
#include "detectors/windows/speaker.h"
#include "detectors/windows/storage_tracker.h"
#include "detectors/windows/wait_tracker.h"

namespace rankscope::windows {

struct KernelView {
  NetworkTracker network;
  StorageTracker storage;
  WaitTracker waits;
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
    a(network, storage, waits, launches, collectives, reports, checkpoints, rdma, gpus, faults);
  }
};

}  // namespace rankscope::windows
