#!/bin/sh
# Build, check and tag a release: VERSION=1.2.3 sh tools/release.sh. Nothing is published.
set -eu
. tools/system.sh

[ -n "${VERSION:-}" ] || stop "Say which version: make release VERSION=1.2.3."
[ -z "$(git status --porcelain)" ] || stop "There are changes that are not committed: commit them, or put them aside."
grep -q "^version = \"$VERSION\"$" pyproject.toml || stop "pyproject.toml has another version: set it to $VERSION and commit."
grep -q "^## \[$VERSION\]" CHANGELOG.md || stop "CHANGELOG.md has no section [$VERSION]: write it for users, and commit."
[ -z "$(git tag --list "v$VERSION")" ] || stop "The tag v$VERSION is there already: a release is made once."

${MAKE:-make} check test wheel sbom docs
[ -z "$(git status --porcelain)" ] || stop "Building or testing has changed files: look at git status."
git tag --annotate "v$VERSION" --message "Replica Planner $VERSION"
echo "v$VERSION is tagged; dist has the wheel and what it is made of. Next: git push origin v$VERSION"
