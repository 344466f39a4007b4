#!/usr/bin/env bash
# Put the capacity of each server before and after the change into the job's summary.
# A shallow clone lacks the base: it is fetched, and where that fails the summary says so.
# Outputs: base, the commit that was compared with, or nothing; floor, "broken" where a floor of kvlint.toml is.
set -euo pipefail

skip() {
  printf '### Capacity\n\nNot compared: %s.\n\n' "$1" >> "${GITHUB_STEP_SUMMARY}"
  echo "capacity was not compared: $1"
  echo "base=" >> "${GITHUB_OUTPUT}"
  exit 0
}

known() { git rev-parse --quiet --verify "$1^{commit}" 2> /dev/null; }

base="${BASE:-}"
if [[ -z ${base} || ${base} =~ ^0+$ ]]; then skip "this event has no base revision"; fi
if [[ ! ${base} =~ ^[A-Za-z0-9_][A-Za-z0-9_./@^~+-]*$ ]]; then skip "the input base is not the name of a revision"; fi
if ! git rev-parse --git-dir > /dev/null 2>&1; then skip "the workspace is not a git repository"; fi

commit=$(known "${base}" || known "refs/remotes/origin/${base}" || true)
if [ -z "${commit}" ]; then
  if git fetch --quiet --no-tags --depth=1 origin "${base}" 2> /dev/null; then commit=$(known FETCH_HEAD || true); fi
fi
if [ -z "${commit}" ]; then
  skip "the base revision is not in this shallow clone and could not be fetched; set fetch-depth: 0 at actions/checkout"
fi
echo "base=${commit}" >> "${GITHUB_OUTPUT}"

options=()
if [ -n "${KVLINT_CONFIG:-}" ]; then options+=(--config "$(cd "$(dirname -- "${KVLINT_CONFIG}")" && pwd)/$(basename -- "${KVLINT_CONFIG}")"); fi

# The project is the one that the check finds: from the first path upward.
first=$(printf '%s\n' "${KVLINT_PATHS:-}" | sed -n '/./{p;q;}')
if [[ -n ${first} && -d ${first} ]]; then cd -- "${first}"; fi

table="${RUNNER_TEMP}/kvlint-capacity.md"
status=0
"${KVLINT}" diff --format markdown ${options[@]+"${options[@]}"} "${commit}" > "${table}" || status=$?
cat "${table}" >> "${GITHUB_STEP_SUMMARY}"
printf '\n' >> "${GITHUB_STEP_SUMMARY}"
case "${status}" in
  0) ;;
  1) echo "floor=broken" >> "${GITHUB_OUTPUT}" ;;
  *) exit "${status}" ;;
esac
