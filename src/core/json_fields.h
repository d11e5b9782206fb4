// SPDX-License-Identifier: Apache-2.0
// Reads JSON that comes from outside: strictly, every field known, the first thing that is wrong named by its path and value.
// Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace shoal {

// Refuses texts that are too long, too deep or no JSON, and objects that have a field twice. Any bytes may be handed in.
Result<nlohmann::json> parse_json(std::string_view text, std::size_t most_bytes, int most_deep = 8);
// A whole file of at most so many bytes. system_error if it cannot be read.
Result<std::string> read_file(const std::string& path, std::size_t most_bytes);

// The fields of one object. Fields that are not there leave their targets alone; of several errors the first is kept in
// `failure`, which must be looked at before what was read is used.
class JsonFields {
 public:
  using Json = nlohmann::json;
  JsonFields(const Json& object, std::string path, Status& failure);

  bool has(const std::string& key);
  void number(const std::string& key, double& value);
  void number(const std::string& key, std::optional<double>& value);
  void whole(const std::string& key, std::int32_t& value);  // from 0 on
  void whole(const std::string& key, std::optional<std::int32_t>& value);
  void large(const std::string& key, std::optional<std::int64_t>& value);
  void large(const std::string& key, std::optional<std::uint64_t>& value);  // below 2^63
  void wholes(const std::string& key, std::vector<std::int32_t>& values);
  void text(const std::string& key, std::string& value);
  void texts(const std::string& key, std::vector<std::string>& values);
  void boolean(const std::string& key, bool& value);
  void boolean(const std::string& key, std::optional<bool>& value);
  std::size_t choice(const std::string& key, std::initializer_list<std::string_view> choices);  // position in the list

  // Calls `each(element, path, failure)` for every element of a list.
  template <typename Each>
  void list(const std::string& key, Each each) {
    if (!has(key)) return;
    const Json& field = object_[key];
    if (!field.is_array()) return refuse(path_of(key), field, "a list");
    for (std::size_t i = 0; i < field.size() && failure_.is_ok(); ++i)
      each(field[i], fmt::format("{}[{}]", path_of(key), i), failure_);
  }
  const Json& object(const std::string& key) const { return object_[key]; }

  // After the last field was read.
  void no_others();
  void both(const std::string& a, const std::string& b);  // may not be given beside each other
  void refuse(const std::string& path, const Json& value, const std::string& allowed);
  std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

 private:
  std::int32_t whole_of(const std::string& path, const Json& field);

  const Json& object_;
  std::string path_;
  Status& failure_;
  std::vector<std::string> known_;
};

}  // namespace shoal
