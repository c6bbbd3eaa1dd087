// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/call_attacher.h"

#include <sys/utsname.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <utility>

#include "exporter/probes/library_finder.h"

namespace rankscope::probes {
namespace {

constexpr Duration kDeadline = Seconds(10);
// A node's jobs use some versions of three libraries, each perhaps in some images.
constexpr size_t kMaxTargets = 64;
// A file stays probed while its job restarts.
constexpr int kLooksUnused = 120;

Names NamesOf(std::span<const CallRow> calls) {
  Names names;
  for (const CallRow& row : calls) names.insert(row.symbol);
  return names;
}

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

// What the worker thread owns.
struct CallAttacher::Worked {
  struct Target {
    OwnedFd file;
    std::vector<ProbePoint> driver, runtime, calls, stepped_calls;
    Places driver_links, runtime_links, return_links;
    Places call_links, call_end_links, stepped_links, stepped_end_links;
    int unused = 0;
  };

  Worked(std::string proc_root, std::span<const CallRow> table, CallPrograms fds, AttachVia how)
      : calls(table),
        programs(std::move(fds)),
        via(how),
        finder(std::move(proc_root), NamesOf(table)) {}

  ~Worked() {
    Places all;
    for (auto& [identity, target] : targets) {
      for (Places* links :
           {&target.driver_links, &target.runtime_links, &target.return_links, &target.call_links,
            &target.call_end_links, &target.stepped_links, &target.stepped_end_links}) {
        all.Add(std::move(*links));
      }
    }
  }

  void Look(const std::vector<ProcessKey>& processes) {
    state.looked = processes;
    state.users.clear();
    std::set<FileIdentity> used;
    finder.Keep(processes);
    for (const ProcessKey& process : processes) {
      LibraryFinder::Look look = finder.LookAt(process);
      for (FoundLibrary& library : look.fresh) Add(std::move(library));
      used.insert(look.mapped.begin(), look.mapped.end());
      if (!look.mapped.empty()) state.users.insert(process);
    }
    for (auto target = targets.begin(); target != targets.end();) {
      target->second.unused = used.contains(target->first) ? 0 : target->second.unused + 1;
      if (target->second.unused <= kLooksUnused) {
        ++target;
        continue;
      }
      finder.Forget(target->first);
      target = targets.erase(target);
    }
    state.files = static_cast<int>(targets.size());
  }

  void Add(FoundLibrary library) {
    if (targets.contains(library.identity)) return;
    if (targets.size() >= kMaxTargets) {
      ++state.refused;
      state.trouble = "more than " + std::to_string(kMaxTargets) + " files with such functions";
      return;
    }
    const double begin = SecondsNow();
    Target target;
    target.file = std::move(library.file);
    for (const ElfFunction& function : library.elf.functions)
      Place(function, library.elf.x86_64, target);
    Apply(target);
    targets.emplace(library.identity, std::move(target));
    state.attach_seconds = SecondsNow() - begin;
    if (!std::exchange(measured, true) && programs.launch >= 0) Measure();
  }

  void Measure() {
    if (programs.track_self) programs.track_self(true);
    const CallRow launch{"", RS_CUDA_LAUNCH};
    state.costs = MeasureSites(via, programs.launch, programs.launch_end, CookieOf(launch, 0));
    if (programs.track_self) programs.track_self(false);
  }

  void Place(const ElfFunction& function, bool x86_64, Target& target) {
    const auto row = std::find_if(calls.begin(), calls.end(), [&](const CallRow& call) {
      return call.symbol == function.name;
    });
    if (row == calls.end() || (via == AttachVia::kPerf && !row->essential)) return;
    const Site site = x86_64 ? PlaceProbe(function.code, skips_long_nops) : Site{};
    const bool stepped = !IsCheap(site.site);
    CallRow placed = *row;
    if (stepped) placed.layer |= RS_LAYER_STEPPED;
    const ProbePoint point{function.offset + site.offset,
                           CookieOf(placed, static_cast<size_t>(row - calls.begin()))};
    const bool upper = (row->layer & RS_LAYER_UPPER) != 0;
    (IsLaunch(*row) ? (upper ? target.runtime : target.driver)
     : stepped      ? target.stepped_calls
                    : target.calls)
        .push_back(point);
    state.placed.insert({row->op, row->layer, site.site});
  }

  static std::string PathOf(const Target& target) {
    return "/proc/self/fd/" + std::to_string(target.file.get());
  }

  Places Attach(int program, const std::string& path, const std::vector<ProbePoint>& points,
                bool at_return) {
    if (program < 0) return {};
    Attached attached = AttachProbes(via, program, path, points, at_return);
    state.points += attached.points;
    state.refused += attached.refused;
    if (attached.refused > 0) state.trouble = attached.reason;
    return std::move(attached.places);
  }

  // The probes of this file as they are wanted.
  void Apply(Target& target) {
    const std::string path = PathOf(target);
    const LaunchProbes& wanted = state.launches;
    Settle(wanted.calls, programs.begin, path, target.calls, false, target.call_links);
    Settle(wanted.calls, programs.end, path, target.calls, true, target.call_end_links);
    Settle(wanted.stepped_calls, programs.begin, path, target.stepped_calls, false,
           target.stepped_links);
    Settle(wanted.stepped_calls, programs.end, path, target.stepped_calls, true,
           target.stepped_end_links);
    Settle(wanted.driver, programs.launch, path, target.driver, false, target.driver_links);
    Settle(wanted.runtime, programs.launch, path, target.runtime, false, target.runtime_links);
    std::vector<ProbePoint> all = target.driver;
    if (wanted.runtime) all.insert(all.end(), target.runtime.begin(), target.runtime.end());
    Settle(wanted.returns, programs.launch_end, path, all, true, target.return_links);
  }

  void Settle(bool wanted, int program, const std::string& path,
              const std::vector<ProbePoint>& points, bool at_return, Places& links) {
    if (!wanted) {
      links.Leave();
    } else if (links.empty()) {
      links = Attach(program, path, points, at_return);
    }
  }

  void Want(LaunchProbes launches) {
    const bool more = (launches.calls && !state.launches.calls) ||
                      (launches.stepped_calls && !state.launches.stepped_calls);
    if (more && programs.timing_begins) programs.timing_begins();
    if (launches.driver && !state.launches.driver && programs.launches_begin)
      programs.launches_begin();
    state.launches = launches;
    for (auto& [identity, target] : targets) Apply(target);
  }

  std::span<const CallRow> calls;
  CallPrograms programs;
  AttachVia via;
  LibraryFinder finder;
  bool skips_long_nops = KernelSkipsLongNops();
  std::map<FileIdentity, Target> targets;
  bool measured = false;
  State state;
};

CallAttacher::CallAttacher(exporter::EventLoop& loop, std::string proc_root,
                           std::span<const CallRow> calls, CallPrograms programs, AttachVia via,
                           std::function<void()> on_change)
    : loop_(loop),
      worked_(std::make_shared<Worked>(std::move(proc_root), calls, std::move(programs), via)),
      on_change_(std::move(on_change)),
      worker_(std::make_unique<exporter::Worker>(loop)) {}

CallAttacher::~CallAttacher() = default;

void CallAttacher::Submit(std::function<void(Worked&)> work) {
  const bool submitted = worker_->Submit(
      [this, work = std::move(work), worked = worked_]() -> std::function<void()> {
        work(*worked);
        return [this, state = worked->state] {
          state_ = state;
          state_.launches_since = loop_.Now();
          looking_ = late_ = false;
          on_change_();
        };
      },
      kDeadline, [this] { late_ = true; });
  if (!submitted) looking_ = false;
}

void CallAttacher::Look(std::vector<ProcessKey> processes) {
  if (std::exchange(looking_, true)) return;
  Submit([processes = std::move(processes)](Worked& worked) { worked.Look(processes); });
}

void CallAttacher::Want(LaunchProbes launches) {
  if (launches == wanted_) return;
  wanted_ = launches;
  Submit([launches](Worked& worked) { worked.Want(launches); });
}

}  // namespace rankscope::probes
