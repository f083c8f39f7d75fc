"""Signs a body as Stripe does, by Stripe's own library: header and body, a line each."""

import json
import os
import sys

sys.path.insert(0, os.environ["PACKAGES"])

import stripe

event = {"id": sys.argv[1], "object": "event", "type": "charge.succeeded", "amount": 1.0, "name": "caf\u00e9"}
payload = json.dumps(event)
print(stripe.WebhookSignature.generate_signature_header(payload, os.environ["SECRET"]))
print(payload)
