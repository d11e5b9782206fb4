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
enum class Kind : std::uint8_t {
  record = 1,
  table = 2,
  notice = 3,
  gave_up = 4,
  abort = 5,
  bye = 6,
  claim = 7,
  placement = 8,
  alarmed = 9,
  inquiry = 10,
  report = 11,
  records = 12
};

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

void write_lengths(ByteWriter& into, const std::vector<std::uint64_t>& lengths) {
  const std::size_t told = lengths.size() <= Report::kMaxLengths ? lengths.size() : 0;
  into.number(static_cast<std::uint32_t>(told));
  for (std::size_t i = 0; i < told; ++i) into.number(lengths[i]);
}

// Of lists that are too long the last entries of calls and the first of transfers.
void write_report(ByteWriter& into, const Report& report) {
  into.number(report.inquiry);
  into.signed_number(report.rank);
  const std::size_t calls = std::min(report.calls.size(), Report::kMaxCalls);
  into.number(static_cast<std::uint32_t>(calls));
  for (std::size_t i = report.calls.size() - calls; i < report.calls.size(); ++i) {
    into.number(report.calls[i].sequence);
    into.text(cut(report.calls[i].call, Report::kMaxCallText));
  }
  into.number(report.finished);
  into.number(static_cast<std::uint8_t>(report.inside ? 1 : 0));
  into.number(report.since_ms);
  into.text(cut(report.doing, Report::kMaxDoing));
  into.signed_number(report.waits_for);
  const std::size_t transfers = std::min(report.transfers.size(), Report::kMaxTransfers);
  into.number(static_cast<std::uint32_t>(transfers));
  for (std::size_t i = 0; i < transfers; ++i) {
    const KnownTransfer& each = report.transfers[i];
    into.signed_number(each.peer);
    into.number(static_cast<std::uint8_t>(each.sending ? 1 : 0));
    into.number(each.sequence);
    into.number(each.bytes);
    into.number(static_cast<std::uint8_t>(each.open ? 1 : 0));
  }
  into.number(report.lengths_of);
  write_lengths(into, report.sends);
  write_lengths(into, report.receives);
}

bool read_bool(ByteReader& from, bool& value) {
  const auto byte = from.number<std::uint8_t>();
  value = byte == 1;
  return byte <= 1;
}

bool read_lengths(ByteReader& from, std::vector<std::uint64_t>& lengths) {
  const auto n = from.number<std::uint32_t>();
  if (n > Report::kMaxLengths) return false;
  for (std::uint32_t i = 0; i < n && !from.failed(); ++i) lengths.push_back(from.number<std::uint64_t>());
  return true;
}

std::optional<Report> read_report(ByteReader& from) {
  Report report;
  report.inquiry = from.number<std::uint32_t>();
  report.rank = from.signed_number();
  const auto calls = from.number<std::uint32_t>();
  if (calls > Report::kMaxCalls) return std::nullopt;
  for (std::uint32_t i = 0; i < calls && !from.failed(); ++i) {
    CalledOnce& each = report.calls.emplace_back();
    each.sequence = from.number<std::uint64_t>();
    each.call = from.text(Report::kMaxCallText);
  }
  report.finished = from.number<std::uint64_t>();
  if (!read_bool(from, report.inside)) return std::nullopt;
  report.since_ms = from.number<std::uint64_t>();
  report.doing = from.text(Report::kMaxDoing);
  report.waits_for = from.signed_number();
  const auto transfers = from.number<std::uint32_t>();
  if (transfers > Report::kMaxTransfers) return std::nullopt;
  for (std::uint32_t i = 0; i < transfers && !from.failed(); ++i) {
    KnownTransfer& each = report.transfers.emplace_back();
    each.peer = from.signed_number();
    if (!read_bool(from, each.sending)) return std::nullopt;
    each.sequence = from.number<std::uint64_t>();
    each.bytes = from.number<std::uint64_t>();
    if (!read_bool(from, each.open)) return std::nullopt;
  }
  report.lengths_of = from.number<std::uint64_t>();
  if (!read_lengths(from, report.sends) || !read_lengths(from, report.receives)) return std::nullopt;
  return report;
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
  into.text(cut(record.view, kMaxView));
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
    for (std::size_t r = 0; r < table.peers.size(); ++r) {
      write(out, table.peers[r]);
      out.text(r < table.views.size() ? cut(table.views[r], kMaxView) : std::string_view());
    }
    out.text(table.settings);
    out.signed_number(table.root_rank);
  }
  void body(const Notice& notice) {
    out.number(static_cast<std::uint32_t>(notice.code));
    out.signed_number(notice.culprit);
    out.text(cut(notice.text, kMaxNoticeText));
  }
  void operator()(const Notice& notice) {
    kind(Kind::notice);
    body(notice);
  }
  void operator()(const GaveUp& gave_up) {
    kind(Kind::gave_up);
    out.number(gave_up.waited_ms);
  }
  void operator()(const Abort&) { kind(Kind::abort); }
  void operator()(const Claim& claim) {
    kind(Kind::claim);
    out.signed_number(claim.rank.value);
    out.number(claim.members);
    out.signed_number(claim.colour);
    out.signed_number(claim.key);
    out.text(cut(claim.root_address, kMaxIdentityText));
  }
  void operator()(const Placement& placement) {
    kind(Kind::placement);
    out.signed_number(placement.rank.value);
    out.signed_number(placement.world.value);
    out.text(cut(placement.root_address, kMaxIdentityText));
    out.raw(placement.nonce.bytes);
  }
  void operator()(const Bye& bye) {
    kind(Kind::bye);
    out.signed_number(bye.rank);
    out.number(bye.finished);
  }
  void operator()(const Alarmed& alarmed) {
    kind(Kind::alarmed);
    out.number(static_cast<std::uint8_t>(alarmed.alarm));
    out.signed_number(alarmed.rank);
    out.number(alarmed.sequence);
    body(alarmed.own);
  }
  void operator()(const Inquiry& inquiry) {
    kind(Kind::inquiry);
    out.number(inquiry.number);
    out.number(inquiry.sequence);
  }
  void operator()(const Report& report) {
    kind(Kind::report);
    write_report(out, report);
  }
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
  record.view = from.text(kMaxView);
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
    table.views.push_back(from.text(kMaxView));
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

std::optional<Alarmed> read_alarmed(ByteReader& from) {
  Alarmed alarmed;
  const auto alarm = from.number<std::uint8_t>();
  if (alarm > static_cast<std::uint8_t>(Alarm::timeout)) return std::nullopt;
  alarmed.alarm = static_cast<Alarm>(alarm);
  alarmed.rank = from.signed_number();
  alarmed.sequence = from.number<std::uint64_t>();
  std::optional<Notice> own = read_notice(from);
  if (!own) return std::nullopt;
  alarmed.own = *std::move(own);
  return alarmed;
}

Bye read_bye(ByteReader& from) {
  Bye bye;
  bye.rank = from.signed_number();
  bye.finished = from.number<std::uint64_t>();
  return bye;
}

Inquiry read_inquiry(ByteReader& from) {
  Inquiry inquiry;
  inquiry.number = from.number<std::uint32_t>();
  inquiry.sequence = from.number<std::uint64_t>();
  return inquiry;
}

std::optional<Claim> read_claim(ByteReader& from) {
  Claim claim;
  claim.rank = Rank{from.signed_number()};
  claim.members = from.number<std::uint64_t>();
  claim.colour = from.signed_number();
  claim.key = from.signed_number();
  claim.root_address = from.text(kMaxIdentityText);
  if (claim.rank.value < 0 || claim.rank.value >= kMaxWorld || claim.colour < -1) return std::nullopt;
  return claim;
}

std::optional<Placement> read_placement(ByteReader& from) {
  Placement placement;
  placement.rank = Rank{from.signed_number()};
  placement.world = World{from.signed_number()};
  placement.root_address = from.text(kMaxIdentityText);
  const std::span<const std::byte> nonce = from.raw(placement.nonce.bytes.size());
  std::ranges::copy(nonce, placement.nonce.bytes.begin());
  const bool none = placement.world.value == 0 && placement.rank.value == -1;
  const bool some =
      placement.world.value <= kMaxWorld && placement.rank.value >= 0 && placement.rank.value < placement.world.value;
  if (!none && !some) return std::nullopt;
  return placement;
}

std::optional<Message> read_message(ByteReader& from) {
  switch (static_cast<Kind>(from.number<std::uint8_t>())) {
    case Kind::record: return read_record(from);
    case Kind::table: return read_table(from);
    case Kind::notice: return read_notice(from);
    case Kind::gave_up: return GaveUp{from.number<std::uint64_t>()};
    case Kind::abort: return Abort{};
    case Kind::claim: return read_claim(from);
    case Kind::placement: return read_placement(from);
    case Kind::bye: return read_bye(from);
    case Kind::alarmed: return read_alarmed(from);
    case Kind::inquiry: return read_inquiry(from);
    case Kind::report: return read_report(from);
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
