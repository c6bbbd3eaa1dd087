// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/wait/python_stack.h"

#include <algorithm>
#include <utility>

#include "exporter/loop/command.h"

namespace rankscope::probes {
namespace {

constexpr size_t kNameCap = 80;

std::string Cleaned(std::string_view text) {
  std::string clean;
  for (const char c : text.substr(0, kNameCap)) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '.' || c == '<' || c == '>';
    clean += fine ? c : '_';
  }
  return clean;
}

// torch/utils/data/dataloader.py -> torch.utils.data.dataloader; of an absolute path what follows
// the folder of packages, else the name alone.
std::string ModuleOf(std::string_view file) {
  for (const std::string_view root : {"site-packages/", "dist-packages/", "/lib/python"}) {
    const size_t at = file.find(root);
    if (at == std::string_view::npos) continue;
    file.remove_prefix(at + root.size());
    if (root == "/lib/python") file.remove_prefix(std::min(file.size(), file.find('/') + 1));
    break;
  }
  if (file.starts_with("/")) file.remove_prefix(file.rfind('/') + 1);
  if (file.ends_with(".py")) file.remove_suffix(3);
  std::string module(file);
  std::replace(module.begin(), module.end(), '/', '.');
  return Cleaned(module);
}

}  // namespace

std::vector<std::string> PySpyFolders() {
  return {"/usr/bin", "/usr/local/bin", "/opt/rankscope/bin"};
}

std::string DumpPython(const std::string& py_spy, int pid, Duration deadline) {
  exporter::CommandOutcome outcome = exporter::RunCommand(
      {{py_spy, "dump", "--nonblocking", "--pid", std::to_string(pid)}, {}, deadline, kDumpCap});
  return outcome.end == exporter::CommandOutcome::End::kDone ? std::move(outcome.output)
                                                             : std::string();
}

// Thread 4711 (active): "MainThread"
//     wait (threading.py:320)
//     <module> (train.py:12)
std::vector<std::string> MainFrames(std::string_view dump) {
  std::vector<std::string> frames;
  bool main = false;
  while (!dump.empty()) {
    const size_t end = dump.find('\n');
    std::string_view line = dump.substr(0, end);
    dump = end == std::string_view::npos ? std::string_view() : dump.substr(end + 1);
    if (line.starts_with("Thread ")) {
      if (main) break;
      main = line.find("\"MainThread\"") != std::string_view::npos;
      continue;
    }
    const size_t open = line.rfind(" (");
    if (!main || !line.starts_with("    ") || open == std::string_view::npos) continue;
    const std::string_view function = line.substr(4, open - 4);
    const std::string_view place = line.substr(open + 2);
    frames.push_back(ModuleOf(place.substr(0, place.rfind(':'))) + ':' + Cleaned(function));
    if (frames.size() >= kPythonFrames) break;
  }
  return frames;
}

}  // namespace rankscope::probes
