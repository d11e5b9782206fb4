#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shoal-train zero: what it refuses; that all stages take the same steps, to the last bit with ordered numerics, and send what
# their formulas say; that a run of which one rank is killed goes on from its checkpoint on another number of ranks, to the same
# loss. Usage: zero_test.sh SHOAL-TRAIN SHOAL-RUN TEXT
train=$1 run=$2 text=$3
failures=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

complain() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}

small="--text $text --layers 2 --width 32 --heads 2 --length 24 --log-every 0 --validation 0"

# refuses RANKS TEXT options...: exit code 2, TEXT in what is said.
refuses() {
  ranks=$1 expected=$2
  shift 2
  # shellcheck disable=SC2086
  error=$("$run" -n "$ranks" "$train" zero $small --steps 1 "$@" 2>&1)
  [ $? -eq 2 ] || complain "zero $*: exit code is not 2"
  case $error in
    *"$expected"*) ;;
    *) complain "zero $*: '$error' lacks '$expected'" ;;
  esac
}

refuses 1 "--stage: 4 " --stage 4
refuses 1 "--accumulate: 0 " --accumulate 0
refuses 1 "--clip: 0 " --clip 0
refuses 3 "3 ranks do not divide into --replicate 2 groups" --stage 2 --replicate 2
refuses 2 "--replicate 2: stage 0 has nothing sharded" --replicate 2
refuses 1 "--freeze block2: units are embedding, block0 to block1, head" --freeze head,block2
refuses 1 "--freeze-from 3: --freeze names no unit" --freeze-from 3
refuses 1 "--quantise-weights int8: stage 2" --stage 2 --quantise-weights int8
refuses 1 "--precision bf16: wire formats are for float32" --stage 3 --precision bf16 --quantise-gradients int8
refuses 1 "--check: a quantised run" --stage 3 --quantise-weights int8 --check
refuses 4 "--node 3: the 4 ranks that share a model do not divide into nodes of 3" --stage 3 --node 3
refuses 4 "--node 4: the 2 ranks that share a model do not divide into nodes of 4" --stage 2 --replicate 2 --node 4
refuses 1 "--node: 0 " --node 0
refuses 2 "--secondary: stage 2 holds its weights whole" --stage 2 --node 1 --secondary
refuses 2 "--secondary: say by --node" --stage 3 --secondary
refuses 2 "--secondary: the 2 ranks that share a model are one node of --node 2" --stage 3 --node 2 --secondary
refuses 2 "each of 2 ranks rounds" --precision bf16 --check

# losses FILE: the losses of a record, one a line.
losses() {
  sed -n '/"losses": \[/,/\]/p' "$1" | grep -v '[][]'
}

# formulas ROWS NAME SAID: each line of the table has so many bytes measured as its formula says.
formulas() {
  compared=$(printf '%s\n' "$3" | awk '/^  [a-z ]+ +[0-9]+ +[0-9]+$/ { print ($(NF-1) == $NF ? "equal" : "apart") }' | sort | uniq -c |
    tr -s ' ')
  [ "$compared" = " $1 equal" ] || complain "$2: measured and formula: $3"
}

for precision in fp32 bf16; do
  for stage in 0 1 2 3; do
    # shellcheck disable=SC2086
    said=$(SHOAL_NUMERICS=ordered "$run" -n 3 "$train" zero $small --steps 4 --batch 6 --stage $stage --precision $precision \
      --json "$folder/$precision-$stage.json") || complain "zero --stage $stage --precision $precision fails: $said"
    losses "$folder/$precision-$stage.json" >"$folder/losses-$stage"
    [ -s "$folder/losses-$stage" ] || complain "stage $stage, $precision: no losses"
    cmp -s "$folder/losses-0" "$folder/losses-$stage" || complain "stages 0 and $stage differ in $precision"
    formulas 4 "stage $stage, $precision" "$said"
  done
done

# ZeRO++ on 2 nodes of 2: secondary shards change no bit of stage 3; with quantised collectives the formulas hold, too.
zeropp="--stage 3 --steps 4 --batch 4 --tied --accumulate 2"
# shellcheck disable=SC2086
"$run" -n 4 "$train" zero $small $zeropp --clip 0.5 --json "$folder/plain.json" >"$folder/said" || complain "stage 3 on 4 ranks fails"
# shellcheck disable=SC2086
said=$("$run" -n 4 "$train" zero $small $zeropp --clip 0.5 --node 2 --secondary --json "$folder/secondary.json") ||
  complain "secondary shards fail: $said"
for each in plain secondary; do losses "$folder/$each.json" >"$folder/losses-$each"; done
[ -s "$folder/losses-plain" ] || complain "stage 3 on 4 ranks: no losses"
cmp -s "$folder/losses-plain" "$folder/losses-secondary" || complain "secondary shards change the losses"
formulas 7 "secondary shards" "$said"
# shellcheck disable=SC2086
said=$("$run" -n 4 "$train" zero $small $zeropp --node 2 --secondary --quantise-weights int8 --quantise-gradients int4) ||
  complain "ZeRO++ fails: $said"
formulas 7 "ZeRO++" "$said"

# A rank is killed after the first checkpoint.
longer="--text $text --layers 2 --width 64 --heads 2 --length 32 --validation 0 --log-every 0 --batch 12 --steps 60"
# shellcheck disable=SC2086
"$run" -n 3 "$train" zero $longer --stage 2 --json "$folder/whole.json" || complain "the uninterrupted run fails"
# shellcheck disable=SC2086
"$run" -n 3 "$train" zero $longer --stage 2 --checkpoints "$folder/checkpoints" --checkpoint-every 10 >"$folder/killed" 2>&1 &
launcher=$!
waited=0
while [ ! -d "$folder/checkpoints/step-10" ] && [ $waited -lt 3000 ]; do
  sleep 0.01
  waited=$((waited + 1))
done
victim=$(ps -o pid= --ppid $launcher | sed -n 2p)
if [ -z "$victim" ] || ! kill -KILL "$victim"; then complain "no rank to kill"; fi
wait $launcher && complain "a run of which a rank is killed succeeds"
if [ -d "$folder/checkpoints/step-60" ]; then complain "the run was not killed in time to show anything"; fi
for world in 2 4; do
  cp -r "$folder/checkpoints" "$folder/checkpoints-$world"
  # shellcheck disable=SC2086
  said=$("$run" -n $world "$train" zero $longer --stage 3 --checkpoints "$folder/checkpoints-$world" --resume \
    --json "$folder/resumed-$world.json") || complain "resuming on $world ranks fails"
  case $said in
    *"resumed after step "[1-5]0*) ;;
    *) complain "on $world ranks nothing was resumed: $said" ;;
  esac
  for each in whole resumed-$world; do losses "$folder/$each.json" | tail -1 | tr -d ' ,'; done | tr '\n' ' ' | {
    read -r whole resumed
    echo "loss of the whole run $whole, resumed on $world ranks $resumed"
    awk -v a="$whole" -v b="$resumed" 'BEGIN { d = a - b; exit !(a > 0 && d * d <= 1e-10 * a * a) }'
  } || complain "resumed on $world ranks: another loss"
done

[ "$failures" -eq 0 ] || exit 1
echo "ok"
