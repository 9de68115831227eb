/** Reads JSON and Python in a block: arguments, calls, and what may follow them. */

import type { Json } from '../../../lib/json/json.ts';
import type { RawCall } from '../build-calls.ts';
import { callsInJson } from '../values/calls-in-json.ts';
import { jsonValue } from '../values/coerce-value.ts';
import { BracketScan } from '../values/json-scan.ts';
import { gemmaArguments, pythonCalls } from '../values/python-literal.ts';
import { repairedValue } from '../values/repair-json.ts';
import { lex } from './lex.ts';
import { type BlockReading, finishCall, lexHere, settle, skipSpace } from './reading.ts';

/** Markup that may follow JSON and never occurs inside it. */
const ENDS_JSON: ReadonlySet<string> = new Set(['call', 'wrap', 'box', 'stop']);

export function startJson(b: BlockReading): void {
  b.scan = new BracketScan();
  b.parts = [];
  b.state = 'json';
}

export function readJson(b: BlockReading): boolean {
  const scan = b.scan!;
  let end = scan.feed(b.text, b.at);
  while (scan.halted) {
    // Broken JSON ends at the markup that follows it.
    const found = lex(b.text, end, b.lexicon);
    if (found !== undefined && found !== 'partial' && ENDS_JSON.has(found.word.role)) break;
    if (found === 'partial' && !b.final) {
      b.parts.push(b.text.slice(b.at, end));
      b.at = end;
      return false;
    }
    end = scan.feed(b.text, end + 1);
  }
  b.parts.push(b.text.slice(b.at, end < 0 ? undefined : end));
  b.at = end < 0 ? b.text.length : end;
  if (end < 0) return false;
  jsonEnds(b, b.parts.join(''));
  return true;
}

function jsonEnds(b: BlockReading, text: string): void {
  const opener = b.opener;
  if (b.call !== undefined) {
    b.call.json = text;
    b.state = 'body';
    return;
  }
  if (opener.type === 'json' && opener.kind === 'result') {
    settle(b, 'done');
    return;
  }
  const value = jsonValue(text) ?? repaired(b, text);
  const calls = callsInJson(value, b.family);
  if (calls === undefined && !b.committed) {
    settle(b, 'fail');
    return;
  }
  b.committed = true;
  b.calls.push(...(calls ?? [valueCall(b, undefined, undefined)]));
  if (opener.type === 'json') {
    b.state = 'tail';
    if (opener.kind === 'envelope') settle(b, 'done');
    return;
  }
  b.state = 'outer';
  if (b.boxed && b.family === 'mistral') settle(b, 'done');
}

function repaired(b: BlockReading, text: string): Json | undefined {
  const { refused } = b.repairs;
  const value = repairedValue(text, b.repairs);
  if (b.repairs.refused > refused) b.unreadable = true;
  return value;
}

/** The text ended inside JSON: only the list's bracket is missing, or an unclosed string contains the call's closer. */
export function recoverUnclosedJson(b: BlockReading): void {
  const text = b.parts.join('');
  if (b.boxed && b.call === undefined && /^\[/.test(text)) {
    const calls = callsInJson(jsonValue(`${text}]`), b.family);
    if (calls !== undefined) {
      b.calls.push(...calls);
      b.state = 'outer';
      return;
    }
  }
  for (let at = text.indexOf('<'); at >= 0; at = text.indexOf('<', at + 1)) {
    const found = lex(text, at, b.lexicon);
    if (found === undefined || found === 'partial' || !found.closing) continue;
    const { role } = found.word;
    if (role !== 'call' && role !== 'wrap' && role !== 'box') continue;
    const value = repaired(b, text.slice(0, at).trim());
    if (value === undefined) return;
    if (b.call !== undefined) {
      b.call.json = JSON.stringify(value);
      finishCall(b);
    } else b.calls.push(...(callsInJson(value, b.family) ?? []));
    if (b.calls.length > 0) b.state = 'outer';
    return;
  }
}

/** After JSON that must be the whole reply: nothing, or Llama's next call. */
export function readTail(b: BlockReading): boolean {
  const code = skipSpace(b);
  if (code < 0) return false;
  const found = lexHere(b);
  if (found === 'partial') return false;
  if (found !== undefined && found.word.role === 'stop') {
    b.at = found.end;
    return true;
  }
  if (code === 0x3b) b.at++;
  else if (code === 0x7b) startJson(b);
  else settle(b, 'fail');
  return true;
}

/** Gemma's arguments, up to the mark behind them: a text within them may have any other character. */
export function readGemma(b: BlockReading): boolean {
  for (let at = b.text.indexOf('<', b.at); ; at = b.text.indexOf('<', at + 1)) {
    const found = at < 0 ? undefined : lexHere(b, at);
    const ends = found !== 'partial' && found?.word.family === 'gemma';
    if (at >= 0 && !ends && (found !== 'partial' || b.final)) continue;
    b.parts.push(b.text.slice(b.at, at < 0 ? undefined : at));
    b.at = at < 0 ? b.text.length : at;
    if (!ends) return false;
    gemmaCall(b, gemmaArguments(b.parts.join('')));
    return true;
  }
}

/** The text ended without the mark: whole arguments are a call. */
export function recoverUnclosedGemma(b: BlockReading): void {
  const value = gemmaArguments(b.parts.join(''));
  if (value !== undefined) gemmaCall(b, value);
}

function gemmaCall(b: BlockReading, value: Json | undefined): void {
  b.calls.push(valueCall(b, b.call!.name, value));
  b.call = undefined;
  b.state = 'outer';
}

/** A call with these arguments; without any it is malformed. */
const valueCall = (
  { family }: BlockReading,
  name: string | undefined,
  value: Json | undefined,
): RawCall => ({ name, family, input: { type: 'value', value }, malformed: value === undefined });

export function readPython(b: BlockReading): boolean {
  if (b.scan === undefined) {
    const code = skipSpace(b);
    if (code < 0) return false;
    if (code === 0x7b) {
      b.state = 'outer';
      return true;
    }
    if (code !== 0x5b) {
      const call = /[A-Za-z_][\w.-]{0,128}(\()?/y;
      call.lastIndex = b.at;
      const found = call.exec(b.text);
      const open = found?.[1] === undefined;
      if (open && found !== null && b.at + found[0].length === b.text.length) return false;
      if (open) {
        settle(b, 'fail');
        return true;
      }
    }
    b.scan = new BracketScan(true);
    b.parts = [];
  }
  const end = b.scan.feed(b.text, b.at);
  b.parts.push(b.text.slice(b.at, end < 0 ? undefined : end));
  b.at = end < 0 ? b.text.length : end;
  if (end < 0) return false;
  const text = b.parts.join('');
  b.scan = undefined;
  const json = jsonValue(text);
  const calls =
    json === undefined
      ? pythonCalls(text)?.map(({ name, arguments: value }) => valueCall(b, name, value))
      : callsInJson(json, b.family);
  b.calls.push(...(calls ?? []));
  if (b.calls.length === 0) settle(b, 'fail');
  else b.state = b.opener.type === 'python' ? 'tail' : 'outer';
  return true;
}
