/** Encodes a conversation as a Responses request body. Unchanged parts of the same protocol go out as they came. */

import { cacheMarkOf, cacheMarks, cacheMarksOf } from '../../../conversation/cache-marks.ts';
import { isInstruction } from '../../../conversation/edit.ts';
import { noteLostName } from '../../../conversation/lost-fields.ts';
import type { Notes } from '../../../conversation/notes.ts';
import { type KnownNodes, NOTHING_KNOWN } from '../../../conversation/session/known-nodes.ts';
import type { Target } from '../../../conversation/target.ts';
import { toolNames } from '../../../conversation/tools/tool-names.ts';
import { withToolTypes } from '../../../conversation/tools/tool-types.ts';
import type { Block, Conversation, Turn } from '../../../conversation/types.ts';
import type { Json, JsonObject } from '../../../lib/json/json.ts';
import { memberOf, put } from '../../../lib/json/json-members.ts';
import { NAME_LIMIT, PROTOCOL } from '../wire.ts';
import { knownItems, withoutLoneReasoning } from './encode-items.ts';
import { encodeParts, type ItemContext } from './encode-parts.ts';
import { encodeSettings } from './encode-settings.ts';
import { encodeTools } from './encode-tools.ts';

/** Protocols whose files lie at vendors that this one is not spoken with. */
const FOREIGN_FILES: ReadonlySet<string | undefined> = new Set([
  'anthropic-messages',
  'google-gemini',
]);

/** The wire body for this target. Never throws because of content: what Responses cannot express becomes a note. */
export function encodeRequest(
  given: Conversation,
  target: Target,
  notes: Notes,
  known: KnownNodes = NOTHING_KNOWN,
): JsonObject {
  const { toolTypes } = target.profile;
  const conversation = toolTypes === undefined ? given : withToolTypes(given, toolTypes, notes);
  const origin = conversation.origin?.protocol === PROTOCOL ? conversation.origin : undefined;
  const context: ItemContext = {
    target,
    notes,
    names: toolNames(conversation.tools, NAME_LIMIT),
    own: origin !== undefined,
    fileIds: !FOREIGN_FILES.has(conversation.origin?.protocol),
    known,
  };
  const body: Record<string, Json | undefined> = { ...origin?.value };
  body.model = target.model;

  if (origin === undefined) {
    noteMarks(conversation, context);
    const { blocks, turns } = splitInstructions(conversation);
    const leading = conversation.turns.length - turns.length;
    const instructions = blocks
      .map(plainText)
      .filter((part) => part !== '')
      .join('\n\n');
    const texts = blocks.flat().filter(({ type }) => type === 'text');
    const marked = target.profile.breakpointsAt
      ? encodeParts(texts, 'developer', 'input[0]', context)
      : [];
    for (let i = 0; i < leading; i++) noteLostName(conversation.turns[i]!, notes, `${at(i)}.name`);
    const input = encodeInput(turns, leading, context);
    // `instructions` cannot hold a breakpoint.
    if (marked.some((part) => part.prompt_cache_breakpoint !== undefined)) {
      body.input = [{ type: 'message', role: 'developer', content: marked }, ...input];
    } else {
      if (instructions !== '') body.instructions = instructions;
      body.input = input;
    }
  } else {
    const { parts } = origin;
    if (conversation.system !== parts.system) {
      const instructions = plainText(conversation.system);
      if (instructions !== (origin.value.instructions ?? ''))
        body.instructions = instructions || undefined;
    }
    const { input } = origin.value;
    if (Array.isArray(input) || conversation.turns !== parts.turns) {
      const items = conversation.turns.flatMap((turn, i) => knownItems(turn, at(i), context));
      body.input = conversation.turns === parts.turns ? items : withoutLoneReasoning(items, notes);
    }
  }

  if (origin === undefined || conversation.tools !== origin.parts.tools) {
    const tools = knownTools(conversation, context);
    // An empty list is kept if the client of this protocol declared `tools`.
    body.tools = tools.length > 0 || origin?.value.tools !== undefined ? tools : undefined;
  }

  encodeSettings(body, conversation, context);
  return applyProfile(body, target, notes);
}

/** The declarations, as they were made of the same tools of another protocol before. */
function knownTools(conversation: Conversation, context: ItemContext): readonly JsonObject[] {
  const { names, own, notes } = context;
  const { profile } = context.target;
  // Those of a client of this protocol depend on its input items, too.
  const known = own ? NOTHING_KNOWN : context.known;
  return known.encoded(conversation.tools, [PROTOCOL, profile], notes, (from) =>
    encodeTools(conversation, names, profile, from),
  );
}

const at = (index: number) => `input[${index}]`;

/** The instructions before the dialogue, and the turns after them. */
function splitInstructions(conversation: Conversation): {
  blocks: readonly (readonly Block[])[];
  turns: readonly Turn[];
} {
  let first = 0;
  const { turns, system } = conversation;
  while (first < turns.length && isInstruction(turns[first]!)) first++;
  // Input must not be empty: a request with system text only sends that text as input.
  if (first === turns.length) first = 0;
  const leading = turns.slice(0, first).map((turn) => turn.blocks);
  return { blocks: [system, ...leading], turns: turns.slice(first) };
}

/** Notes that a cache mark is lost: any without a vendor for it, else one on a tool, a result, or what the model said. */
function noteMarks(conversation: Conversation, { target, notes }: ItemContext): void {
  const takes = Boolean(target.profile.breakpointsAt);
  const marks = takes
    ? [
        ...conversation.tools.map(cacheMarkOf),
        ...conversation.turns.map(
          ({ role, blocks }) =>
            cacheMarksOf(
              role === 'assistant' ? blocks : blocks.filter(({ type }) => type === 'tool-result'),
            ).next().value,
        ),
      ]
    : [cacheMarks(conversation).next().value];
  if (marks.some((mark) => mark !== undefined)) notes.add('cache_control_dropped', 'input');
}

function plainText(blocks: readonly Block[]): string {
  return blocks
    .flatMap((block) => (block.type === 'text' && block.text !== '' ? [block.text] : []))
    .join('\n\n');
}

function encodeInput(
  turns: readonly Turn[],
  offset: number,
  context: ItemContext,
): readonly JsonObject[] {
  const items = turns.flatMap((turn, i) => knownItems(turn, at(i + offset), context));
  return withoutLoneReasoning(items, context.notes);
}

/** Fields that are never renamed or dropped: every request needs them. */
const FIXED = ['model', 'input', 'stream'];

function applyProfile(
  body: Record<string, Json | undefined>,
  target: Target,
  notes: Notes,
): JsonObject {
  const { dropParams, renameParams } = target.profile;
  const out: Record<string, Json> = {};
  for (const key in body) {
    const value = body[key];
    if (value === undefined) continue;
    if (!FIXED.includes(key) && dropParams?.includes(key)) {
      notes.add('parameter_dropped', key);
      continue;
    }
    const name = FIXED.includes(key) ? key : ((renameParams && memberOf(renameParams, key)) ?? key);
    if (name !== key) notes.add('parameter_mapped', key, name);
    put(out, name, value);
  }
  return out;
}
