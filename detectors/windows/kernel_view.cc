// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/windows/kernel_view.h"

namespace rankscope::windows {

void KernelView::OnEvent(const Event& event, const Speaker& speaker, Timestamp t) {
  network.OnEvent(event, speaker, t);
  storage.OnEvent(event, speaker, t);
  waits.OnEvent(event, speaker, t);
  launches.OnEvent(event, speaker, t);
  collectives.OnEvent(event, speaker, t);
  reports.OnEvent(event, speaker, t);
  checkpoints.OnEvent(event, speaker, t);
  rdma.OnEvent(event, speaker, t);
  gpus.OnEvent(event, speaker, t);
  stillness.OnEvent(event, t);
}

void KernelView::OnSamples(const SampleBatch& batch, const Speaker& speaker, Timestamp t) {
  network.OnSamples(batch, speaker, t);
  storage.OnSamples(batch, speaker, t);
  waits.OnSamples(batch, speaker, t);
  stillness.OnSamples(batch, speaker, t);
  launches.OnSamples(batch, speaker, t);
  collectives.OnSamples(batch, speaker, t);
  reports.OnSamples(batch, speaker, t);
  checkpoints.OnSamples(batch, speaker, t);
  rdma.OnSamples(batch, speaker, t);
  gpus.OnSamples(batch, t);
}

void KernelView::OnProcessExit(const ProcessKey& process) {
  launches.OnProcessExit(process);
  collectives.OnProcessExit(process);
  gpus.OnProcessExit(process);
}

}  // namespace rankscope::windows
