# What the scripts of this folder share. Sourced, not run.

set -euo pipefail
unset CDPATH

scripts=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
root=$(dirname -- "$scripts")
name=$(basename -- "$0")

# Open MPI refuses to start as root unless told twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Meson compiles through ccache where that is installed: what has been compiled before, in any folder,
# is not compiled again. Precompiled headers need the first two; neither the language of messages nor
# the folder, whose name is in debug information, makes a difference.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS-pch_defines,time_macros,locale} CCACHE_NOHASHDIR=1

say() { printf '%s: %s\n' "$name" "$*"; }
give_up() {
  printf '%s: %s\n' "$name" "$*" >&2
  exit 2
}

# use_clang: build folders that are configured from now on compile with clang. Meson itself compiles
# through ccache only where no variable names the compiler. A precompiled header names its sources; for
# ccache to serve another clone with it, the names are relative to the build folder, and have no time.
use_clang() {
  local cache=
  ! command -v ccache >/dev/null || cache='ccache '
  export CC="${cache}clang-14"
  export CXX="${cache}clang++-14 -Xclang -fno-pch-timestamp -Xclang -relocatable-pch -isysroot."
}

# configure FOLDER OPTION...: $root/FOLDER is a build folder with these options; nothing happens if
# it was one already.
configure() {
  local folder=$1 build=$root/$1 options="${*:2}" log
  shift
  if [[ -e $build && ! -w $build ]]; then
    give_up "expected to be allowed to write to $build, found it to be $(stat -c %U "$build")'s"
  fi
  if [[ -f $build/build.ninja && -f $build/options && $(<"$build/options") == "$options" ]]; then
    return
  fi
  say "configuring $folder/ ($options)"
  local again=()
  [[ ! -f $build/build.ninja ]] || again=(--reconfigure)
  if ! log=$(meson setup "${again[@]}" "$@" "$build" "$root" 2>&1); then
    printf '%s\n' "$log" >&2
    return 1
  fi
  printf '%s\n' "$options" >"$build/options"
}

# compile FOLDER TARGET...: builds, and shows progress: every step on a terminal, else every tenth part
# and what compilers say. Keeps all of this script's calls in $root/FOLDER/compile.log.
declare -A compiled=()
compile() {
  local folder=$1 line tenth=0 append=() status=0
  local -x NINJA_STATUS='[%f/%t] '
  shift
  if [[ ${CXX-} == *-isysroot. && $root != *[[:space:]]* ]]; then
    # clang makes names relative to a whole path only, and ccache those in lists of dependencies. Where
    # these are not set, such as under a ninja by hand, other clones are not served.
    local -x CCC_OVERRIDE_OPTIONS="# +-isysroot$root/$folder" CCACHE_BASEDIR=$root/$folder
  fi
  [[ ! -v compiled[$folder] ]] || append=(--append)
  compiled[$folder]=true
  say "compiling $folder/"
  ninja -C "$root/$folder" "$@" | tee "${append[@]}" "$root/$folder/compile.log" |
    while IFS= read -r line; do
      if [[ ! $line =~ ^\[([0-9]+)/([0-9]+)\]\  ]]; then
        [[ $line == 'ninja: '* ]] || printf '%s\n' "$line"
      elif [[ -t 1 ]]; then
        printf '\r\e[K%.*s' "$((${COLUMNS:-80} - 1))" "$line"
      elif ((BASH_REMATCH[1] * 10 / BASH_REMATCH[2] > tenth)); then
        tenth=$((BASH_REMATCH[1] * 10 / BASH_REMATCH[2]))
        say "compiled ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
      fi
    done || status=$?
  [[ ! -t 1 ]] || printf '\n'
  return "$status"
}

# The options of the folder that programs are run from. Device code is compiled for one architecture,
# in a third of the time; newer devices translate it when they load it.
main_options=(-Dmpi=enabled -Dmpi_library=openmpi -Dtests=enabled -Ddevice_architectures=80)
