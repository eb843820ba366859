"""scripts/mutants.py changes code, and nothing else; scripts/mutate tells killed mutants from survivors.

Usage: mutants_test.py SCRIPTS
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SCRIPTS))
from mutants import mutants  # noqa: E402


def changes(source):
    """Kind, old and new text of each mutant."""
    return {(m.kind, source[m.begin:m.end], m.text) for m in mutants(source)}


def body(code):
    """The same of a statement in a function."""
    return changes("void f() {\n  " + code + "\n}\n")


class MutantsTest(unittest.TestCase):
    def test_operators(self):
        self.assertEqual(body("x = a < b && c != d;"), {
            ("comparison", "<", "<="), ("and-or", "&&", "||"), ("comparison", "!=", "=="),
            ("statement", "x = a < b && c != d", "")})
        self.assertEqual(body("n += i - 1;"), {
            ("arithmetic", "+=", "-="), ("arithmetic", "-", "+"), ("constant", "1", "2"),
            ("statement", "n += i - 1", "")})

    def test_brackets_of_templates_and_references(self):
        self.assertEqual(body("std::vector<int> x;"), set())
        self.assertEqual(changes("template <class T>\nvoid f(T&& x, const std::set<T>& y);\n"), set())

    def test_what_is_no_code(self):
        self.assertEqual(changes('#include <a>  // 1 < 2\n#define N \\\n  3\n/* 4 */\n'), set())
        self.assertEqual(body('// 1 < 2'), set())
        self.assertEqual(body('const char* x = "1 < 2 \\" 3";'), set())
        self.assertEqual(body('const char* x = R"(1 < "2)";'), set())
        self.assertEqual(body("assert(n < 2 && true);"), set())
        self.assertEqual(body("[[maybe_unused]] char c = '1';"), set())
        self.assertEqual(body("int x = 1'000;"), set())

    def test_conditions(self):
        self.assertEqual(body("if (ready(x)) go();"), {
            ("condition", "ready(x)", "!(ready(x))"), ("statement", "go()", "")})
        self.assertEqual(body("while (next()) {}"), {("condition", "next()", "false")})
        self.assertEqual(body("if (auto i = g(); i) {}"), {("condition", "i", "!(i)")})

    def test_statements(self):
        self.assertEqual(body("return value;"), {("return", "value", "{}")})
        self.assertEqual(body("return false;"), {("constant", "false", "true")})
        self.assertEqual(body("a.b(c);"), {("statement", "a.b(c)", "")})
        self.assertEqual(body("*a = b;"), {("statement", "*a = b", "")})
        self.assertNotIn("* b", {old for _, old, _ in body("x = int(a) * b;")})
        self.assertEqual(body("for (;;) break;"), {("statement", "break", "")})
        self.assertEqual(body("switch (x) { case A: go(); }"), {("statement", "go()", "")})

    def test_declarations_stay(self):
        for code in ("A& b = c(d);", "A b(c);", "a::B<C> d = e();", "const auto a = b();", "using a::b;"):
            self.assertEqual(body(code), set())
        self.assertEqual(changes("struct A {\n  A(const A&) = delete;\n  int f();\n};\n"), set())

    def test_least_and_largest(self):
        self.assertEqual(body("return std::min(a, b);"), {
            ("min-max", "min", "max"), ("return", "std::min(a, b)", "{}")})

    def test_each_mutant_differs(self):
        source = (SCRIPTS / "../lib/execute/run.cpp").read_text()
        texts = [mutant.apply(source) for mutant in mutants(source)]
        self.assertGreater(len(texts), 100)
        self.assertEqual(len(set(texts) | {source}), len(texts) + 1)


PROJECT = """project('p', 'cpp')
add_languages('cpp')
code = static_library('code', 'lib/room/code.cpp')
test('room/code', executable('code_test', 'code_test.cpp', link_with: code), suite: 'unit')
"""
CODE = """int twice(int n);
int unused(int n);
int twice(int n) {
  return n * 2;
}
int unused(int n) { return n + 1; }
"""


class MutateTest(unittest.TestCase):
    def test_project(self):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "lib/room").mkdir(parents=True)
            (root / "meson.build").write_text(PROJECT)
            (root / "meson_options.txt").write_text("".join(
                f"option('{name}', type: 'feature')\n" for name in ("tests", "transformer")))
            (root / "lib/room/code.cpp").write_text(CODE)
            (root / "code_test.cpp").write_text("int twice(int);\nint main() { return twice(3) != 6; }\n")
            (root / ".gitignore").write_text("/build*/\n")
            subprocess.run(["git", "init", "-q"], cwd=root, check=True)

            def run(*options):
                done = subprocess.run([sys.executable, SCRIPTS / "mutate.py", root, "lib", *options],
                                      capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                return done.stdout.splitlines()

            lines = run("--option=-Dcpp_link_args=")
            self.assertIn("lib/room/code.cpp:4: arithmetic: * -> /: killed by room/code", lines)
            self.assertIn("lib/room/code.cpp:6: constant: 1 -> 2: SURVIVED", lines)
            self.assertEqual([line.split() for line in lines if line.startswith("lib/room ")],
                             [["lib/room", "6", "3", "3", "0"]])
            self.assertEqual((root / "lib/room/code.cpp").read_text(), CODE)
            copy = root / "build-mutate/tree/lib/room/code.cpp"
            self.assertEqual(copy.read_text(), CODE)
            # The second run has nothing to do, and prints the same table.
            self.assertEqual(run("--option=-Dcpp_link_args="), lines[6:])


unittest.main()
