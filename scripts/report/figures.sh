#!/bin/sh
# Makes the pictures of terminals and reports in docs/figures from real runs: the demo's taxi trips, and scikit-learn's digits.
# Usage: figures.sh PYTHON TRIPS.csv, from the root of the project.
set -eu

python=$1 trips=$2 work=build/figures
rm -rf "$work"
mkdir -p "$work"
"$python" -c "
from sklearn.datasets import load_digits
load_digits(as_frame=True).frame.astype(int).to_csv('$work/digits.csv', index=False)
"
"$python" -m pipelines run --config pipelines/examples/taxi/taxi.toml --set "data.path=$trips" --root "$work/taxi" >"$work/taxi.json"
"$python" -m pipelines run --data "$work/digits.csv" --label target --set trainer.model=linear --set trainer.train_steps=600 \
  --root "$work/digits" >"$work/digits.json"
for name in taxi digits; do
  "$python" -m pipelines report --root "$work/$name" -o "$work/$name.html" >/dev/null
done
# In the folder with the data, and with the commands on PATH, nothing that is drawn names a path of this machine.
cp "$trips" "$work/taxi.csv"
head -3001 "$trips" >"$work/trips.csv"
here=$PWD
draw() {
  (cd "$work" && PATH="$here/$(dirname "$python"):$PATH" "$here/$python" "$here/scripts/report/terminal.py" "$here/docs/figures/$@")
}
draw plan.svg 'estimator-pipelines plan --data trips.csv --label payment_type' '3000 rows' \
  estimator-pipelines plan --data trips.csv --label payment_type
draw run.svg 'estimator-pipelines run --config taxi.toml' '✓ CsvExampleGen' \
  estimator-pipelines run --config "$here/pipelines/examples/taxi/taxi.toml" --set data.path=taxi.csv --root demo_root
NODE_PATH=.report-check/node_modules node scripts/report/figures.js \
  "$work/taxi.html" 1100 body 886 docs/figures/report.webp \
  "$work/taxi.html" 1100 "#quality .plots" 402 docs/figures/report-quality.webp \
  "$work/digits.html" 1100 "#confusion" 730 docs/figures/report-confusion.webp \
  "$work/digits.html" 390 body 844 docs/figures/report-phone.webp
for file in docs/figures/*.webp; do
  size=$(wc -c <"$file")
  [ "$size" -le 60000 ] || { echo "$file has $size bytes, more than 60,000" >&2; exit 1; }
done
