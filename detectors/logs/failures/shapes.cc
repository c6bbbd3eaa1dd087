// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "detectors/logs/failures/shape_groups.h"
#include "detectors/logs/progress/formats.h"

namespace rankscope::logs {
namespace {

std::vector<ShapeRow> JoinGroups() {
  std::vector<ShapeRow> rows;
  for (const std::span<const ShapeRow> group :
       {SlurmShapes(), SchedulerLogShapes(), KernelShapes(), LauncherShapes(), MpiShapes(),
        ContainerShapes(), MemoryShapes(), CudaShapes(), CollectiveShapes(), RendezvousShapes(),
        StorageShapes(), ShellShapes(), SignalShapes(), FatalLogShapes(), NoticeShapes(),
        ErrorFileShapes(), ProseShapes(), TrainingShapes()}) {
    rows.insert(rows.end(), group.begin(), group.end());
  }
  return rows;
}

}  // namespace

std::span<const ShapeRow> Shapes() {
  static const std::vector<ShapeRow> rows = JoinGroups();
  return rows;
}

}  // namespace rankscope::logs
