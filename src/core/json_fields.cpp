// SPDX-License-Identifier: Apache-2.0
#include "core/json_fields.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>

namespace shoal {

using Json = nlohmann::json;

Result<Json> parse_json(std::string_view text, std::size_t most_bytes, int most_deep) {
  if (text.size() > most_bytes) return fail(Code::invalid_argument, "a text of {} bytes: at most {}", text.size(), most_bytes);
  std::vector<std::set<std::string>> open;  // fields seen of each object that is being read
  std::string twice;
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    too_deep |= depth > most_deep;
    if (depth > most_deep) return false;  // not kept, so that destroying it is cheap
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.empty() && !open.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  try {
    Json json = Json::parse(text, watch);
    if (too_deep) return fail(Code::invalid_argument, "lists and objects inside each other more than {} deep", most_deep);
    if (!twice.empty()) return fail(Code::invalid_argument, "\"{}\" comes twice in one object", twice);
    return json;
  } catch (const Json::exception& error) {
    return fail(Code::invalid_argument, "not JSON: {}", error.what());
  }
}

Result<std::string> read_file(const std::string& path, std::size_t most_bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::system_error, "{}", errno_text(errno));
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fail(Code::system_error, "it cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most_bytes) return fail(Code::invalid_argument, "it is longer than {} bytes", most_bytes);
  return text;
}

JsonFields::JsonFields(const Json& object, std::string path, Status& failure)
    : object_(object), path_(std::move(path)), failure_(failure) {
  if (!object.is_object()) refuse(path_.empty() ? "the text" : path_, object, "an object");
}

bool JsonFields::has(const std::string& key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
  return object_.is_object() && object_.contains(key);
}

void JsonFields::number(const std::string& key, double& value) {
  if (!has(key)) return;
  if (const Json& field = object_[key]; field.is_number())
    value = field.get<double>();
  else
    refuse(path_of(key), field, "a number");
}

void JsonFields::number(const std::string& key, std::optional<double>& value) {
  if (has(key)) number(key, value.emplace(0));
}

void JsonFields::whole(const std::string& key, std::int32_t& value) {
  if (has(key)) value = whole_of(path_of(key), object_[key]);
}

void JsonFields::whole(const std::string& key, std::optional<std::int32_t>& value) {
  if (has(key)) value = whole_of(path_of(key), object_[key]);
}

void JsonFields::large(const std::string& key, std::optional<std::int64_t>& value) {
  if (!has(key)) return;
  const Json& field = object_[key];
  if (field.is_number_unsigned() && field.get<std::uint64_t>() <= 0x7fffffffffffffff)
    value = field.get<std::int64_t>();
  else
    refuse(path_of(key), field, "a whole number from 0 to 2^63 - 1");
}

void JsonFields::large(const std::string& key, std::optional<std::uint64_t>& value) {
  std::optional<std::int64_t> read;
  large(key, read);
  if (read) value = static_cast<std::uint64_t>(*read);
}

void JsonFields::wholes(const std::string& key, std::vector<std::int32_t>& values) {
  if (!has(key)) return;
  const Json& field = object_[key];
  if (!field.is_array() || field.empty()) return refuse(path_of(key), field, "a list of whole numbers, not empty");
  for (std::size_t i = 0; i < field.size(); ++i) values.push_back(whole_of(fmt::format("{}[{}]", path_of(key), i), field[i]));
}

void JsonFields::text(const std::string& key, std::string& value) {
  if (!has(key)) return;
  if (const Json& field = object_[key]; field.is_string())
    value = field.get<std::string>();
  else
    refuse(path_of(key), field, "a text");
}

void JsonFields::texts(const std::string& key, std::vector<std::string>& values) {
  list(key, [&](const Json& element, const std::string& path, Status&) {
    if (!element.is_string()) return refuse(path, element, "a text");
    values.push_back(element.get<std::string>());
  });
}

void JsonFields::boolean(const std::string& key, bool& value) {
  if (!has(key)) return;
  if (const Json& field = object_[key]; field.is_boolean())
    value = field.get<bool>();
  else
    refuse(path_of(key), field, "true or false");
}

void JsonFields::boolean(const std::string& key, std::optional<bool>& value) {
  if (has(key)) boolean(key, value.emplace(false));
}

std::size_t JsonFields::choice(const std::string& key, std::initializer_list<std::string_view> choices) {
  if (!has(key)) return 0;
  const Json& field = object_[key];
  std::size_t at = 0;
  std::string list;
  for (std::string_view each : choices) {
    if (field.is_string() && field.get_ref<const std::string&>() == each) return at;
    list += fmt::format("{}\"{}\"", at++ == 0 ? "" : ", ", each);
  }
  refuse(path_of(key), field, "one of " + list);
  return 0;
}

void JsonFields::no_others() {
  if (!object_.is_object()) return;
  for (const auto& [key, value] : object_.items())
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      std::string list;
      for (const std::string& each : known_) list += (list.empty() ? "" : ", ") + each;
      return refuse(path_of(key), value, "not a field; there are: " + list);
    }
}

void JsonFields::both(const std::string& a, const std::string& b) {
  if (object_.is_object() && object_.contains(a) && object_.contains(b))
    refuse(path_of(b), object_[b], "not given beside " + path_of(a));
}

void JsonFields::refuse(const std::string& path, const Json& value, const std::string& allowed) {
  if (!failure_.is_ok()) return;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  failure_ = fail(Code::invalid_argument, "{} is {}: {}", path, text, allowed);
}

std::int32_t JsonFields::whole_of(const std::string& path, const Json& field) {
  if (field.is_number_unsigned() && field.get<std::uint64_t>() <= 0x7fffffff) return field.get<std::int32_t>();
  refuse(path, field, "a whole number from 0 to 2147483647");
  return 0;
}

}  // namespace shoal
