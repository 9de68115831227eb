/** A conversation as the page shows it: blocks as data, long texts cut, with JSON pointers into the body. */

import type {
  Block,
  Conversation,
  ExecutedBy,
  Role,
  Tool,
  ToolCallBlock,
  Turn,
  Wire,
} from '../../../conversation/types.ts';
import { isObject, type Json, type JsonObject } from '../../../lib/json/json.ts';
import type { Steps } from '../../../lib/loop/steps.ts';

export interface TurnView {
  readonly role: Role;
  readonly blocks: readonly BlockView[];
  /** Its JSON pointer in the body, as in changes of a diff. */
  readonly at?: string;
}

/** A text; `chars` is its full length where it was cut. */
export interface TextView {
  readonly text: string;
  readonly chars?: number;
}

export type BlockView = { readonly at?: string } & (
  | ({
      readonly type: 'text';
      readonly citations?: readonly { readonly url?: string; readonly title?: string }[];
    } & TextView)
  | ({ readonly type: 'refusal' } & TextView)
  | ({
      readonly type: 'reasoning';
      readonly summary?: boolean;
      /** A signature or encrypted payload beside the text or instead of it. */
      readonly sealed?: { readonly kind: string; readonly bytes: number };
    } & TextView)
  /** `text` is the input as the model wrote it: usually JSON, possibly broken. */
  | (Pick<ToolCallBlock, 'type' | 'id' | 'name' | 'kind' | 'by'> & TextView)
  | {
      readonly type: 'tool-result';
      readonly call_id: string;
      readonly is_error: boolean;
      readonly by: ExecutedBy;
      readonly content: readonly BlockView[];
    }
  | MediaView
  /** Content that the conversation model does not know; `text` is its readable text, else its JSON. */
  | ({ readonly type: 'opaque'; readonly name: string } & TextView)
);

type MediaView = Pick<MediaBlock, 'type' | 'media' | 'filename'> & {
  readonly mime?: string;
  /** Size of the decoded content, where the body holds it. */
  readonly bytes?: number;
  readonly url?: string;
};
type MediaBlock = Extract<Block, { type: 'media' }>;

/** A tool that a request declares. */
export type ToolView = ReturnType<typeof toolViews>[number];

export interface ViewOptions {
  /** Most characters of one text. */
  readonly most: number;
  /** JSON pointers by the values of the body. */
  readonly places: ReadonlyMap<unknown, string>;
}

/** Cuts a text at `most` characters, never inside a surrogate pair. */
export function textView(text: string, most: number): TextView {
  if (text.length <= most) return { text };
  const half = text.codePointAt(most - 1)! > 0xffff ? most - 1 : most;
  return { text: text.slice(0, half), chars: text.length };
}

const atOf = ({ wire }: { readonly wire?: Wire }, { places }: ViewOptions) =>
  wire && places.get(wire.value);

/** Turns of a conversation. */
export function* turnViews(
  turns: readonly Turn[],
  options: ViewOptions,
): Steps<readonly TurnView[]> {
  const views: TurnView[] = [];
  for (const turn of turns) {
    const blocks: BlockView[] = [];
    for (const block of turn.blocks) {
      blocks.push(...blockViews([block], options));
      yield;
    }
    views.push({ role: turn.role, blocks, at: atOf(turn, options) });
  }
  return views;
}

export function blockViews(blocks: readonly Block[], options: ViewOptions): readonly BlockView[] {
  return blocks.map((block) => ({ ...blockView(block, options), at: atOf(block, options) }));
}

function blockView(block: Block, options: ViewOptions): BlockView {
  const { most } = options;
  switch (block.type) {
    case 'text': {
      const citations = block.citations?.map(({ url, title }) => ({ url, title }));
      return { type: 'text', ...textView(block.text, most), citations };
    }
    case 'refusal':
      return { type: 'refusal', ...textView(block.text, most) };
    case 'reasoning': {
      const { summary, sealed } = block;
      return {
        type: 'reasoning',
        ...textView(block.text, most),
        summary: summary || undefined,
        sealed: sealed && { kind: sealed.kind, bytes: sealed.value.length },
      };
    }
    case 'tool-call': {
      const { type, id, name, kind, by, input } = block;
      return { type, id, name, kind, by, ...textView(input, most) };
    }
    case 'tool-result': {
      const { type, callId, isError, by, content } = block;
      return {
        type,
        call_id: callId,
        is_error: isError,
        by,
        content: blockViews(content, options),
      };
    }
    case 'media':
      return mediaView(block);
    case 'opaque': {
      const { type, name, text, wire } = block;
      return { type, name, ...textView(text ?? JSON.stringify(wire.value) ?? '', most) };
    }
  }
}

/** Kind and size, never the content: viewing an exchange must not load a model's image. */
function mediaView({ type, media, source, filename }: MediaBlock): MediaView {
  const base = { type, media, filename };
  switch (source.type) {
    case 'base64':
      return { ...base, mime: source.mediaType, bytes: Math.floor((source.data.length * 3) / 4) };
    case 'text':
      return { ...base, mime: source.mediaType, bytes: Buffer.byteLength(source.text) };
    case 'url':
      return { ...base, url: source.url.slice(0, 2000) };
    case 'file-id':
      return { ...base, url: `file-id:${source.id}` };
  }
}

export const toolViews = (tools: readonly Tool[]) =>
  tools.map((tool) => {
    const { type, name } = tool;
    const description = 'description' in tool ? tool.description : undefined;
    return { type, name, description, schema: schemaOf(tool) };
  });

/** JSON Schema of a function, format of a custom tool, options of a hosted one. */
function schemaOf(tool: Tool): Json | undefined {
  if (tool.type === 'function') return tool.schema;
  return tool.type === 'custom' ? tool.format : tool.options;
}

/** Settings as plain JSON. */
export function settingsView({ settings }: Conversation): JsonObject {
  const value: unknown = JSON.parse(JSON.stringify(settings));
  return isObject(value as Json) ? (value as JsonObject) : {};
}
