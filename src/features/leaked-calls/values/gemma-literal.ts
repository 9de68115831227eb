/** Parses the arguments of Gemma's calls: `{path:<|"|>/tmp<|"|>,deep:{n:1},list:[true]}`, whose strings have no escapes. */

import type { Json } from '../../../lib/json/json.ts';
import { LiteralReader, readWhole } from './python-literal.ts';

export const GEMMA_QUOTE = '<|"|>';

class GemmaReader extends LiteralReader {
  override value(): Json {
    this.space();
    return this.text.startsWith(GEMMA_QUOTE, this.at) ? this.marked() : super.value();
  }

  override key(): Json {
    return this.word(/[A-Za-z_$][\w.$-]*/y) ?? this.value();
  }

  marked(): string {
    const start = this.at + GEMMA_QUOTE.length;
    const end = this.text.indexOf(GEMMA_QUOTE, start);
    if (end < 0) this.fail();
    this.at = end + GEMMA_QUOTE.length;
    return this.text.slice(start, end);
  }

  /** Some relays write round brackets. */
  arguments(): Json {
    this.space();
    return this.text[this.at] === '(' ? this.dictionary('(', ')') : this.dictionary();
  }
}

/** The arguments as an object; undefined if the text is something else. */
export const gemmaArguments = (text: string): Json | undefined =>
  readWhole(new GemmaReader(text), (reader) => reader.arguments());
