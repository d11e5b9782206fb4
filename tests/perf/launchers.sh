#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# shoal-perf under other launchers: Open MPI, MPICH, and torchrun's variables set by hand. launchers.sh SHOAL_PERF; 77: none is installed.
set -uo pipefail
perf=$1
run=0

right() {  # name, output
  if ! grep -q "Out of bounds values : 0 OK" <<< "$2" || [[ $(grep -c "Rank  *[012] " <<< "$2") != 3 ]]; then
    printf '%s\n%s: three ranks and right sums were expected\n' "$2" "$1"
    exit 1
  fi
  run=$((run + 1))
}

arguments=(all_reduce -b 8 -e 256K -f 32 -n 2 -w 1)
if command -v mpirun.openmpi > /dev/null; then
  right openmpi "$(timeout 60 mpirun.openmpi --allow-run-as-root --oversubscribe -n 3 "$perf" "${arguments[@]}" 2>&1)"
fi
if command -v mpirun.mpich > /dev/null; then
  right mpich "$(timeout 60 mpirun.mpich -n 3 "$perf" "${arguments[@]}" 2>&1)"
fi
(( run > 0 )) || exit 77

port=$((20000 + $$ % 20000))
for rank in 2 1 0; do
  RANK=$rank WORLD_SIZE=3 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
    timeout 60 "$perf" "${arguments[@]}" > "launchers.$rank.log" 2>&1 &
done
wait
right torchrun "$(cat launchers.0.log)"
