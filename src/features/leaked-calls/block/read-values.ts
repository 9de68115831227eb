/** Reads a call's arguments in a block: its body, values in tags, M3's nested keys. */

import { attribute, type Lexeme, lex } from './lex.ts';
import { startJson } from './read-json.ts';
import { applyTag, closeValue, readMarkup } from './read-tags.ts';
import { type BlockReading, finishCall, lexHere, MAX_JUNK, settle, skipSpace } from './reading.ts';

/** A tag whose key has other characters is part of the value around it. */
const PLAUSIBLE_KEY = /^[\w.$-]+$/;
/** Maximum white space between two tags of a call. */
const MAX_GAP = 400;
/** Maximum length of a fence with its language name. */
const MAX_FENCE = 40;

export function readBody(b: BlockReading): boolean {
  const code = skipSpace(b);
  if (code < 0) return false;
  const call = b.call;
  if (call === undefined) {
    b.state = 'outer';
    return true;
  }
  const found = readMarkup(b);
  if (found !== 'no') return found === 'acted';
  if (code === 0x7b && call.json === undefined && call.pairs.length === 0) {
    startJson(b);
    return true;
  }
  if (code === 0x60) return readFence(b);
  if (b.text.startsWith('\\n', b.at)) {
    b.at += 2;
    return true;
  }
  if (call.json !== undefined) {
    // `NAME({…})`, `{…};`: other ways to end a call.
    if (code === 0x29 || code === 0x3b || code === 0x2c) {
      b.at++;
      return true;
    }
    finishCall(b);
    b.state = 'outer';
    return true;
  }
  if (code === 0x28 && call.pairs.length === 0) {
    b.at++;
    return true;
  }
  if (code === 0x5c && b.at + 1 === b.text.length) return false;
  call.malformed = true;
  if (++b.junk > MAX_JUNK) {
    settle(b, 'fail');
    return false;
  }
  b.at++;
  return true;
}

/** A fence around JSON arguments. */
function readFence(b: BlockReading): boolean {
  const fence = /`+(?:[A-Za-z]*)/y;
  fence.lastIndex = b.at;
  const end = b.at + fence.exec(b.text)![0].length;
  if (end === b.text.length && end - b.at < MAX_FENCE && !b.final) return false;
  b.at = end;
  return true;
}

/** Reads a value up to its own closer, or to markup that can only follow it. */
export function readValue(b: BlockReading): boolean {
  const text = b.text;
  let from = b.at;
  for (;;) {
    const at = text.indexOf('<', from);
    if (at < 0) {
      b.parts.push(text.slice(b.at));
      b.at = text.length;
      return false;
    }
    const found = lex(text, at, b.lexicon);
    const verdict = found === 'partial' ? 'wait' : closes(b, found);
    if (verdict === 'wait') {
      b.parts.push(text.slice(b.at, at));
      b.at = at;
      return false;
    }
    if (verdict === 'no') {
      from = at + 1;
      continue;
    }
    b.parts.push(text.slice(b.at, at));
    b.at = verdict === 'own' ? (found as Lexeme).end : at;
    closeValue(b, b.parts.join(''));
    return true;
  }
}

function closes(b: BlockReading, found: Lexeme | undefined): 'own' | 'around' | 'wait' | 'no' {
  if (found === undefined) return 'no';
  const open = b.value!.lexeme;
  const { role, notation } = found.word;
  // HTML has such a tag, too, so it ends no other.
  if (found.word.word === 'param' && open.word.word !== 'param') return 'no';
  const own = found.closing && (role === 'arg' || role === 'value');
  const around =
    (found.closing && (role === 'call' || role === 'wrap' || role === 'box')) ||
    (!found.closing &&
      role === (open.word.role === 'value' ? 'key' : 'arg') &&
      (role === 'key' || PLAUSIBLE_KEY.test(attribute(found, found.word.nameIn ?? 'name') ?? '')));
  if (!own && !around) return 'no';
  const foreign = notation !== open.word.notation || (own && role !== open.word.role);
  if (!foreign) return own ? 'own' : 'around';
  if (open.word.notation === 'xtml' || notation === 'bars') return 'no';
  // A tag of another grammar closes: only if more markup follows; otherwise the tag is part of the text.
  let next = found.end;
  while (next - found.end < MAX_GAP && /\s/.test(b.text[next] ?? '')) next++;
  if (next === b.text.length) return b.final ? (own ? 'own' : 'around') : 'wait';
  const behind = lexHere(b, next);
  if (behind === 'partial' && !b.final) return 'wait';
  return behind === undefined ? 'no' : own ? 'own' : 'around';
}

export function readTree(b: BlockReading): boolean {
  const text = b.text;
  const node = b.tree.at(-1)!;
  let from = b.at;
  for (;;) {
    const at = text.indexOf(']', from);
    const found = at < 0 ? undefined : lexHere(b, at);
    if (at >= 0 && found === undefined) {
      from = at + 1;
      continue;
    }
    node.text += text.slice(b.at, at < 0 ? undefined : at);
    b.at = at < 0 ? text.length : at;
    if (at < 0 || found === 'partial' || found === undefined) return false;
    b.at = found.end;
    if (found.word.role !== 'node') {
      // The call ends before its argument.
      b.call!.malformed = true;
      b.tree = [];
    }
    applyTag(b, found);
    return true;
  }
}
