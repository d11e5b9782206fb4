// SPDX-License-Identifier: Apache-2.0
#include "topo/files/xml.h"

#include <memory>

#include "topo/files/expat_library.h"

namespace shoal::topo {
namespace {

constexpr std::size_t kMostBytes = 16 << 20, kMostElements = 1 << 14, kMostDepth = 64;

class Reader {
 public:
  explicit Reader(const ExpatLibrary& expat) : expat_(expat), parser_(nullptr, expat.free) {}

  Result<Element> read(std::string_view text) {
    if (text.size() > kMostBytes) return fail(Code::invalid_argument, "{} bytes: at most {}", text.size(), kMostBytes);
    parser_.reset(expat_.create("UTF-8"));
    if (parser_ == nullptr) return fail(Code::system_error, "no memory for a parser of XML");
    expat_.set_user_data(parser_.get(), this);
    expat_.set_element_handler(parser_.get(), on_start, on_end);
    expat_.set_text_handler(parser_.get(), on_text);
    expat_.set_document_type_handler(parser_.get(), on_document_type);
    const bool read = expat_.parse(parser_.get(), text.data(), static_cast<int>(text.size()), 1) == XML_STATUS_OK;
    if (!failure_.is_ok()) return failure_;
    if (!read) return fail(Code::invalid_argument, "line {}: {}", line(), expat_.error_text(expat_.error_code(parser_.get())));
    return std::move(root_);
  }

 private:
  int line() const { return static_cast<int>(expat_.line(parser_.get())); }
  void refuse(std::string_view why) {
    if (failure_.is_ok()) failure_ = fail(Code::invalid_argument, "line {}: {}", line(), why);
    expat_.stop(parser_.get(), XML_FALSE);
  }

  static void on_start(void* self, const XML_Char* name, const XML_Char** attributes) {
    static_cast<Reader*>(self)->start(name, attributes);
  }
  static void on_end(void* self, const XML_Char* /*name*/) { static_cast<Reader*>(self)->end(); }
  static void on_text(void* self, const XML_Char* text, int length) {
    const std::string_view read(text, static_cast<std::size_t>(length));
    if (read.find_first_not_of(" \t\r\n") != std::string_view::npos) static_cast<Reader*>(self)->refuse("text between elements");
  }
  static void on_document_type(void* self, const XML_Char*, const XML_Char*, const XML_Char*, int) {
    static_cast<Reader*>(self)->refuse("a document type is not read");
  }

  void start(const XML_Char* name, const XML_Char** attributes) {
    if (!failure_.is_ok()) return;
    if (open_.size() == kMostDepth) return refuse(fmt::format("elements inside each other more than {} deep", kMostDepth));
    if (++elements_ > kMostElements) return refuse(fmt::format("more than {} elements", kMostElements));
    Element element{.name = name, .attributes = {}, .children = {}, .line = line()};
    for (; *attributes != nullptr; attributes += 2) element.attributes.emplace_back(attributes[0], attributes[1]);
    open_.push_back(std::move(element));
  }
  void end() {
    if (!failure_.is_ok()) return;
    Element done = std::move(open_.back());
    open_.pop_back();
    if (open_.empty())
      root_ = std::move(done);
    else
      open_.back().children.push_back(std::move(done));
  }

  const ExpatLibrary& expat_;
  std::unique_ptr<std::remove_pointer_t<XML_Parser>, decltype(&XML_ParserFree)> parser_;
  std::vector<Element> open_;
  Element root_;
  std::size_t elements_ = 0;
  Status failure_;
};

void escape(std::string& out, std::string_view text) {
  for (const char c : text) switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default:
        if (static_cast<unsigned char>(c) < ' ')
          out += fmt::format("&#{};", static_cast<int>(c));  // else it is read back as a blank
        else
          out += c;
    }
}

void write(std::string& out, const Element& element, std::size_t depth) {
  out.append(2 * depth, ' ');
  out += "<" + element.name;
  for (const auto& [name, value] : element.attributes) {
    out += " " + name + "=\"";
    escape(out, value);
    out += "\"";
  }
  out += element.children.empty() ? "/>\n" : ">\n";
  for (const Element& child : element.children) write(out, child, depth + 1);
  if (element.children.empty()) return;
  out.append(2 * depth, ' ');
  out += "</" + element.name + ">\n";
}

}  // namespace

const std::string* Element::attribute(std::string_view wanted) const {
  for (const auto& [key, value] : attributes)
    if (key == wanted) return &value;
  return nullptr;
}

Result<Element> parse_xml(std::string_view text) {
  const ExpatLibrary* const expat = ExpatLibrary::open();
  if (expat == nullptr) return fail(Code::system_error, "XML is read with libexpat.so.1 (Debian: libexpat1), which is not there");
  return Reader(*expat).read(text);
}

std::string text_of(const Element& root) {
  std::string out;
  write(out, root, 0);
  return out;
}

}  // namespace shoal::topo
