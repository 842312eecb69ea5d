# Labels of tests: `unit` (GoogleTest and fuzz corpora), `python` (python/tests), `program` (tests/*.sh);
# `torch` and `gpu` if needed; `quick`, run by `./dev test quick`; `nightly`, the long ones that only `./dev
# test nightly` and `all` run.

# unidle_unit_tests(NAME PROGRAM [SHARDS n] [LABELS label...] [NIGHTLY pattern])
#
# A GoogleTest program as one test, or as SHARDS parallel tests: one process for each of thousands of cases would
# cost more than the cases. NIGHTLY: the cases that match it are a separate test.
function(unidle_unit_tests NAME PROGRAM)
  cmake_parse_arguments(ARG "" "SHARDS;NIGHTLY" "LABELS" ${ARGN})
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  set(cases "")
  if(ARG_NIGHTLY)
    set(cases "--gtest_filter=-${ARG_NIGHTLY}")
    add_test(NAME unit.${NAME}.nightly COMMAND ${PROGRAM} --gtest_brief=1 "--gtest_filter=${ARG_NIGHTLY}")
    set_tests_properties(unit.${NAME}.nightly PROPERTIES TIMEOUT 600 LABELS "unit;nightly;${ARG_LABELS}")
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(name unit.${NAME})
    if(ARG_SHARDS GREATER 1)
      set(name unit.${NAME}.${shard})
    endif()
    add_test(NAME ${name} COMMAND ${PROGRAM} --gtest_brief=1 ${cases})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS "unit;${ARG_LABELS}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# unidle_script_labels(TEST NAME LABELS NIGHTLY QUICK): NIGHTLY and QUICK list the tests with these labels.
function(unidle_script_labels TEST NAME LABELS NIGHTLY QUICK)
  if(NAME IN_LIST NIGHTLY)
    list(APPEND LABELS nightly)
  elseif(NAME IN_LIST QUICK)
    list(APPEND LABELS quick)
  endif()
  set_tests_properties(${TEST} PROPERTIES LABELS "${LABELS}")
endfunction()
