#!/usr/bin/env bash
# Run the check once, with its report in the log, annotations, the job's summary and every file that was asked for.
# Outputs: findings, errors, warnings, notes, unchecked, exit-code, sarif-file.
set -euo pipefail

counts="${RUNNER_TEMP}/kvlint-report.json"
sarif="${KVLINT_SARIF:-}"
if [[ ${sarif} == *$'\n'* ]]; then
  echo "::error title=kvlint::the input sarif-file must be one line"
  exit 2
fi

options=(--format full --format github --format "json=${counts}" --format "markdown=${GITHUB_STEP_SUMMARY}")
if [ -n "${KVLINT_CONFIG:-}" ]; then options+=(--config "${KVLINT_CONFIG}"); fi
if [ -n "${KVLINT_FAIL_ON:-}" ]; then options+=(--fail-on "${KVLINT_FAIL_ON}"); fi
if [ -n "${sarif}" ]; then options+=(--format "sarif=${sarif}"); fi
if [[ ${KVLINT_NEW_ONLY:-false} == true && -n ${BASE:-} ]]; then options+=(--since "${BASE}"); fi
while IFS= read -r format; do
  if [ -n "${format}" ]; then options+=(--format "${format}"); fi
done <<< "${KVLINT_FORMATS:-}"

paths=()
while IFS= read -r path; do
  if [ -n "${path}" ]; then paths+=("${path}"); fi
done <<< "${KVLINT_PATHS:-}"
if [ "${#paths[@]}" -eq 0 ]; then paths=(.); fi

rm -f -- "${counts}"
status=0
"${KVLINT}" check "${options[@]}" -- "${paths[@]}" || status=$?

echo "exit-code=${status}" >> "${GITHUB_OUTPUT}"
if [ -f "${counts}" ]; then
  "$(dirname -- "${KVLINT}")/python" -I "$(dirname -- "$0")/counts.py" "${counts}" >> "${GITHUB_OUTPUT}"
fi
if [[ -n ${sarif} && -f ${sarif} ]]; then echo "sarif-file=${sarif}" >> "${GITHUB_OUTPUT}"; fi

if [[ ${FLOOR:-} == broken && ${status} -eq 0 && ${KVLINT_FAIL_ON:-} != never ]]; then
  echo "::error title=kvlint floor::capacity falls below a floor of kvlint.toml; the job's summary says which"
  status=1
fi
exit "${status}"
