#!/usr/bin/env bash
# Install kvlint into an environment of its own: the action's own revision, or the release that KVLINT_VERSION names.
# Output: kvlint, the program.
set -euo pipefail

if [ -n "${KVLINT_VERSION:-}" ]; then
  if [[ ! ${KVLINT_VERSION} =~ ^[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?$ ]]; then
    echo "::error title=kvlint::the input version must be a release such as 0.1.0"
    exit 2
  fi
  source="kvlint-ci==${KVLINT_VERSION}"
else
  source="${GITHUB_ACTION_PATH}"
fi

python=$(command -v python3 || command -v python)
environment="${RUNNER_TEMP}/kvlint-environment"
"${python}" -m venv "${environment}"
programs="${environment}/bin"
if [ -d "${environment}/Scripts" ]; then programs="${environment}/Scripts"; fi
"${programs}/python" -m pip install --quiet --disable-pip-version-check "${source}"
"${programs}/kvlint" --version
echo "kvlint=${programs}/kvlint" >> "${GITHUB_OUTPUT}"
