#!/usr/bin/env python3
"""Lists the public items of the library crates, and compares the lists with the committed ones.

    scripts/public_api.py check     # exit code 1 and the differences, if an item changed
    scripts/public_api.py update    # writes the lists: crates/NAME/public-api.txt

A change of a list is a change of the API: `CHANGELOG.md` names it. The items come from rustdoc's JSON, which is no stable format, so its version is
checked. The compiler of the workspace writes it if RUSTC_BOOTSTRAP is set, here for rustdoc alone. Public fields, variants, methods and implemented
traits are items as well. Implementations that the compiler derives for every type (`Send`, `From<T> for T`) are left out.
"""

import difflib
import json
import os
import subprocess
import sys
import tempfile

FORMAT = 57
# The interface of rackloom-verbs is that of C: crates/verbs/ibverbs/libibverbs.map lists it.
LEFT_OUT = {"rackloom-cli", "rackloom-bench", "rackloom-fuzz", "rackloom-models", "rackloom-verbs"}
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
WRAPPER = '#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc "$@" -Z unstable-options --output-format json\n'


def joined(parts, between=", "):
    return between.join(parts)


def path_text(path):
    return path["path"].split("::")[-1] + args_text(path.get("args"))


def args_text(args):
    if not args:
        return ""
    if "angle_bracketed" in args:
        inner = args["angle_bracketed"]
        texts = [arg_text(arg) for arg in inner["args"]]
        for constraint in inner["constraints"]:
            binding = constraint["binding"]
            name = constraint["name"]
            if "equality" in binding:
                texts.append(f"{name} = {term_text(binding['equality'])}")
            else:
                texts.append(f"{name}: {bounds_text(binding['constraint'])}")
        return f"<{joined(texts)}>" if texts else ""
    if "parenthesized" in args:
        inner = args["parenthesized"]
        output = f" -> {type_text(inner['output'])}" if inner["output"] else ""
        return f"({joined(map(type_text, inner['inputs']))}){output}"
    return "(..)"


def arg_text(arg):
    if arg == "infer":
        return "_"
    if "lifetime" in arg:
        return arg["lifetime"]
    if "type" in arg:
        return type_text(arg["type"])
    return arg["const"]["expr"]


def term_text(term):
    return type_text(term["type"]) if "type" in term else term["constant"]["expr"]


def bounds_text(bounds):
    return joined(map(bound_text, bounds), " + ")


def bound_text(bound):
    if "trait_bound" in bound:
        inner = bound["trait_bound"]
        modifier = {"none": "", "maybe": "?", "maybe_const": "~const "}[inner["modifier"]]
        return higher_text(inner["generic_params"]) + modifier + path_text(inner["trait"])
    if "outlives" in bound:
        return bound["outlives"]
    return f"use<{joined(str(arg.get('lifetime') or arg.get('param')) for arg in bound['use'])}>"


def higher_text(params):
    return f"for<{joined(param['name'] for param in params)}> " if params else ""


def type_text(kind):
    if kind is None:
        return "()"
    (name, inner), = kind.items()
    if name == "resolved_path":
        return path_text(inner)
    if name in ("generic", "primitive"):
        return inner
    if name == "dyn_trait":
        texts = [higher_text(one["generic_params"]) + path_text(one["trait"]) for one in inner["traits"]]
        return "dyn " + joined(texts + ([inner["lifetime"]] if inner["lifetime"] else []), " + ")
    if name == "function_pointer":
        return higher_text(inner["generic_params"]) + header_text(inner["header"]) + "fn" + signature_text(inner["sig"], False)
    if name == "tuple":
        return f"({joined(map(type_text, inner))}{',' if len(inner) == 1 else ''})"
    if name == "slice":
        return f"[{type_text(inner)}]"
    if name == "array":
        return f"[{type_text(inner['type'])}; {inner['len']}]"
    if name == "impl_trait":
        return f"impl {bounds_text(inner)}"
    if name == "infer":
        return "_"
    if name == "raw_pointer":
        return f"*{'mut' if inner['is_mutable'] else 'const'} {type_text(inner['type'])}"
    if name == "borrowed_ref":
        lifetime = f"{inner['lifetime']} " if inner["lifetime"] else ""
        return f"&{lifetime}{'mut ' if inner['is_mutable'] else ''}{type_text(inner['type'])}"
    if name == "qualified_path":
        own = type_text(inner["self_type"])
        trait = inner["trait"]
        own = f"<{own} as {path_text(trait)}>" if trait and trait["path"] else own
        return f"{own}::{inner['name']}{args_text(inner['args'])}"
    raise SystemExit(f"unknown type in rustdoc's JSON: {name}")


def header_text(header):
    abi = header["abi"]
    texts = [
        "const " if header["is_const"] else "",
        "async " if header["is_async"] else "",
        "unsafe " if header["is_unsafe"] else "",
        "" if abi == "Rust" else f'extern "{abi if isinstance(abi, str) else next(iter(abi))}" ',
    ]
    return "".join(texts)


def signature_text(signature, is_named=True):
    def input_text(name, kind):
        text = type_text(kind)
        short = {"Self": "self", "&Self": "&self", "&mut Self": "&mut self"}
        if name == "self" and text in short:
            return short[text]
        return f"{name}: {text}" if is_named else text

    inputs = joined(input_text(name, kind) for name, kind in signature["inputs"])
    output = f" -> {type_text(signature['output'])}" if signature["output"] else ""
    return f"({inputs}){output}"


def generics_text(generics):
    texts = []
    for param in generics["params"]:
        kind = param["kind"]
        if "lifetime" in kind:
            outlives = kind["lifetime"]["outlives"]
            texts.append(param["name"] + (f": {joined(outlives, ' + ')}" if outlives else ""))
        elif "type" in kind:
            if kind["type"]["is_synthetic"]:
                continue
            bounds = bounds_text(kind["type"]["bounds"])
            texts.append(param["name"] + (f": {bounds}" if bounds else ""))
        else:
            texts.append(f"const {param['name']}: {type_text(kind['const']['type'])}")
    return f"<{joined(texts)}>" if texts else ""


def where_text(generics):
    texts = []
    for predicate in generics["where_predicates"]:
        if "bound_predicate" in predicate:
            inner = predicate["bound_predicate"]
            texts.append(f"{higher_text(inner['generic_params'])}{type_text(inner['type'])}: {bounds_text(inner['bounds'])}")
        elif "lifetime_predicate" in predicate:
            inner = predicate["lifetime_predicate"]
            texts.append(f"{inner['lifetime']}: {joined(inner['outlives'], ' + ')}")
        else:
            inner = predicate["eq_predicate"]
            texts.append(f"{type_text(inner['lhs'])} = {term_text(inner['rhs'])}")
    return f" where {joined(texts)}" if texts else ""


class Listing:
    """Lines of one crate."""

    def __init__(self, crate):
        self.index = crate["index"]
        self.lines = set()
        self.seen = set()
        root = self.item(crate["root"])
        self.module(root, root["name"])

    def item(self, number):
        return self.index.get(str(number))

    def module(self, item, path):
        if (item["id"], path) in self.seen:
            return
        self.seen.add((item["id"], path))
        for number in item["inner"]["module"]["items"]:
            child = self.item(number)
            if child is not None and child["visibility"] == "public":
                self.show(child, path)

    def show(self, item, path):
        (kind, inner), = item["inner"].items()
        if kind == "use":
            target = self.item(inner["id"]) if inner["id"] is not None else None
            if target is None or target["crate_id"] != 0:
                self.lines.add(f"{path}: pub use {inner['source']}{'::*' if inner['is_glob'] else ''} as {inner['name']}")
            elif inner["is_glob"]:
                self.glob(target, path)
            else:
                self.define(target, f"{path}::{inner['name']}")
            return
        self.define(item, f"{path}::{item['name']}")

    def glob(self, target, path):
        (kind, inner), = target["inner"].items()
        if kind == "module":
            self.module(target, path)
        elif kind == "enum":
            for number in inner["variants"]:
                self.variant(self.item(number), path)

    def define(self, item, path):
        (kind, inner), = item["inner"].items()
        if kind == "module":
            self.lines.add(f"mod {path}")
            self.module(item, path)
        elif kind == "function":
            self.function(item, path)
        elif kind in ("struct", "union"):
            self.attributes(item, f"{kind} {path}{generics_text(inner['generics'])}{where_text(inner['generics'])}")
            self.fields(inner["kind"] if kind == "struct" else {"plain": inner}, path)
            self.implementations(inner["impls"], path)
        elif kind == "enum":
            self.attributes(item, f"enum {path}{generics_text(inner['generics'])}{where_text(inner['generics'])}")
            for number in inner["variants"]:
                self.variant(self.item(number), path)
            self.implementations(inner["impls"], path)
        elif kind == "trait":
            bounds = bounds_text(inner["bounds"])
            unsafe = "unsafe " if inner["is_unsafe"] else ""
            self.lines.add(f"{unsafe}trait {path}{generics_text(inner['generics'])}{': ' + bounds if bounds else ''}{where_text(inner['generics'])}")
            for number in inner["items"]:
                if self.item(number) is not None:
                    self.define(self.item(number), f"{path}::{self.item(number)['name']}")
        elif kind == "type_alias":
            self.lines.add(f"type {path}{generics_text(inner['generics'])} = {type_text(inner['type'])}")
        elif kind == "assoc_type":
            bounds = bounds_text(inner["bounds"])
            self.lines.add(f"type {path}{': ' + bounds if bounds else ''}{' = ' + type_text(inner['type']) if inner['type'] else ''}")
        elif kind in ("constant", "assoc_const"):
            self.lines.add(f"const {path}: {type_text(inner['type'])}")
        elif kind == "static":
            self.lines.add(f"static {path}: {type_text(inner['type'])}")
        elif kind in ("macro", "proc_macro"):
            self.lines.add(f"macro {path}")
        elif kind not in ("impl", "extern_crate", "primitive"):
            raise SystemExit(f"unknown item in rustdoc's JSON: {kind}")

    def attributes(self, item, text):
        marks = [attribute for attribute in item["attrs"] if attribute == "non_exhaustive"]
        self.lines.add("#[non_exhaustive] " + text if marks else text)

    def function(self, item, path):
        inner = item["inner"]["function"]
        generics = inner["generics"]
        text = f"{header_text(inner['header'])}fn {path}{generics_text(generics)}{signature_text(inner['sig'])}{where_text(generics)}"
        self.lines.add(text)

    def fields(self, kind, path):
        if kind == "unit":
            return
        if "tuple" in kind:
            for place, number in enumerate(kind["tuple"]):
                self.field(self.item(number) if number is not None else None, f"{path}::{place}")
            return
        for number in kind["plain"]["fields"]:
            field = self.item(number)
            self.field(field, f"{path}::{field['name']}" if field else path)

    def field(self, field, path):
        if field is not None and field["visibility"] in ("public", "default"):
            if field["visibility"] == "public" or self.in_variant:
                self.lines.add(f"field {path}: {type_text(field['inner']['struct_field'])}")

    in_variant = False

    def variant(self, item, path):
        if item is None:
            return
        path = f"{path}::{item['name']}"
        self.lines.add(f"variant {path}")
        kind = item["inner"]["variant"]["kind"]
        if kind != "plain":
            self.in_variant = True
            self.fields(kind if "tuple" in kind else {"plain": kind["struct"]}, path)
            self.in_variant = False

    def implementations(self, numbers, path):
        for number in numbers:
            item = self.item(number)
            if item is None:
                continue
            inner = item["inner"]["impl"]
            if inner["is_synthetic"] or inner["blanket_impl"] is not None:
                continue
            generics = inner["generics"]
            if inner["trait"] is not None:
                trait = path_text(inner["trait"])
                # Traits of the compiler and of other crates' macros that no caller names.
                if trait not in ("StructuralPartialEq",):
                    target = type_text(inner["for"])
                    self.lines.add(f"impl {path}: {generics_text(generics)}{trait} for {target}{where_text(generics)}")
                continue
            for member in inner["items"]:
                member = self.item(member)
                if member is not None and member["visibility"] == "public":
                    self.define(member, f"{path}::{member['name']}")


def packages():
    text = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout
    metadata = json.loads(text)
    found = []
    for package in metadata["packages"]:
        library = [target for target in package["targets"] if "lib" in target["kind"]]
        if library and package["name"] not in LEFT_OUT:
            folder = os.path.dirname(package["manifest_path"])
            found.append((package["name"], library[0]["name"].replace("-", "_"), folder))
    return metadata["target_directory"], sorted(found)


def listing(file):
    with open(file, encoding="utf-8") as opened:
        crate = json.load(opened)
    if crate["format_version"] != FORMAT:
        raise SystemExit(
            f"rustdoc writes version {crate['format_version']} of its JSON, and this script reads {FORMAT}; "
            "hint: compare the two versions of the format, and change FORMAT in scripts/public_api.py"
        )
    return [line + "\n" for line in sorted(Listing(crate).lines)]


def main():
    if sys.argv[1:] not in (["check"], ["update"]):
        raise SystemExit("usage: scripts/public_api.py check|update")
    target, found = packages()
    with tempfile.TemporaryDirectory() as folder:
        wrapper = os.path.join(folder, "rustdoc.sh")
        with open(wrapper, "w", encoding="utf-8") as opened:
            opened.write(WRAPPER)
        os.chmod(wrapper, 0o755)
        # The whole workspace, so that dependencies have the features that they have elsewhere and are not built again.
        subprocess.run(
            ["cargo", "doc", "--workspace", "--no-deps", "--lib", "--locked", "--quiet"],
            cwd=ROOT, check=True, env={**os.environ, "RUSTDOC": wrapper},
        )
    differs = False
    for name, library, folder in found:
        lines = listing(os.path.join(target, "doc", f"{library}.json"))
        file = os.path.join(folder, "public-api.txt")
        if sys.argv[1] == "update":
            with open(file, "w", encoding="utf-8") as opened:
                opened.writelines(lines)
            print(f"{name}: {len(lines)} items")
            continue
        committed = []
        if os.path.exists(file):
            with open(file, encoding="utf-8") as opened:
                committed = opened.readlines()
        changes = [
            line for line in difflib.unified_diff(committed, lines, "committed", "source", n=0)
            if line[0] in "+-" and not line.startswith(("+++", "---"))
        ]
        if changes:
            differs = True
            print(f"{name}: the public API differs from crates/{os.path.basename(folder)}/public-api.txt")
            sys.stdout.writelines(f"    {line}" for line in changes)
    if differs:
        print("hint: name the change in CHANGELOG.md, and run scripts/public_api.py update")
        sys.exit(1)


main()
