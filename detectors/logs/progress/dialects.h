// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Row functions of the progress dialects and markers, for formats.cc; each takes one cleaned line.
// Any thread.
#pragma once

#include <span>

#include "detectors/logs/progress/block.h"
#include "detectors/logs/progress/formats.h"
#include "detectors/logs/record.h"

namespace rankscope::logs {

// hf_trainer.cc: Hugging Face Trainer and what is built on it (TRL, LLaMA-Factory, Axolotl,
// Unsloth, ms-swift). A dict with a 'loss' key is a record, with 'eval_loss' an evaluation, with
// 'train_runtime' the end.
bool ParseHfTrainer(const CleanLine& line, RecordList& out);
// TRL's PPO: rewards, and no loss of the whole.
bool ParseTrlPpo(const CleanLine& line, RecordList& out);

// pytorch_example.cc: the PyTorch examples (ImageNet, MNIST, detection references, language model,
// CIFAR tutorial) and hand-written loops that begin the line with where they are.
bool ParseEpochPhase(const CleanLine& line, RecordList& out);
bool ParsePytorchMeter(const CleanLine& line, RecordList& out);
bool ParsePytorchLoop(const CleanLine& line, RecordList& out);
bool ParseQuickstart(const CleanLine& line, RecordList& out);

bool ParseTimm(const CleanLine& line, RecordList& out);           // timm.cc
bool ParseMmengine(const CleanLine& line, RecordList& out);       // mmengine.cc
bool ParseMmcv(const CleanLine& line, RecordList& out);           // mmengine.cc
bool ParseDetectron2(const CleanLine& line, RecordList& out);     // detectron2.cc
bool ParseNanogpt(const CleanLine& line, RecordList& out);        // nanogpt.cc
bool ParseModdedNanogpt(const CleanLine& line, RecordList& out);  // nanogpt.cc
bool ParseLlmC(const CleanLine& line, RecordList& out);           // nanogpt.cc
bool ParseMegatron(const CleanLine& line, RecordList& out);       // megatron.cc
bool ParseDeepspeed(const CleanLine& line, RecordList& out);      // deepspeed.cc
bool ParseDeepspeedPipe(const CleanLine& line, RecordList& out);  // deepspeed.cc
bool ParseNemo(const CleanLine& line, RecordList& out);           // nemo.cc
bool ParseAutomodel(const CleanLine& line, RecordList& out);      // nemo.cc
bool ParseTorchtitan(const CleanLine& line, RecordList& out);     // torchtitan.cc
bool ParseMaxText(const CleanLine& line, RecordList& out);        // maxtext.cc
bool ParseFairseq(const CleanLine& line, RecordList& out);        // fairseq.cc
bool ParseFairseqJson(const CleanLine& line, RecordList& out);    // fairseq.cc
bool ParseTfEstimator(const CleanLine& line, RecordList& out);    // tensorflow.cc
bool ParseTfSlim(const CleanLine& line, RecordList& out);         // tensorflow.cc
bool ParseTfOrbit(const CleanLine& line, RecordList& out);        // tensorflow.cc
bool ParseTfDetection(const CleanLine& line, RecordList& out);    // tensorflow.cc
bool ParseXTransformer(const CleanLine& line, RecordList& out);   // transformer_xl.cc
bool ParsePaddleTrainer(const CleanLine& line, RecordList& out);  // paddle.cc
bool ParsePaddleMeter(const CleanLine& line, RecordList& out);    // paddle.cc
bool ParseEspnet(const CleanLine& line, RecordList& out);         // espnet.cc
bool ParseMxnet(const CleanLine& line, RecordList& out);          // mxnet.cc
bool ParseBoosting(const CleanLine& line, RecordList& out);       // boosting.cc
bool ParseCatboost(const CleanLine& line, RecordList& out);       // boosting.cc
bool ParseTorchtune(const CleanLine& line, RecordList& out);      // torchtune.cc
bool ParseOpennmt(const CleanLine& line, RecordList& out);        // opennmt.cc
bool ParseFlax(const CleanLine& line, RecordList& out);           // flax.cc
bool ParseUltralytics(const CleanLine& line, RecordList& out);    // ultralytics.cc
bool ParseVerl(const CleanLine& line, RecordList& out);           // verl.cc
bool ParseKeras(const CleanLine& line, RecordList& out);          // keras.cc
bool ParseLightning(const CleanLine& line, RecordList& out);      // lightning.cc
bool ParseLightningRich(const CleanLine& line, RecordList& out);  // lightning.cc
bool ParseTqdmLoggable(const CleanLine& line, RecordList& out);
bool ParseTqdmLoop(const CleanLine& line, RecordList& out);    // lightning.cc
bool ParseMindspore(const CleanLine& line, RecordList& out);   // mindspore.cc
bool ParseLossAtStep(const CleanLine& line, RecordList& out);  // loss_at_step.cc
bool ParseRlGames(const CleanLine& line, RecordList& out);     // isaac_rl.cc
bool ParseMarian(const CleanLine& line, RecordList& out);      // marian.cc
bool ParseDarknet(const CleanLine& line, RecordList& out);     // darknet.cc
bool ParseStyleGan(const CleanLine& line, RecordList& out);    // stylegan.cc
bool ParseNerfstudio(const CleanLine& line, RecordList& out);  // nerfstudio.cc
bool ParseDeepmd(const CleanLine& line, RecordList& out);      // deepmd.cc
bool ParseGeneric(const CleanLine& line, RecordList& out);     // generic.cc
bool ParseMetric(const CleanLine& line, RecordList& out);      // metric.cc

// Dialects whose records span lines.
extern const BlockDialect kOlmoBlock;       // olmo.cc: OLMo and OLMo-core, metrics indented
extern const BlockDialect kComposerBlock;   // composer.cc: composer and LLM Foundry, the same
extern const BlockDialect kRllibBlock;      // rllib.cc: YAML of an iteration
extern const BlockDialect kRayResultBlock;  // rllib.cc: a box with a result of Ray Tune or Train
extern const BlockDialect kCoquiBlock;      // coqui.cc: a head, names and values below it
extern const BlockDialect kRslRlBlock;      // isaac_rl.cc: a heading, names and values below it
extern const BlockDialect kStableBaselines3Block;  // stable_baselines3.cc: a table, reward and step
extern const BlockDialect kTfDictBlock;            // tensorflow.cc: the TensorFlow models, a dict

// The row of a dialect whose records span lines (FormatRow::block, headed_table.cc): claims none.
bool SpansLines(const CleanLine& line, RecordList& out);

// How much a record says that it is the run's own: 0 generic, 1 DeepSpeed's engine and 2 its
// pipeline (which repeat another dialect's record), 3 any other dialect. In one stream only the
// strongest kind present counts.
inline constexpr int kStrongestDialect = 3;
int DialectStrength(const Progress& progress);

// nccl_facts.cc: what NCCL says of itself under NCCL_DEBUG=INFO.
std::span<const FormatRow> NcclFactRows();

// resume_option.cc: commands and arguments that ask to go on from a checkpoint.
std::span<const FormatRow> ResumeOptionRows();

// markers.cc: what frameworks, launchers and loops say about where in its life a run is.
std::span<const FormatRow> MarkerRows();
std::span<const FormatRow> LibraryFactRows();

}  // namespace rankscope::logs
