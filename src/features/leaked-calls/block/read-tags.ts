/** Applies each kind of markup to the state of a block. */

import { attribute, type Lexeme } from './lex.ts';
import {
  type BlockReading,
  finishCall,
  lexHere,
  newCall,
  type OpenValue,
  settle,
} from './reading.ts';

/** Reads markup at the current position and applies it; 'no' if there is none. */
export function readMarkup(b: BlockReading): 'acted' | 'wait' | 'no' {
  const found = lexHere(b);
  if (found === 'partial') return 'wait';
  if (found === undefined) return 'no';
  b.at = found.end;
  applyTag(b, found);
  return 'acted';
}

export function applyTag(b: BlockReading, lexeme: Lexeme): void {
  const { word, closing } = lexeme;
  switch (word.role) {
    case 'wrap':
      finishCall(b, closing);
      b.depth += closing ? -1 : 1;
      b.state = 'outer';
      if (closing && b.depth <= 0) settle(b, 'done');
      break;
    case 'box':
      applyBox(b, lexeme);
      break;
    case 'call':
      applyCall(b, lexeme);
      break;
    case 'name':
      if (closing) break;
      b.parts = [];
      b.state = 'tagged-name';
      break;
    case 'arg':
      if (!closing) openArgument(b, lexeme);
      break;
    case 'key':
      if (closing) break;
      b.call ??= newCall(undefined);
      b.family = word.family;
      b.parts = [];
      b.keyFromBox = false;
      b.state = 'key';
      break;
    case 'value':
      if (closing) break;
      b.call ??= newCall(undefined);
      openValue(b, { key: b.value?.key, lexeme, as: 'schema' });
      break;
    case 'args':
      if (word.family === 'deepseek') b.family = 'deepseek';
      b.state = 'args';
      break;
    case 'node':
      applyNode(b, lexeme);
      break;
    case 'python':
      b.state = 'python';
      break;
    case 'header':
      // A header without its tokens begins with words; otherwise each token ends a word.
      if (word.notation === 'bare') b.head = word.word;
      else b.head = b.state === 'header' ? `${b.head} ` : '';
      b.state = 'header';
      break;
    case 'channel':
      if (b.call === undefined && b.calls.length === 0 && !closing) {
        b.channel = word.channel;
        settle(b, 'done');
      }
      break;
    case 'skip':
      b.state = word.notation === 'square' ? 'discard' : b.state;
      break;
    case 'stop':
      finishCall(b);
      settle(b, b.calls.length > 0 || b.committed ? 'done' : 'fail');
      break;
    case 'fence':
      break;
  }
}

function applyBox(b: BlockReading, lexeme: Lexeme): void {
  if (lexeme.closing) {
    finishCall(b, true);
    b.boxed = false;
    b.state = 'outer';
    if (b.depth <= 0) settle(b, 'done');
    return;
  }
  // GLM: a second `<tool_call>` instead of the first `<arg_key>`.
  if (b.call !== undefined && b.call.json === undefined && b.call.pairs.length === 0) {
    b.parts = [];
    b.keyFromBox = true;
    b.state = 'key';
    return;
  }
  finishCall(b, true);
  b.boxed = true;
  b.head = '';
  const name = attribute(lexeme, 'name');
  if (name !== undefined && b.isTool(name)) {
    b.call = newCall(name);
    b.committed = true;
    b.state = 'body';
    return;
  }
  b.state = b.calls.length > 0 ? 'name' : 'outer';
}

function applyCall(b: BlockReading, lexeme: Lexeme): void {
  const { word, closing } = lexeme;
  if (closing) {
    if (b.call === undefined && word.notation === 'bars') {
      b.state = 'outer';
      return;
    }
    finishCall(b, true);
    b.state = 'outer';
    if (b.depth <= 0 && !b.boxed) settle(b, 'done');
    return;
  }
  // Step has the kind of tool where DeepSeek has the name.
  if (b.call?.name === 'function' && word.word === 'steptml:invoke') b.call = undefined;
  finishCall(b);
  if (word.notation === 'bars') {
    b.head = '';
    b.state = 'name';
    return;
  }
  if (b.family === 'minimax-m1' || b.family === 'hermes') b.family = word.family;
  if (word.family === 'anthropic-xml' && b.family === 'minimax-m1') b.family = 'dsml';
  b.call = newCall(attribute(lexeme, word.nameIn ?? 'name') ?? attribute(lexeme, 'name'));
  const { name } = b.call;
  b.committed ||= b.depth > 0 || b.boxed || (name !== undefined && b.isTool(name));
  b.state = 'body';
  if (lexeme.empty) {
    finishCall(b, true);
    b.state = 'outer';
    if (b.depth <= 0 && !b.boxed) settle(b, 'done');
  }
}

function openArgument(b: BlockReading, lexeme: Lexeme): void {
  b.committed = true;
  b.call ??= newCall(undefined);
  const key = attribute(lexeme, lexeme.word.nameIn ?? 'name');
  const equals = /^\s*=/.test(lexeme.attributes);
  if (equals && (b.family === 'hermes' || b.family === 'anthropic-xml')) {
    b.family = 'qwen';
  }
  if (key === undefined || /[<>=]/.test(key)) {
    // `<parameter=command=create</parameter>`: the closer was read as part of the tag.
    b.call.malformed = true;
    if (key?.includes('</')) return;
  }
  const marked = attribute(lexeme, lexeme.word.notation === 'xtml' ? 'type' : 'string');
  const isString = marked === 'true' || marked === 'string';
  const as = marked === undefined ? 'schema' : isString ? 'string' : 'json';
  openValue(b, { key, lexeme, as });
  if (lexeme.empty) closeValue(b, '');
}

function openValue(b: BlockReading, value: OpenValue): void {
  b.value = value;
  b.parts = [];
  b.state = 'value';
}

export function closeValue(b: BlockReading, text: string): void {
  const { key, lexeme, as } = b.value!;
  b.value = undefined;
  b.parts = [];
  b.state = 'body';
  if (key === undefined) {
    b.call!.malformed = true;
    return;
  }
  // MiniCPM
  let value = /^\s*<!\[CDATA\[([\s\S]*)\]\]>\s*$/.exec(text)?.[1] ?? text;
  if (/^\s*=/.test(lexeme.attributes)) value = value.replace(/^\r?\n/, '').replace(/\r?\n$/, '');
  else if (b.family === 'minimax-m2') value = value.trim();
  b.call!.pairs.push({ key, text: value, as });
}

/** Maximum nesting of arguments; a call with deeper ones is malformed. */
const MAX_TREE = 100;

/** M3: opens or closes a key. */
function applyNode(b: BlockReading, lexeme: Lexeme): void {
  b.call ??= newCall(undefined);
  const { word, closing } = lexeme;
  if (!closing) {
    if (b.tree.length >= MAX_TREE) b.call.malformed = true;
    b.tree.push({ name: word.word, children: [], text: '' });
    b.state = 'tree';
    return;
  }
  const node = b.tree.pop();
  if (node === undefined || node.name !== word.word) {
    b.call.malformed = true;
    b.tree = [];
    b.state = 'body';
    return;
  }
  const parent = b.tree.at(-1);
  if (parent !== undefined) parent.children.push(node);
  else {
    b.call.pairs.push({ key: node.name, tree: node });
    b.state = 'body';
  }
}
