/** The live check of emitted streams finds what breaks a protocol, and says nothing of what does not. */

import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { joined, streamValidator } from '../../src/app/stream-validator.ts';
import type { ProtocolName } from '../../src/conversation/types.ts';
import type { ExchangeOutcome } from '../../src/samples/recording.ts';
import { createGatewayMetrics } from '../../src/telemetry/gateway-metrics.ts';
import { createLog } from '../../src/telemetry/log.ts';

const SAMPLES = join(import.meta.dir, '../../samples');
const TOLD: ExchangeOutcome = {
  status: 200,
  model: 'm',
  target: undefined,
  stream: true,
  firstByte: 1,
  total: 2,
  tries: 1,
  hops: 1,
  usage: undefined,
  notes: [],
  error: undefined,
};

/** What the log says of a stream that a client got in these chunks. */
function check(protocol: ProtocolName, chunks: readonly (string | Uint8Array)[], told = TOLD) {
  const lines: string[] = [];
  const log = createLog({ format: 'json', write: (line) => lines.push(line) });
  const metrics = createGatewayMetrics('0');
  const exchange = {
    id: 'req_1',
    protocol: { name: protocol },
    body: new Uint8Array(),
    headers: new Headers(),
    sessionId: '',
    search: '',
    owner: '',
  };
  const recording = joined(undefined, streamValidator('all', exchange, log, metrics));
  recording?.clientStart(200, new Headers({ 'content-type': 'text/event-stream' }));
  for (const chunk of chunks) recording?.clientChunk(chunk);
  recording?.end(told);
  return { rules: lines.map((line) => JSON.parse(line).rule as string), metrics: metrics.render() };
}

const read = (entry: string, file: string) => readFileSync(join(SAMPLES, entry, file), 'utf8');

describe('streams as clients get them', () => {
  for (const entry of ['anthropic-messages', 'openai-chat', 'openai-responses'] as const) {
    for (const file of readdirSync(join(SAMPLES, entry))) {
      // One is cut on purpose, one shows a vendor's own liberties forwarded byte for byte.
      if (!file.endsWith('client-response.sse') || /cutoff|direct/.test(file)) continue;
      test(`${entry}: ${file} is in order, cut anywhere`, () => {
        const bytes = Buffer.from(read(entry, file));
        expect(check(entry, [bytes.subarray(0, 77), bytes.subarray(77)]).rules).toEqual([]);
      });
    }
  }

  test('a second start and a missing end are logged and counted', () => {
    const name = 'req_1790000000001_tools1_client-response.sse';
    const [start = '', ...rest] = read('anthropic-messages', name).split(/(?<=\n\n)/);
    const { rules, metrics } = check('anthropic-messages', [start, start, ...rest.slice(0, -1)]);
    expect(rules.length).toBeGreaterThanOrEqual(2);
    expect(metrics).toMatch(
      /hopgate_stream_violations_total\{protocol="anthropic-messages",rule="[^"]+"\} 1/,
    );
  });

  test('a stream that the client left is no violation', () => {
    expect(check('anthropic-messages', [], { ...TOLD, status: 499 }).rules).toEqual([]);
  });

  test('switched off, nothing is looked at', () => {
    const metrics = createGatewayMetrics('0');
    const log = createLog({ level: 'silent' });
    expect(streamValidator('off', {} as never, log, metrics)).toBeUndefined();
  });
});
