// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include <array>

#include "detectors/verdict/hazards.h"

namespace rankscope::engine {
namespace {

using Where = HazardCondition::Where;
using Test = HazardCondition::Test;

constexpr std::string_view kNcclVariables =
    "docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html";
constexpr std::string_view kTorchVariables =
    "pytorch.org/docs/stable/torch_nccl_environment_variables.html";

constexpr HazardCondition Variable(std::string_view name, Test test = Test::kSet,
                                   std::string_view value = {}) {
  return {Where::kVariable, name, test, value};
}
constexpr HazardCondition Fact(std::string_view name, Test test, std::string_view value) {
  return {Where::kFact, name, test, value};
}
constexpr std::string_view kTrue = "1|y|yes|t|true|on|Y|YES|True|TRUE|ON";
constexpr std::string_view kFalse = "0|n|no|f|false|off|N|NO|False|FALSE|OFF";

constexpr std::array kRows = {
#define HAZARD(name, condition, unless, symptoms, text, remedy, source) \
  HazardRow{name, condition, unless, symptoms, text, remedy, source},
#include "detectors/sentences/hazards.inc"
#undef HAZARD
};

}  // namespace

std::span<const HazardRow> Hazards() {
  return kRows;
}

}  // namespace rankscope::engine
