/** The numbers in a vendor's "too long": the window, the prompt, and what was asked for in the answer. */

export interface OverflowCounts {
  /** The model's window. */
  readonly limit?: number;
  readonly input?: number;
  /** `max_tokens`, or by whatever name it was asked. */
  readonly output?: number;
  /** Prompt and answer, or one of them: the message does not say. */
  readonly total?: number;
}

// Numbers may be written with separators.
const OUTPUTS = [
  // vLLM
  /max_(?:completion_)?tokens'? is too large: (\d[\d,_]{0,14})/i,
  /requested (\d[\d,_]{0,14}) output tokens/i,
  // OpenAI, DeepSeek, vLLM: "(70772 in the messages, 32000 in the completion)"; OpenRouter: "32000 in the output"
  /(\d[\d,_]{0,14}) (?:tokens )?(?:in|for) (?:the )?(?:completion|output)/i,
  // TGI
  /(\d[\d,_]{0,14}) .?max_new_tokens/i,
  // TabbyAPI: "Request length 71599 + 2048 is greater than max_seq_len 65536"
  /length \d{1,12} \+ (\d[\d,_]{0,14})/i,
  /(\d[\d,_]{0,14}) (?:output|completion) tokens/i,
];
const INPUTS = [
  /has (\d[\d,_]{0,14}) input tokens/i,
  /contains (?:at least )?(\d[\d,_]{0,14}) (?:input )?tokens/i,
  /(\d[\d,_]{0,14}) tokens from the input/i,
  /given: (\d[\d,_]{0,14}) .?inputs/i,
  /length (\d[\d,_]{0,14}) \+ \d/i,
  /(?:prompt|input) (?:token count )?\((?:length )?(\d[\d,_]{0,14})/i,
  /(?:prompt|input) length (?:of )?(\d[\d,_]{0,14})/i,
  /resulted in (\d[\d,_]{0,14}) tokens/i,
  /request contains (\d[\d,_]{0,14}) tokens/i,
  /request \((\d[\d,_]{0,14}) tokens\)/i,
  /(\d[\d,_]{0,14}) input tokens/i,
  /prompt is too long: (\d[\d,_]{0,14})/i,
  /initial prompt \((\d[\d,_]{0,14})/i,
];
/** Parts of a prompt, each counted by itself: OpenAI's messages and functions, OpenRouter's text and tools. */
const PARTS =
  /(\d[\d,_]{0,14}) (?:tokens )?(?:in the (?:messages|prompt|functions|tools)|in your prompt|of (?:text|tool|image|audio) input)/gi;
const LIMIT =
  /(?:maximum|max|limit|context size|context length|context window|model length|allowed|must be <=|max_seq_len|longer than|larger than)[^\d]{0,60}(\d[\d,_]{2,14})/i;

const count = (text: string) => Number(text.replace(/[,_]/g, ''));

function first(message: string, patterns: readonly RegExp[]): number | undefined {
  for (const pattern of patterns) {
    const found = pattern.exec(message)?.[1];
    if (found !== undefined) return count(found);
  }
  return undefined;
}

/** What the message says; of numbers without a name the largest counts as the prompt, the next one as the limit. */
export function overflowCounts(message: string): OverflowCounts {
  const output = first(message, OUTPUTS);
  let parts = 0;
  for (const [, part = ''] of message.matchAll(PARTS)) parts += count(part);
  const input = parts > 0 ? parts : first(message, INPUTS);
  const numbers = [...message.matchAll(/\d[\d,_]{2,14}/g)].map(([text]) => count(text));
  const largest = Math.max(...numbers, 0);
  const others = numbers.filter((number) => number < largest);
  const said = LIMIT_OF_WINDOW.exec(message)?.[1] ?? LIMIT.exec(message)?.[1];
  const named = said === undefined ? undefined : count(said);
  const top = input ?? largest;
  const limit =
    named !== undefined && (named < largest || input !== undefined)
      ? named
      : Math.max(...others.filter((number) => number < top), 0) || undefined;
  return {
    limit,
    input,
    output,
    total: largest > 0 && others.length > 0 ? largest : undefined,
  };
}

/** The window by its own name, which stands behind the cap in vLLM's message. */
const LIMIT_OF_WINDOW = /context (?:length|window|size|limit)[^\d]{0,40}(\d[\d,_]{2,14})/i;
