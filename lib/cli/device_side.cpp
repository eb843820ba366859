#include "device_side.hpp"

#include <utility>

#include "clock.hpp"
#include "jobs.hpp"

namespace baton::cli {

Choice DeviceSide::begin(const Exercise& exercise, const Choice& choice) {
  choice_ = choice;
  verdict_ = {};
  checker_.reset();
  trial_.reset();
  Choice chosen;
  world_.together([&] {
    trial_.emplace(communicator_, card_, exercise);
    chosen = trial_->chosen(choice);
  });
  checker_.emplace(world_, exercise, *trial_);
  const auto run = [&] {
    trial_->upload();
    trial_->run(choice_, 1);
    trial_->download();
  };
  for (const Fill fill : checker_->fills()) {
    checker_->check(verdict_, run, checker_->reference(fill));
  }
  return chosen;
}

double DeviceSide::seconds(int calls) {
  return timed(
      world_, [&] { trial_->run(choice_, calls); }, 1);
}

Verdict DeviceSide::end() {
  world_.together([&] { trial_->download(); });
  checker_->recheck(verdict_);
  return verdict_;
}

namespace {

const Card& card_of(const std::vector<Card>& cards, int rank) {
  return cards[static_cast<std::size_t>(rank) % cards.size()];
}

ThreadOptions options_for(const std::vector<Card>& cards, int ranks) {
  ThreadOptions options;
  for (int rank = 0; rank < ranks; ++rank) {
    options.devices.push_back(card_of(cards, rank).device);
  }
  return options;
}

}  // namespace

DeviceThreads::DeviceThreads(const std::vector<Card>& cards, int ranks)
    : crew_(ranks, options_for(cards, ranks)), sides_(static_cast<std::size_t>(ranks)) {
  crew_.run([&](World& world) {
    const Card& card = card_of(cards, world.rank());
    sides_[static_cast<std::size_t>(world.rank())] = std::make_unique<DeviceSide>(
        world, card, StreamCommunicator(world.transport(), card.device, library_options(false)));
  });
}

DeviceThreads::~DeviceThreads() {
  try {
    crew_.run([&](World& world) { sides_[static_cast<std::size_t>(world.rank())].reset(); });
  } catch (...) {
    sides_.clear();  // nobody is left to be told
  }
}

template <class Part>
auto DeviceThreads::on_all(const Part& part) {
  decltype(part(*sides_[0])) first{};
  crew_.run([&](World& world) {
    const auto own = part(*sides_[static_cast<std::size_t>(world.rank())]);
    if (world.rank() == 0) first = own;
  });
  return first;
}

Choice DeviceThreads::begin(const Exercise& exercise, const Choice& choice) {
  return on_all([&](DeviceSide& side) { return side.begin(exercise, choice); });
}
double DeviceThreads::seconds(int calls) {
  return on_all([&](DeviceSide& side) { return side.seconds(calls); });
}
Verdict DeviceThreads::end() {
  return on_all([](DeviceSide& side) { return side.end(); });
}

}  // namespace baton::cli
