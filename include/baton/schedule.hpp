#pragma once
/// A collective is a schedule: all that an algorithm needs to write one.

#include "baton/schedule/algorithm.hpp"
#include "baton/schedule/builder.hpp"
#include "baton/schedule/problem.hpp"
#include "baton/schedule/region.hpp"
#include "baton/schedule/step.hpp"
