// SPDX-License-Identifier: Apache-2.0
#include "topo/files/host_json.h"

#include "core/json_fields.h"
#include "topo/files/host_fields.h"
#include "topo/files/nccl_xml.h"

namespace shoal::topo {
namespace {

constexpr std::size_t kMostBytes = 16 << 20;

// Fills a model in from an object. What is not there stays as it was.
class Reader {
 public:
  Reader(const nlohmann::json& object, const std::string& path, Status& failure)
      : fields_(object, path, failure), failure_(failure) {}

  void always(const char* key, int& value) { fields_.whole(key, value); }
  void always(const char* key, std::string& value) { fields_.text(key, value); }
  void always(const char* key, std::uint64_t& value) {
    std::optional<std::uint64_t> read;
    fields_.large(key, read);
    value = read.value_or(0);
  }
  void put(const char* key, std::string& value) { fields_.text(key, value); }
  void put(const char* key, std::optional<int>& value) { fields_.whole(key, value); }
  void put(const char* key, std::optional<std::int64_t>& value) { fields_.large(key, value); }
  void put(const char* key, std::optional<std::uint64_t>& value) { fields_.large(key, value); }
  void put(const char* key, std::optional<double>& value) { fields_.number(key, value); }
  void put(const char* key, std::optional<bool>& value) { fields_.boolean(key, value); }
  void put(const char* key, std::vector<int>& values) { fields_.wholes(key, values); }
  void put(const char* key, std::vector<std::string>& values) { fields_.texts(key, values); }
  void put(const char* key, ProcessorSet& set) {
    std::string text;
    fields_.text(key, text);
    const Result<ProcessorSet> parsed = parse_processors(text);
    if (parsed.is_ok())
      set = *parsed;
    else if (failure_.is_ok())
      failure_ = fail(Code::invalid_argument, "{}: {}", fields_.path_of(key), parsed.status().text());
  }
  void index(const char* key, int& value) { fields_.whole(key, value); }
  void flag(const char* key, bool& value) { fields_.boolean(key, value); }
  void bounded(const char* key, const char* unlimited_key, std::optional<std::uint64_t>& value, std::uint64_t unlimited) {
    bool none = false;
    fields_.large(key, value);
    fields_.boolean(unlimited_key, none);
    fields_.both(key, unlimited_key);
    if (none) value = unlimited;
  }
  template <typename Model>
  void part(const char* key, Model& model) {
    if (fields_.has(key)) Reader(fields_.object(key), fields_.path_of(key), failure_).read(model);
  }
  template <typename Model>
  void list(const char* key, std::vector<Model>& models) {
    fields_.list(key, [&](const nlohmann::json& each, const std::string& path, Status& failure) {
      Reader(each, path, failure).read(models.emplace_back());
    });
  }

  // All fields, and no others.
  template <typename Model>
  void read(Model& model) {
    tell(*this, model);
    fields_.no_others();
  }

 private:
  JsonFields fields_;
  Status& failure_;
};

// Makes an object of a model. Leaves out what is unknown or empty.
class Writer {
 public:
  using Json = nlohmann::ordered_json;

  template <typename Value>
  void always(const char* key, const Value& value) {
    json_[key] = value;
  }
  template <typename Value>
  void put(const char* key, const std::optional<Value>& value) {
    if (value) json_[key] = *value;
  }
  template <typename Value>
  void put(const char* key, const std::vector<Value>& values) {
    if (!values.empty()) json_[key] = values;
  }
  void put(const char* key, const std::string& text) {
    if (!text.empty()) json_[key] = text;
  }
  void put(const char* key, const ProcessorSet& set) { put(key, text_of(set)); }
  void index(const char* key, int value) {
    if (value >= 0) json_[key] = value;
  }
  void flag(const char* key, bool value) {
    if (value) json_[key] = true;
  }
  void bounded(const char* key, const char* unlimited_key, const std::optional<std::uint64_t>& value, std::uint64_t unlimited) {
    if (value == unlimited)
      json_[unlimited_key] = true;
    else
      put(key, value);
  }
  template <typename Model>
  void part(const char* key, const Model& model) {
    json_[key] = written(model);
  }
  template <typename Model>
  void list(const char* key, const std::vector<Model>& models) {
    for (const Model& each : models) json_[key].push_back(written(each));
  }

  template <typename Model>
  static Json written(const Model& model) {
    Writer writer;
    tell(writer, model);
    return std::move(writer.json_);
  }

 private:
  Json json_ = Json::object();
};

}  // namespace

Result<Host> parse_host(std::string_view text) {
  const Result<nlohmann::json> json = parse_json(text, kMostBytes);
  if (!json.is_ok()) return json.status();
  Host host;
  Status failure;
  Reader(*json, "", failure).read(host);
  if (failure.is_ok()) failure = validate(host);
  if (!failure.is_ok()) return failure;
  return host;
}

std::string json_of(const Host& host) {
  return Writer::written(host).dump(2, ' ', false, Writer::Json::error_handler_t::replace) + "\n";
}

Result<Host> load_host(const std::string& path) {
  const auto with_path = [&](const Status& s) { return fail(s.code(), "{}: {}", path, s.text()); };
  const Result<std::string> text = read_file(path, kMostBytes);
  if (!text.is_ok()) return with_path(text.status());
  const std::size_t first = text->find_first_not_of(" \t\r\n");
  Result<Host> host = first != std::string::npos && (*text)[first] == '<' ? parse_nccl_xml(*text) : parse_host(*text);
  if (!host.is_ok()) return with_path(host.status());
  return host;
}

}  // namespace shoal::topo
