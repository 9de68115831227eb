/** The fields that edit a request before it is sent again: model, parameters, texts of messages. */

import { useState } from 'preact/hooks';
import { isObject, type Json, type JsonObject, tryParse } from '../../../lib/json/json.ts';
import { pointerOf, valueAt } from '../../../lib/json/pointer.ts';
import type { RequestEdit, SampleDetail } from '../../api/api.ts';
import { getBody } from '../exchange/bodies.tsx';
import { Field, Select, Word } from '../kit/form.tsx';
import { several } from '../kit/format.ts';
import { useLoad } from '../kit/hooks.ts';
import { t } from '../kit/language.ts';
import { Button, Problem } from '../kit/ui.tsx';

export type ReadEdits = (form: FormData) => readonly RequestEdit[];

interface TextPlace {
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
function textPlaces(body: JsonObject): readonly TextPlace[] {
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
      const place = at + pointerOf([key]);
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

/** Values that have fields of their own, by the protocol of the request; Gemini keeps them in an object. */
function fieldsOf(body: JsonObject, entry: string): readonly (readonly [string, string])[] {
  const inner = entry === 'google-gemini' || isObject(body.generationConfig);
  const most =
    ['max_completion_tokens', 'max_output_tokens', 'max_tokens'].find((name) => name in body) ??
    (entry === 'openai-responses' ? 'max_output_tokens' : 'max_tokens');
  return [
    ['/model', t`Model`],
    [inner ? '/generationConfig/temperature' : '/temperature', t`Temperature`],
    [inner ? '/generationConfig/maxOutputTokens' : `/${most}`, t`Max tokens`],
  ];
}

/** `0.5` is a number; what is no JSON is a text, and the server says what it should be. */
const parsed = (text: string): Json => tryParse(text) ?? text;

interface EditFieldsProps {
  readonly detail: SampleDetail;
  /** The body that is sent. */
  readonly stage: string;
  readonly reader: { current: ReadEdits };
}

export function EditFields({ detail: { row }, stage, reader }: EditFieldsProps) {
  const [open, setOpen] = useState(false);
  reader.current = () => [];
  const { data, problem } = useLoad(
    async (signal) => {
      if (!open || stage === '') return undefined;
      const { text, whole } = await getBody(row.id, stage, MAX_BYTES, signal);
      const body = whole ? parsed(text) : undefined;
      return { stage, body: isObject(body) ? body : undefined };
    },
    [open, stage],
  );
  const loaded = open && data?.stage === stage ? data : undefined;
  return (
    <details class="edit" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{t`Edit the request`}</summary>
      <div class="editbody">
        <Problem text={problem} />
        {loaded && loaded.body === undefined && (
          <p class="soft">{t`This body is too large to edit, or not JSON.`}</p>
        )}
        {loaded?.body && (
          <BodyFields key={stage} body={loaded.body} entry={row.entry} reader={reader} />
        )}
      </div>
    </details>
  );
}

interface BodyFieldsProps {
  readonly body: JsonObject;
  readonly entry: string;
  readonly reader: { current: ReadEdits };
}

function BodyFields({ body, entry, reader }: BodyFieldsProps) {
  const texts = textPlaces(body);
  // The last text is the newest turn.
  const [which, setWhich] = useState(texts.length - 1);
  const [edited, setEdited] = useState<ReadonlyMap<string, string>>(new Map());
  const fields = fieldsOf(body, entry).map(([at, label]) => {
    const before = valueAt(body, at);
    const shown =
      before === undefined ? '' : typeof before === 'string' ? before : JSON.stringify(before);
    return { at, label, shown, name: `edit-${at.split('/').at(-1)}` };
  });
  reader.current = (form) => [
    ...fields.flatMap(({ at, shown, name }): readonly RequestEdit[] => {
      const value = String(form.get(name) ?? '').trim();
      if (value === shown) return [];
      if (value === '') return [{ at, value: null }];
      return [{ at, value: at === '/model' ? value : parsed(value) }];
    }),
    ...moreEdits(String(form.get('edit-more') ?? '')),
    ...[...edited].map(([at, value]) => ({ at, value })),
  ];
  const place = texts[which];
  const edit = (text: string) => {
    const next = new Map(edited);
    if (text === place!.text) next.delete(place!.at);
    else next.set(place!.at, text);
    setEdited(next);
  };
  return (
    <>
      <div class="editfields">
        {fields.map(({ label, shown, name }) => (
          <Field label={label} key={name}>
            <Word name={name} value={shown} placeholder={t`not set`} />
          </Field>
        ))}
        <Field label={t`Another parameter`} hint="NAME=VALUE">
          <Word name="edit-more" placeholder="top_p=0.9" />
        </Field>
      </div>
      {place && (
        <>
          <Field label={t`Text`}>
            <Select
              name="edit-which"
              value={String(which)}
              choose={(value) => setWhich(Number(value))}
              all={texts.map(({ label, text }, i) => [
                String(i),
                `${label}: ${text.slice(0, 60).replace(/\s+/g, ' ')}`,
              ])}
            />
          </Field>
          <textarea
            name="edit-text"
            rows={8}
            spellcheck={false}
            aria-label={t`Text`}
            dir="auto"
            value={edited.get(place.at) ?? place.text}
            onInput={({ currentTarget }) => edit(currentTarget.value)}
          />
          <span class="soft" role="status">
            {edited.size > 0 && (
              <>
                {t`${several(edited.size, 'text')} changed `}
                <Button class="tiny" onClick={() => setEdited(new Map())}>{t`Undo`}</Button>
              </>
            )}
          </span>
        </>
      )}
    </>
  );
}

function moreEdits(written: string): readonly RequestEdit[] {
  const text = written.trim();
  const equals = text.indexOf('=');
  if (equals < 1) return [];
  const at = `/${text.slice(0, equals).trim().replaceAll('.', '/')}`;
  return [{ at, value: parsed(text.slice(equals + 1).trim()) }];
}
