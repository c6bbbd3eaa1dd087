// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Which names announce a secret ("WANDB_API_KEY"), and which only look as if they did
// ("num_tokens", "pad_token"). For the redactor; stateless, any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace rankscope::logs {

enum class SecretName : uint8_t {
  kNo,
  kToken,     // "token" is also a unit of text: the value must look like a secret
  kKey,       // api key, access key, secret, credential
  kPassword,  // whatever stands there
};

SecretName ClassifyName(std::string_view name);

// Whether a value under such a name is masked: not None, True, a placeholder or what is masked
// already.
bool IsSecretValue(SecretName kind, std::string_view value);

}  // namespace rankscope::logs
