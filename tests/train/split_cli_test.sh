#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What tensor and sequence refuse, naming both numbers, and validations of odd numbers of sequences. Usage: split_cli_test.sh PROGRAM RUNNER TEXT
program=$1 runner=$2 text=$3
failures=0

# refuses RANKS TEXT arguments...: exit code 2 of the run, TEXT on stderr.
refuses() {
  ranks=$1 expected=$2
  shift 2
  error=$("$runner" -n "$ranks" "$program" "$@" --text "$text" --steps 1 2>&1 >/dev/null)
  got=$?
  [ "$got" -eq 2 ] || { echo "FAILED: -n $ranks $*: exit code $got"; failures=$((failures + 1)); }
  case $error in
    *"$expected"*) ;;
    *) echo "FAILED: -n $ranks $*: '$error' lacks '$expected'"; failures=$((failures + 1)) ;;
  esac
}

refuses 4 "6 heads do not divide over 4 ranks of tensor" tensor --width 96 --heads 6
refuses 3 "values of the hidden layer do not divide over 3 ranks" tensor --width 96 --heads 6 --hidden 100
refuses 3 "256 rows of the vocabulary do not divide over 3 ranks" tensor --width 96 --heads 6
refuses 2 "27 rows of a batch (sequences x tokens) do not divide over 2 ranks" tensor --sequence-parallel --batch 3 --length 9
refuses 4 "--columns: 3 do not divide 4 ranks" sequence --kind 2d --columns 3
refuses 2 "--columns: ring" sequence --columns 2
refuses 2 "--layout: ulysses" sequence --kind ulysses --layout striped
refuses 2 "--kind: tree" sequence --kind tree
refuses 2 "a width of 100 does not divide into 3 heads" sequence --width 100 --heads 3

# validation RANKS arguments...: of 21 sequences, a batch of 16 and what is left.
validation() {
  ranks=$1
  shift
  "$runner" -n "$ranks" "$program" "$@" --text "$text" --layers 1 --width 16 --heads 2 --length 33 --batch 6 --steps 2 --log-every 0 \
    --validation 21 | sed -n 's/^ *validation: \([0-9.]*\) nats.*/\1/p'
}
alone=$(validation 1 sequence)
case $alone in
  [1-9]*) ;;
  *) echo "FAILED: the validation of 21 sequences is '$alone'"; failures=$((failures + 1)) ;;
esac
for case in "2 sequence" "2 tensor --sequence-parallel" "3 zero --stage 2" "2 hybrid --dp 2 --micro-batches 1" "2 pipeline --micro-batches 2"; do
  # shellcheck disable=SC2086  # words
  got=$(validation $case)
  [ "$got" = "$alone" ] || { echo "FAILED: $case: a validation of '$got', alone $alone"; failures=$((failures + 1)); }
done
# Fewer than a batch are validated, too.
"$program" tensor --text "$text" --layers 1 --width 16 --heads 2 --length 33 --batch 2 --steps 1 --validation 5 | grep -q "validation: [1-9]" ||
  { echo "FAILED: no validation of 5 sequences"; failures=$((failures + 1)); }

[ "$failures" -eq 0 ] || exit 1
echo "ok"
