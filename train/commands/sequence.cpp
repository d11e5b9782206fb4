// SPDX-License-Identifier: Apache-2.0
// shoal-train sequence: the options of sequence-parallel training. The loop is text_run.h, the scheme sequence_driver.h.
#include <map>
#include <memory>

#include "train/commands/subcommand.h"
#include "train/commands/text_options.h"
#include "train/commands/validators.h"
#include "train/sequence_driver.h"

namespace shoal::train {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  shoal-run -n 4 shoal-train sequence --kind ring --length 1000 --check\n"
    "  shoal-run -n 4 shoal-train sequence --kind ulysses --check\n"
    "  shoal-run -n 4 shoal-train sequence --kind 2d --columns 2 --layout striped --check\n"
    "\n"
    "A launch environment (shoal-run, torchrun, mpirun, srun) makes the world; without one the run has one rank.";

struct Parsed {
  TextArguments text;
  std::string kind = "ring";
  std::string layout = "zigzag";
  std::size_t columns = 0;
};

// Of 2D attention, unless told: the most ranks that divide ranks and heads and leave the ring as many or more.
std::size_t columns_for(std::size_t world, std::size_t heads) {
  std::size_t best = 1;
  for (std::size_t columns = 2; columns * columns <= world; ++columns)
    if (world % columns == 0 && heads % columns == 0) best = columns;
  return best;
}

std::size_t columns_of(const Parsed& parsed, std::size_t heads, Seat seat) {
  if (parsed.kind == "ring") return 1;
  if (parsed.kind == "ulysses") return seat.world;
  const std::size_t columns = parsed.columns > 0 ? parsed.columns : columns_for(seat.world, heads);
  if (seat.world % columns != 0) throw failure(Exit::usage, "--columns: {} do not divide {} ranks", columns, seat.world);
  return columns;
}

Exit run(const CLI::App& app, const Parsed& parsed, Seat seat) {
  const TextOptions options = finish_text_options(app, parsed.text);
  if (app.count("--columns") > 0 && parsed.kind != "2d")
    throw failure(Exit::usage, "--columns: {} has no choice of them; it is for --kind 2d", parsed.kind);
  if (app.count("--layout") > 0 && parsed.kind == "ulysses")
    throw failure(Exit::usage,
                  "--layout: ulysses attends to all tokens of a head in one place, wherever they were; leave it out");
  static const std::map<std::string, Placing> kPlacings{
      {"contiguous", Placing::contiguous}, {"striped", Placing::striped}, {"zigzag", Placing::zigzag}};
  const SequenceOptions sequence{.columns = columns_of(parsed, options.recipe.shape.heads, seat),
                                 .placing = kPlacings.at(parsed.layout)};
  const std::string scheme = parsed.kind == "ulysses" ? "sequence parallel, ulysses"
                             : parsed.kind == "ring"
                                 ? fmt::format("sequence parallel, ring, {}", parsed.layout)
                                 : fmt::format("sequence parallel, 2d of {} columns, {}", sequence.columns, parsed.layout);
  return run_text(options, scheme, seat, [=](const TextRecipe& recipe, const Communicator& comm) {
    return make_sequence_driver(recipe, comm, sequence);
  });
}

}  // namespace

Subcommand add_sequence(CLI::App& program) {
  auto parsed = std::make_shared<Parsed>();
  CLI::App* app = program.add_subcommand(
      "sequence", "Sequence-parallel training of a transformer on text: every sequence split over the ranks (Ulysses, ring, 2D)");
  app->footer(kFooter);
  add_text_options(*app, parsed->text);
  app->add_option("--kind", parsed->kind, "ulysses: exchange heads for tokens; ring: pass keys and values around; 2d: both")
      ->check(CLI::IsMember({"ulysses", "ring", "2d"}))
      ->capture_default_str();
  app->add_option(
         "--layout", parsed->layout,
         "Who has which tokens: contiguous blocks; striped, dealt out in turn; zigzag, one early and one late chunk each")
      ->check(CLI::IsMember({"contiguous", "striped", "zigzag"}))
      ->capture_default_str();
  app->add_option("--columns", parsed->columns, "Of 2d: ranks that exchange heads; the ring goes over the others")
      ->check(whole(1, 65536));
  return {.app = app, .run = [app, parsed](Seat seat) { return run(*app, *parsed, seat); }};
}

}  // namespace shoal::train
