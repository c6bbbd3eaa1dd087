// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as the files of /proc/PID and of its cgroups: what is read of them stays within the
// bounds that the headers state, and one process's text never yields a key that is not allowed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "detectors/attribution/environment_keys.h"
#include "exporter/loop/user_identity.h"
#include "exporter/loop/user_path.h"
#include "exporter/output/output_file.h"
#include "exporter/processes/proc_text.h"
#include "exporter/processes/root_process.h"

using namespace rankscope;
using namespace rankscope::collectors;

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

void CheckEnvironment(std::string_view text) {
  const Environment environment = ParseEnvironment(text, attribution::IsAllowedEnvironmentKey);
  Check(environment.kept.size() <= kMaxKept);
  for (const KeyValue& pair : environment.kept) {
    Check(attribution::IsAllowedEnvironmentKey(pair.key));
    Check(pair.value.size() <= kMaxValueBytes);
    Check(pair.value.find('\0') == std::string::npos);
  }
  const std::vector<std::string> arguments = ParseArguments(text);
  Check(arguments.size() <= kMaxArguments);
  for (const std::string& argument : arguments) Check(argument.size() <= kMaxArgumentBytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto stat = ParseStat(text)) Check(stat->pid > 0 && stat->comm.size() <= size);
  CheckEnvironment(text);
  static_cast<void>(ParseStatus(text));
  static_cast<void>(ParseIo(text));
  const CgroupPaths paths = ParseCgroup(text);
  Check(paths.memory.starts_with(JobCgroup(paths.memory)));
  const std::vector<int32_t> minors = ParseGpuDevices(text);
  for (size_t i = 1; i < minors.size(); ++i) Check(minors[i - 1] < minors[i]);
  for (const bool v1 : {true, false}) static_cast<void>(ParseFrozen(text, v1));
  for (const std::string_view key : {"oom_kill", "VmRSS", ""}) {
    static_cast<void>(FindNumber(text, key));
  }
  static_cast<void>(ParseLimit(text));
  static_cast<void>(IsGpuDevice(text));
  static_cast<void>(exporter::ParseIdentity(text));
  static_cast<void>(exporter::ParseMountInfo(text));
  static_cast<void>(ParseAuxiliaryVector(text));
  static_cast<void>(NamesAnotherUser(text));
  static_cast<void>(ParseDescriptorFacts(std::string(text)));
  return 0;
}
