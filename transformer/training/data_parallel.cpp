#include "data_parallel.hpp"

namespace baton::transformer {

template <class T>
DistributedDataParallel<T>::DistributedDataParallel(Model<T>& model, const Mesh& mesh,
                                                    const ReplicationOptions& options)
    : model_(model),
      mesh_(mesh),
      options_(options),
      params_(model.params()),
      buckets_(params_, mesh, options.bucket_bytes) {}

template <class T>
void DistributedDataParallel<T>::attach(Context& context, bool last) {
  if (!options_.overlap) return;
  context.meanwhile = [this] { buckets_.progress(); };
  if (last) context.completed = [this](const ParamInfo& param) { buckets_.ready(param); };
}

template class DistributedDataParallel<float>;
template class DistributedDataParallel<double>;
template class DistributedDataParallel<bf16>;

}  // namespace baton::transformer
