// SPDX-License-Identifier: Apache-2.0
// A calibration's text, as it lies in a file and as it travels: any bytes are refused or understood, and what is understood comes
// back the same.
#include <cstdlib>

#include "comm/calibration.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const char separator : {'\n', ','}) {
    const shoal::Result<shoal::comm::Calibration> read = shoal::comm::parse_calibration(text, separator);
    if (!read.is_ok()) continue;
    const shoal::Result<shoal::comm::Calibration> again =
        shoal::comm::parse_calibration(shoal::comm::text_of(*read, separator), separator);
    if (!again.is_ok() || !(*again == *read)) std::abort();
  }
  return 0;
}
