#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "json.hpp"
#include "measure.hpp"
#include "workload.hpp"

namespace baton::cli {

double gigabytes_per_second(std::int64_t bytes, double seconds);
/// "128K"; "-": 0; "several": negative.
std::string segment_text(std::int64_t bytes);
/// "1.234", "12.34", "1234".
std::string microseconds(double seconds);

/// One line of the table: an algorithm on one exercise, or on all of a job.
struct Row {
  std::string name;  ///< of the job; may be empty
  Collective collective = Collective::all_reduce;
  std::string algorithm;
  std::int64_t segment = 0;  ///< bytes; 0: not cut; -1: several
  std::int64_t bytes = 0, count = 0;
  Datatype type = Datatype::f32;
  OpKind op = OpKind::sum;
  int root = 0, iterations = 0;
  double seconds = 0, bus_seconds = 0;  ///< bus_seconds * busbw = bytes
  std::int64_t checks = 0, wrong = 0;
  double built_in_seconds = -1;  ///< -1: there is none

  Json json() const;
};

/// The row of one algorithm on one exercise.
Row row_of(const std::string& name, const Exercise& exercise, const Measured& measured,
           double built_in_seconds);
/// Adds another exercise of the same job to a row.
void add_to(Row& row, const Row& other);

/// The table that users of nccl-tests know, with the algorithm and the built-in beside.
class Table {
 public:
  /// What the rows to come will have.
  struct Columns {
    std::size_t name = 0;   ///< width of names; 0: none
    bool built_in = false;  ///< built-in's time and ratio
    bool root = false;
  };
  explicit Table(const Columns& columns) : columns_(columns) {}
  std::string head() const;
  std::string line(const Row& row) const;

 private:
  Columns columns_;
};

}  // namespace baton::cli
