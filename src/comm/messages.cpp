// SPDX-License-Identifier: Apache-2.0
#include "comm/messages.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "comm/wire.h"

namespace shoal::comm {
namespace {

// The first byte of a message.
enum class Kind : std::uint8_t { record = 1, table = 2, notice = 3, gave_up = 4, abort = 5, bye = 6, records = 7 };

std::string_view cut(std::string_view text, std::size_t longest) { return text.substr(0, std::min(text.size(), longest)); }

void write(ByteWriter& into, const link::PeerIdentity& who) {
  into.signed_number(who.rank.value);
  into.text(cut(who.host, kMaxIdentityText));
  into.text(cut(who.host_id, kMaxIdentityText));
  into.number(who.process);
  into.signed_number(who.pid);
  into.text(cut(who.address, kMaxIdentityText));
  into.text(cut(who.local_address, kMaxIdentityText));
}

link::PeerIdentity read_identity(ByteReader& from) {
  link::PeerIdentity who;
  who.rank = Rank{from.signed_number()};
  who.host = from.text(kMaxIdentityText);
  who.host_id = from.text(kMaxIdentityText);
  who.process = from.number<std::uint64_t>();
  who.pid = from.signed_number();
  who.address = from.text(kMaxIdentityText);
  who.local_address = from.text(kMaxIdentityText);
  return who;
}

void write(ByteWriter& into, const Record& record) {
  into.text(cut(record.version, kMaxIdentityText));
  into.signed_number(record.world.value);
  write(into, record.self);
  into.text(record.settings);
  into.number(static_cast<std::uint8_t>(record.lives_with_root ? 1 : 0));
  into.signed_number(record.roots);
  into.number(record.roots_digest);
  into.text(cut(record.failure, kMaxNoticeText));
  into.text(cut(record.upstream, kMaxIdentityText));
}

struct Encoder {
  ByteWriter out;

  void kind(Kind value) { out.number(static_cast<std::uint8_t>(value)); }
  void operator()(const Record& record) {
    kind(Kind::record);
    write(out, record);
  }
  void operator()(const Records& records) {
    kind(Kind::records);
    out.text(cut(records.address, kMaxIdentityText));
    out.number(static_cast<std::uint32_t>(records.records.size()));
    for (const Record& record : records.records) write(out, record);
  }
  void operator()(const Table& table) {
    kind(Kind::table);
    out.number(static_cast<std::uint32_t>(table.peers.size()));
    for (const link::PeerIdentity& peer : table.peers) write(out, peer);
    out.text(table.settings);
    out.signed_number(table.root_rank);
  }
  void operator()(const Notice& notice) {
    kind(Kind::notice);
    out.number(static_cast<std::uint32_t>(notice.code));
    out.signed_number(notice.culprit);
    out.text(cut(notice.text, kMaxNoticeText));
  }
  void operator()(const GaveUp& gave_up) {
    kind(Kind::gave_up);
    out.number(gave_up.waited_ms);
  }
  void operator()(const Abort&) { kind(Kind::abort); }
  void operator()(const Bye&) { kind(Kind::bye); }
};

std::optional<Record> read_record(ByteReader& from) {
  Record record;
  record.version = from.text(kMaxIdentityText);
  record.world = World{from.signed_number()};
  record.self = read_identity(from);
  record.settings = from.text(kMaxSettings);
  const auto lives_with_root = from.number<std::uint8_t>();
  record.lives_with_root = lives_with_root == 1;
  record.roots = from.signed_number();
  record.roots_digest = from.number<std::uint64_t>();
  record.failure = from.text(kMaxNoticeText);
  record.upstream = from.text(kMaxIdentityText);
  if (lives_with_root > 1 || record.roots < 1) return std::nullopt;
  return record;
}

std::optional<Records> read_records(ByteReader& from) {
  Records records;
  records.address = from.text(kMaxIdentityText);
  const auto count = from.number<std::uint32_t>();
  if (count > kMaxRecords) return std::nullopt;
  for (std::uint32_t i = 0; i < count && !from.failed(); ++i) {
    std::optional<Record> record = read_record(from);
    if (!record) return std::nullopt;
    records.records.push_back(*std::move(record));
  }
  return records;
}

std::optional<Table> read_table(ByteReader& from) {
  Table table;
  const auto world = from.number<std::uint32_t>();
  if (world == 0 || world > static_cast<std::uint32_t>(kMaxWorld)) return std::nullopt;
  for (std::uint32_t r = 0; r < world && !from.failed(); ++r) {
    table.peers.push_back(read_identity(from));
    if (table.peers.back().rank != Rank{static_cast<std::int32_t>(r)}) return std::nullopt;
  }
  table.settings = from.text(kMaxSettings);
  table.root_rank = from.signed_number();
  if (table.root_rank < -1 || table.root_rank >= static_cast<std::int32_t>(world)) return std::nullopt;
  return table;
}

std::optional<Code> code_from(std::uint32_t value) {
  constexpr Code kAll[] = {Code::system_error,  Code::internal_error, Code::invalid_argument,
                           Code::invalid_usage, Code::remote_error,   Code::timeout};
  for (const Code code : kAll)
    if (static_cast<std::uint32_t>(code) == value) return code;
  return std::nullopt;
}

std::optional<Notice> read_notice(ByteReader& from) {
  Notice notice;
  const std::optional<Code> code = code_from(from.number<std::uint32_t>());
  if (!code) return std::nullopt;
  notice.code = *code;
  notice.culprit = from.signed_number();
  notice.text = from.text(kMaxNoticeText);
  if (notice.culprit < -1) return std::nullopt;
  return notice;
}

std::optional<Message> read_message(ByteReader& from) {
  switch (static_cast<Kind>(from.number<std::uint8_t>())) {
    case Kind::record: return read_record(from);
    case Kind::table: return read_table(from);
    case Kind::notice: return read_notice(from);
    case Kind::gave_up: return GaveUp{from.number<std::uint64_t>()};
    case Kind::abort: return Abort{};
    case Kind::bye: return Bye{};
    case Kind::records: return read_records(from);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::byte> encode(const Message& message) {
  Encoder encoder;
  std::visit(encoder, message);
  return encoder.out.take();
}

Result<Message> decode(std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  std::optional<Message> message = read_message(from);
  if (!message || !from.finished()) return fail(Code::internal_error, "malformed bootstrap message of {} bytes", bytes.size());
  return *std::move(message);
}

std::string describe(const link::PeerIdentity& who) {
  return fmt::format("rank {} ({}, pid {})", who.rank.value, who.host, who.pid);
}

}  // namespace shoal::comm
