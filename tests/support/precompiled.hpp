// Headers that most tests need, compiled once for all tests of one kind. Every test includes what it
// needs all the same: builds without precompiled headers (-Db_pch=false) check that.

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <sstream>

#include "../../lib/precompiled.hpp"
