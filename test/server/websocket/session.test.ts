/** Transcripts of a WebSocket session without a socket: lanes, order, memory, refusals, and the end. */

import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { openaiResponses } from '../../../src/codecs/openai-responses/index.ts';
import { GatewayError } from '../../../src/conversation/errors.ts';
import type { ConnectionMemory } from '../../../src/gateway/stream/client-lane.ts';
import { type JsonObject, parseJson } from '../../../src/lib/json/json.ts';
import { gatewayErrorFrame } from '../../../src/server/websocket/error-frames.ts';
import { LaneMemory, MemoryPool } from '../../../src/server/websocket/response-memory.ts';
import { type Run, SocketSession } from '../../../src/server/websocket/session.ts';
import { until } from '../../support/until.ts';

const FRAME_BYTES = 1_000_000;

/** A session whose doings are written down. */
class Transcript {
  readonly said: JsonObject[] = [];
  readonly runs: Run[] = [];
  readonly closes: [number, string][] = [];
  held = 0;
  readonly memory: LaneMemory;
  readonly session: SocketSession;

  constructor(mostHeld = Number.POSITIVE_INFINITY, frameBytes = FRAME_BYTES) {
    const bounds = { most: () => FRAME_BYTES, mostOfAll: FRAME_BYTES };
    this.memory = new LaneMemory(new MemoryPool(bounds));
    const say = (text: string) => void this.said.push(parseJson(text) as JsonObject);
    const port = {
      send: say,
      sendError: (error: GatewayError, streamId?: string) =>
        say(gatewayErrorFrame(openaiResponses, error, 'req_1', streamId)),
      start: (run: Run) => void this.runs.push(run),
      hold: (bytes: number) => {
        if (this.held + bytes > mostHeld) throw new GatewayError('overloaded', 'No room.');
        this.held += bytes;
      },
      release: (bytes: number) => {
        this.held -= bytes;
      },
      close: (code: number, reason: string) => void this.closes.push([code, reason]),
    };
    this.session = new SocketSession(port, { frameBytes, minutes: 60 }, this.memory);
  }

  create(more: JsonObject = {}): void {
    this.session.receive(JSON.stringify({ type: 'response.create', model: 'm', ...more }));
  }

  /** The run comes to its end, and is remembered. */
  succeed(run: Run, id: string, before: Parameters<ConnectionMemory['remember']>[1] = []): void {
    run.succeeded = true;
    this.memory.of(run.streamId).remember(id, before, [{ id: `item of ${id}` }]);
    this.session.ended(run);
  }

  fail(run: Run): void {
    this.session.ended(run);
  }

  recalled(id: string): unknown {
    return this.memory.of(undefined).recall(id)?.items();
  }

  get streams(): (string | undefined)[] {
    return this.runs.map(({ streamId }) => streamId);
  }
}

const bodyOf = (run: Run) => new TextDecoder().decode(run.body);

describe('a request on a socket', () => {
  test('becomes the body of the same request by POST, byte by byte, without what the frame adds', () => {
    const t = new Transcript();
    t.session.receive(
      '{"type":"response.create", "model":"m" ,"stream_id":"a","input":[ {"role":"user", "content":"\\u00e9"} ],"stream":false,"n":1.50,"generate":true}',
    );
    expect(t.runs.map(bodyOf)).toEqual([
      '{"model":"m","input":[ {"role":"user", "content":"\\u00e9"} ],"n":1.50,"stream":true}',
    ]);
    expect(t.runs[0]).toMatchObject({ streamId: 'a', generate: true, parent: undefined });
  });

  test('may be a warm-up, and what it names to continue is known', () => {
    const t = new Transcript();
    t.create({ generate: false, previous_response_id: 'resp_1', input: [] });
    expect(t.runs[0]).toMatchObject({ generate: false, parent: 'resp_1' });
    expect(bodyOf(t.runs[0]!)).toContain('"previous_response_id":"resp_1"');
  });

  test('what Codex says beside requests needs no answer', () => {
    const t = new Transcript();
    t.session.receive('{"type":"response.processed","response_id":"resp_1"}');
    expect([t.said, t.runs]).toEqual([[], []]);
  });
});

describe('a frame that cannot be read is an error frame', () => {
  const cases: [string, string | Uint8Array, JsonObject][] = [
    ['no JSON', '{"type":', { type: 'invalid_request_error' }],
    ['empty', '', { type: 'invalid_request_error' }],
    ['no object', '[1]', { message: 'The frame must be a JSON object.' }],
    ['bytes', new Uint8Array([1, 2]), { type: 'invalid_request_error' }],
    ['no type', '{"model":"m"}', { param: 'type' }],
    ['a type that is no text', '{"type":7}', { param: 'type' }],
    ['an unknown type', '{"type":"response.append","input":[]}', { param: 'type' }],
    [
      'a lane of many characters',
      `{"type":"response.create","stream_id":"${'x'.repeat(257)}"}`,
      { code: 'invalid_stream_id', param: 'stream_id' },
    ],
    [
      'a lane with a space',
      '{"type":"response.create","stream_id":"a b"}',
      { code: 'invalid_stream_id' },
    ],
    [
      'a lane that is no text',
      '{"type":"response.create","stream_id":3}',
      { code: 'invalid_stream_id' },
    ],
    [
      'a warm-up that is neither',
      '{"type":"response.create","generate":"no"}',
      { param: 'generate' },
    ],
    [
      'in the background',
      '{"type":"response.create","stream_id":"b","background":true}',
      { param: 'background' },
    ],
    [
      'nested too deeply',
      `{"type":"response.create","input":${'['.repeat(200_000)}`,
      { type: 'invalid_request_error' },
    ],
    [
      'a value that is none',
      '{"type":"response.create","model"::}',
      { type: 'invalid_request_error' },
    ],
  ];
  test.each(cases)('%s', (_name, frame, error) => {
    const t = new Transcript();
    t.session.receive(frame);
    expect(t.said).toHaveLength(1);
    expect(t.said[0]).toMatchObject({ type: 'error', status: 400, error });
    expect(t.said[0]!.stream_id).toBe(String(frame).includes('"stream_id":"b"') ? 'b' : undefined);
    expect([t.runs, t.closes]).toEqual([[], []]);
    // The connection goes on.
    t.create();
    expect(t.runs).toHaveLength(1);
  });

  test('whatever comes: one error, one run, or nothing, and the connection goes on', () => {
    const odd = fc.oneof(
      fc.string(),
      fc.json(),
      fc.constantFrom('"', '\\', '{', '}', ',', ':', 'null', '\ud800'),
    );
    const member = fc.tuple(
      fc.constantFrom('type', 'stream_id', 'generate', 'stream', 'background', 'model', 'input'),
      fc.oneof(odd, fc.constantFrom('"response.create"', '"a"', 'true', 'false')),
    );
    const object = fc
      .array(member)
      .map((all) => `{${all.map(([key, value]) => `"${key}":${value}`).join(',')}}`);
    fc.assert(
      fc.property(fc.oneof(odd, object), (frame) => {
        const t = new Transcript();
        t.session.receive(frame);
        expect(t.said.length + t.runs.length).toBeLessThanOrEqual(1);
        for (const said of t.said) expect(said.type).toMatch(/^(error|response.steer.failed)$/);
        // The body is what a POST would bring: one object that streams.
        for (const run of t.runs) expect(JSON.parse(bodyOf(run)).stream).toBe(true);
        t.create({ stream_id: 'next' });
        expect(t.streams.at(-1)).toBe('next');
      }),
    );
  });

  test('larger than a body may be: 413', () => {
    const t = new Transcript();
    t.create({ input: 'x'.repeat(FRAME_BYTES) });
    expect(t.said[0]).toMatchObject({ type: 'error', status: 413 });
  });

  test('more names than can be parsed in one go: 400, before they are listed', async () => {
    const script = new Transcript(Number.POSITIVE_INFINITY, 50_000_000);
    const names = Array.from({ length: 310_000 }, (_, i) => `"key${i}":1`).join();
    script.session.receive(`{"type":"response.create","model":"m",${names}}`);
    await until(() => script.said.length > 0 || script.runs.length > 0);
    expect(script.runs).toEqual([]);
    expect(script.said).toMatchObject([{ type: 'error', status: 400 }]);
    script.create();
    expect(script.runs).toHaveLength(1);
  });

  test('a steering is refused in its own words, and the response goes on', () => {
    const t = new Transcript();
    t.create({ stream_id: 'a' });
    t.session.receive(
      '{"type":"response.steer","stream_id":"a","previous_response_id":"resp_1","input":"left"}',
    );
    expect(t.said).toMatchObject([
      {
        type: 'response.steer.failed',
        stream_id: 'a',
        steer: { previous_response_id: 'resp_1' },
        error: { type: 'invalid_request_error', code: 'steering_not_supported' },
      },
    ]);
    t.succeed(t.runs[0]!, 'resp_1');
    expect(t.recalled('resp_1')).toBeDefined();
  });
});

describe('lanes', () => {
  test('one after the other within a lane, side by side between lanes', () => {
    const t = new Transcript();
    for (const stream_id of ['a', 'a', 'b', undefined, undefined, 'a']) t.create({ stream_id });
    expect(t.streams).toEqual(['a', 'b', undefined]);
    t.succeed(t.runs[0]!, 'resp_1');
    expect(t.streams).toEqual(['a', 'b', undefined, 'a']);
    t.fail(t.runs[2]!);
    expect(t.streams).toEqual(['a', 'b', undefined, 'a', undefined]);
    t.fail(t.runs[3]!);
    expect(t.streams.at(-1)).toBe('a');
    expect(t.held).toBe(0);
  });

  test.each([
    ['a type that is unknown', { type: 'response.cancel' }],
    ['a job in the background', { type: 'response.create', model: 'm', background: true }],
    ['a wrong member', { type: 'response.create', model: 'm', generate: 1 }],
  ])(
    '%s behind a request of its lane: the error does not pass for the answer to that one',
    (_what, frame) => {
      for (const stream_id of [undefined, 'a']) {
        const t = new Transcript();
        const refused = (lane?: string) =>
          t.session.receive(JSON.stringify({ ...frame, stream_id: lane }));
        const said = () => t.said.map((one) => [one.type, one.stream_id]);
        t.create({ stream_id });
        refused(stream_id);
        t.create({ stream_id });
        // Other lanes do not wait for this one.
        refused('b');
        expect(said()).toEqual([['error', 'b']]);
        t.succeed(t.runs[0]!, 'resp_1');
        expect(said().slice(1)).toEqual([['error', stream_id]]);
        expect(t.streams).toEqual([stream_id, stream_id]);
        refused(stream_id);
        t.session.goAway();
        expect([t.said.length, t.held]).toEqual([3, 0]);
      }
    },
  );

  test('sixteen run at a time; the seventeenth waits for a place', () => {
    const t = new Transcript();
    for (let i = 0; i < 18; i++) t.create({ stream_id: `s${i}` });
    expect(t.runs).toHaveLength(16);
    expect(t.held).toBeGreaterThan(0);
    t.succeed(t.runs[5]!, 'resp_5');
    expect(t.streams.slice(16)).toEqual(['s16']);
    t.fail(t.runs[0]!);
    expect(t.streams.slice(16)).toEqual(['s16', 's17']);
    expect(t.held).toBe(0);
  });

  test('thirty-two names in the life of a connection, the default lane not counted', () => {
    const t = new Transcript();
    t.create();
    t.succeed(t.runs[0]!, 'resp');
    for (let i = 0; i < 32; i++) {
      t.create({ stream_id: `s${i}` });
      t.succeed(t.runs.at(-1)!, `resp_${i}`);
    }
    t.create({ stream_id: 's32' });
    expect(t.said).toMatchObject([
      {
        type: 'error',
        status: 400,
        stream_id: 's32',
        error: { code: 'websocket_stream_limit_reached' },
      },
    ]);
    t.create({ stream_id: 's0' });
    t.create();
    expect(t.runs).toHaveLength(35);
  });

  test('no more wait than there is room for, and only so many', () => {
    const t = new Transcript(500);
    t.create();
    t.create({ input: 'x'.repeat(400) });
    t.create({ input: 'x'.repeat(400) });
    expect(t.said).toMatchObject([{ type: 'error', status: 503 }]);
    const many = new Transcript();
    for (let i = 0; i < 300; i++) many.create();
    expect(many.said.length).toBe(300 - 1 - 256);
    expect(many.said[0]).toMatchObject({
      status: 429,
      error: { code: 'too_many_queued_responses' },
      headers: { 'retry-after': '1' },
    });
  });

  test('a large frame is read in turns, and those behind it come after it', async () => {
    const t = new Transcript(Number.POSITIVE_INFINITY, 1e9);
    t.create({ model: 'large', input: 'x'.repeat(3_000_000) });
    t.create({ model: 'second', stream_id: 'b' });
    t.session.receive('{"type":"nothing","stream_id":"c"}');
    await until(() => t.said.length === 1);
    expect(t.runs.map((run) => bodyOf(run).slice(0, 16))).toEqual([
      '{"model":"large"',
      '{"model":"second',
    ]);
    expect(t.held).toBe(0);
  });
});

describe('what is remembered', () => {
  test('the last response of each lane, for all lanes', () => {
    const t = new Transcript();
    t.create({ stream_id: 'a' });
    t.succeed(t.runs[0]!, 'resp_a');
    t.create({ stream_id: 'b', previous_response_id: 'resp_a' });
    t.succeed(t.runs[1]!, 'resp_b', t.memory.of('b').recall('resp_a')!);
    expect(t.recalled('resp_b')).toEqual([{ id: 'item of resp_a' }, { id: 'item of resp_b' }]);
    expect(t.recalled('resp_a')).toEqual([{ id: 'item of resp_a' }]);
    t.create({ stream_id: 'a' });
    t.succeed(t.runs[2]!, 'resp_c');
    expect(t.recalled('resp_a')).toBeUndefined();
  });

  test('a continuation in the same lane that fails loses its parent', () => {
    const t = new Transcript();
    t.create();
    t.succeed(t.runs[0]!, 'resp_1');
    t.create({ previous_response_id: 'resp_1' });
    t.fail(t.runs[1]!);
    expect(t.recalled('resp_1')).toBeUndefined();
  });

  test('a fork into another lane that fails keeps it, and so does a new conversation', () => {
    const t = new Transcript();
    t.create();
    t.succeed(t.runs[0]!, 'resp_1');
    t.create({ stream_id: 'fork', previous_response_id: 'resp_1' });
    t.fail(t.runs[1]!);
    expect(t.recalled('resp_1')).toBeDefined();
    t.create();
    t.fail(t.runs[2]!);
    expect(t.recalled('resp_1')).toBeDefined();
  });

  test('nothing after the socket is closed', () => {
    const t = new Transcript();
    t.create();
    t.succeed(t.runs[0]!, 'resp_1');
    t.session.closed();
    expect(t.recalled('resp_1')).toBeUndefined();
  });
});

describe('the end', () => {
  const LIMIT = {
    type: 'error',
    status: 400,
    error: {
      type: 'invalid_request_error',
      code: 'websocket_connection_limit_reached',
      message:
        'Responses websocket connection limit reached (60 minutes). Create a new websocket connection to continue.',
    },
  };

  test('of its time: an error frame, then the close', () => {
    const t = new Transcript();
    t.session.expire();
    expect(t.said).toMatchObject([LIMIT]);
    expect(t.closes.map(([code]) => code)).toEqual([1000]);
  });

  test('of its time: what runs may end first, and nothing more begins', () => {
    const t = new Transcript();
    t.create();
    t.create();
    t.session.expire();
    expect(t.said).toMatchObject([LIMIT]);
    expect(t.held).toBe(0);
    t.create({ stream_id: 'late' });
    expect(t.said[1]).toMatchObject({ ...LIMIT, stream_id: 'late' });
    expect([t.runs.length, t.closes.length]).toEqual([1, 0]);
    t.succeed(t.runs[0]!, 'resp_1');
    expect(t.said[2]).toMatchObject(LIMIT);
    expect(t.closes).toHaveLength(1);
  });

  test('of its time: what does not end in time is not waited for', () => {
    const t = new Transcript();
    t.create();
    t.session.expire();
    t.session.endNow();
    t.session.endNow();
    expect([t.said.length, t.closes.length]).toEqual([1, 1]);
  });

  test('of the process: the close code says so, and frames meanwhile are refused', () => {
    const t = new Transcript();
    t.session.goAway();
    expect([t.said, t.closes]).toEqual([[], [[1012, 'The gateway is restarting.']]]);
    const busy = new Transcript();
    busy.create();
    busy.session.goAway();
    busy.create();
    expect(busy.said).toMatchObject([{ status: 503, error: { code: 'server_restarting' } }]);
    busy.fail(busy.runs[0]!);
    expect(busy.closes.map(([code]) => code)).toEqual([1012]);
  });

  test('of the right to ask', () => {
    const t = new Transcript();
    t.session.revoke();
    t.create();
    expect([t.runs.length, t.closes.map(([code]) => code)]).toEqual([0, [1008]]);
  });
});
