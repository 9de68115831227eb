/** Reads the parts of a block around arguments: text between calls, names, keys, headers. */

import { BracketScan } from '../values/json-scan.ts';
import type { Lexeme } from './lex.ts';
import { startJson } from './read-json.ts';
import { applyTag, readMarkup } from './read-tags.ts';
import {
  type BlockReading,
  finishCall,
  giveUp,
  lexHere,
  MAX_HEADER,
  newCall,
  settle,
  skipSpace,
  unexpected,
} from './reading.ts';

const MAX_NAME = 128;
/** A header without its tokens: the recipient, and perhaps the input type. */
const BARE_HEADER = /^(?:assistant)?commentary to=[\w.-]*\s*[a-z]{0,8}\s*$/;

export function readOuter(b: BlockReading): boolean {
  const code = skipSpace(b);
  if (code < 0) return false;
  const found = readMarkup(b);
  if (found !== 'no') return found === 'acted';
  if (code === 0x7b || code === 0x5b) {
    if (b.depth > 0 || b.boxed) b.committed = true;
    startJson(b);
    return true;
  }
  // Between JSON calls: Llama's `;`, commas, or a surplus closing bracket.
  const stray = (code === 0x7d || code === 0x5d) && (b.boxed || b.depth > 0);
  if ((code === 0x3b || code === 0x2c || stray) && b.calls.length > 0) {
    b.at++;
    return true;
  }
  if (b.boxed && b.calls.length === 0) {
    b.head = '';
    b.state = 'name';
    return true;
  }
  // Olmo: a Python call on each line.
  const ahead = b.depth > 0 ? pythonAhead(b) : 'no';
  if (ahead === 'wait') return false;
  if (ahead === 'no') return unexpected(b);
  b.state = 'python';
  return true;
}

const PYTHON_CALL = /([A-Za-z_][\w.-]{0,128})(\()?/y;

function pythonAhead(b: BlockReading): 'yes' | 'wait' | 'no' {
  PYTHON_CALL.lastIndex = b.at;
  const [whole = '', name = '', bracket] = PYTHON_CALL.exec(b.text) ?? [];
  if (bracket !== undefined) return b.isTool(name) ? 'yes' : 'no';
  return whole !== '' && b.at + whole.length === b.text.length && !b.final ? 'wait' : 'no';
}

export function readName(b: BlockReading): boolean {
  const text = b.text;
  for (; b.at < text.length; b.at++) {
    const code = text.charCodeAt(b.at);
    if (code === 0x3c || code === 0x5b || code === 0x5d) {
      const found = lexHere(b);
      if (found === 'partial') return false;
      if (found === undefined) return unexpected(b);
      return beginCall(b);
    }
    if (b.family === 'gemma' && (code === 0x7b || code === 0x28)) return beginGemma(b);
    if (code === 0x28 && b.boxed && b.call === undefined) {
      const next = /\S/.exec(text.slice(b.at + 1))?.[0];
      if (next === undefined && !b.final) return false;
      if (next !== '{') return beginPython(b);
    }
    if (code === 0x7b || code === 0x28 || code === 0x60) return beginCall(b);
    // GLM 5.3 Flash: `<tool_call>NAME>{…}`.
    if (code === 0x3e && b.boxed && b.head.trim() !== '') {
      b.at++;
      return beginCall(b);
    }
    if (code === 0x5c) {
      // GLM: a literal backslash-n may stand between the parts.
      if (b.at + 1 === text.length && !b.final) return false;
      return text[b.at + 1] === 'n' ? beginCall(b) : unexpected(b);
    }
    const char = text[b.at]!;
    // Step Audio writes the kind of tool on a line of its own.
    if (b.boxed && /^\s*function\s*\n\s*$/.test(b.head)) b.head = '';
    const behind = b.head !== b.head.trimEnd() && b.head.trim() !== '';
    if (!/[\w.:/@\-\s]/.test(char) || (behind && /\S/.test(char))) return unexpected(b);
    b.head += char;
    if (b.head.length > MAX_NAME) return unexpected(b);
  }
  return false;
}

/** Begins a call: its name is complete, what ends the name is not read yet. */
function beginCall(b: BlockReading): boolean {
  const name = b.head.trim();
  if (name === '') {
    // `[TOOL_CALLS] [{…}]`, and calls whose name is missing.
    if (b.boxed && b.text.charCodeAt(b.at) === 0x7b) {
      startJson(b);
      return true;
    }
    const found = readMarkup(b);
    if (found === 'no') return unexpected(b);
    return found === 'acted';
  }
  if (b.family === 'hermes') b.family = 'glm';
  b.committed = true;
  if (b.call === undefined) b.call = newCall(name);
  else b.call.name = name;
  b.head = '';
  b.state = 'body';
  return true;
}

/** `<tool_call>NAME(key="value")</tool_call>`: the name and the bracket are Python. */
function beginPython(b: BlockReading): boolean {
  b.scan = new BracketScan(true);
  b.parts = [b.head.trim()];
  b.head = '';
  b.committed = true;
  b.state = 'python';
  return true;
}

/** `<|tool_call>call:NAME{…}<tool_call|>`. */
function beginGemma(b: BlockReading): boolean {
  b.call = newCall(b.head.trim().replace(/^call:\s*/, ''));
  b.head = '';
  b.parts = [];
  b.committed = true;
  b.state = 'gemma';
  return true;
}

/** After DeepSeek's and Kimi's separators: JSON, or (R1, V3) the name followed by a fence. */
export function readArgs(b: BlockReading): boolean {
  const code = skipSpace(b);
  if (code < 0) return false;
  b.state = code === 0x7b || code === 0x60 || code === 0x3c ? 'body' : 'name';
  return true;
}

/** GLM's keys, and names in separate tags: short text up to the next markup. */
export function readTagText(b: BlockReading): boolean {
  const text = b.text;
  for (;;) {
    const at = text.indexOf('<', b.at);
    b.parts.push(text.slice(b.at, at < 0 ? text.length : at));
    b.at = at < 0 ? text.length : at;
    const read = b.parts.reduce((sum, part) => sum + part.length, 0);
    if (read > MAX_HEADER) {
      b.call ??= newCall(undefined);
      b.call.malformed = true;
      b.state = 'body';
      return true;
    }
    if (at < 0) return false;
    const found = lexHere(b);
    if (found === 'partial') return false;
    if (found === undefined) {
      b.parts.push('<');
      b.at++;
      continue;
    }
    shortEnds(b, found, b.parts.join('').trim());
    return true;
  }
}

function shortEnds(b: BlockReading, found: Lexeme, read: string): void {
  const { role } = found.word;
  if (b.state === 'tagged-name') {
    if (role === 'name' && found.closing) b.at = found.end;
    b.call ??= newCall(undefined);
    b.call.name = read;
    b.state = 'body';
    return;
  }
  b.state = 'body';
  if ((role === 'key' && found.closing) || (role === 'value' && !found.closing)) {
    if (role === 'key') b.at = found.end;
    b.value = { key: read, lexeme: found, as: 'schema' };
  } else if (role === 'value' && read.includes('=')) {
    // GLM 5.3 Flash: `<arg_key>KEY=VALUE</arg_value>`.
    b.at = found.end;
    const equals = read.indexOf('=');
    b.call!.pairs.push({
      key: read.slice(0, equals).trim(),
      text: read.slice(equals + 1),
      as: 'schema',
    });
  } else if (b.keyFromBox) {
    // No key but a name: the call before it had no arguments and no closer.
    finishCall(b, true);
    b.call = newCall(read);
  } else b.call!.malformed = true;
}

/** Harmony: the header from `<|start|>` or `<|channel|>` to the message; a recipient makes it a call. */
export function readHeader(b: BlockReading): boolean {
  const text = b.text;
  const bare = b.opener.type === 'tag' && b.opener.lexeme.word.notation === 'bare';
  for (; b.at < text.length; b.at++) {
    if (b.head.length > MAX_HEADER) return giveUp(b);
    const code = text.charCodeAt(b.at);
    if (code === 0x3c) {
      const found = lexHere(b);
      if (found === 'partial') return false;
      if (found === undefined) return giveUp(b);
      b.at = found.end;
      if (found.word.role === 'fence') return headerEnds(b);
      applyTag(b, found);
      return true;
    }
    if (code === 0x7b) return headerEnds(b);
    b.head += text[b.at];
    if (bare && !BARE_HEADER.test(b.head)) return giveUp(b);
  }
  return false;
}

function headerEnds(b: BlockReading): boolean {
  const header = b.head;
  b.head = '';
  const recipient = /\bto=\s*([\w.-]+)/.exec(header)?.[1];
  const thinking = /\banalysis\b/.test(header);
  if (recipient === undefined || thinking) {
    // A channel without a recipient; JSON alone does not end a header.
    if (b.text.charCodeAt(b.at - 1) !== 0x3e) return giveUp(b);
    b.channel = thinking ? 'reasoning' : 'text';
    settle(b, 'done');
    return true;
  }
  b.committed = true;
  b.call = newCall(recipient);
  b.state = 'body';
  return true;
}

export function readDiscard(b: BlockReading): boolean {
  const at = b.text.slice(b.at).search(/[^\w-]/);
  b.at = at < 0 ? b.text.length : b.at + at;
  if (at >= 0) b.state = b.call === undefined ? 'outer' : 'body';
  return at >= 0;
}
