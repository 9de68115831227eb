/** Server-sent events as frames: the data of each, however the bytes are cut, and no stump of a cut one. */

import { expect, test } from 'bun:test';
import { AnswerFrames } from '../../../src/server/websocket/answer-frames.ts';

const EVENTS = [
  '{"type":"response.created","sequence_number":0,"response":{"id":"resp_1"}}',
  '{"type":"response.output_text.delta","sequence_number":1,"delta":"é \\n data: x\\n\\n"}',
  '{"type":"response.completed","sequence_number":2,"response":{"id":"resp_1"}}',
];
const sse = (data: string) => `event: ${JSON.parse(data).type}\ndata: ${data}\n\n`;
const STREAM = EVENTS.map(sse).join('');
const utf8 = new TextEncoder();

test('text of an encoder: one frame for each event', () => {
  const frames = new AnswerFrames(undefined);
  expect(frames.push(STREAM)).toEqual(EVENTS);
  expect([frames.end(), frames.ended]).toEqual([[], true]);
});

test('bytes: the same at every border between two chunks', () => {
  const bytes = utf8.encode(STREAM);
  for (let at = 0; at <= bytes.length; at++) {
    const frames = new AnswerFrames(undefined);
    const got = [...frames.push(bytes.subarray(0, at)), ...frames.push(bytes.subarray(at))];
    expect([got, frames.ended]).toEqual([EVENTS, true]);
  }
});

test('bytes and text in turn', () => {
  const frames = new AnswerFrames(undefined);
  const first = utf8.encode(sse(EVENTS[0]!));
  expect(frames.push(first.subarray(0, 20))).toEqual([]);
  expect(frames.push(new TextDecoder().decode(first.subarray(20)))).toEqual([EVENTS[0]!]);
  expect(frames.push(sse(EVENTS[1]!))).toEqual([EVENTS[1]!]);
});

test('a named lane is named in every frame', () => {
  const frames = new AnswerFrames('lane-1');
  const got = [...frames.push(STREAM), frames.keepAlive()].map((one) => JSON.parse(one));
  expect(got.map(({ stream_id }) => stream_id)).toEqual(Array(4).fill('lane-1'));
  expect(got.map(({ type }) => type).at(-1)).toBe('keepalive');
});

test('comments are signs of life, and [DONE] is of HTTP alone', () => {
  const frames = new AnswerFrames(undefined);
  const keepalive = frames.keepAlive();
  expect(frames.push(': keep-alive\n\n')).toEqual([keepalive]);
  expect(frames.push(utf8.encode(`: ping\n\ndata: ${EVENTS[1]}\n\ndata: [DONE]\n\n`))).toEqual([
    keepalive,
    EVENTS[1]!,
  ]);
});

test('the stump of an event that was cut does not go out', () => {
  const frames = new AnswerFrames(undefined);
  frames.push(utf8.encode('event: response.output_text.delta\ndata: {"type":"response.outp'));
  expect(frames.push(`\n\n${sse(EVENTS[2]!)}`)).toEqual([EVENTS[2]!]);
  frames.push(utf8.encode('data: {"type":"respo'));
  expect(frames.end()).toEqual([]);
});

test('an event without a name ends the response too, and a piece of text that is none does not', () => {
  const bare = new AnswerFrames(undefined);
  bare.push(`data: ${EVENTS[2]}\n\n`);
  expect(bare.ended).toBe(true);
  const odd = new AnswerFrames(undefined);
  odd.push(
    utf8.encode('event: response.failed\ndata: {"response":{},"type":"response.failed"}\n\n'),
  );
  expect(odd.ended).toBe(true);
  const open = new AnswerFrames(undefined);
  open.push(EVENTS.slice(0, 2).map(sse).join(''));
  expect(open.ended).toBe(false);
});
