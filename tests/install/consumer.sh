#!/usr/bin/env bash
# Installs into a fresh folder, moves it, and builds and runs consumer.cpp, a program in C and, with
# pkg-config, the program of the transformer against it.
# Usage: consumer.sh pkg-config|cmake BUILD_FOLDER PREFIX LIBDIR TRANSFORMER_CPP GRADIENTS_C COMPILER...
set -euo pipefail
how=$1 build=$2 prefix=$3 libdir=$4 transformer=$5 gradients=$6
shift 6
[[ $1 != *ccache ]] || shift  # CMake takes one word for a compiler
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
meson install -C "$build" --no-rebuild --quiet --destdir "$folder/destination"
installed=$folder/installed
mv "$folder/destination$prefix" "$installed"
cp "$here/consumer.cpp" "$here/CMakeLists.txt" "$gradients" "$folder"
cd "$folder"

case $how in
  pkg-config)  # with no other package in sight: the library's own dependencies are its own affair
    flags=$(PKG_CONFIG_LIBDIR=$installed/$libdir/pkgconfig pkg-config --cflags --libs baton)
    # shellcheck disable=SC2086  # flags are words
    "$@" -std=c++20 -Wall -Wextra -Werror consumer.cpp $flags -o consumer
    found=$(LD_LIBRARY_PATH=$installed/$libdir ./consumer)
    flags=$(PKG_CONFIG_LIBDIR=$installed/$libdir/pkgconfig pkg-config --cflags --libs baton-c)
    # shellcheck disable=SC2086
    "$@" -x c -std=c99 -Wall -Wextra -Werror gradients.c -x none $flags -o c_consumer
    c_found=$(LD_LIBRARY_PATH=$installed/$libdir ./c_consumer)
    if [[ -e $installed/$libdir/pkgconfig/baton-transformer.pc ]]; then
      flags=$(PKG_CONFIG_LIBDIR=$installed/$libdir/pkgconfig pkg-config --cflags --libs baton-transformer)
      # shellcheck disable=SC2086
      "$@" -std=c++20 -Wall -Wextra -Werror "$transformer" $flags -o transformer
      LD_LIBRARY_PATH=$installed/$libdir ./transformer
    fi
    ;;
  cmake)
    CXX=$* cmake -G Ninja -S . -B made -DCMAKE_PREFIX_PATH="$installed" >configured ||
      { cat configured; exit 1; }
    cmake --build made
    found=$(made/consumer)
    c_found=$(made/c_consumer)
    ;;
esac
[[ $found == 10 ]] || { echo "expected the consumer to print 10, found '$found'"; exit 1; }
[[ $c_found == "2.5 10" ]] || { echo "expected the program in C to print 2.5 10, found '$c_found'"; exit 1; }

# The program finds its library wherever both were put.
[[ ! -e $installed/bin/baton ]] || "$installed/bin/baton" --help >/dev/null
# So does the program that trains, and what draws its runs.
if [[ -e $installed/bin/baton-train ]] && /usr/bin/python3 -c 'import matplotlib' 2>/dev/null; then
  "$installed/bin/baton-train" --epochs 2 --json >run-1.json
  "$installed/bin/baton-train" plot split_time run=1 -o run.svg
  [[ -s run.svg ]] || { echo "expected a picture of a run, found none"; exit 1; }
fi
