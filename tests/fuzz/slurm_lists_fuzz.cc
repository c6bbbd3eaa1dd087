// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as Slurm's list of nodes, as a dependency and as a submit line: bounded, and no name
// holds what a name cannot hold.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "detectors/model/host_list.h"
#include "detectors/model/slurm_dependency.h"

using namespace rankscope;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const HostNames hosts = ExpandHostList(text);
  if (hosts.names.size() > kMaxHosts) std::abort();
  for (const std::string& name : hosts.names) {
    if (name.empty() || name.size() > kMaxHostName) std::abort();
    if (name.find_first_of("[], \n") != std::string::npos) std::abort();
  }
  for (const std::string_view task : {std::string_view(), std::string_view("3")}) {
    for (const SlurmDependency& dependency : ReadSlurmDependencies(text, task)) {
      if (!dependency.kind.starts_with("after")) std::abort();
      if (dependency.job_id.find_first_not_of("0123456789_") != std::string::npos) std::abort();
    }
  }
  static_cast<void>(ReadSlurmDependencies(DependencyOfSubmitLine(text)));
  return 0;
}
