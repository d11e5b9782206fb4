#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What shoal-train refuses, and that it does so in one line that names option and value. Usage: cli_test.sh PROGRAM
program=$1
failures=0

complain() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

# refuses CODE TEXT arguments...: exit code CODE, exactly one line on stderr, TEXT in it.
refuses() {
  code=$1 text=$2
  shift 2
  error=$("$program" "$@" 2>&1 >/dev/null)
  got=$?
  [ "$got" -eq "$code" ] || complain "shoal-train $*: exit code $got, expected $code"
  [ "$(printf '%s\n' "$error" | wc -l)" -eq 1 ] || complain "shoal-train $*: not one line: $error"
  case $error in
    *"$text"*) ;;
    *) complain "shoal-train $*: '$error' lacks '$text'" ;;
  esac
}

refuses 2 "no subcommand"
refuses 2 "nonsense" nonsense
refuses 2 "--frobnicate" data --frobnicate
refuses 2 "--model: rnn" data --model rnn
refuses 2 "--epochs: 0 " data --epochs 0
refuses 2 "--batch: 1.5 " data --batch 1.5
refuses 2 "--lr: nan " data --lr nan
refuses 2 "--lr: -1 " data --lr -1
refuses 2 "--momentum: 1 " data --momentum 1
refuses 2 "--weight-decay: x " data --weight-decay x
refuses 2 "--seed: -1 " data --seed -1
refuses 2 "--limit: 60001 " data --limit 60001
refuses 2 "--target-accuracy: 101 " data --target-accuracy 101
refuses 2 "--bucket-mb: 0 " data --bucket-mb 0
refuses 2 "dataset-fashion-mnist" data --data /nonexistent
refuses 2 "--json: /nonexistent/run.json " data --limit 8 --epochs 1 --json /nonexistent/run.json
refuses 2 "--parameters: 7.5 is not a whole number" plan-memory --parameters 7.5 --gpu-memory 80GB --world 64
refuses 2 "--gpu-memory: 80XB is not a size" plan-memory --parameters 7.5e9 --gpu-memory 80XB --world 64
refuses 2 "--world: 0 is not" plan-memory --parameters 7.5e9 --gpu-memory 80GB --world 0
refuses 2 "--world is required" plan-memory --parameters 7.5e9 --gpu-memory 80GB
refuses 2 "--cluster is required" search
refuses 2 "--cluster: /nonexistent/c.json cannot be read" search --cluster /nonexistent/c.json
refuses 2 "--width 100 does not divide by --heads 3" search --cluster /nonexistent/c.json --width 100 --heads 3
refuses 1 "--lr below 900" data --limit 2000 --epochs 1 --lr 900

refuses 2 "--kind: sgd " delayed --kind sgd
refuses 2 "--delay: only --kind dga knows it, and this is --kind fedavg" delayed --kind fedavg --delay 3
refuses 2 "--no-correction: only --kind dga" delayed --kind diloco --no-correction
refuses 2 "--sync-steps: only --kind local-sgd" delayed --sync-steps 5
refuses 2 "--outer-lr: only --kind diloco" delayed --outer-lr 0.5
refuses 2 "--iterations: only for a stand-in" delayed --iterations 5
refuses 2 "--delay: 200 with --local-steps 2 has 100 rounds" delayed --delay 200 --local-steps 2
refuses 2 "--local-steps: 0 " delayed --local-steps 0
refuses 2 "--limit: 1 samples are too few for 1 ranks: at least 2" delayed --limit 1
refuses 2 "--json: /nonexistent/run.json " delayed --compute-ms 1 --json /nonexistent/run.json

"$program" data --limit 8 --epochs 1 --target-accuracy 100 >/dev/null || [ $? -eq 1 ] || complain "a missed target is exit code 1"
"$program" data --limit 8 --epochs 1 --target-accuracy 100 >/dev/null && complain "a missed target is not a success"
"$program" data --limit 512 --epochs 50 --target-accuracy 20 >/dev/null || complain "a target within reach ends the run with success"
"$program" plan-memory --parameters 7.5e9 --gpu-memory 80GB --world 64 --json | grep -q '"total_bytes": 31406250000' || complain "plan-memory counts ZeRO-1"
"$program" --help | grep -q "shoal-run -n 2 shoal-train data" || complain "--help shows an example"
"$program" data --help | grep -q -- "--first-bucket-mb" || complain "data --help shows the options"

[ "$failures" -eq 0 ] || exit 1
echo "ok"
