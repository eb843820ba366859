/// The description in a checkpoint's header: inputs are its JSON, the tensors are those of a model.

#include "transformer/state/checkpoint.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "target.hpp"
#include "transformer/linear_layers.hpp"
#include "transformer/training/sequential.hpp"

using namespace baton;
using namespace baton::transformer;

namespace {

bool equal(const TrainingPosition& a, const TrainingPosition& b) {
  const auto rate = [](const TrainingPosition& p) {
    const CosineSchedule r = p.rate.value_or(CosineSchedule{});
    return std::tuple(p.rate.has_value(), r.peak, r.least, r.warmup, r.steps);
  };
  return a.step == b.step && a.random.seed == b.random.seed && a.random.stream == b.random.stream &&
         rate(a) == rate(b) && a.notes == b.notes;
}

/// A model of one layer, and its checkpoint without the description.
class Training {
 public:
  Training() {
    model_.add("layer", std::make_unique<Linear<float>>("layer", 2, 2, true, Random{1}));
    replicas_ = std::make_unique<DistributedDataParallel<float>>(model_, alone_);
    adamw_ = std::make_unique<AdamW<float>>(replicas_->params());
    save({});
    std::ifstream stream(saved_, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(stream), {}};
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, content.data(), sizeof bytes);
    auto header = nlohmann::json::parse(content.substr(sizeof bytes, bytes));
    header.erase("__metadata__");
    tensors_ = header.dump().substr(1);
    elements_ = content.substr(sizeof bytes + bytes);
  }
  ~Training() { std::filesystem::remove(saved_); }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  void describe(std::string_view description) const {
    const std::string header = R"({"__metadata__":)" + std::string(description) + "," + tensors_;
    const std::uint64_t bytes = header.size();
    const std::string content =
        std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + header + elements_;
    file_.fill(content.data(), content.size());
  }
  TrainingPosition load_described() { return load(file_.name()); }
  TrainingPosition load_saved() { return load(saved_); }
  void save(const TrainingPosition& position) {
    save_checkpoint(saved_, model_, *replicas_, *adamw_, alone_, position);
  }
  double rate() const { return adamw_->learning_rate(); }

 private:
  TrainingPosition load(const std::string& file) {
    return load_checkpoint(file, model_, *replicas_, *adamw_, alone_);
  }

  const fuzz::InputFile file_;
  const std::string saved_ = std::string(file_.name()) + "-saved";  // another file at each save
  const Mesh alone_;
  Sequential<float> model_;
  std::unique_ptr<DistributedDataParallel<float>> replicas_;
  std::unique_ptr<AdamW<float>> adamw_;
  std::string tensors_, elements_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Training training;
  training.describe(fuzz::text_of(data, size));
  fuzz::accepted([&] {
    const TrainingPosition position = training.load_described();
    const double rate = training.rate();
    if (position.rate) position.rate->at(position.step);
    training.save(position);
    fuzz::require(equal(training.load_saved(), position) && training.rate() == rate,
                  "a checkpoint is read as it was written");
  });
  return 0;
}
