"""Mutants of a C++ source: small changes of its code, each of which a test should notice.

`mutants(text)` returns them. Comments, strings, preprocessor lines, assertions and what follows
`template` stay as they are. The sources must be formatted by clang-format: a `<` between spaces is a
comparison, another one a bracket.
"""

import re
from typing import NamedTuple


class Mutant(NamedTuple):
    kind: str
    begin: int  # of the characters that `text` replaces
    end: int
    text: str

    def apply(self, source):
        return source[:self.begin] + self.text + source[self.end:]


class Token(NamedTuple):
    kind: str  # 'word', 'number', 'sign'
    text: str
    begin: int
    end: int


SKIPPED = r"""
    //[^\n]* | /\*.*?\*/                                # comments
  | ^[ \t]*\#(?:\\\n|[^\n])*                            # preprocessor
  | (?:u8|[uUL])?R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"
  | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
  | \b(?:u8|[uUL])?'(?:\\.|[^'\\\n])+' | '(?:\\.|[^'\\\n])+'
  | \[\[.*?\]\]                                         # attributes
"""
TOKEN = re.compile(rf"""(?P<skipped>{SKIPPED})
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\d(?:'?[\w.])*)
  | (?P<sign><<=|>>=|<=>|->\*|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|[^\s\w])
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

# Between spaces only: elsewhere they are brackets, references or prefixes.
BINARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
          "+": "-", "-": "+", "*": "/", "/": "*", "%": "/", "<<": ">>", ">>": "<<",
          "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|="}
KINDS = {"&&": "and-or", "||": "and-or", **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), "comparison")}
WORDS = {"true": "false", "false": "true", "min": "max", "max": "min"}
# What begins no statement that could be removed alone.
KEYWORDS = set("""if else for while do switch case default return goto try catch throw using typedef
    namespace class struct union enum template public private protected static constexpr const auto
    void bool int unsigned static_assert assert friend extern inline virtual explicit operator thread_local
    mutable volatile alignas""".split())


def tokens(source):
    found = []
    for match in TOKEN.finditer(source):
        kind = match.lastgroup
        if match["skipped"] is None and kind is not None:
            found.append(Token(kind, match[0], match.start(), match.end()))
    return found


def closing(code, opening):
    """Index of the bracket that closes the one at `opening`, or None."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    depth, close = 0, pairs[code[opening].text]
    for i in range(opening, len(code)):
        depth += (code[i].text == code[opening].text) - (code[i].text == close)
        if depth == 0:
            return i
    return None


def unspoken(code):
    """Indices of tokens in assertions and template parameters."""
    found = set()
    for i, token in enumerate(code[:-1]):
        if token.text in ("assert", "static_assert") and code[i + 1].text == "(":
            found.update(range(i, (closing(code, i + 1) or i) + 1))
        if token.text in ("template", "requires") and token.kind == "word":
            depth = 0
            for j in range(i + 1, len(code)):
                depth += {"<": 1, ">": -1, ">>": -2}.get(code[j].text, 0)
                found.add(j)
                if depth <= 0:
                    break
    return found


def bodies(code):
    """Whether each token is in a function's body, outside of brackets: in a brace that opens no class
    or namespace."""
    inside, stack, head = [], [(";", False)], []
    for token in code:
        if token.text in (")", "]", "}") and len(stack) > 1:
            stack.pop()
        inside.append(stack[-1] == ("{", True))
        if token.text in ("(", "["):
            stack.append((token.text, stack[-1][1]))
        elif token.text == "{":
            words = {t.text for t in head if t.kind == "word"}
            outer = words & {"class", "struct", "union", "enum", "namespace"}
            stack.append(("{", not outer or any(t.text == "(" for t in head)))
        head = [] if token.text in ("{", "}", ";") else head + [token]
    return inside


def between_spaces(source, token):
    return source[token.begin - 1].isspace() and source[token.end:token.end + 1].isspace()


def replacements(source, code):
    """Operators, constants, min and max."""
    for before, token in zip([Token("sign", ";", 0, 0), *code], code):
        if token.kind == "sign" and token.text in BINARY and between_spaces(source, token):
            if before.text != "operator":
                yield Mutant(KINDS.get(token.text, "arithmetic"), token.begin, token.end, BINARY[token.text])
        elif token.text in ("++", "--"):
            yield Mutant("arithmetic", token.begin, token.end, "--" if token.text == "++" else "++")
        elif token.kind == "number" and re.fullmatch(r"(\d+)([uUlL]*)", token.text):
            digits = token.text.rstrip("uUlL")
            yield Mutant("constant", token.begin, token.end, str(int(digits) + 1) + token.text[len(digits):])
        elif token.kind == "word" and token.text in WORDS:
            kind = "constant" if token.text in ("true", "false") else "min-max"
            yield Mutant(kind, token.begin, token.end, WORDS[token.text])


def conditions(source, code):
    """Negates the conditions of `if`; no turn of `while`."""
    for i, token in enumerate(code[:-1]):
        last = closing(code, i + 1) if token.text in ("if", "while") and code[i + 1].text == "(" else None
        if last is None:
            continue
        begin = code[i + 1].end
        for j in range(i + 2, last):
            if code[j].text == ";":  # an initialiser
                begin = code[j + 1].begin
        condition = source[begin:code[last].begin]
        if token.text == "while":
            yield Mutant("condition", begin, code[last].begin, "false")
        elif not re.fullmatch(r"[^&|]* [!=]= [^&|]*", condition):  # the operator alone does it
            yield Mutant("condition", begin, code[last].begin, f"!({condition})")


def statement_end(code, i):
    """Index of the semicolon that ends the statement that begins at `i`, or None."""
    depth = 0
    for end in range(i, len(code)):
        depth += (code[end].text in ("(", "[", "{")) - (code[end].text in (")", "]", "}"))
        if depth < 0:
            return None
        if depth == 0 and code[end].text == ";":
            return end
    return None


def after_label(code, i):
    """Whether the colon at `i` ends a label of `switch`."""
    for token in reversed(code[:i]):
        if token.text in ("case", "default"):
            return True
        if token.text in (";", "{", "}", "?", ")"):
            return False
    return False


def acts(words):
    """Whether a statement of these tokens is a call, an assignment or a step, not a declaration."""
    if words[0].text in KEYWORDS or not (words[0].kind == "word" or words[0].text in ("++", "--", "*")):
        return False
    head = []
    for token in words:
        if token.text in ("(", "=", "{") or re.fullmatch(r"[-+*/%|&^]=|<<=|>>=", token.text):
            break
        head.append(token)
    names = head[1:] if head and head[0].text == "*" else head
    declares = any(b.kind == "word" and (a.kind == "word" or a.text in ("&", "*", ">"))
                   for a, b in zip(names, names[1:]))
    return not declares and (len(head) < len(words) or any(t.text in ("++", "--") for t in words))


def statements(source, code):
    """Removes calls, assignments, `break` and such; returns the value {}."""
    inside = bodies(code)
    for i in range(1, len(code)):
        before, token = code[i - 1], code[i]
        if not inside[i] or before.text not in (";", "{", "}", ")", "else", ":"):
            continue
        if before.text == ":" and not after_label(code, i - 1):
            continue
        if before.text == ")" and token.text == "*":  # a product, more likely
            continue
        end = statement_end(code, i)
        if end is None or end == i:
            continue
        if token.text == "return" and end > i + 1:
            value = source[code[i + 1].begin:code[end].begin]
            if value not in ("{}", "false", "true", "0", "nullptr"):
                yield Mutant("return", code[i + 1].begin, code[end].begin, "{}")
        elif token.text in ("break", "continue", "throw", "return") or acts(code[i:end]):
            yield Mutant("statement", token.begin, code[end].begin, "")


def mutants(source):
    """All mutants, in the order of the source."""
    code = tokens(source)
    kept = unspoken(code)
    silent = [code[i].begin for i in sorted(kept)]
    code = [token for i, token in enumerate(code) if i not in kept]
    found = {*replacements(source, code), *conditions(source, code), *statements(source, code)}
    return sorted((m for m in found if not any(m.begin <= begin < m.end for begin in silent)),
                  key=lambda m: (m.begin, m.end, m.text))
