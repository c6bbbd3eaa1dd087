// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Text as a value in a URL's query (RFC 3986, 2.1 and 2.3). Pure, any thread.
#pragma once

#include <string>
#include <string_view>

namespace rankscope {

// Only unreserved characters stay; so it may stand in an attribute of HTML, too.
std::string PercentEncode(std::string_view text);

}  // namespace rankscope
