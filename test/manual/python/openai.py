"""The part of OpenAI's package that the manual uses, over urllib: for machines where the package is not installed."""

import json
import urllib.request


class _Part:
    """A member of an answer: fields as attributes, those that the package does not know in `model_extra`."""

    _KNOWN = {"id", "object", "created", "model", "choices", "usage", "system_fingerprint", "service_tier"}

    def __init__(self, fields):
        self._fields = fields
        self.model_extra = {name: value for name, value in fields.items() if name not in self._KNOWN}

    def __getattr__(self, name):
        value = self._fields.get(name)
        if isinstance(value, dict):
            return _Part(value)
        if isinstance(value, list):
            return [_Part(item) if isinstance(item, dict) else item for item in value]
        return value


class _Completions:
    def __init__(self, client):
        self._client = client

    def create(self, *, extra_body=None, **body):
        request = urllib.request.Request(
            f"{self._client.base_url}/chat/completions",
            data=json.dumps({**body, **(extra_body or {})}).encode(),
            headers={"content-type": "application/json", "authorization": f"Bearer {self._client.api_key}"},
        )
        response = urllib.request.urlopen(request)
        return self._chunks(response) if body.get("stream") else _Part(json.load(response))

    @staticmethod
    def _chunks(response):
        for line in response:
            data = line.decode().removeprefix("data:").strip()
            if line.startswith(b"data:") and data != "[DONE]":
                yield _Part(json.loads(data))


class _Chat:
    def __init__(self, client):
        self.completions = _Completions(client)


class OpenAI:
    def __init__(self, *, base_url, api_key):
        self.base_url = base_url
        self.api_key = api_key
        self.chat = _Chat(self)
