// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What all sources that live from programs in the kernel do alike: ask whether the kernel takes
// such programs, say so where it does not, and tell what they see of processes of jobs. Loop thread
// only.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "detectors/model/observation.h"
#include "exporter/loop/event_loop.h"
#include "exporter/probes/attach/kernel_gate.h"
#include "exporter/probes/attach/tracked_map.h"
#include "exporter/processes/process_table.h"
#include "exporter/source.h"

namespace rankscope::probes {

class ProbeSource : public exporter::Source {
 protected:
  // `name` begins the words of its state; `force`: tries even where the kernel should not do.
  ProbeSource(std::string name, std::shared_ptr<collectors::ProcessTable> table,
              std::shared_ptr<TrackedMap> tracked, bool force);

  // The first step of Start: the map of tracked processes. An obstacle is told as the source's
  // state, and is the error.
  Result<int> Admit(Sink& sink, const std::optional<Capability>& obstacle);
  // Tells that the source cannot be, and why; the reason as an error.
  Error Unsupported(std::string reason);

  // The second step: what was loaded into the kernel becomes `programs`, and `read` is called when
  // they have written something. The source runs from then on.
  template <typename Programs>
  Status Adopt(exporter::EventLoop& loop, Result<Programs> loaded, Programs& programs,
               std::function<void()> read) {
    if (!loaded) return Unsupported(loaded.error());
    if (Status watched =
            loop.Watch((*loaded)->fd(), EPOLLIN, [read = std::move(read)](uint32_t) { read(); });
        !watched)
      return watched;
    programs = std::move(*loaded);
    loop_ = &loop;
    return {};
  }

  // Whether it is a process of a job that lives.
  bool Lives(const ProcessKey& key) const;
  // The same, or one whose end was told a moment ago; false for strangers, who are tracked until
  // user space has looked at them.
  bool IsOurs(const ProcessKey& key) const;

  const std::string name_;
  const std::shared_ptr<collectors::ProcessTable> table_;
  const std::shared_ptr<TrackedMap> tracked_;

 private:
  bool force_;
};

}  // namespace rankscope::probes
