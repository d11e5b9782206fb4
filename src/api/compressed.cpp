// SPDX-License-Identifier: Apache-2.0
// Compressed collectives in the C API: argument checks, translation, and the life of handles.
#include <shoal/compress.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "api/arguments.h"
#include "api/errors.h"
#include "api/group.h"
#include "api/handles.h"
#include "api/streams.h"
#include "compress/codecs/codec.h"
#include "compress/compressed_call.h"
#include "compress/tensor_set.h"

struct shoalCompressor {
  std::shared_ptr<shoal::compress::TensorSet> tensors;
};

namespace {

using namespace shoal;
using namespace shoal::api;

// Lives as long as the process: the last use may be in a destructor of the user's static objects.
Handles<shoalCompressor>& handles() {
  static auto* const all = std::make_unique<Handles<shoalCompressor>>("compressor").release();
  return *all;
}

Result<std::shared_ptr<compress::TensorSet>> tensors_of(shoalCompressor_t compressor) {
  Result<std::shared_ptr<shoalCompressor>> found = handles().find(compressor);
  if (!found.is_ok()) return found.status();
  return (*found)->tensors;
}

Status create(shoalCompressor_t* compressor, const char* name, const char* options) {
  if (Status s = require(compressor, "compressor"); !s.is_ok()) return s;
  if (Status s = require(name, "name"); !s.is_ok()) return s;
  Result<std::unique_ptr<compress::TensorSet>> made = compress::TensorSet::create(name, options == nullptr ? "" : options);
  if (!made.is_ok()) return made.status();
  *compressor = handles().add(std::make_shared<shoalCompressor>(shoalCompressor{made.take()}));
  return {};
}

Result<DataType> read_float_type(ncclDataType_t datatype) {
  Result<DataType> type = read_type(datatype);
  if (!type.is_ok()) return type;
  const bool known =
      *type == DataType::float32 || *type == DataType::float16 || *type == DataType::bfloat16 || *type == DataType::float64;
  if (known) return type;
  return fail(Code::invalid_argument, "datatype is {}: float32, float16, bfloat16 and float64 can be compressed", name_of(*type));
}

void tell(const compress::CallReport& from, std::size_t bytes, shoalCompressionReport* to) {
  const std::uint64_t encoded = from.compressor.encoded_bytes;
  *to = {.encodedBytes = encoded,
         .sentBytes = from.traffic.sent.value,
         .receivedBytes = from.traffic.received.value,
         .ratio = encoded == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(encoded),
         .error = from.error,
         .encodeSeconds = from.compressor.encode_s,
         .selected = from.compressor.selected,
         .dense = from.compressor.dense ? 1 : 0};
}

Status all_reduce(const void* input, void* output, std::size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                  shoalCompressor_t compressor, const char* key, std::size_t rows, ncclComm_t comm, cudaStream_t stream,
                  shoalCompressionReport* report) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  Result<std::shared_ptr<compress::TensorSet>> tensors = tensors_of(compressor);
  if (!tensors.is_ok()) return tensors.status();
  const Result<DataType> type = read_float_type(datatype);
  if (!type.is_ok()) return type.status();
  if (op != ncclSum && op != ncclAvg)
    return fail(Code::invalid_argument, "op is {}: compressed all-reduces are ncclSum or ncclAvg", static_cast<int>(op));
  if (Status s = require(key, "key"); !s.is_ok()) return s;
  if (*key == '\0') return fail(Code::invalid_argument, "key is empty: it is the tensor's name");
  if (Status s = check_count("count", count, *type); !s.is_ok()) return s;
  rows = std::max<std::size_t>(rows, 1);
  if (count % rows != 0) return fail(Code::invalid_argument, "rows is {}, which does not divide count, {}", rows, count);
  const Bytes size = size_of({count}, *type);
  if (Status s = check_buffers({input, size}, {output, size}, true); !s.is_ok()) return s;
  Result<std::shared_ptr<device::Stream>> found = find_stream(stream);
  if (!found.is_ok()) return found.status();

  comm::Communicator& communicator = entered->communicator();
  compress::Wish wish{
      .key = key, .shape = {count, rows}, .input = input, .output = output, .type = *type, .average = op == ncclAvg};
  compress::Place place{.world = communicator.world(),
                        .rank = communicator.rank(),
                        .predict = [&communicator](const engine::Call& call) { return communicator.expect(call); }};
  engine::Call call{.collective = plan::Collective::all_reduce,
                    .input = input,
                    .output = output,
                    .count = {count},
                    .type = *type,
                    .op = op == ncclAvg ? ReduceOp::avg : ReduceOp::sum};
  call.variant = compress::variant_of(**tensors, wish);
  std::function<void(const compress::CallReport&)> told;
  if (report != nullptr) told = [report, size](const compress::CallReport& made) { tell(made, size.value, report); };
  call.composition =
      std::make_shared<compress::CompressedCall>(tensors.take(), std::move(wish), std::move(place), std::move(told));
  return submit(Issued{.on = entered.take(), .call = std::move(call), .stream = found.take()});
}

Status save(shoalCompressor_t compressor, void* bytes, std::size_t* size) {
  if (Status s = require(size, "size"); !s.is_ok()) return s;
  Result<std::shared_ptr<compress::TensorSet>> tensors = tensors_of(compressor);
  if (!tensors.is_ok()) return tensors.status();
  const Result<std::vector<std::byte>> state = (*tensors)->save();
  if (!state.is_ok()) return state.status();
  if (bytes != nullptr) {
    if (*size < state->size())
      return fail(Code::invalid_argument, "size is {}, the state has {} bytes: ask for it with bytes NULL", *size, state->size());
    std::copy(state->begin(), state->end(), static_cast<std::byte*>(bytes));
  }
  *size = state->size();
  return {};
}

Status load(shoalCompressor_t compressor, const void* bytes, std::size_t size) {
  if (Status s = require(bytes, "bytes"); !s.is_ok()) return s;
  Result<std::shared_ptr<compress::TensorSet>> tensors = tensors_of(compressor);
  if (!tensors.is_ok()) return tensors.status();
  return (*tensors)->load({static_cast<const std::byte*>(bytes), size});
}

Status reset(shoalCompressor_t compressor, const char* key) {
  Result<std::shared_ptr<compress::TensorSet>> tensors = tensors_of(compressor);
  if (!tensors.is_ok()) return tensors.status();
  if (key != nullptr && *key == '\0') return fail(Code::invalid_argument, "key is empty: NULL means all tensors");
  return (*tensors)->reset(key == nullptr ? "" : key);
}

Status describe(char* text, std::size_t bytes, std::size_t* size) {
  if (bytes > 0)
    if (Status s = require(text, "text"); !s.is_ok()) return s;
  const std::string all = compress::describe_all();
  if (size != nullptr) *size = all.size() + 1;
  if (bytes == 0) return {};
  const std::size_t n = std::min(all.size(), bytes - 1);
  std::copy_n(all.data(), n, text);
  text[n] = '\0';
  return {};
}

Status set_wire_format(ncclComm_t comm, const char* name) {
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  if (name == nullptr || std::string_view(name) == "none") {
    entered->communicator().set_wire_format(nullptr);
    return {};
  }
  const compress::Codec* codec = compress::find_codec(name);
  if (codec == nullptr || !codec->idempotent) {
    std::string known = "none";
    for (const compress::Codec& each : compress::codecs())
      if (each.idempotent) known += ", " + std::string(each.name);
    return fail(Code::invalid_argument, "codec is \"{}\", which {}; wire formats are: {}", name,
                codec == nullptr ? "there is none of" : "does not give the same bytes when it is passed on", known);
  }
  entered->communicator().set_wire_format(codec);
  entered->handle().checked.forget();
  return {};
}

Status get_wire_format(ncclComm_t comm, const char** name) {
  if (Status s = require(name, "codec"); !s.is_ok()) return s;
  Result<Entered> entered = Entered::enter(comm);
  if (!entered.is_ok()) return entered.status();
  const compress::Codec* codec = entered->communicator().wire_format();
  *name = codec == nullptr ? "none" : codec->name.data();  // names are literals
  return {};
}

}  // namespace

extern "C" {

ncclResult_t shoalCompressorCreate(shoalCompressor_t* compressor, const char* name, const char* options) {
  return guarded("shoalCompressorCreate", [&] { return create(compressor, name, options); });
}

ncclResult_t shoalCompressorDestroy(shoalCompressor_t compressor) {
  return guarded("shoalCompressorDestroy", [&] { return handles().remove(compressor).status(); });
}

ncclResult_t shoalCompressorReset(shoalCompressor_t compressor, const char* key) {
  return guarded("shoalCompressorReset", [&] { return reset(compressor, key); });
}

ncclResult_t shoalAllReduceCompressed(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                                      shoalCompressor_t compressor, const char* key, size_t rows, ncclComm_t comm,
                                      cudaStream_t stream, shoalCompressionReport* report) {
  return guarded("shoalAllReduceCompressed", [&] {
    return poison_group(all_reduce(sendbuff, recvbuff, count, datatype, op, compressor, key, rows, comm, stream, report));
  });
}

ncclResult_t shoalCompressorSave(shoalCompressor_t compressor, void* bytes, size_t* size) {
  return guarded("shoalCompressorSave", [&] { return save(compressor, bytes, size); });
}

ncclResult_t shoalCompressorLoad(shoalCompressor_t compressor, const void* bytes, size_t size) {
  return guarded("shoalCompressorLoad", [&] { return load(compressor, bytes, size); });
}

ncclResult_t shoalDescribeCompressors(char* text, size_t bytes, size_t* size) {
  return guarded("shoalDescribeCompressors", [&] { return describe(text, bytes, size); });
}

ncclResult_t shoalCommSetWireFormat(ncclComm_t comm, const char* codec) {
  return guarded("shoalCommSetWireFormat", [&] { return set_wire_format(comm, codec); });
}

ncclResult_t shoalCommGetWireFormat(ncclComm_t comm, const char** codec) {
  return guarded("shoalCommGetWireFormat", [&] { return get_wire_format(comm, codec); });
}

}  // extern "C"
