/** Reads what the user wants, by a handful of plain patterns, and in which language. */

import { isChinese } from '../../lib/text/words.ts';

export type Intent =
  | { readonly kind: 'say'; readonly text: string }
  | { readonly kind: 'count'; readonly to: number }
  | { readonly kind: 'tour' }
  | {
      readonly kind: 'write';
      readonly path: string;
      readonly content: string;
      readonly shell: boolean;
    }
  | { readonly kind: 'command'; readonly command: string }
  | { readonly kind: 'read'; readonly path: string }
  | { readonly kind: 'question' };

const SAY =
  /^(?:please\s+)?(?:just\s+)?(?:say|repeat|echo|(?:reply|respond|answer)\s+with)\b(?:\s+(?:after me|exactly|only|just|the words?|the following))*\s*[:,]?\s*(.+)$/is;
const SAY_ZH =
  /^(?:请)?(?:你)?(?:只)?(?:跟我说|说(?!明|说|不|服)|重复|复述|回复|回答)(?:一?[遍下句])?[:：,，\s]*(.+)$/s;
const COUNT = /\bcount\b.*?\b(?:to|until)\s+(\d{1,7})/i;
const COUNT_ZH = /数到\s*(\d{1,7})/;

const FILE =
  /[`"'“‘「]([^`"'”’」\n]{1,200}\.[A-Za-z0-9]{1,8})[`"'”’」]|((?:[~.]{0,2}\/)?[\w\-./]*\w\.[A-Za-z][A-Za-z0-9]{0,7})(?![\w/])/;
const WRITE = /\b(?:create|write|make|save|add|put|generate)\b/i;
const WRITE_ZH = /创建|新建|写入|写|保存|生成|建立/;
const READ = /\b(?:read|open|show|view|cat|print)\b/i;
const READ_ZH = /读取|读|打开|查看|显示/;
const SHELL = /\b(?:shell|bash|terminal|command line)\b|命令行|终端/i;
const RUN = /^(?:please\s+)?(?:run|execute)\s+(?:the\s+)?(?:(?:shell\s+)?command\s*:?\s*)?(.+)$/is;
const RUN_ZH = /^(?:请)?(?:运行|执行)(?:一下)?(?:命令)?[:：\s]*(.+)$/s;

const QUOTED = /^[`"'“‘「]([\s\S]*?)[`"'”’」]/;
const TAIL_TOOL =
  /\s*(?:,\s*)?(?:using|with|via|in|through)\s+(?:the\s+|a\s+)?(?:shell|bash|terminal)(?:\s+tool)?\s*$/i;

/** Characters that are searched for the user's intent. */
const HEAD = 1500;

/** The beginning of a text: what is asked for stands there, and some patterns here take the square of its length. */
export const headOf = (text: string): string => text.slice(0, HEAD);

/** Out of its quotes, or up to the end without a closing full stop. */
function bare(text: string): string {
  const trimmed = text.trim();
  const quoted = QUOTED.exec(trimmed);
  if (quoted) return quoted[1]!;
  return trimmed.replace(/[.。]$/, '');
}

/** Without the words on the tool at its very end, and the full stop. */
function withoutTail(text: string): string {
  const whole = text.trimEnd();
  const end = whole
    .slice(-200)
    .replace(/[.。]$/, '')
    .replace(TAIL_TOOL, '');
  return whole.slice(0, -200) + end;
}

/** `text` may be of any length; the file's name and the words around it stand near its beginning. */
function contentIn(text: string, file: string): string | undefined {
  const at = text.indexOf(file);
  const behind = text.slice(at + file.length).replace(/^[`"'”’」]/, '');
  const start = headOf(behind);
  const named =
    /\b(?:containing|that (?:says|contains|reads)|saying|with(?:\s+the)?(?:\s+(?:contents?|text|words?|line))?)\b\s*[:：]?\s*/i.exec(
      withoutTail(start),
    ) ?? /(?:内容(?:写|是|为)?|写入|写上)[:：,，\s]*/.exec(start);
  const content = named === null ? '' : withoutTail(behind.slice(named.index + named[0].length));
  if (content !== '') return bare(content);
  const before = /\b(?:write|put|save|add)\s+[`"'“]([\s\S]+?)[`"'”]\s+(?:in|to|into|as)\b/i.exec(
    text.slice(0, at + 1),
  );
  const beforeZh = /[把将]\s*[`"'“「]?(.+?)[`"'”」]?\s*(?:写入|写到|写进|保存到|存到)/.exec(
    text.slice(0, at),
  );
  return before?.[1] ?? beforeZh?.[1];
}

/** The path of a file named in the text, quotes taken off. */
export function fileIn(text: string): string | undefined {
  const found = FILE.exec(headOf(text).replace(/https?:\/\/\S+/g, ''));
  return found?.[1] ?? found?.[2];
}

/** Reads the last question. Total: whatever fits nothing is a question. */
export function readIntent(text: string): Intent {
  if (/(?:^|\s)\/demo[ -]tools\b/i.test(text)) return { kind: 'tour' };
  const said = SAY.exec(text) ?? SAY_ZH.exec(text);
  if (said) {
    const whole = /^[`"'“‘「]([\s\S]*)[`"'”’」][.。!！]?$/.exec(said[1]!.trim());
    return { kind: 'say', text: whole?.[1] ?? said[1]!.trim() };
  }
  const head = headOf(text);
  const count = COUNT.exec(head) ?? COUNT_ZH.exec(head);
  if (count) return { kind: 'count', to: Math.min(Number(count[1]), 100_000) };
  const run = RUN.exec(text) ?? RUN_ZH.exec(text);
  if (run) return { kind: 'command', command: bare(run[1]!) };
  const file = fileIn(text);
  if (file === undefined) return { kind: 'question' };
  if (WRITE.test(head) || WRITE_ZH.test(head)) {
    const content = contentIn(text, file) ?? 'Written by the hopgate demo model.';
    return { kind: 'write', path: file, content, shell: SHELL.test(head) };
  }
  if (READ.test(head) || READ_ZH.test(head)) return { kind: 'read', path: file };
  return { kind: 'question' };
}

export type Language = 'en' | 'zh';

/** The language of the question. */
export const languageOf = (text: string): Language =>
  isChinese(text.slice(0, 2000)) ? 'zh' : 'en';

/** The start of the text on one line, with an ellipsis where it was longer. */
export function quote(text: string, length = 80): string {
  const whole = text.trim();
  const start = whole.slice(0, length * 20);
  const line = [...start.replace(/\s+/g, ' ')];
  const fits = line.length <= length && start.length === whole.length;
  return fits ? line.join('') : `${line.slice(0, length).join('').trimEnd()}…`;
}
