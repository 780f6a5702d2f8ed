# Counts test cases in ctest's LastTest.log, where each program has closed with Catch2's summary or that of Node's runner. A program that failed
# without counting a failed case (a crash, a time-out, a program that is missing) counts as one failed case. Exits with
# 1 where a case failed or none ran.

# "3 passed" -> 3
function number(text) {
  match(text, /[0-9]+/)
  return substr(text, RSTART, RLENGTH) + 0
}

function end_program() {
  if (!running) return
  if (!ok && case_failed == 0) case_failed = 1
  if (ok && case_passed + case_skipped == 0) case_passed = summary ? 0 : 1 # not a Catch2 program
  case_passed -= returned_early
  case_skipped += returned_early
  passed += case_passed
  failed += case_failed
  skipped += case_skipped
}

/^[0-9]+\/[0-9]+ Testing: / {
  end_program()
  running = 1
  ok = missing = summary = case_passed = case_failed = case_skipped = returned_early = 0
}

/^All tests passed \([0-9]+ assertions? in [0-9]+ test cases?\)/ {
  summary = 1
  sub(/.* in /, "")
  case_passed += number($0)
}

/^test cases: / {
  summary = 1
  n = split($0, column, "|")
  for (i = 2; i <= n; ++i) {
    if (column[i] ~ /passed|failed as expected/) case_passed += number(column[i])
    else if (column[i] ~ /failed/) case_failed += number(column[i])
    else if (column[i] ~ /skipped/) case_skipped += number(column[i])
  }
}

/^No tests ran/ { summary = 1 }

# Node's test runner closes with "# pass 3" and its like.
/^# (pass|fail|skipped) [0-9]+$/ {
  summary = 1
  if ($2 == "pass") case_passed += $3
  if ($2 == "fail") case_failed += $3
  if ($2 == "skipped") case_skipped += $3
}

# tests/skip.h: cases that returned early, which Catch2 took for passed.
/^[0-9]+ skipped$/ { returned_early += number($0) }

/^Command: ""$/ { missing = 1 } # ctest's log says "Test Passed." of a program that is not there

# The second where ctest looks for a text instead of an exit code.
/^Test Passed\.|^Test Pass Reason:/ { ok = !missing }

END {
  end_program()
  printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
  exit failed > 0 || passed == 0
}
