// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Containers that do not start: nothing of the program has run. Pyxis and Enroot under Slurm,
// Apptainer and Singularity, Docker and its kin, NVIDIA's container toolkit below all of them.
#include "detectors/logs/failures/incident_text.h"
#include "detectors/logs/failures/shape_groups.h"
#include "detectors/model/subs.h"

namespace rankscope::logs {
namespace {

constexpr std::string_view kPyxisAnchors[] = {"error: pyxis: "};
constexpr std::string_view kApptainerAnchors[] = {"FATAL:   "};
constexpr std::string_view kDaemonAnchors[] = {"Error response from daemon: "};
constexpr std::string_view kToolkitAnchors[] = {"nvidia-container-cli: "};

// An image that is not there, may not be read, or is none.
bool IsOfImage(std::string_view message) {
  return ContainsAny(
      message, {"manifest", "No such file or directory", "no such file or directory",
                "could not open image", "image format not recognized", "Unable to handle",
                "While making image", "pull access denied", "No such image", "Unable to find image",
                "returned error code: 401", "returned error code: 403", "returned error code: 404",
                "Could not process JSON input", "squashfs"});
}

void Add(const CleanLine& line, std::string_view shape, std::string_view message, RecordList& out) {
  Incident incident = MakeIncident(IncidentKind::kUsageError, line, shape);
  incident.sub = subs::kNoContainer;
  incident.message = Capped(Trim(message), kMessageCap);
  incident.frame = IsOfImage(message) ? FrameKind::kAssetLoad : FrameKind::kImport;
  out.push_back(std::move(incident));
}

// Pyxis prints Enroot's log, whose errors say why, and then what it could not do itself.
void ParsePyxis(const CleanLine& line, RecordList& out) {
  const std::string_view message = Trim(After(line.text, "error: pyxis: "));
  if (Contains(message, "nvidia-container-cli: ")) return;  // has a row
  if (message.starts_with("[ERROR] ")) return Add(line, "pyxis", After(message, "[ERROR] "), out);
  const bool gives_up = message.starts_with("couldn't start container") ||
                        message.starts_with("container exited too soon") ||
                        message.starts_with("failed to create container filesystem");
  if (gives_up || message.starts_with("enroot-mount: ")) Add(line, "pyxis", message, out);
}

// "FATAL:" and three spaces: the level's name is padded. Others pad their words as well, so what
// Apptainer says behind it counts too.
void ParseApptainer(const CleanLine& line, RecordList& out) {
  if (!line.text.starts_with("FATAL:   ")) return;
  const std::string_view message = line.text.substr(9);
  if (ContainsAny(message,
                  {"container creation failed", "could not open image", "While making image",
                   "image format not recognized", "Unable to handle ", "executable file not found",
                   "while loading container", "container process", "While performing build"}))
    Add(line, "apptainer", message, out);
}

// The client prints it as its own last word, perhaps behind its name.
void ParseDaemon(const CleanLine& line, RecordList& out) {
  const std::string_view before = Trim(Before(line.text, "Error response from daemon: "));
  if (!before.empty() && before != "docker:" && before != "podman:") return;
  if (Contains(line.text, "nvidia-container-cli: ")) return;  // has a row
  Add(line, "container_daemon", After(line.text, "Error response from daemon: "), out);
}

void ParseToolkit(const CleanLine& line, RecordList& out) {
  const std::string_view message = After(line.text, "nvidia-container-cli: ");
  if (ContainsAny(message, {"error", "failed", "unsatisfied"}))
    Add(line, "nvidia_container", line.text.substr(line.text.find("nvidia-container-cli: ")), out);
}

constexpr ShapeRow kRows[] = {
    {"pyxis", "Pyxis or Enroot cannot start a container", kPyxisAnchors, ParsePyxis,
     "slurmstepd: error: pyxis:     [ERROR] No such file or directory: /images/trainer.sqsh"},
    {"apptainer", "Apptainer or Singularity cannot start a container", kApptainerAnchors,
     ParseApptainer,
     "FATAL:   could not open image /images/trainer.sif: failed to retrieve path: lstat "
     "/images/trainer.sif: no such file or directory"},
    {"container_daemon", "Docker or Podman cannot start a container", kDaemonAnchors, ParseDaemon,
     "docker: Error response from daemon: could not select device driver \"\" with capabilities: "
     "[[gpu]]."},
    {"nvidia_container", "the GPU cannot be brought into a container", kToolkitAnchors,
     ParseToolkit,
     "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.6, please update "
     "your driver to a newer version"},
};

}  // namespace

std::span<const ShapeRow> ContainerShapes() {
  return kRows;
}

}  // namespace rankscope::logs
