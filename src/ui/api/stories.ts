/** `GET /ui/api/stories`: what exchanges were about, in a few words each, read from their bodies when the list shows them. */

import { Type } from '@sinclair/typebox';
import { Elysia } from 'elysia';
import { ownWords } from '../../conversation/agent-parts.ts';
import { GatewayError } from '../../conversation/errors.ts';
import type { Block, Conversation } from '../../conversation/types.ts';
import { othersTurn, runInSlices } from '../../lib/loop/steps.ts';
import { clientName } from '../../samples/store/meta.ts';
import { json } from './answers.ts';
import { saidIn } from './bodies/said.ts';
import type { ApiContext } from './context.ts';
import { guard, type Viewer } from './guard.ts';

/** Most exchanges of one request. */
const MAX_IDS = 50;
/** Characters of each text. */
const MAX_CHARACTERS = 160;
/** Read of a text: enough for the first words behind white space. */
const MAX_READ = 2000;

/** Texts are cut to one line; '' where nothing is known. */
export interface Story {
  readonly id: string;
  /** `Claude Code`, `Codex`, `OpenAI SDK`, … */
  readonly client: string;
  /** What the user said last, or the tools whose results the request brings. */
  readonly asked: string;
  /** The answer's first text, the tools that it calls, or what went wrong. */
  readonly answered: string;
}

const STORIES_QUERY = Type.Object({
  ids: Type.String({
    title: 'ids',
    description: `at most ${MAX_IDS} ids between commas`,
    maxLength: MAX_IDS * 100,
  }),
});

export const storyRoutes = (context: ApiContext) =>
  new Elysia().use(guard(context.options)).get(
    '/stories',
    async ({ query, viewer }) => {
      const stories: Story[] = [];
      for (const id of new Set(query.ids.split(',').slice(0, MAX_IDS))) {
        const story = await storyOf(id, viewer, context);
        if (story !== undefined) stories.push(story);
        // A body takes milliseconds to decode: other requests come between two of them.
        await othersTurn();
      }
      return json({ stories });
    },
    { query: STORIES_QUERY },
  );

/** Undefined: there is no such exchange, this viewer may not see it, or its bodies cannot be fetched now. */
async function storyOf(
  id: string,
  viewer: Viewer,
  context: ApiContext,
): Promise<Story | undefined> {
  try {
    const recorded = await context.recorded(id, viewer);
    const { sent, reply } = await runInSlices(saidIn(recorded));
    const { meta } = recorded;
    const request = meta.edges.find(({ stage }) => stage === 'client-request');
    return {
      id: meta.id,
      client: clientName(request?.headers?.['user-agent'] ?? ''),
      asked: firstWords(sent === undefined ? '' : askedIn(sent)),
      answered: firstWords(
        answerIn(reply?.reply.blocks ?? []) || reply?.problem?.message || meta.error?.message || '',
      ),
    };
  } catch (thrown) {
    const away = ['not_found', 'overloaded'];
    if (thrown instanceof GatewayError && away.includes(thrown.kind)) return undefined;
    throw thrown;
  }
}

/** A job about a conversation quotes it in front of what it asks. */
const QUOTED_SESSION = /^\s*<session>[\s\S]*?<\/session>\s*/;

/** What the user said last; for a turn that only brings results of tools, whose they are. */
export function askedIn({ turns }: Conversation): string {
  const calls = new Map<string, string>();
  for (const { blocks } of turns) {
    for (const block of blocks) if (block.type === 'tool-call') calls.set(block.id, block.name);
  }
  // The results of one step may be several turns.
  const results: string[] = [];
  for (const { role, blocks } of turns.toReversed()) {
    if (role === 'assistant') break;
    // Agents add instructions behind what the user said.
    if (role !== 'user') continue;
    const said = blocks
      .map((block) => (block.type === 'text' ? ownWords(block.text) : ''))
      .findLast((words) => words !== '');
    if (said !== undefined) return said.replace(QUOTED_SESSION, '');
    for (const block of blocks.toReversed()) {
      if (block.type === 'tool-result') results.unshift(calls.get(block.callId) ?? 'tool');
    }
  }
  return results.length === 0 ? '' : `↩ ${[...new Set(results)].join(', ')}`;
}

/** The answer's first text, else the calls that it makes. */
function answerIn(blocks: readonly Block[]): string {
  for (const block of blocks) {
    if ((block.type === 'text' || block.type === 'refusal') && block.text.trim() !== '') {
      return block.text;
    }
  }
  const calls = blocks.flatMap((block) => (block.type === 'tool-call' ? [block.name] : []));
  return calls.length === 0 ? '' : `→ ${calls.join(', ')}`;
}

/** On one line, cut between characters. */
export function firstWords(text: string): string {
  const line = text.trimStart().slice(0, MAX_READ).split(/\s+/).join(' ').trim();
  const characters = [...line];
  return characters.length <= MAX_CHARACTERS
    ? line
    : `${characters.slice(0, MAX_CHARACTERS).join('')}…`;
}
