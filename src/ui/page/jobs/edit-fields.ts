/** The fields that edit a request before it is sent again: model, parameters, texts of messages. */

import type { Json, JsonObject } from '../../../lib/json/json.ts';
import type { RequestEdit, SampleDetail } from '../../api/api.ts';
import { getBody } from '../kit/api-calls.ts';
import { button, h, replace } from '../kit/dom.ts';
import { failureText } from '../kit/fetching.ts';
import { count } from '../kit/format.ts';
import { field } from './job-form.ts';

export interface EditFields {
  readonly node: HTMLElement;
  /** What was changed. */
  read(): readonly RequestEdit[];
  /** Another body is sent: its fields are loaded when they are open. */
  show(stage: string): void;
}

/** A text of the request that can be edited. */
export interface TextPlace {
  readonly at: string;
  readonly label: string;
  readonly text: string;
}

/** Larger bodies are not loaded into the form. */
const MAX_BYTES = 2 * 2 ** 20;

const ROOTS = ['system', 'instructions', 'systemInstruction', 'messages', 'input', 'contents'];
const TEXTS = new Set(['text', 'content', 'output']);
const MAX_DEPTH = 8;

/** The texts of instructions and messages, in order. */
export function textPlaces(body: JsonObject): readonly TextPlace[] {
  const places: TextPlace[] = [];
  const visit = (value: Json | undefined, at: string, label: string, depth: number): void => {
    if (depth > MAX_DEPTH || value === undefined) return;
    if (Array.isArray(value)) {
      value.forEach((item: Json, i) => {
        const role = isObject(item) && typeof item.role === 'string' ? ` (${item.role})` : '';
        const message = depth === 1 ? `${i + 1}${role}` : '';
        visit(item, `${at}/${i}`, `${label} ${message}`.trim(), depth + 1);
      });
      return;
    }
    if (!isObject(value)) return;
    for (const [key, inner] of Object.entries(value)) {
      const place = `${at}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      if (typeof inner === 'string' && TEXTS.has(key)) {
        places.push({ at: place, label, text: inner });
      } else if (typeof inner === 'object') visit(inner, place, label, depth + 1);
    }
  };
  for (const root of ROOTS) {
    const value = body[root];
    const label = root === 'messages' || root === 'contents' ? 'message' : root;
    if (typeof value === 'string') places.push({ at: `/${root}`, label, text: value });
    else visit(value, `/${root}`, label, 1);
  }
  return places;
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Parameters that have fields of their own, by the API of the request; Gemini keeps them in an object. */
function parametersOf(body: JsonObject, entry: string): readonly (readonly [string, string])[] {
  if (entry === 'google-gemini' || isObject(body.generationConfig)) {
    return [
      ['/generationConfig/temperature', 'Temperature'],
      ['/generationConfig/maxOutputTokens', 'Max tokens'],
    ];
  }
  const most =
    ['max_completion_tokens', 'max_output_tokens', 'max_tokens'].find((name) => name in body) ??
    (entry === 'openai-responses' ? 'max_output_tokens' : 'max_tokens');
  return [
    ['/temperature', 'Temperature'],
    [`/${most}`, 'Max tokens'],
  ];
}

const valueAt = (body: JsonObject, at: string): Json | undefined =>
  at
    .split('/')
    .slice(1)
    .reduce<Json | undefined>((value, key) => (isObject(value) ? value[key] : undefined), body);

/** `0.5` is a number; what is no JSON is a text, and the server says what it should be. */
function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

export function editFields({ row }: SampleDetail, changed: () => void): EditFields {
  const content = h('div', { class: 'editbody' });
  const summary = h('summary', null, 'Edit the request');
  const node = h(
    'details',
    { class: 'edit', on: { toggle: () => node.open && void load() } },
    summary,
    content,
  );
  let stage = '';
  let loaded = '';
  let read: () => readonly RequestEdit[] = () => [];

  async function load(): Promise<void> {
    if (loaded === stage || stage === '') return;
    loaded = stage;
    try {
      const { text, whole } = await getBody(row.id, stage, MAX_BYTES);
      const body = whole ? parsed(text) : undefined;
      if (isObject(body)) draw(body);
      else
        replace(content, h('p', { class: 'soft' }, 'This body is too large to edit, or not JSON.'));
    } catch (thrown) {
      replace(content, h('p', { class: 'problem', role: 'alert' }, failureText(thrown)));
    }
  }

  function draw(body: JsonObject): void {
    const texts = textPlaces(body);
    const edited = new Map<string, string>();
    const inputs = [['/model', 'Model'] as const, ...parametersOf(body, row.entry)].map(
      ([at, label]) => {
        const before = valueAt(body, at);
        const shown =
          before === undefined ? '' : typeof before === 'string' ? before : JSON.stringify(before);
        const input = h('input', {
          name: `edit-${at.split('/').at(-1)}`,
          value: shown,
          autocomplete: 'off',
          spellcheck: 'false',
          placeholder: 'not set',
        });
        return { at, label, shown, input };
      },
    );
    const more = h('input', {
      name: 'edit-more',
      autocomplete: 'off',
      spellcheck: 'false',
      placeholder: 'top_p=0.9',
    });
    const area = h('textarea', {
      name: 'edit-text',
      rows: 8,
      spellcheck: 'false',
      'aria-label': 'Text',
      dir: 'auto',
    });
    const which = h(
      'select',
      { name: 'edit-which' },
      texts.map(({ label, text }, i) =>
        h('option', { value: i }, `${label}: ${text.slice(0, 60).replace(/\s+/g, ' ')}`),
      ),
    );
    const state = h('span', { class: 'soft', role: 'status' });
    const current = () => texts[Number(which.value)];
    const tell = () => {
      replace(
        state,
        edited.size > 0 && [
          `${count(edited.size)} ${edited.size === 1 ? 'text' : 'texts'} changed `,
          button(
            'Undo',
            () => {
              edited.clear();
              show();
              changed();
            },
            { class: 'tiny' },
          ),
        ],
      );
    };
    const show = () => {
      const place = current();
      if (place !== undefined) area.value = edited.get(place.at) ?? place.text;
      tell();
    };
    which.addEventListener('change', show);
    area.addEventListener('input', () => {
      const place = current();
      if (place === undefined) return;
      if (area.value === place.text) edited.delete(place.at);
      else edited.set(place.at, area.value);
      tell();
    });
    read = () => [
      ...inputs.flatMap(({ at, shown, input }): readonly RequestEdit[] => {
        const value = input.value.trim();
        if (value === shown) return [];
        if (value === '') return [{ at, value: null }];
        return [{ at, value: at === '/model' ? value : parsed(value) }];
      }),
      ...moreEdits(more.value),
      ...[...edited].map(([at, value]) => ({ at, value })),
    ];
    // The last text is the newest turn.
    if (texts.length > 0) which.value = String(texts.length - 1);
    show();
    replace(
      content,
      h(
        'div',
        { class: 'editfields' },
        inputs.map(({ label, input }) => field(label, input)),
        field('Another parameter', more, 'NAME=VALUE'),
      ),
      texts.length > 0 && [field('Text', which), area, state],
    );
  }

  return {
    node,
    read: () => (node.open ? read() : []),
    show(next) {
      if (next === stage) return;
      stage = next;
      read = () => [];
      if (node.open) void load();
    },
  };
}

function moreEdits(written: string): readonly RequestEdit[] {
  const text = written.trim();
  const equals = text.indexOf('=');
  if (equals < 1) return [];
  const at = `/${text.slice(0, equals).trim().replaceAll('.', '/')}`;
  return [{ at, value: parsed(text.slice(equals + 1).trim()) }];
}
