// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// What the keys of training lines mean, whatever their spelling: one table for all dialects. In the
// header, because the dialects look keys up by the million. Stateless; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "detectors/logs/record.h"

namespace rankscope::logs {

// What a key means, whatever its spelling.
enum class Key : uint8_t {
  kOther,
  kStep,
  kEpoch,
  kLoss,         // of training
  kForeignLoss,  // of half a GAN, a style, a policy: such a line is no record
  kGradNorm,
  kLearningRate,
  kStepTime,          // seconds, or as the unit says
  kStepMilliseconds,  // the key names the unit
  kTime,              // of a step in some dialects, of the whole run in others
  kLossScale,
  kReward,
  kRewardStd,
  kZeroStdShare,
  kKl,
  kClippedShare,
  kSkipped,
  kNanIterations,
  kNumZeros,
  kParamsNorm,
  kBatchSize,
  kConsumedSamples,
  kConsumedTokens,
  kElapsed,  // seconds since the begin, or as the unit says
  kSamplesPerSecond,
  kTokensPerSecond,
  kTflops,
  kMfu,
  kTotalSteps,
  kStepRate,    // steps per second
  kEvaluation,  // a word, not a key: "eval", "validation"
  kObjective,   // what some programs call their only loss; that of a part elsewhere
  kBound,       // is made larger or smaller, as the program likes
};

inline constexpr size_t kKeys = static_cast<size_t>(Key::kBound) + 1;

struct Meaning {
  Key key = Key::kOther;
  uint8_t rank = 0;  // among keys of one meaning, the lower the more telling
};

namespace key_table {

// Keys are compared folded: a table beats branches on every byte of every line.
constexpr std::array<char, 256> MakeFold() {
  std::array<char, 256> fold{};
  for (int i = 0; i < 256; ++i) {
    const auto c = static_cast<char>(i);
    fold[static_cast<size_t>(i)] = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20)
                                   : c == ' ' || c == '-' || c == '/' || c == '.' ? '_'
                                                                                  : c;
  }
  return fold;
}
inline constexpr std::array<char, 256> kFold = MakeFold();
constexpr char Fold(char c) {
  return kFold[static_cast<uint8_t>(c)];
}

// Keys by meaning, the most telling first.
struct Group {
  Key key;
  std::string_view names;  // by blanks
};

inline constexpr Group kGroups[] = {
    {Key::kStep,
     "global_step step steps iteration iter it iters train_step train_iter training_step "
     "global_steps training_iteration update updates num_updates batch minibatch mini_batch "
     "batch_idx "
     "batches train_batch learner_steps current_step current_iter n_iter step_in_epoch"},
    {Key::kEpoch, "epoch ep epochs train_epoch training_epoch"},
    {Key::kLoss,
     "loss train_loss training_loss lm_loss total_loss batch_loss loss_train "
     "train_total_loss step_loss avg_loss mean_loss average_loss running_loss "
     "avg_train_loss train_avg_loss loss_step train_loss_step main_loss cross_entropy "
     "loss_total loss_avg train_loss_avg loss_mean smoothed_loss loss_avg_rank"},
    {Key::kForeignLoss,
     "d_loss g_loss loss_d loss_g discriminator_loss generator_loss adversarial_loss "
     "style_loss content_loss gan_loss errd errg dloss gloss critic_loss actor_loss "
     "policy_loss act_loss cri_loss loss_d_real disc_loss gen_loss"},
    {Key::kGradNorm,
     "grad_norm gradnorm gnorm gradient_norm train_grad_norm global_grad_norm total_norm "
     "norm grad"},
    {Key::kLearningRate, "lr learning_rate train_lr learning_rates base_lr lrate"},
    {Key::kStepTime,
     "step_time elapsed_time_per_iteration_(s) train_step_timing_in_s iter_time time_per_step "
     "time_per_iter time_step batch_time dt sec_step "
     "s_it"},
    {Key::kStepMilliseconds,
     "ms_batch ms_step step_time_ms ms_iter elapsed_time_per_iteration_(ms)"},
    {Key::kTime, "time"},
    {Key::kLossScale, "loss_scale scale grad_scale"},
    {Key::kReward,
     "reward mean_reward train_reward reward_mean rewards_mean objective_rlhf_reward "
     "episode_reward_mean episode_return_mean"},
    {Key::kRewardStd, "reward_std rewards_std"},
    {Key::kZeroStdShare, "frac_reward_zero_std"},
    {Key::kKl, "kl objective_kl mean_kl kl_div"},
    {Key::kClippedShare,
     "completions_clipped_ratio completions_clip_ratio response_length_clip_ratio"},
    {Key::kSkipped, "number_of_skipped_iterations skipped skipped_iterations skipped_steps"},
    {Key::kNanIterations, "number_of_nan_iterations nan_iterations"},
    {Key::kNumZeros, "num_zeros num_zeros_in_grad"},
    {Key::kParamsNorm, "params_norm param_norm"},
    {Key::kBatchSize, "global_batch_size gbs bsz"},
    {Key::kConsumedSamples,
     "consumed_samples consumed_train_samples samples_seen num_samples_seen"},
    {Key::kConsumedTokens,
     "consumed_tokens consumed_train_tokens tokens_seen num_tokens num_input_tokens_seen "
     "num_tokens_seen n_tokens_seen throughput_total_tokens total_tokens tokens_total"},
    {Key::kElapsed,
     "elapsed_time elapsed time_elapsed elapsed_s elapsed_seconds wall_time wall total_time "
     "total_time_(s) time_total_s"},
    {Key::kSamplesPerSecond,
     "samples_per_second samples_per_sec samples_sec samples_s train_samples_per_second "
     "samplespersec currsamplespersec examples_per_second examples_sec images_per_sec images_sec "
     "imgs_sec img_sec img_s imgs_s throughput"},
    {Key::kTokensPerSecond,
     "tokens_per_second tokens_per_sec tokens_sec tokens_s tok_sec tok_s toks_s tps wps tgs "
     "tokens_per_gpu_per_second tokens_per_gpu_per_second_(tgs) train_tokens_per_second "
     "tokens_per_second_per_gpu "
     "tokens_train_per_sec_per_gpu tokens_per_sec_per_gpu tokens_s_gpu tokens_s_device "
     "throughput_device_tokens_per_second "
     "throughput_device_tps"},
    {Key::kTflops,
     "tflops tflop_s tflops_s tflops_per_gpu tflop_s_gpu tflop_s_device model_tflops tflops_gpu "
     "throughput_per_gpu_(tflop_s_gpu) throughput_(tflop_s_gpu) approx_flops_per_gpu"},
    {Key::kMfu, "mfu bf16_mfu throughput_device_mfu"},
    {Key::kEvaluation,
     "eval evaluation evaluating evaluate validation validate validating valid val test "
     "testing dev inference finder lr_find lr_finder prediction best holdout"},
    {Key::kObjective,
     "cost train_cost training_cost bce bce_loss nll nll_loss mse mse_loss train_mse rmse "
     "train_rmse rmse_trn"},
    {Key::kBound, "elbo"},
};

inline constexpr size_t kMaxKey = 36;  // bytes of the longest name above

// Of three bytes and the length: telling enough for a hundred names, and no loop over the word.
constexpr uint32_t HashOf(std::string_view words) {
  const auto at = [words](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(Fold(words[i])));
  };
  const uint32_t hash = (at(0) | at(words.size() / 2) << 8 | at(words.size() - 1) << 16 |
                         static_cast<uint32_t>(words.size()) << 24) *
                        2654435769u;
  return hash >> 16;
}

struct Slot {
  std::string_view name;
  Meaning meaning;
};
inline constexpr size_t kSlots = 1024;  // four times the names: probes are short

constexpr std::array<Slot, kSlots> MakeSlots() {
  std::array<Slot, kSlots> slots{};
  for (const Group& group : kGroups) {
    uint8_t rank = 0;
    for (size_t begin = 0; begin < group.names.size();) {
      const size_t end = std::min(group.names.find(' ', begin), group.names.size());
      const std::string_view name = group.names.substr(begin, end - begin);
      size_t i = HashOf(name) % kSlots;
      while (!slots[i].name.empty()) i = (i + 1) % kSlots;
      slots[i].name = name;
      slots[i].meaning.key = group.key;
      slots[i].meaning.rank = rank++;
      begin = end + 1;
    }
  }
  return slots;
}

inline constexpr std::array<Slot, kSlots> kTable = MakeSlots();

constexpr bool LongestNameFits() {
  for (const Slot& slot : kTable) {
    if (slot.name.size() > kMaxKey) return false;
  }
  return true;
}
static_assert(LongestNameFits());

}  // namespace key_table

// Keys are compared without case, and ' ', '-', '/' and '.' count as '_': "Train Loss" is
// "train_loss".
inline bool KeyIs(std::string_view words, std::string_view name) {
  if (words.size() != name.size()) return false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (key_table::Fold(words[i]) != name[i]) return false;
  }
  return true;
}

inline Meaning MeaningOf(std::string_view words) {
  if (words.empty() || words.size() > key_table::kMaxKey) return {};
  for (size_t i = key_table::HashOf(words) % key_table::kSlots; !key_table::kTable[i].name.empty();
       i = (i + 1) % key_table::kSlots) {
    if (KeyIs(words, key_table::kTable[i].name)) return key_table::kTable[i].meaning;
  }
  return {};
}

// The field that holds a fact as it is printed; null for what is no such fact.
inline constexpr std::array<double Progress::*, kKeys> kFactFields = [] {
  std::array<double Progress::*, kKeys> fields{};
  fields.fill(nullptr);  // which g++ 12's value initialization is not
  const auto set = [&fields](Key key, double Progress::*field) {
    fields[static_cast<size_t>(key)] = field;
  };
  set(Key::kEpoch, &Progress::epoch);
  set(Key::kStepTime, &Progress::step_seconds);
  set(Key::kLossScale, &Progress::loss_scale);
  set(Key::kReward, &Progress::reward);
  set(Key::kRewardStd, &Progress::reward_std);
  set(Key::kZeroStdShare, &Progress::zero_std_share);
  set(Key::kKl, &Progress::kl);
  set(Key::kClippedShare, &Progress::clipped_share);
  set(Key::kSkipped, &Progress::skipped_iterations);
  set(Key::kNanIterations, &Progress::nan_iterations);
  set(Key::kNumZeros, &Progress::num_zeros);
  set(Key::kParamsNorm, &Progress::params_norm);
  set(Key::kBatchSize, &Progress::batch_size);
  set(Key::kConsumedSamples, &Progress::consumed_samples);
  set(Key::kConsumedTokens, &Progress::consumed_tokens);
  set(Key::kElapsed, &Progress::elapsed_seconds);
  set(Key::kSamplesPerSecond, &Progress::samples_per_second);
  set(Key::kTokensPerSecond, &Progress::tokens_per_second);
  set(Key::kTflops, &Progress::tflops);
  set(Key::kTotalSteps, &Progress::total_steps);
  return fields;
}();

// Fills the one fact of `progress` that has this meaning; for dialects that walk their keys
// themselves. Meanings that are no such fact (step, loss, time ...) are ignored.
void SetFact(Progress& progress, Key key, double value, std::string_view unit = {},
             bool percent = false);

// Seconds that a value with this unit means; NaN where the unit is no time.
double InSeconds(double value, std::string_view unit);

}  // namespace rankscope::logs
