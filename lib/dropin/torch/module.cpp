/// The Python module _baton_torch, behind baton_torch.py.

#include <torch/extension.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "baton/options.hpp"
#include "baton/version.hpp"
#include "group.hpp"

namespace py = pybind11;
using baton::pytorch::Group;

PYBIND11_MODULE(_baton_torch, m) {
  m.doc() = "The compiled part of baton_torch";
  py::module_::import("torch.distributed");

  py::class_<Group, c10::intrusive_ptr<Group>, c10d::Backend>(m, "Group")
      .def(py::init([](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                       double seconds, std::string name, const c10::intrusive_ptr<Group>& world,
                       std::vector<int> members, const std::string& suffix) {
             auto options = c10::make_intrusive<Group::Options>(
                 std::move(name), std::chrono::milliseconds(std::llround(seconds * 1000)));
             return c10::make_intrusive<Group>(store, rank, size, std::move(options), world,
                                               std::move(members), suffix);
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"), py::arg("name"),
           py::arg("world"), py::arg("members"), py::arg("suffix"),
           py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("open", &Group::open)
      .def("explain", &Group::explain, py::arg("operation"), py::arg("tensor"), py::arg("root"))
      .def("counts", [](const Group& group) {
        py::dict all;
        for (const auto& [name, count] : group.counts()) {
          py::dict one;
          one["calls"] = count.calls;
          one["bytes"] = count.bytes;
          all[py::str(name)] = std::move(one);
        }
        return all;
      });
}
