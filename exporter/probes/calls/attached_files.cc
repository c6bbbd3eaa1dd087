// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/calls/attached_files.h"

#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace rankscope::probes {
namespace {

// Kernel 6.18 learnt to leave out the 5-byte nop.
bool KernelSkipsLongNops() {
  utsname name{};
  if (uname(&name) != 0) return false;
  char* rest = nullptr;
  const long major = std::strtol(name.release, &rest, 10);
  const long minor = *rest == '.' ? std::strtol(rest + 1, nullptr, 10) : 0;
  return major > 6 || (major == 6 && minor >= 18);
}

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

AttachedFiles::AttachedFiles(std::span<const CallRow> calls, CallPrograms programs, AttachVia via)
    : calls_(calls),
      programs_(std::move(programs)),
      via_(via),
      skips_long_nops_(KernelSkipsLongNops()) {}

AttachedFiles::~AttachedFiles() {
  TakePlaces().Leave();
}

Places AttachedFiles::TakePlaces() {
  Places all;
  for (auto& [key, file] : files_) {
    for (Places* links :
         {&file.driver_links, &file.runtime_links, &file.return_links, &file.call_links,
          &file.call_end_links, &file.stepped_links, &file.stepped_end_links}) {
      all.Add(std::move(*links));
    }
  }
  return all;
}

AttachedFiles::Report AttachedFiles::Attach(FoundLibrary library, const LaunchProbes& launches) {
  const double begin = SecondsNow();
  launches_ = launches;
  Report report;
  File file;
  file.file = std::move(library.file);
  for (const ElfFunction& function : library.elf.functions)
    Choose(function, library.elf.x86_64, file, report);
  const FileKey key = KeyOf(library.version);
  files_.erase(key);  // of an earlier version
  Apply(file, report);
  files_.emplace(key, std::move(file));
  report.seconds = SecondsNow() - begin;
  return report;
}

AttachedFiles::Report AttachedFiles::Want(const LaunchProbes& launches) {
  Report report;
  launches_ = launches;
  for (auto& [key, file] : files_) Apply(file, report);
  return report;
}

void AttachedFiles::Choose(const ElfFunction& function, bool x86_64, File& file,
                           Report& report) const {
  const auto row = std::find_if(calls_.begin(), calls_.end(),
                                [&](const CallRow& call) { return call.symbol == function.name; });
  if (row == calls_.end() || (via_ == AttachVia::kPerf && !row->essential)) return;
  const Site site = x86_64 ? PlaceProbe(function.code, skips_long_nops_) : Site{};
  const bool stepped = !IsCheap(site.site);
  CallRow placed = *row;
  if (stepped) placed.layer |= RS_LAYER_STEPPED;
  const ProbePoint point{function.offset + site.offset,
                         CookieOf(placed, static_cast<size_t>(row - calls_.begin()))};
  const bool upper = (row->layer & RS_LAYER_UPPER) != 0;
  (IsLaunch(*row) ? (upper ? file.runtime : file.driver)
   : stepped      ? file.stepped_calls
                  : file.calls)
      .push_back(point);
  report.placed.insert({row->op, row->layer, site.site});
}

// The probes of this file as they are wanted.
void AttachedFiles::Apply(File& file, Report& report) const {
  const LaunchProbes& wanted = launches_;
  const auto settle = [&](bool on, int program, const std::vector<ProbePoint>& points,
                          bool at_return, Places& links) {
    Settle(on, program, file, points, at_return, links, report);
  };
  settle(wanted.calls, programs_.begin, file.calls, false, file.call_links);
  settle(wanted.calls, programs_.end, file.calls, true, file.call_end_links);
  settle(wanted.stepped_calls, programs_.begin, file.stepped_calls, false, file.stepped_links);
  settle(wanted.stepped_calls, programs_.end, file.stepped_calls, true, file.stepped_end_links);
  settle(wanted.driver, programs_.launch, file.driver, false, file.driver_links);
  settle(wanted.runtime, programs_.launch, file.runtime, false, file.runtime_links);
  std::vector<ProbePoint> all = file.driver;
  if (wanted.runtime) all.insert(all.end(), file.runtime.begin(), file.runtime.end());
  settle(wanted.returns, programs_.launch_end, all, true, file.return_links);
}

void AttachedFiles::Settle(bool wanted, int program, const File& file,
                           const std::vector<ProbePoint>& points, bool at_return, Places& links,
                           Report& report) const {
  if (!wanted) {
    links.Leave();
    return;
  }
  if (!links.empty() || program < 0) return;
  const std::string path = "/proc/self/fd/" + std::to_string(file.file.get());
  Attached attached = AttachProbes(via_, program, path, points, at_return);
  report.points += attached.points;
  report.refused += attached.refused;
  if (attached.refused > 0) report.trouble = attached.reason;
  links = std::move(attached.places);
}

}  // namespace rankscope::probes
