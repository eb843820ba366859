# What the launchers of this folder share. Sourced after $root is set, not run.

source "$root/scripts/common.sh"

# launch DRY-RUN RANKS OPTION... -- ARGUMENT...: baton-train on that many ranks, by mpirun with these
# options, or by srun in a job of Slurm if BATON_LAUNCHER says so. With "--dry-run" the command is
# printed, else it replaces this process.
launch() {
  local dry_run=$1 ranks=$2 options=() exported=() variable
  shift 2
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  local command=()
  case ${BATON_LAUNCHER:-mpirun} in
    srun) command=(srun --mpi=pmix -n "$ranks" --cpus-per-task "${SLURM_CPUS_PER_TASK:-1}") ;;  # exports the environment itself
    mpirun)
      for variable in "${!BATON_@}"; do
        [[ $variable == BATON_ROOT || $variable == BATON_LAUNCHER ]] || exported+=(-x "$variable")
      done
      command=(mpirun -n "$ranks" "${options[@]}" "${exported[@]}")
      ;;
    *) give_up "BATON_LAUNCHER: expected mpirun or srun, found '$BATON_LAUNCHER'" ;;
  esac
  command+=("$root/build/baton-train" "$@")
  if [[ $dry_run == --dry-run ]]; then
    printf '%q ' "${command[@]}"
    printf '\n'
    return
  fi
  [[ -x $root/build/baton-train ]] ||
    give_up "expected $root/build/baton-train, found none; build it by: ninja -C build"
  exec "${command[@]}"
}
