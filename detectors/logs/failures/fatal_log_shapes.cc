// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// C++ logging libraries whose fatal level ends the process: glog, absl and TensorFlow abort after
// the line. And Paddle's own words before it calls exit(): an error line and no more.
#include <algorithm>

#include "detectors/logs/failures/exception_text.h"
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/ascii.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kFatalAnchors[] = {".cc:", ".cpp:", ".h:", ".cu:"};
constexpr std::string_view kPlaceAnchors[] = {"Place(", "Cannot use "};

// The message behind "path/file.cc:123] "; empty where `text` is no such thing.
std::string_view BehindSource(std::string_view text) {
  const size_t close = text.find("] ");
  if (close == std::string_view::npos) return {};
  const std::string_view source = text.substr(0, close);
  const size_t colon = source.rfind(':');
  if (colon == std::string_view::npos || !IsDigits(source.substr(colon + 1))) return {};
  const std::string_view file = source.substr(0, colon);
  const bool is_source = std::any_of(
      std::begin(kFatalAnchors), std::end(kFatalAnchors),
      [file](std::string_view one) { return file.ends_with(one.substr(0, one.size() - 1)); });
  return is_source ? Trim(text.substr(close + 2)) : std::string_view();
}

// glog and absl: "F0102 03:04:05.678901 4711 file.cc:12] "; TensorFlow: "2026-01-02
// 03:04:05.678901: F dir/file.cc:12] ". The letter of the level is what tells them from the others.
std::string_view FatalMessage(std::string_view text) {
  text = TrimLeft(text);
  constexpr size_t kDay = 5;    // F0102
  constexpr size_t kDate = 11;  // "2026-01-02 "
  constexpr std::string_view kLevel = ": F ";
  if (text.size() > kDay && text[0] == 'F' && IsDigits(text.substr(1, kDay - 1)) &&
      text[kDay] == ' ' && IsDigits(text.substr(kDay + 1, 2)) &&
      text.substr(kDay + 3).starts_with(":"))
    return BehindSource(text.substr(kDay + 1));
  if (text.size() <= kDate || !IsDigits(text.substr(0, 4)) || text[4] != '-') return {};
  const size_t level = text.find_first_not_of("0123456789:.", kDate);
  if (level == std::string_view::npos || !text.substr(level - 1).starts_with(kLevel)) return {};
  return BehindSource(text.substr(level - 1 + kLevel.size()));
}

// JAX's client of the coordination service ends its process when another task is gone:
// "Terminating process because the JAX distributed service detected fatal errors. This most likely
// indicates that another task died", "... because the coordinator detected missing heartbeats".
bool EndsForAnother(std::string_view message) {
  return message.starts_with("Terminating process because the ") &&
         ContainsAny(message, {"another task died", "missing heartbeats", "task logs"});
}

void ParseFatal(const CleanLine& line, RecordList& out) {
  const std::string_view message = FatalMessage(line.text);
  if (message.empty()) return;
  Incident incident = MakeIncident(IncidentKind::kException, line, "cpp_fatal");
  incident.message = Capped(message, kMessageCap);
  SetSignal(incident, 6);
  ClassifyText(message, incident);
  if (EndsForAnother(message)) {
    incident.kind = IncidentKind::kPeerLost;
    incident.role = Role::kCascade;
    AddField(incident, "backend", "jax");
  }
  out.push_back(std::move(incident));
}

// paddle/fluid/pybind/place.cc logs one of these and calls exit(-1).
void ParsePlace(const CleanLine& line, RecordList& out) {
  const std::string_view text = line.text;
  static constexpr std::string_view kWords[] = {", must inside [0, ",
                                                ", device id must be 0 or",
                                                "Cannot use CUDAPlace",
                                                "Cannot use GPU because",
                                                "Cannot use XPU because",
                                                "Cannot use NPU because",
                                                "Cannot use CustomDevice because"};
  if (text.empty() || text[0] != 'E' || !ContainsAny(text, kWords)) return;
  const std::string_view message = BehindSource(After(text, " "));
  const bool place = message.starts_with("Invalid ") && Contains(message, "Place(");
  if (!place && !message.starts_with("Cannot use ")) return;
  Incident incident = MakeIncident(IncidentKind::kException, line, "paddle_place");
  incident.frame = FrameKind::kConfig;
  incident.message = Capped(message, kMessageCap);
  out.push_back(std::move(incident));
}

// qguiapplication.cpp calls qFatal() where there is no display, and its text ends the process.
constexpr std::string_view kQtAnchors[] = {"no Qt platform plugin could be initialized"};

void ParseQt(const CleanLine& line, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kException, line, "qt_platform");
  incident.frame = FrameKind::kImport;
  incident.message = Capped(Trim(line.text), kMessageCap);
  SetSignal(incident, 6);
  out.push_back(std::move(incident));
}

constexpr ShapeRow kRows[] = {
    {"cpp_fatal", "a C++ library logs a fatal error and aborts", kFatalAnchors, ParseFatal,
     "F0305 11:12:13.141592 20331 ring_buffer.cc:88] Check failed: head_ <= tail_ (9 vs. 7)"},
    {"paddle_place", "Paddle cannot use the device that it was given", kPlaceAnchors, ParsePlace,
     "E0305 11:12:13.141592 20331 place.cc:117] Invalid CUDAPlace(5), must inside [0, 4), because "
     "GPU number on your machine is 4"},
    {"qt_platform", "Qt has no display to draw on and aborts", kQtAnchors, ParseQt,
     "This application failed to start because no Qt platform plugin could be initialized. "
     "Reinstalling the application may fix this problem."},
};

}  // namespace

std::span<const ShapeRow> FatalLogShapes() {
  return kRows;
}

}  // namespace rankscope::logs
