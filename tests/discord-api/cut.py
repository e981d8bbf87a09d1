"""Cuts Discord's OpenAPI document down to the bodies of the requests that the bot makes: standard input to standard output."""

import json
import sys

USED = [
    ("put", "/applications/{application_id}/commands"),
    ("post", "/channels/{channel_id}/messages"),
    ("patch", "/channels/{channel_id}/messages/{message_id}"),
    ("post", "/interactions/{interaction_id}/{interaction_token}/callback"),
    ("post", "/users/@me/channels"),
    ("post", "/webhooks/{webhook_id}/{webhook_token}"),
    ("patch", "/webhooks/{webhook_id}/{webhook_token}/messages/@original"),
]


def named(value):
    """The schemas that a value names."""
    if isinstance(value, dict):
        return {value["$ref"]} if "$ref" in value else set().union(*map(named, value.values()))
    return set().union(*map(named, value)) if isinstance(value, list) else set()


def main():
    whole = json.load(sys.stdin)
    paths = {}
    for method, path in USED:
        schema = whole["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
        body = {"content": {"application/json": {"schema": schema}}}
        paths.setdefault(path, {})[method] = {"requestBody": body}
    schemas, left = {}, named(paths)
    while left:
        name = left.pop().removeprefix("#/components/schemas/")
        if name not in schemas:
            schemas[name] = whole["components"]["schemas"][name]
            left |= named(schemas[name])
    cut = {"openapi": whole["openapi"], "info": whole["info"], "paths": paths, "components": {"schemas": schemas}}
    json.dump(cut, sys.stdout, indent=1, sort_keys=True)
    print()


if __name__ == "__main__":
    main()
