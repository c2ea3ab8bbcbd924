# Makes the small project that the everyday commands are tried in, in the current directory.
# Everything in it is the same each time: contents, dates, commit hashes.
set -eu
umask 022
export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.org GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.org
export GIT_AUTHOR_DATE='2026-01-02T03:04:05+0000' GIT_COMMITTER_DATE='2026-01-02T03:04:05+0000'
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
# A hook that runs the tests has told git where its own repository is.
unset $(git rev-parse --local-env-vars)

mkdir -p src tests docs assets/icons lib bin web crate/src .config logs empty
cat > src/main.py <<'PY'
"""The entry point."""
import sys
from util import slugify, total


def main(argv):
    if len(argv) < 2:
        print("usage: main.py WORD...", file=sys.stderr)
        return 2
    for word in argv[1:]:
        print(slugify(word), total(word))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
PY
cat > src/util.py <<'PY'
import re


def slugify(text):
    # Only ASCII for now.
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def total(text):
    return sum(ord(letter) for letter in text)
PY
cat > tests/test_util.py <<'PY'
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "src"))
from util import slugify, total


class Slugs(unittest.TestCase):
    def test_words(self):
        self.assertEqual(slugify("Hello, World"), "hello-world")

    def test_total(self):
        self.assertEqual(total("ab"), 195)

    def test_wrong(self):
        self.assertEqual(slugify("x"), "y", "this one fails")


if __name__ == "__main__":
    unittest.main()
PY
cat > web/index.js <<'JS'
const { greet } = require("./greet");
console.log(greet(process.argv[2] || "world"));
console.error("served", Object.keys({ a: 1, b: 2 }).length);
if (process.argv[3] === "fail") process.exit(3);
JS
cat > web/greet.js <<'JS'
exports.greet = (name) => `hello ${name}`;
JS
cat > web/greet.test.js <<'JS'
const test = require("node:test");
const assert = require("node:assert");
const { greet } = require("./greet");
test("greets", () => assert.strictEqual(greet("a"), "hello a"));
test("does not greet", () => assert.strictEqual(greet("b"), "hello c"));
JS
cat > package.json <<'JSON'
{
  "name": "sample",
  "version": "1.2.3",
  "private": true,
  "scripts": {
    "start": "node web/index.js",
    "lint": "node -e \"console.log('lint: 2 warnings'); process.exit(1)\"",
    "build": "node -e \"console.log('built')\"",
    "test": "node web/greet.test.js"
  },
  "dependencies": {}
}
JSON
cat > crate/Cargo.toml <<'TOML'
[package]
name = "sample"
version = "0.1.0"
edition = "2021"

[workspace]
TOML
cat > crate/src/main.rs <<'RS'
fn main() {
    let unused = 1;
    println!("{}", add(2, 2));
}

fn add(a: i32, b: i32) -> i32 {
    a + b
}

#[cfg(test)]
mod tests {
    #[test]
    fn adds() {
        assert_eq!(super::add(1, 2), 3);
    }
}
RS
cat > Makefile <<'MK'
.PHONY: all clean test fail
all: out.txt
out.txt: data.csv
	sort data.csv > out.txt
	@echo made out.txt
test:
	@echo "testing…"
	@sh bin/check.sh
fail:
	false
clean:
	rm -f out.txt
MK
cat > lib/sum.c <<'C'
#include <stdio.h>
int main(void) {
    int total = 0, n;
    while (scanf("%d", &n) == 1) total += n;
    printf("%d\n", total);
    return 0;
}
C
cat > lib/broken.c <<'C'
#include <stdio.h>
int main(void) {
    int x = "text";
    printf("%d\n", y);
    return 0
}
C
printf '#!/bin/sh\necho ok >&2\nexit 0\n' > bin/check.sh
printf '#!/usr/bin/env python3\nimport sys\nfor i, line in enumerate(sys.stdin):\n    print(i, line.rstrip())\n' > bin/number.py
chmod +x bin/check.sh bin/number.py
{
    echo id,name,price
    for i in $(seq 1 40); do echo "$i,item $((i * 7 % 13)),$((i * 37 % 101)).50"; done
} > data.csv
printf '{"name": "sample", "tags": ["a", "b"], "nested": {"deep": [1, 2, {"x": null}]}, "text": "zażółć \\u2713"}\n' > data.json
for i in $(seq 1 2000); do
    case $((i % 50)) in
        0) level=ERROR ;;
        1 | 2 | 3) level=WARN ;;
        *) level=INFO ;;
    esac
    printf '2026-01-02T03:%02d:%02d %s request %d took %d ms\n' $((i / 60 % 60)) $((i % 60)) $level $i $((i * 13 % 997))
done > logs/app.log
printf 'gr\303\274\303\237e \346\227\245\346\234\254\350\252\236 \360\237\246\200\nsecond line\n' > docs/utf8.txt
printf 'caf\351 cr\350me\n' > docs/latin1.txt
printf 'one\r\ntwo\r\nthree\r\n' > docs/crlf.txt
printf 'no newline at the end' > docs/open.txt
printf 'a\tb\tc\n1\t2\t3\n' > docs/table.tsv
printf '\033[31mred\033[0m and \033[1mbold\033[0m\n' > docs/colour.txt
printf 'page one\n\fpage two\n' > docs/pages.txt
head -c 3000 /dev/zero | tr '\0' 'x' > docs/long.txt && echo >> docs/long.txt
seq 1 400 > docs/numbers.txt
awk 'BEGIN { for (i = 0; i < 4096; i++) printf "%c", (i * 73 + 11) % 256 }' > assets/blob.bin
printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\6\0\0\0' > assets/icons/dot.png
printf '# Sample\n\nA small project.\n\n* one\n* two\n' > README.md
printf 'DB_URL=postgres://localhost/dev\nDEBUG=1\n' > .env
printf 'out.txt\n*.pyc\n__pycache__\ntarget\n' > .gitignore
printf 'set -g mouse on\n' > .config/tool.conf
ln -s ../README.md docs/readme-link
ln -s nowhere docs/dangling
git init -q --template= -b main .
git add -A
git commit -q -m 'First commit'
printf '\ndef shout(text):\n    return text.upper()\n' >> src/util.py
git commit -q -am 'Add shout'
git tag v0.1
git checkout -q -b feature
printf 'feature\n' > docs/feature.md
git add docs/feature.md
git commit -q -m 'Describe the feature

It has a body.'
git checkout -q main
sed -i 's/entry point/way in/' src/main.py
git commit -q -am 'Reword'
printf 'changed\n' >> README.md
printf 'new file\n' > untracked.txt
git rm -q --cached docs/open.txt
# It is copied a thousand times: few files are fast.
git repack -adq
tar -czf assets/docs.tar.gz --mtime='2026-01-02 UTC' --sort=name --owner=0 --group=0 docs/numbers.txt docs/table.tsv
find . -exec touch -h -d '2026-01-02T03:04:05Z' {} +
