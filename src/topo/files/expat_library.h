// SPDX-License-Identifier: Apache-2.0
// Expat, opened when the first file of XML is read: few processes of a job read one. Any thread; stays loaded.
#pragma once

#include <expat.h>

namespace shoal::topo {

struct ExpatLibrary {
  // Null: it is not there.
  static const ExpatLibrary* open();

  decltype(&XML_ParserCreate) create = nullptr;
  decltype(&XML_ParserFree) free = nullptr;
  decltype(&XML_SetUserData) set_user_data = nullptr;
  decltype(&XML_SetElementHandler) set_element_handler = nullptr;
  decltype(&XML_SetCharacterDataHandler) set_text_handler = nullptr;
  decltype(&XML_SetStartDoctypeDeclHandler) set_document_type_handler = nullptr;
  decltype(&XML_Parse) parse = nullptr;
  decltype(&XML_StopParser) stop = nullptr;
  decltype(&XML_GetErrorCode) error_code = nullptr;
  decltype(&XML_ErrorString) error_text = nullptr;
  decltype(&XML_GetCurrentLineNumber) line = nullptr;
};

}  // namespace shoal::topo
