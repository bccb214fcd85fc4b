#!/bin/sh
# All tests, in two runs: the quick ones, then the sweeps and timings that are marked `slow`.
# run_tests.sh PYTHON [what pytest is given]; with a -m of its own there is one run.
python=$1
shift

for argument; do
  [ "$argument" != -m ] || exec "$python" -m pytest "$@"
done

status=5 # pytest's own for "no test was selected", which one of the runs may say
for part in "not slow" slow; do
  "$python" -m pytest -m "$part" "$@"
  result=$?
  case $result in
    5) ;;
    0) [ $status -ne 5 ] || status=0 ;;
    130 | 2) exit $result ;; # interrupted: the person wants no second run
    *) status=$result ;;
  esac
done
exit $status
