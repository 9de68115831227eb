/** The words of `hopgate replay`: targets, settings to compare, edits, and what is sent. */

import { tryParse } from '../../../lib/json/json.ts';
import { pointerOf } from '../../../lib/json/pointer.ts';
import type { RequestEdit } from '../../../samples/replay/types.ts';
import { type Invocation, UsageError } from '../../command.ts';

export const targetsOf = (written: string | undefined): readonly string[] =>
  (written ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

/** `messages[3].content=…` as an edit; a value that is valid JSON is read as JSON. */
function editOf(written: string): RequestEdit {
  const equals = written.indexOf('=');
  if (equals < 1) throw new UsageError(`"${written}" is not an edit: write MEMBER=VALUE.`);
  const path = written
    .slice(0, equals)
    .split(/[.[\]]+/)
    .filter((part) => part !== '');
  const text = written.slice(equals + 1);
  return { at: pointerOf(path), value: tryParse(text) ?? text };
}

/** The arguments: what to send, with --compare further settings, else with --edit further edits. */
export function splitArguments({
  arguments: words,
  text,
}: Invocation): readonly [string[], string[], RequestEdit[]] {
  const first = text('compare');
  const edit = text('edit');
  const setting = (word: string) => /^[A-Za-z_.[\]\d]+=/.test(word);
  if (first === undefined) {
    if (edit === undefined) return [[...words], [], []];
    const edits = [edit, ...words.filter(setting)].map(editOf);
    return [words.filter((word) => !setting(word)), [], edits];
  }
  if (!setting(first)) throw new UsageError(`"${first}" is no setting: write KEY=VALUE.`);
  const edits = edit === undefined ? [] : [editOf(edit)];
  return [words.filter((word) => !setting(word)), [first, ...words.filter(setting)], edits];
}
