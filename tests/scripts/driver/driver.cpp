#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {
/// As many as the environment says.
int devices() {
  const char* text = std::getenv("STAND_IN_DEVICES");
  return text == nullptr ? 1 : std::atoi(text);
}
}  // namespace

// Looked up by name: no header declares these.
#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

int cuInit(unsigned) { return devices() < 0 ? 100 : 0; }  // CUDA_ERROR_NO_DEVICE
int cuDriverGetVersion(int* version) { return *version = 13010, 0; }
int cuDeviceGetCount(int* count) { return *count = devices(), 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Stand-in GPU", static_cast<std::size_t>(bytes));
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = std::size_t{24} << 30, 0; }
/// Compute capability 9.0, of the second 12.1.
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? (device == 0 ? 9 : 12) : (device == 0 ? 0 : 1);
  return 0;
}
}
