/** Canned answers by model name (`fake-text`, `fake-parallel`), for runs without a script. */

import type { FakeProtocol, Step } from './answer.ts';
import { call, refuse, say, think } from './answer.ts';
import { contextOverflow } from './refusal.ts';

const HTML = '<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>';
const LONG = 'All work and no play makes a fake vendor a dull one. '.repeat(4000);

type Canned = (protocol: FakeProtocol) => Step;

const CANNED: Readonly<Record<string, Canned>> = {
  text: () => say('Hello, wörld 👋🏽 from the fake vendor.'),
  reasoning: () =>
    think('First I think it over.', 'Then I answer.', { usage: { reasoning: 7, output: 20 } }),
  tool: () => call({ name: 'get_weather', arguments: { city: 'Zürich' } }),
  parallel: () =>
    call(
      { name: 'get_weather', arguments: { city: 'Paris' } },
      { name: 'get_weather', arguments: { city: 'Oslo' } },
    ),
  custom: () => ({
    parts: [{ kind: 'custom', name: 'apply_patch', input: '*** Begin Patch\n*** End Patch' }],
  }),
  refusal: () => ({ parts: [{ kind: 'refusal', text: 'I cannot help with that.' }] }),
  length: () => say('This answer was cut by the lim', { finish: 'length' }),
  usage: () => say('Counted.', { usage: { input: 1000, cached: 600, output: 90, reasoning: 40 } }),
  structured: () => say('{"city":"Paris","population":2102650}'),
  search: () => ({
    parts: [
      {
        kind: 'search',
        query: 'fake vendors',
        results: [{ url: 'https://example.com/a', title: 'A page' }],
      },
      { kind: 'text', text: 'Found a page.' },
    ],
  }),
  big: () => say(LONG, { delivery: { piece: 400 } }),
  slow: () => say('One word after the other comes slowly.', { delivery: { paceMs: 40 } }),
  empty: () => ({ parts: [] }),
  'reasoning-only': () => ({ parts: [{ kind: 'reasoning', text: 'I only think.' }] }),
  html: () => ({ raw: HTML, contentType: 'text/html' }),
  'rate-limit': () => refuse(429, { 'retry-after': '1' }),
  error: () => refuse(500),
  unavailable: () => refuse(503),
  overloaded: () => refuse(529),
  unauthorized: () => refuse(401),
  context: (protocol) => contextOverflow(protocol),
  'reset-before': () => say('never', { delivery: { before: 'reset' } }),
  'hang-before': () => say('never', { delivery: { before: 'hang' } }),
  'reset-mid': () => say(LONG.slice(0, 200), { delivery: { cut: { at: 0.5, by: 'reset' } } }),
  'truncate-mid': () => say(LONG.slice(0, 200), { delivery: { cut: { at: 0.5, by: 'truncate' } } }),
  'end-mid': () => say(LONG.slice(0, 200), { delivery: { cut: { at: 0.5, by: 'end' } } }),
  'hang-mid': () => say(LONG.slice(0, 200), { delivery: { cut: { at: 0.5, by: 'hang' } } }),
  'error-mid': () => say(LONG.slice(0, 200), { delivery: { cut: { at: 0.5, by: 'error' } } }),
  'no-terminal': () => say('Complete but for the end.', { delivery: { dropTerminal: true } }),
};

/** The step for a model called `fake-<name>`; undefined for other models. */
export function scenario(model: string, request: { protocol?: FakeProtocol }): Step | undefined {
  const name = /^fake-(.+)$/.exec(model)?.[1];
  return name === undefined ? undefined : CANNED[name]?.(request.protocol ?? 'openai-chat');
}
