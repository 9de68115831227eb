"""Decodes OTLP bodies with OpenTelemetry's own protobuf definitions: `traces <base64>` or `metrics <base64>` per line in, JSON per line out."""

import base64
import sys

from google.protobuf.json_format import MessageToJson
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

KINDS = {"traces": ExportTraceServiceRequest, "metrics": ExportMetricsServiceRequest}

for line in sys.stdin:
    kind, body = line.split()
    message = KINDS[kind]()
    message.ParseFromString(base64.b64decode(body))
    print(MessageToJson(message, indent=None))
