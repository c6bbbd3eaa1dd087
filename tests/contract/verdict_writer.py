# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON writer of verdicts, detectors/document/verdict_json.cc, and gives the JSON Schema of what it writes.

The functions of that file consist of calls of JsonWriter within `if`, `for` and `switch`; the types behind their arguments are
in detectors/proto/verdict.proto, the words of enumerations in detectors/document/verdict_words.cc. What is not of this form is
an error here, so that the schema cannot silently miss a key.
"""
import re

from contract import read

WRITER = "detectors/document/verdict_json.cc"
WORDS = "detectors/document/verdict_words.cc"
PROTOS = ["detectors/proto/verdict.proto", "detectors/proto/recording.proto"]

STRING, INTEGER, BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
# JSON has no such numbers.
NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
TIME = {"type": ["string", "null"], "format": "date-time"}


class Protos:
    """Message -> field -> (type, words listed in its comment)."""

    def __init__(self):
        self.fields = {}
        for path in PROTOS:
            message = None
            for line in read(path).splitlines():
                if found := re.match(r"message (\w+)", line):
                    message = found[1]
                elif found := re.match(r"\s+(?:repeated |optional )?([\w.]+) (\w+) = \d+;(?:\s*//\s*(.*))?", line):
                    comment = found[3] or ""
                    words = comment.split(" | ") if re.fullmatch(r"\w+( \| \w+)+", comment) else []
                    self.fields.setdefault(message, {})[found[2]] = (found[1], words)

    def of(self, expression, variables):
        """The type and the words of `verdict.attempt().ordinal()`; (None, []) where the expression is no field."""
        found = re.fullmatch(r"(\w+)((?:\.\w+\(\))*)", expression)
        if not found or found[1] not in variables:
            return None, []
        kind, words = variables[found[1]], []
        for name in re.findall(r"\.(\w+)\(\)", found[2]):
            if name not in self.fields.get(kind, {}):
                raise AssertionError(f"{WRITER}: {expression}: message {kind} has no field {name}")
            kind, words = self.fields[kind][name]
        return kind, words


def words_of_enums():
    """(function, enumeration) -> words; the enumeration is None where a function has one only."""
    found = {}
    for function, kind, words in re.findall(r"string_view (\w+)\(proto::([\w:]+) \w+\) \{\s*static constexpr std::string_view kWords\[\] = \{(.*?)\};",
                                            read(WORDS), re.S):
        found[function, kind.rpartition(":")[2]] = list(dict.fromkeys(re.findall(r'"(\w+)"', words)))
    return found


def matching(text, at):
    """The place behind the bracket that closes the one at `at`."""
    pairs, depth = {"(": ")", "{": "}"}, 0
    opening, closing = text[at], pairs[text[at]]
    quoted = None
    for place in range(at, len(text)):
        letter = text[place]
        if quoted:
            quoted = None if letter == quoted and text[place - 1] != "\\" else quoted
        elif letter in "\"'":
            quoted = letter
        elif letter == opening:
            depth += 1
        elif letter == closing:
            depth -= 1
            if depth == 0:
                return place + 1
    raise AssertionError(f"{WRITER}: a bracket is not closed")


def statement(text, at):
    """One statement from `at` on, and the place behind it."""
    while text[at].isspace():
        at += 1
    if text[at] == "{":
        end = matching(text, at)
        return ("block", statements(text[at + 1:end - 1])), end
    if found := re.compile(r"(if|for|switch) \(").match(text, at):
        end = matching(text, found.end() - 1)
        head = " ".join(text[found.end():end - 1].split())
        body, end = statement(text, end)
        other = None
        if found[1] == "if" and (more := re.compile(r"\s*else\b").match(text, end)):
            other, end = statement(text, more.end())
        return (found[1], head, body, other), end
    if found := re.compile(r"case ([\w:]+):").match(text, at):
        return ("case", found[1]), found.end()
    end = text.index(";", at)
    return ("do", " ".join(text[at:end].split())), end + 1


def statements(text):
    found, at = [], 0
    while text[at:].strip():
        one, at = statement(text, at)
        found.append(one)
    return found


class Writer:
    """Turns statements into events: what is opened, closed, named and written, and what of it is there sometimes."""

    def __init__(self):
        self.protos, self.words = Protos(), words_of_enums()
        text = re.sub(r"//.*", "", read(WRITER))
        self.functions = {}
        for found in re.finditer(r"^void (\w+)\(([^)]*)\) \{", text, re.M):
            variables = re.findall(r"const proto::(\w+)& (\w+)", found[2])
            body = text[found.end():matching(text, found.end() - 1) - 1]
            self.functions[found[1]] = ({name: kind for kind, name in variables}, statements(body))

    def function(self, name):
        variables, body = self.functions[name]
        return self.run(body, dict(variables))

    def run(self, body, variables):
        events = []
        for index, part in enumerate(body):
            if part[0] == "block":
                events += self.run(part[1], variables)
            elif part[0] == "if" and part[2] == ("do", "return"):
                return events + [("sometimes",), *self.run(body[index + 1:], variables), ("end",)]
            elif part[0] == "if":
                for branch in filter(None, part[2:4]):
                    events += [("sometimes",), *self.run([branch], variables), ("end",)]
            elif part[0] == "for":
                item, sequence = re.fullmatch(r"const auto&? (\w+) : (.*)", part[1]).groups()
                events += self.run([part[2]], variables | {item: self.protos.of(sequence, variables)[0]})
            elif part[0] == "switch":
                events += self.cases(part[2][1], variables)
            else:
                events += self.call(part[1], variables)
        return events

    def cases(self, body, variables):
        events, case = [("either",)], []
        for part in body:
            if part[0] == "case":
                case = []
            elif part == ("do", "break"):
                if case:
                    events += [("or",), *self.run(case, variables)]
            else:
                case.append(part)
        return events + [("end",)]

    def call(self, text, variables):
        if text in ("continue", "return"):
            return []
        if found := re.fullmatch(r"(Write\w+)\((.*), w\)", text):
            return self.function(found[1])
        found = re.fullmatch(r"w\.(\w+)\((.*)\)", text) or re.fullmatch(r"(JsonWriter|return) w\b.*()", text)
        if not found:
            raise AssertionError(f"{WRITER}: '{text}' is not understood; tests/contract/verdict_writer.py reads this file")
        name, arguments = found[1], found[2]
        if name in ("JsonWriter", "return"):
            return []
        if name in ("Open", "Close"):
            return [(name.lower(), arguments.strip("'"))]
        if name in ("Key", "String"):
            return [("key", arguments.strip('"'))] if name == "Key" else [("value", self.value(name, arguments, variables))]
        key, _, argument = arguments.partition(", ")
        pair = [("key", key.strip('"')), ("value", self.value(name, argument, variables))]
        return [("sometimes",), *pair, ("end",)] if name == "TextIfAny" else pair

    def value(self, name, argument, variables):
        plain = {"Integer": INTEGER, "IntegerOrNull": {"type": ["integer", "null"]}, "Real": NUMBER, "Bool": BOOLEAN, "Time": TIME,
                 "Integers": {"type": "array", "items": INTEGER}, "Texts": {"type": "array", "items": STRING}}
        if argument == "1" and name == "Integer":
            return {"const": 1}
        if name in plain:
            return plain[name]
        if name not in ("Text", "TextOrNull", "TextIfAny"):
            raise AssertionError(f"{WRITER}: w.{name}({argument}) is not understood")
        if found := re.fullmatch(r"(\w*Word)\((.*)\)", argument):
            kind = self.protos.of(found[2], variables)[0].rpartition(".")[2]
            return {"enum": self.words[found[1], kind]}
        words = self.protos.of(argument, variables)[1]
        if words:
            return {"enum": words + ([None] if name == "TextOrNull" else [])}
        return {"type": ["string", "null"]} if name == "TextOrNull" else STRING


class Builder:
    """Events -> JSON Schema."""

    def __init__(self, events):
        self.events, self.at = events, 0

    def next(self):
        self.at += 1
        return self.events[self.at - 1]

    def value(self):
        event = self.next()
        if event[0] == "value":
            return event[1]
        if event == ("open", "{"):
            return self.object()
        assert event == ("open", "["), event
        items, depth = [], 0
        while (event := self.events[self.at]) != ("close", "]") or depth:
            if event[0] in ("sometimes", "end"):
                depth += 1 if event[0] == "sometimes" else -1
                self.at += 1
            else:
                items.append(self.value())
        self.at += 1
        return {"type": "array", "items": either(items)}

    def object(self):
        variants, certain, depth, within = [({}, [])], True, 0, False
        while (event := self.next()) != ("close", "}"):
            if event[0] == "sometimes":
                depth += 1
            elif event[0] == "either":
                variants, within = [], True
            elif event[0] == "or":
                variants.append(({}, []))
            elif event[0] == "end":
                depth, within = (depth, False) if within else (depth - 1, within)
            else:
                certain = depth == 0
                properties, required = variants[-1]
                known = [properties[event[1]]] if event[1] in properties else []
                properties[event[1]] = either(known + [self.value()])
                required += [event[1]] if certain else []
        return either([{"type": "object", "properties": properties, "required": required} for properties, required in variants])


def either(schemas):
    if len(schemas) == 1:
        return schemas[0]
    flat = []
    for schema in schemas:
        flat += [one for one in (schema["anyOf"] if set(schema) == {"anyOf"} else [schema]) if one not in flat]
    return {"anyOf": flat}


def verdict():
    return Builder(Writer().function("WriteVerdict")).value()
