"""Holds requests against Discord's own OpenAPI document.

As a program it reads a JSON object a line, `{"method": …, "path": …, "body": …}`, and writes a line for each thing that is wrong.
"""

import json
import pathlib
import re
import sys

import jsonschema

DOCUMENT = json.loads((pathlib.Path(__file__).parent / "openapi.json").read_text())


def validators():
    """For each request its method, a pattern of its path, and what validates its body."""
    for path, methods in DOCUMENT["paths"].items():
        pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", path))
        for method, request in methods.items():
            schema = request["requestBody"]["content"]["application/json"]["schema"]
            # References are to the whole document.
            whole = {**schema, "components": DOCUMENT["components"]}
            yield method.upper(), pattern, jsonschema.Draft202012Validator(whole)


VALIDATORS = list(validators())


def wrong(method, path, body):
    """What is wrong with a request; `path` is without the version and the query. One without a body has nothing wrong."""
    if body is None:
        return []
    for its, pattern, validator in VALIDATORS:
        if its == method and pattern.fullmatch(path):
            errors = (jsonschema.exceptions.best_match([error]) for error in validator.iter_errors(body))
            return [f"{method} {path}: {error.json_path}: {error.message}" for error in errors]
    return [f"{method} {path}: the document has no such request with a body"]


def main():
    for line in sys.stdin:
        request = json.loads(line)
        for error in wrong(request["method"], request["path"], request["body"]):
            print(error)


if __name__ == "__main__":
    main()
