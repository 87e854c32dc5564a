"""A state of about 3 MB, made up the same way each time: customers with orders, and tools on them."""

from __future__ import annotations

import random
from typing import Any

_WORDS = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbor",
    "indigo",
    "juniper",
    "kelp",
    "lumen",
    "maple",
    "nectar",
    "onyx",
    "pearl",
]


def state(customers: int = 500, orders: int = 1_000, articles: int = 3_800) -> dict[str, Any]:
    """The whole state; about 3 MB as JSON."""
    draw = random.Random(7)

    def words(n: int) -> str:
        return " ".join(draw.choices(_WORDS, k=n))

    return {
        "customers": {
            f"C{n}": {
                "name": words(2),
                "email": f"c{n}@example.org",
                "address": {
                    "street": words(2),
                    "city": words(1),
                    "postcode": str(draw.randrange(10_000, 99_999)),
                },
                "orders": [f"W{(n * 2 + k) % orders}" for k in range(2)],
            }
            for n in range(customers)
        },
        "orders": {
            f"W{n}": {
                "status": draw.choice(["pending", "shipped", "delivered"]),
                "total": draw.randrange(100, 90_000) / 100,
                "refunded": 0,
                "notes": [],
                "lines": [
                    {
                        "sku": f"S{draw.randrange(articles)}",
                        "quantity": draw.randrange(1, 5),
                        "text": words(12),
                    }
                    for _ in range(6)
                ],
            }
            for n in range(orders)
        },
        "articles": {
            f"S{n}": {
                "title": words(4),
                "text": words(70),
                "price": draw.randrange(100, 9_000) / 100,
                "stock": draw.randrange(100),
                "tags": draw.sample(_WORDS, 4),
            }
            for n in range(articles)
        },
    }


def _tool(name: str, properties: dict[str, Any], **keys: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": name, "input_schema": schema, **keys}


_TEXT: dict[str, Any] = {"type": "string"}
TOOLS = [
    _tool("order", {"id": _TEXT}, effects=[{"return": "orders.{id}"}]),
    _tool("customer", {"id": _TEXT}, effects=[{"return": "customers.{id}"}]),
    _tool(
        "cancel",
        {"id": _TEXT},
        preconditions=[{"path": "orders.{id}.status", "in": ["pending", "shipped", "delivered"]}],
        effects=[{"set": "orders.{id}.status", "value": "cancelled"}],
    ),
    _tool("note", {"id": _TEXT, "text": _TEXT}, effects=[{"append": "orders.{id}.notes", "value": "{text}"}]),
    _tool(
        "refund",
        {"id": _TEXT, "amount": {"type": "number"}},
        effects=[{"increment": "orders.{id}.refunded", "by": "{amount}"}],
    ),
    _tool("restock", {"sku": _TEXT}, effects=[{"increment": "articles.{sku}.stock"}]),
]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("customer", {"id": "C7"}),
    ("order", {"id": "W14"}),
    ("order", {"id": "W15"}),
    ("cancel", {"id": "W14"}),
    ("refund", {"id": "W14", "amount": 1.5}),
    ("note", {"id": "W14", "text": "called back"}),
    ("restock", {"sku": "S20"}),
]
