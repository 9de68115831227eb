/** Converts the content of an HTML page to Markdown, in linear time and in steps that let other work run. */

import { readEntities } from '../../../../lib/http/html-entities.ts';
import {
  type Attributes,
  absoluteUrl,
  BLOCKS,
  BOILERPLATE,
  CONTAINERS,
  type HtmlToken,
  HtmlTokens,
  IMPLIED_ENDS,
  isHidden,
  OPTIONAL_END,
  SCOPE_LIMITS,
  VOID,
} from './html-tokens.ts';
import { type InlineMark, MarkdownWriter } from './markdown-writer.ts';

export interface MarkdownPage {
  readonly title: string;
  readonly text: string;
  /** The whole page was read. */
  readonly whole: boolean;
  /** The page has scripts, which may produce its content. */
  readonly scripts: boolean;
}

/** Deeper than any real page; of deeper elements only the text is read. */
const MAX_DEPTH = 100;
const MAX_TITLE = 300;
/** Characters of a table that are held until its end shows whether it is only used for layout. */
const MAX_TABLE = 32_768;
/** With less text, a `<main>` or `<article>` is an empty shell for scripts. */
const MIN_CONTENT = 200;
/** Milliseconds of work before other work gets its turn. */
const SLICE = 8;

/**
 * Converts a page without scripts, navigation and the like, with absolute links. Where there is a
 * `<main>` (or a single `<article>`) with text in it, only its inside.
 * @param enough characters after which reading may stop
 */
export async function htmlToMarkdown(
  html: string,
  url: string,
  enough: number,
): Promise<MarkdownPage> {
  const contentElement = contentElementOf(html);
  const page = await readOnce(html, url, enough, contentElement);
  if (contentElement === undefined || page.text.length >= MIN_CONTENT) return page;
  return readOnce(html, url, enough, undefined);
}

function contentElementOf(html: string): string | undefined {
  if (/<main[\s>]/i.test(html)) return 'main';
  const article = /<article[\s>]/gi;
  return article.test(html) && !article.test(html) ? 'article' : undefined;
}

async function readOnce(
  html: string,
  url: string,
  enough: number,
  contentElement: string | undefined,
) {
  const tokens = new HtmlTokens(html);
  const page = new MarkdownBuilder(url, contentElement);
  let since = performance.now();
  for (let token = tokens.next(), count = 0; token !== undefined; token = tokens.next()) {
    page.take(token);
    if (page.length > enough) break;
    if (++count % 8 === 0 && performance.now() - since > SLICE) {
      await new Promise(setImmediate);
      since = performance.now();
    }
  }
  const { title, scripts } = page;
  return { title, text: page.end(), whole: page.length <= enough, scripts };
}

interface OpenElement {
  readonly name: string;
  /** Called at the end of the element. */
  readonly close?: (() => void) | undefined;
}

interface OpenTable {
  /** The writer that gets the table. */
  readonly writer: MarkdownWriter;
  rows: string[][];
  size: number;
  /** The first row has been written. */
  begun: boolean;
  /** It is used for layout: its cells are blocks of their own. */
  layout: boolean;
}

const STRONG: InlineMark = { open: '**', close: '**' };
const EMPHASIS: InlineMark = { open: '*', close: '*' };
const CODE: InlineMark = { open: '`', close: '`' };
const MARKS: Readonly<Record<string, InlineMark>> = {
  b: STRONG,
  strong: STRONG,
  i: EMPHASIS,
  em: EMPHASIS,
  code: CODE,
  kbd: CODE,
  samp: CODE,
};

class MarkdownBuilder {
  title = '';
  scripts = false;
  #base: string;
  #main = new MarkdownWriter();
  #writer = this.#main;
  #titled = false;
  #contentDepth = 0;
  #stack: OpenElement[] = [];
  readonly #open = new Map<string, number>();
  /** Open elements that were too deep for the stack. */
  readonly #beyond = new Map<string, number>();
  /** The skipped element, with the depth in elements of its name and in any elements. */
  #skipped: { readonly name: string; same: number; depth: number } | undefined;
  /** Text of the current `<pre>`. */
  #pre: string[] | undefined;
  #preLength = 0;
  #tables: OpenTable[] = [];
  #lists: { counter: number | undefined }[] = [];

  constructor(
    private readonly url: string,
    private readonly contentElement: string | undefined,
  ) {
    this.#base = url;
  }

  /** Characters so far, including held text. */
  get length(): number {
    const waiting = this.#tables.reduce((sum, { size }) => sum + size, this.#preLength);
    return this.#main.length + waiting + (this.#writer === this.#main ? 0 : this.#writer.length);
  }

  end(): string {
    while (this.#stack.length > 0) this.#pop();
    return this.#main.toString();
  }

  take(token: HtmlToken): void {
    if (this.#skipped !== undefined && this.#skip(token)) return;
    switch (token.type) {
      case 'text':
        this.#text(token.text);
        return;
      case 'raw':
        this.#raw(token.name, token.text);
        return;
      case 'open':
        this.#start(token.name, token.attributes);
        return;
      case 'close':
        this.#stop(token.name);
    }
  }

  get #inScope(): boolean {
    return this.contentElement === undefined || this.#contentDepth > 0;
  }

  #raw(name: string, text: string): void {
    if (name === 'script') this.scripts = true;
    if (name === 'xmp') this.#text(text);
    if (name !== 'title' || this.#titled) return;
    // Only the first title counts: SVG images have titles too.
    this.#titled = true;
    const title = readEntities(text.slice(0, 4 * MAX_TITLE))
      .replace(/\s+/g, ' ')
      .trim();
    const short = title.length > MAX_TITLE ? `${title.slice(0, MAX_TITLE - 1).trim()}…` : title;
    this.title = short.toWellFormed();
  }

  #text(raw: string): void {
    if (!this.#inScope) return;
    const text = readEntities(raw);
    if (this.#pre === undefined) this.#writer.text(text);
    else {
      this.#pre.push(text);
      this.#preLength += text.length;
    }
  }

  /** True: the token belongs to the skipped element. */
  #skip(token: HtmlToken): boolean {
    const skipped = this.#skipped!;
    if (token.type === 'raw') {
      if (token.name === 'script') this.scripts = true;
      return true;
    }
    if (token.type === 'text') return true;
    const { name } = token;
    if (token.type === 'open') {
      const ends = OPTIONAL_END.has(skipped.name) && skipped.depth === 0;
      if (ends && (name === skipped.name || (skipped.name === 'p' && BLOCKS.has(name)))) {
        this.#skipped = undefined;
        return false;
      }
      if (VOID.has(name)) return true;
      if (name === skipped.name) skipped.same++;
      if (!OPTIONAL_END.has(name)) skipped.depth++;
      return true;
    }
    if (name === skipped.name) {
      if (skipped.same === 0) this.#skipped = undefined;
      else skipped.same--;
      if (!OPTIONAL_END.has(name)) skipped.depth = Math.max(0, skipped.depth - 1);
      return true;
    }
    if (OPTIONAL_END.has(name)) return true;
    if (skipped.depth > 0) skipped.depth--;
    else if (OPTIONAL_END.has(skipped.name)) {
      // The end tag of an element around it.
      this.#skipped = undefined;
      return false;
    }
    return true;
  }

  #start(name: string, attributes: Attributes): void {
    if (VOID.has(name)) {
      if (!isHidden(attributes)) this.#void(name, attributes);
      return;
    }
    if (BOILERPLATE.has(name) || isHidden(attributes)) {
      this.#skipped = { name, same: 0, depth: 0 };
      return;
    }
    const ends = IMPLIED_ENDS[name];
    if (ends !== undefined) this.#endUpTo(ends[0], ends[1]);
    if (BLOCKS.has(name)) this.#endUpTo(['p'], ['td', 'th', 'li', 'table']);
    if (this.#stack.length >= MAX_DEPTH) {
      this.#beyond.set(name, (this.#beyond.get(name) ?? 0) + 1);
      if (BLOCKS.has(name)) this.#writer.break(1);
      return;
    }
    const close = this.#opened(name, attributes);
    this.#stack.push({ name, close });
    this.#open.set(name, (this.#open.get(name) ?? 0) + 1);
  }

  #stop(name: string): void {
    const beyond = this.#beyond.get(name) ?? 0;
    if (beyond > 0) {
      this.#beyond.set(name, beyond - 1);
      return;
    }
    if (name === 'br') this.#void(name, new Map());
    if ((this.#open.get(name) ?? 0) === 0) return;
    const inline = !BLOCKS.has(name);
    for (let at = this.#stack.length - 1; at >= 0; at--) {
      const one = this.#stack[at]!;
      if (one.name === name) {
        while (this.#stack.length > at) this.#pop();
        return;
      }
      // A stray end tag does not close the elements around it.
      if (inline ? BLOCKS.has(one.name) : SCOPE_LIMITS.has(one.name) && !CONTAINERS.has(name))
        return;
    }
  }

  #endUpTo(names: readonly string[], walls: readonly string[]): void {
    if (names.every((name) => (this.#open.get(name) ?? 0) === 0)) return;
    for (let at = this.#stack.length - 1; at >= 0; at--) {
      const { name } = this.#stack[at]!;
      if (names.includes(name)) {
        while (this.#stack.length > at) this.#pop();
        return;
      }
      if (walls.includes(name)) return;
    }
  }

  #pop(): void {
    const { name, close } = this.#stack.pop()!;
    this.#open.set(name, this.#open.get(name)! - 1);
    close?.();
  }

  #void(name: string, attributes: Attributes): void {
    if (name === 'base') {
      const found = absoluteUrl(attributes.get('href'), this.url);
      if (found !== undefined) this.#base = found;
    }
    if (!this.#inScope) return;
    if (name === 'br') {
      if (this.#pre === undefined) this.#writer.newline();
      else this.#pre.push('\n');
    } else if (name === 'hr') this.#writer.lines('---');
    else if (name === 'img' && this.#pre === undefined) this.#image(attributes);
  }

  #image(attributes: Attributes): void {
    const alt = readEntities((attributes.get('alt') ?? '').slice(0, 2000))
      .replace(/\s+/g, ' ')
      .trim();
    const src = attributes.get('src');
    const url = src === undefined ? undefined : absoluteUrl(src, this.#base);
    // Without a URL that can be fetched, only the alternative text is left.
    if (url === undefined) this.#writer.verbatim(alt);
    else if (alt !== '') this.#writer.verbatim(`![${alt}](${url})`);
  }

  /** Writes the start of an element; returns what to do at its end. */
  #opened(name: string, attributes: Attributes): (() => void) | undefined {
    if (name === this.contentElement) {
      this.#contentDepth++;
      return () => {
        this.#writer.break(2);
        this.#contentDepth--;
      };
    }
    if (!this.#inScope || this.#pre !== undefined) return undefined;
    const writer = this.#writer;
    const mark = MARKS[name];
    if (mark !== undefined) {
      // The same mark twice adds nothing, or means something else (`****`).
      if (this.#marked(mark)) return undefined;
      this.#marksOpen.push(mark);
      writer.begin(mark);
      return () => {
        this.#marksOpen = this.#marksOpen.filter((one) => one !== mark);
        writer.end(mark);
      };
    }
    switch (name) {
      case 'a':
        return this.#link(attributes);
      case 'h1':
      case 'h2':
      case 'h3':
      case 'h4':
      case 'h5':
      case 'h6': {
        writer.break(2);
        writer.indent(`${'#'.repeat(Number(name[1]))} `, '');
        return () => {
          writer.break(2);
          writer.outdent();
        };
      }
      case 'blockquote':
        writer.break(2);
        writer.indent('> ', '> ');
        return () => {
          writer.break(2);
          writer.outdent();
        };
      case 'ul':
      case 'menu':
      case 'ol':
        return this.#list(name, attributes);
      case 'li':
        return this.#item();
      case 'pre':
        return this.#preformatted(attributes);
      case 'table':
        return this.#table();
      case 'tr':
        return this.#row();
      case 'td':
      case 'th':
        return this.#cell();
      default:
        if (!BLOCKS.has(name)) return undefined;
        writer.break(2);
        return () => writer.break(2);
    }
  }

  #marksOpen: InlineMark[] = [];
  #marked(mark: InlineMark): boolean {
    return this.#marksOpen.includes(mark);
  }

  #link(attributes: Attributes): (() => void) | undefined {
    const url = absoluteUrl(attributes.get('href'), this.#base);
    if (url === undefined) return undefined;
    // A link inside a link ends the outer one.
    this.#endUpTo(['a'], ['td', 'th', 'table']);
    const mark: InlineMark = { open: '[', close: `](${url})` };
    const writer = this.#writer;
    writer.begin(mark);
    return () => writer.end(mark);
  }

  #list(name: string, attributes: Attributes): () => void {
    const writer = this.#writer;
    const start = Number(attributes.get('start') ?? 1);
    const counter = name === 'ol' ? (Number.isSafeInteger(start) ? start : 1) : undefined;
    const nested = this.#lists.length > 0;
    writer.break(nested ? 1 : 2);
    this.#lists.push({ counter });
    return () => {
      writer.break(nested ? 1 : 2);
      this.#lists.pop();
    };
  }

  #item(): () => void {
    const writer = this.#writer;
    const list = this.#lists.at(-1);
    const sign = list?.counter === undefined ? '- ' : `${list.counter++}. `;
    writer.break(1);
    writer.indent(sign, ' '.repeat(sign.length));
    return () => {
      writer.break(1);
      writer.outdent();
    };
  }

  #preformatted(attributes: Attributes): () => void {
    const writer = this.#writer;
    const language = /\b(?:language|lang)-([\w+#-]{1,30})/.exec(
      (attributes.get('class') ?? '').slice(0, 200),
    )?.[1];
    const text: string[] = [];
    this.#pre = text;
    return () => {
      this.#pre = undefined;
      this.#preLength = 0;
      const code = text.join('').replace(/\r\n?/g, '\n').replace(/^\n/, '').replace(/\n$/, '');
      if (code.trim() === '') return;
      const longest = code.match(/`{3,}/g)?.reduce((most, { length }) => Math.max(most, length), 2);
      const fence = '`'.repeat(Math.min((longest ?? 2) + 1, 20));
      writer.lines(`${fence}${language ?? ''}\n${code}\n${fence}`);
    };
  }

  #table(): () => void {
    const outer = this.#tables.at(-1);
    // A table that contains another one is used for layout.
    if (outer !== undefined && !outer.layout) this.#layOut(outer);
    const table: OpenTable = {
      writer: this.#writer,
      rows: [],
      size: 0,
      begun: false,
      layout: false,
    };
    table.writer.break(2);
    this.#tables.push(table);
    return () => {
      this.#writeRows(table);
      this.#tables = this.#tables.filter((one) => one !== table);
      table.writer.break(2);
    };
  }

  #row(): (() => void) | undefined {
    const table = this.#tables.at(-1);
    if (table === undefined) return undefined;
    table.rows.push([]);
    return () => {
      if (table.size > MAX_TABLE) this.#writeRows(table);
    };
  }

  #cell(): (() => void) | undefined {
    const table = this.#tables.at(-1);
    if (table === undefined || table.layout) {
      const writer = this.#writer;
      writer.break(2);
      return () => writer.break(2);
    }
    const cell = new MarkdownWriter();
    this.#writer = cell;
    return () => {
      // The table may have turned out to be layout meanwhile.
      if (this.#writer !== cell) return;
      this.#writer = table.writer;
      const text = cell.toString();
      if (table.rows.length === 0) table.rows.push([]);
      table.rows.at(-1)!.push(text);
      table.size += text.length + 3;
    };
  }

  /** Treats the table as layout: writes its cells so far, and all later ones, as blocks. */
  #layOut(table: OpenTable): void {
    table.layout = true;
    const cells = table.rows.flat();
    if (this.#writer !== table.writer) cells.push(this.#writer.toString());
    for (const cell of cells) if (cell !== '') table.writer.lines(cell);
    table.rows = [];
    table.size = 0;
    this.#writer = table.writer;
  }

  #writeRows(table: OpenTable): void {
    const lines: string[] = [];
    for (const cells of table.rows) {
      if (cells.every((cell) => cell === '')) continue;
      lines.push(`| ${cells.map(oneLine).join(' | ')} |`);
      if (!table.begun) lines.push(`|${' --- |'.repeat(cells.length)}`);
      table.begun = true;
    }
    table.rows = [];
    table.size = 0;
    for (const line of lines) table.writer.line(line);
  }
}

const oneLine = (cell: string) => cell.replace(/\s+/g, ' ').replaceAll('|', '\\|');
