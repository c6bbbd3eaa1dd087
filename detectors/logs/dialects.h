// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Row functions of the progress dialects and markers, for formats.cc; each takes one cleaned line.
// Any thread.
#pragma once

#include <span>

#include "detectors/logs/formats.h"
#include "detectors/logs/record.h"

namespace rankscope::logs {

// hf_trainer.cc: Hugging Face Trainer and what is built on it (TRL, LLaMA-Factory, Axolotl,
// Unsloth, ms-swift). A dict with a 'loss' key is a record, with 'eval_loss' an evaluation, with
// 'train_runtime' the end.
bool ParseHfTrainer(const CleanLine& line, RecordList& out);
// Takes a line that is one dict from its first byte to its last and holds nothing but the trainer's
// own keys and bare numbers. No other row has an anchor that could stand in such a line.
bool ParsePlainDict(std::string_view text, Progress& out);

// pytorch_example.cc: the PyTorch examples (ImageNet, MNIST, detection references, language model,
// CIFAR tutorial) and hand-written loops that begin the line with where they are.
bool ParsePytorchMeter(const CleanLine& line, RecordList& out);
bool ParsePytorchLoop(const CleanLine& line, RecordList& out);
// Takes a line that is nothing but lower-case words of the loop's own, the step's first, each with
// its number. No row before the loop's claims such a line, and no failure has an anchor in it.
bool ParsePlainLoop(std::string_view text, Progress& out);

bool ParseTimm(const CleanLine& line, RecordList& out);
bool ParseMmengine(const CleanLine& line, RecordList& out);
bool ParseNanogpt(const CleanLine& line, RecordList& out);        // nanogpt.cc
bool ParseModdedNanogpt(const CleanLine& line, RecordList& out);  // nanogpt.cc
bool ParseMegatron(const CleanLine& line, RecordList& out);       // megatron.cc
bool ParseDeepspeed(const CleanLine& line, RecordList& out);      // megatron.cc
bool ParseNemo(const CleanLine& line, RecordList& out);           // megatron.cc
bool ParseTorchtitan(const CleanLine& line, RecordList& out);     // torchtitan.cc
bool ParseKeras(const CleanLine& line, RecordList& out);          // keras.cc
bool ParseLightning(const CleanLine& line, RecordList& out);      // lightning.cc
bool ParseTqdmLoop(const CleanLine& line, RecordList& out);       // lightning.cc
bool ParseGeneric(const CleanLine& line, RecordList& out);        // generic.cc

// How much a record says that it is the run's own: 0 generic, 1 DeepSpeed's engine (which repeats
// another dialect's record), 2 any other dialect. In one stream only the strongest kind present
// counts.
int DialectStrength(const Progress& progress);

// markers.cc: what frameworks, launchers and loops say about where in its life a run is.
std::span<const FormatRow> MarkerRows();

}  // namespace rankscope::logs
