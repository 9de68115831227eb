/** The requests of an agent's session, as agents send them: the whole history with every turn, forty tools, cache marks on the newest messages. */

/** A protocol that a client speaks. */
export type SessionDialect = 'messages' | 'chat' | 'responses' | 'gemini';

export const SESSION_DIALECTS: readonly SessionDialect[] = [
  'messages',
  'chat',
  'responses',
  'gemini',
];

export const SESSION_TURNS = 60;
const TOOLS = 40;
const SYSTEM_BYTES = 20_000;
const RESULT_BYTES = 15_000;
/** Messages that hold a cache mark, from the end. */
const MARKED = 2;

/** Numbers that are the same in every run, and others in every session. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const WORDS = 'table index value cursor branch parser buffer window result handle'.split(' ');

/** Lines of a program, of about so many bytes; every fifth text holds other letters than ASCII's. */
function source(bytes: number, random: () => number): string {
  const word = () => WORDS[Math.floor(random() * WORDS.length)]!;
  const lines: string[] = random() < 0.2 ? ['// Größe in Bytes — 长度\n'] : [];
  for (let size = 0; size < bytes; ) {
    const line = `  const ${word()} = ${word()}.get("${word()}-${Math.floor(random() * 1e6)}"); // ${word()} of the ${word()}\n`;
    lines.push(line);
    size += line.length;
  }
  return lines.join('');
}

interface Step {
  readonly id: string;
  readonly said: string;
  readonly path: string;
  readonly result: string;
}

/** One session of a client. */
export class AgentSession {
  readonly #system: string;
  readonly #tools: readonly object[];
  readonly #steps: readonly Step[];
  readonly #dialect: SessionDialect;
  readonly id: string;

  constructor(dialect: SessionDialect, seed: number, turns = SESSION_TURNS) {
    const random = randomOf(seed);
    this.#dialect = dialect;
    this.id = `00000000-0000-4000-8000-${String(seed).padStart(12, '0')}`;
    this.#system = `You are a careful agent. Session ${seed}.\n${source(SYSTEM_BYTES, random)}`;
    this.#tools = Array.from({ length: TOOLS }, (_, i) => declared(dialect, i, random));
    this.#steps = Array.from({ length: turns }, (_, i) => ({
      id: `call_${seed}_${i}_${Math.floor(random() * 1e9)}`,
      said: `Step ${i}: I look at the file first. ${source(300, random)}`,
      path: `/src/part-${Math.floor(random() * 1e6)}.ts`,
      result: source(RESULT_BYTES, random),
    }));
  }

  /** The body of a turn, from 0; `model` stands first, as in most clients. */
  body(turn: number, model: string): string {
    const steps = this.#steps.slice(0, turn + 1);
    const [system, tools, id] = [this.#system, this.#tools, this.id];
    switch (this.#dialect) {
      case 'messages':
        return JSON.stringify(messagesBody(model, system, tools, steps, id));
      case 'chat':
        return JSON.stringify(chatBody(model, system, tools, steps, id));
      case 'responses':
        return JSON.stringify(responsesBody(model, system, tools, steps, id));
      case 'gemini':
        return JSON.stringify(geminiBody(system, tools, steps));
    }
  }
}

function declared(dialect: SessionDialect, i: number, random: () => number): object {
  const name = `tool_${i}`;
  const description = source(500, random);
  const properties = Object.fromEntries(
    ['path', 'pattern', 'limit', 'offset'].map((key) => [
      key,
      { type: 'string', description: source(80, random) },
    ]),
  );
  const parameters = { type: 'object', properties, required: ['path'] };
  switch (dialect) {
    case 'messages':
      return { name, description, input_schema: parameters };
    case 'chat':
      return { type: 'function', function: { name, description, parameters } };
    case 'responses':
      return { type: 'function', name, description, parameters, strict: false };
    case 'gemini':
      return { name, description, parametersJsonSchema: parameters };
  }
}

const TASK = 'Please find out why the parser is slow, and put it right.';
const mark = (yes: boolean) => (yes ? { cache_control: { type: 'ephemeral' } } : {});
const isMarked = (at: number, steps: readonly Step[]) => at >= steps.length - MARKED;

function messagesBody(
  model: string,
  system: string,
  tools: readonly object[],
  steps: readonly Step[],
  id: string,
): object {
  const messages: object[] = [{ role: 'user', content: [{ type: 'text', text: TASK }] }];
  steps.forEach((step, i) => {
    const call = { type: 'tool_use', id: step.id, name: 'tool_1', input: { path: step.path } };
    messages.push({ role: 'assistant', content: [{ type: 'text', text: step.said }, call] });
    const result = {
      type: 'tool_result',
      tool_use_id: step.id,
      content: step.result,
      ...mark(isMarked(i, steps)),
    };
    messages.push({ role: 'user', content: [result] });
  });
  return {
    model,
    messages,
    system: [{ type: 'text', text: system, ...mark(true) }],
    tools,
    metadata: { user_id: `user_0_account_0_session_${id}` },
    max_tokens: 32_000,
  };
}

function chatBody(
  model: string,
  system: string,
  tools: readonly object[],
  steps: readonly Step[],
  id: string,
): object {
  const parts = (text: string, marked: boolean) =>
    marked ? [{ type: 'text', text, ...mark(true) }] : text;
  const messages: object[] = [
    { role: 'system', content: parts(system, true) },
    { role: 'user', content: TASK },
  ];
  steps.forEach((step, i) => {
    const call = { name: 'tool_1', arguments: JSON.stringify({ path: step.path }) };
    messages.push({
      role: 'assistant',
      content: step.said,
      tool_calls: [{ id: step.id, type: 'function', function: call }],
    });
    messages.push({
      role: 'tool',
      tool_call_id: step.id,
      content: parts(step.result, isMarked(i, steps)),
    });
  });
  return { model, messages, tools, prompt_cache_key: id, max_tokens: 32_000 };
}

function responsesBody(
  model: string,
  system: string,
  tools: readonly object[],
  steps: readonly Step[],
  id: string,
): object {
  const text = (role: string, type: string, words: string) => ({
    type: 'message',
    role,
    content: [{ type, text: words }],
  });
  const input: object[] = [text('user', 'input_text', TASK)];
  for (const step of steps) {
    const args = JSON.stringify({ path: step.path });
    input.push(text('assistant', 'output_text', step.said));
    input.push({ type: 'function_call', call_id: step.id, name: 'tool_1', arguments: args });
    input.push({ type: 'function_call_output', call_id: step.id, output: step.result });
  }
  return { model, instructions: system, input, tools, store: false, prompt_cache_key: id };
}

function geminiBody(system: string, tools: readonly object[], steps: readonly Step[]): object {
  const contents: object[] = [{ role: 'user', parts: [{ text: TASK }] }];
  for (const step of steps) {
    const call = { id: step.id, name: 'tool_1', args: { path: step.path } };
    contents.push({ role: 'model', parts: [{ text: step.said }, { functionCall: call }] });
    const answer = { id: step.id, name: 'tool_1', response: { output: step.result } };
    contents.push({ role: 'user', parts: [{ functionResponse: answer }] });
  }
  return {
    contents,
    systemInstruction: { parts: [{ text: system }] },
    tools: [{ functionDeclarations: tools }],
  };
}
