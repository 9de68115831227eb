/** Thousands of exchanges as agents and chat apps make them, in English and Chinese, for the bench of the page. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const DOCS = join(import.meta.dir, '../docs');

/** Sentences that are said only here and there: searches for them have few hits. */
export const RARE = {
  english: 'the harbour crane of Brest',
  chinese: '布雷斯特港的起重机',
} as const;
/** Of the texts in one language, every so many-th has its sentence. */
const RARE_EVERY = 300;

/** The same numbers every time: mulberry32. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below;
  };
}

/** The paragraphs of the manual in one language: real words, with the frequencies that real words have. */
function paragraphs(chinese: boolean): readonly string[] {
  return readdirSync(DOCS)
    .filter((name) => name.endsWith('.md') && name.endsWith('.zh-CN.md') === chinese)
    .flatMap((name) => readFileSync(join(DOCS, name), 'utf8').split(/\n\n+/))
    .filter((text) => text.length > 60 && text.length < 3000);
}

export interface Request {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: object;
}

interface Message {
  readonly role: 'user' | 'assistant';
  readonly content: string;
}

/** Turns of one agent's session. */
const TURNS = 10;

export interface Traffic {
  /** In their order: each turn of a session carries the ones before it. */
  readonly requests: Iterable<Request>;
  /** A text for the vendor to answer with. */
  answer(): string;
}

/**
 * Requests without an end: half of them turns of agents' sessions, a third of all in Chinese.
 * @param seed other traffic for each
 */
export function traffic(seed: number): Traffic {
  const below = numbers(seed);
  const languages = [paragraphs(false), paragraphs(true)] as const;
  const saidIn = [0, 0];
  const speech = (chinese: boolean, parts: number): string => {
    const from = languages[chinese ? 1 : 0];
    const texts = Array.from({ length: parts }, () => from[Math.floor(below(from.length))]!);
    const said = ++saidIn[chinese ? 1 : 0]!;
    if (said % RARE_EVERY === 0) texts.push(chinese ? RARE.chinese : RARE.english);
    // No two texts are the same.
    return `${chinese ? '第' : 'No. '}${seed + said}${chinese ? '条：' : ': '}${texts.join('\n\n')}`;
  };
  const system = Array.from({ length: 8 }, () => speech(false, 6)).join('\n\n');
  const anyLanguage = () => below(3) < 1;

  function* requests(): Generator<Request> {
    let history: readonly Message[] = [];
    for (let i = 0; ; i++) {
      const chinese = anyLanguage();
      if (i % 2 === 0) {
        yield {
          path: '/v1/chat/completions',
          headers: { 'user-agent': 'OpenAI/JS 6.1.0' },
          body: { model: 'chat', messages: [{ role: 'user', content: speech(chinese, 1) }] },
        };
        continue;
      }
      const turn = (i >> 1) % TURNS;
      if (turn === 0) history = [];
      history = [...history, { role: 'user', content: speech(chinese, 2) }];
      yield {
        path: '/v1/messages',
        headers: {
          'user-agent': 'claude-cli/2.1.14 (external, cli)',
          'anthropic-version': '2023-06-01',
          'x-claude-code-session-id': `session-${seed}-${Math.floor((i >> 1) / TURNS)}`,
        },
        body: { model: 'agent', max_tokens: 1000, system, messages: history },
      };
      history = [...history, { role: 'assistant', content: speech(chinese, 1) }];
    }
  }
  return { requests: requests(), answer: () => speech(anyLanguage(), 1) };
}
