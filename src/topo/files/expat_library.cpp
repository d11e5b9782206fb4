// SPDX-License-Identifier: Apache-2.0
#include "topo/files/expat_library.h"

#include <dlfcn.h>

#include <optional>

namespace shoal::topo {
namespace {

constexpr const char* kFile = "libexpat.so.1";  // Expat 2

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

}  // namespace

const ExpatLibrary* ExpatLibrary::open() {
  static const std::optional<ExpatLibrary> opened = []() -> std::optional<ExpatLibrary> {
    void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return {};
    ExpatLibrary it;
    const bool complete =
        find(library, "XML_ParserCreate", it.create) && find(library, "XML_ParserFree", it.free) &&
        find(library, "XML_SetUserData", it.set_user_data) && find(library, "XML_SetElementHandler", it.set_element_handler) &&
        find(library, "XML_SetCharacterDataHandler", it.set_text_handler) &&
        find(library, "XML_SetStartDoctypeDeclHandler", it.set_document_type_handler) && find(library, "XML_Parse", it.parse) &&
        find(library, "XML_StopParser", it.stop) && find(library, "XML_GetErrorCode", it.error_code) &&
        find(library, "XML_ErrorString", it.error_text) && find(library, "XML_GetCurrentLineNumber", it.line);
    return complete ? std::optional(it) : std::nullopt;
  }();
  return opened ? &*opened : nullptr;
}

}  // namespace shoal::topo
