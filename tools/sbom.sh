#!/bin/sh
# Write what a running job is made of, with versions, hashes and licences, in CycloneDX's JSON.
set -eu

mkdir -p dist
PYTHONWARNINGS=ignore .venv/bin/cyclonedx-py requirements --output-reproducible --spec-version 1.6 --pyproject pyproject.toml \
    --output-format JSON --output-file dist/sbom.json requirements/runtime.txt
echo dist/sbom.json
