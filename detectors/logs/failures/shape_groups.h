// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The groups of failure shapes, one file each, joined in shapes.cc; and what each group can read in
// running text (an exception's message), whatever line or traceback the text stands in. Private to
// detectors/logs; pure, any thread.
#pragma once

#include <span>
#include <string_view>

#include "detectors/logs/progress/formats.h"
#include "detectors/logs/record.h"

namespace rankscope::logs {

std::span<const ShapeRow> LauncherShapes();      // torchelastic, DeepSpeed, accelerate, mpirun
std::span<const ShapeRow> MpiShapes();           // MPI's launchers; what launchers stop
std::span<const ShapeRow> ContainerShapes();     // Pyxis, Apptainer, Docker: what did not start
std::span<const ShapeRow> MemoryShapes();        // allocators of the device and of the host
std::span<const ShapeRow> CudaShapes();          // the CUDA runtime
std::span<const ShapeRow> CollectiveShapes();    // watchdogs, transports, lost peers
std::span<const ShapeRow> RendezvousShapes();    // stores, sockets, name lookups
std::span<const ShapeRow> SlurmShapes();         // slurmstepd, srun
std::span<const ShapeRow> SchedulerLogShapes();  // slurmctld, sacct, scontrol
std::span<const ShapeRow> KernelShapes();        // kernel log
std::span<const ShapeRow> ShellShapes();         // shells, make, systemd: how their child ended
std::span<const ShapeRow> SignalShapes();        // fault handlers, aborts, what a program was told
std::span<const ShapeRow> FatalLogShapes();      // glog, absl, TensorFlow, Paddle
std::span<const ShapeRow> NoticeShapes();        // preempted, requeued, evicted, says the program
std::span<const ShapeRow> ErrorFileShapes();     // torchelastic's error file
std::span<const ShapeRow> StorageShapes();       // no space, quota, I/O errors
std::span<const ShapeRow> ProseShapes();         // lone exceptions, usage errors, "loss is nan"
std::span<const ShapeRow> TrainingShapes();      // loss scale, partial loads, compilers, mismatches

// Each sets kind and fields when the text is of its group, and says whether it was.
bool ReadDeviceMemory(std::string_view text, Incident& incident);
bool ReadHostMemory(std::string_view text, Incident& incident);
bool ReadCudaError(std::string_view text, Incident& incident);
bool ReadWorkerDeath(std::string_view text, Incident& incident);
bool ReadCollectiveTimeout(std::string_view text, Incident& incident);
bool ReadPeerLost(std::string_view text, Incident& incident);
bool ReadRendezvous(std::string_view text, Incident& incident);
bool ReadStorage(std::string_view text, Incident& incident);
// Whether JAX's coordination service waits for processes that have yet to register: a rendezvous,
// while its other barriers are collectives (xla/pjrt/distributed, tsl/distributed_runtime).
bool IsRegistration(std::string_view text);
// A training loop or a framework refuses to go on with a loss or a gradient that is not a number;
// exceptions only.
bool ReadNonFinite(std::string_view text, Incident& incident);
bool ReadTermination(std::string_view text, Incident& incident);

// The row of lines that name a process of which the next line tells.
inline constexpr std::string_view kNamedProcess = "mpi_process";

// Whether the line calls itself a warning or less: [W socket.cpp:426], W0325 20:57:27, [WARNING],
// WARNING:root:.
bool IsWarningLevel(std::string_view text);

}  // namespace rankscope::logs
