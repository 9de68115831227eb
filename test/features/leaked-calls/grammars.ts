/** Every grammar as a writer of calls: the markup that models of that family leak. */

export interface Call {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

export type Write = (calls: readonly Call[]) => string;

const json = JSON.stringify;
const raw = (value: unknown) => (typeof value === 'string' ? value : json(value));
const each = (calls: readonly Call[], write: (call: Call) => string, between = '\n') =>
  calls.map(write).join(between);
const pairs = (call: Call) => Object.entries(call.arguments);

function dsml(block: string, open: string, close = open.replace('<', '</')): Write {
  const parameter = ([key, value]: [string, unknown]) =>
    `${open}parameter name="${key}" string="${typeof value === 'string'}">${raw(value)}${close}parameter>`;
  return (calls) =>
    `${open}${block}>\n${each(
      calls,
      (call) =>
        `${open}invoke name="${call.name}">\n${pairs(call).map(parameter).join('\n')}\n${close}invoke>`,
    )}\n${close}${block}>`;
}

function invoke(wrapper: string, prefix = ''): Write {
  const [before, behind] =
    wrapper === '' ? ['', ''] : [`<${prefix}${wrapper}>\n`, `\n</${prefix}${wrapper}>`];
  return (calls) =>
    before +
    each(
      calls,
      (call) =>
        `<${prefix}invoke name="${call.name}">\n${pairs(call)
          .map(
            ([key, value]) =>
              `<${prefix}parameter name="${key}">${raw(value)}</${prefix}parameter>`,
          )
          .join('\n')}\n</${prefix}invoke>`,
    ) +
    behind;
}

const M3 = ']<]minimax[>[';
const m3Value = (key: string, value: unknown): string => {
  if (Array.isArray(value)) {
    const items = value.map((item) => m3Value('item', item)).join('');
    return `${M3}<${key}>${items}${M3}</${key}>`;
  }
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([name, each]) => m3Value(name, each));
    return `${M3}<${key}>${members.join('')}${M3}</${key}>`;
  }
  return `${M3}<${key}>${raw(value)}${M3}</${key}>`;
};

/** As Gemma 4's chat template writes a value: strings between marks, without escapes; keys bare. */
const gemmaValue = (value: unknown): string => {
  if (typeof value === 'string') return `<|"|>${value}<|"|>`;
  if (Array.isArray(value)) return `[${value.map(gemmaValue).join(',')}]`;
  if (typeof value !== 'object' || value === null) return json(value);
  const members = Object.entries(value).map(([key, each]) => `${key}:${gemmaValue(each)}`);
  return `{${members.join(',')}}`;
};

const kimiCall = (call: Call, at: number, prefix = 'functions.') =>
  `<|tool_call_begin|>${prefix}${call.name}:${at}<|tool_call_argument_begin|>${json(call.arguments)}<|tool_call_end|>`;

const k3Type = (value: unknown) =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;

const qwenCall = (call: Call) =>
  `<function=${call.name}>\n${pairs(call)
    .map(([key, value]) => `<parameter=${key}>\n${raw(value)}\n</parameter>\n`)
    .join('')}</function>`;

const python = (value: unknown): string => {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(python).join(', ')}]`;
  if (typeof value === 'object') {
    const members = Object.entries(value).map(([key, each]) => `${json(key)}: ${python(each)}`);
    return `{${members.join(', ')}}`;
  }
  return json(value);
};
const pythonCall = (call: Call) =>
  `${call.name}(${pairs(call)
    .map(([key, value]) => `${key}=${python(value)}`)
    .join(', ')})`;

const named = (call: Call) => ({ name: call.name, arguments: call.arguments });

/** Grammars that may appear anywhere in a reply. */
export const GRAMMARS: Readonly<Record<string, Write>> = {
  'dsml v3.2': dsml('function_calls', '<｜DSML｜'),
  'dsml v4': dsml('tool_calls', '<｜DSML｜'),
  'dsml v4.1': dsml('calls', '<｜DSML｜ ', '</｜DSML｜ '),
  'dsml v4.1, a line break in the tag': dsml('calls', '<｜DSML｜\n ', '</｜DSML｜\n '),
  'dsml, ascii bars': dsml('function_calls', '<|DSML|'),
  'dsml, doubled bars': dsml('function_calls', '<｜｜DSML｜｜'),
  'dsml, plain closers': dsml('function_calls', '<｜DSML｜', '</'),
  'dsml, marks lost': dsml('tool_calls', '<'),
  'dsml, calls without a block': (calls) =>
    dsml('calls', '<｜DSML｜')(calls).replace(/^.*\n|\n.*$/g, ''),
  'dsml, json bodies': (calls) =>
    `<｜DSML｜function_calls>\n${each(calls, (c) => `<｜DSML｜invoke name="${c.name}">\n${json(c.arguments)}\n</｜DSML｜invoke>`)}\n</｜DSML｜function_calls>`,
  'deepseek r1': (calls) =>
    `<｜tool▁calls▁begin｜>${each(calls, (c) => `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${c.name}\n\`\`\`json\n${json(c.arguments)}\n\`\`\`<｜tool▁call▁end｜>`)}<｜tool▁calls▁end｜><｜end▁of▁sentence｜>`,
  'deepseek v3.1': (calls) =>
    `<｜tool▁calls▁begin｜>${each(calls, (c) => `<｜tool▁call▁begin｜>${c.name}<｜tool▁sep｜>${json(c.arguments)}<｜tool▁call▁end｜>`, '')}<｜tool▁calls▁end｜>`,
  'glm 4.5': (calls) =>
    each(
      calls,
      (c) =>
        `<tool_call>${c.name}\n${pairs(c)
          .map(([k, v]) => `<arg_key>${k}</arg_key>\n<arg_value>${raw(v)}</arg_value>\n`)
          .join('')}</tool_call>`,
    ),
  'glm 4.7': (calls) =>
    each(
      calls,
      (c) =>
        `<tool_call>${c.name}${pairs(c)
          .map(([k, v]) => `<arg_key>${k}</arg_key><arg_value>${raw(v)}</arg_value>`)
          .join('')}</tool_call>`,
      '',
    ),
  'glm, literal backslash-n': (calls) =>
    each(
      calls,
      (c) =>
        `<tool_call>${c.name}${pairs(c)
          .map(([k, v]) => `\\n<arg_key>${k}</arg_key>\\n<arg_value>${raw(v)}</arg_value>`)
          .join('')}\\n</tool_call>`,
    ),
  hermes: (calls) => each(calls, (c) => `<tool_call>\n${json(named(c))}\n</tool_call>`),
  'hermes, arguments as a string': (calls) =>
    each(
      calls,
      (c) => `<tool_call>\n${json({ name: c.name, arguments: json(c.arguments) })}\n</tool_call>`,
    ),
  'hermes, parameters': (calls) =>
    each(
      calls,
      (c) => `<tool_call>\n${json({ name: c.name, parameters: c.arguments })}\n</tool_call>`,
    ),
  qwen: (calls) => each(calls, (c) => `<tool_call>\n${qwenCall(c)}\n</tool_call>`),
  'qwen, bare': (calls) => each(calls, qwenCall),
  'qwen, only the closer': (calls) => each(calls, (c) => `${qwenCall(c)}\n</tool_call>`),
  'qwen, spaces in tags': (calls) =>
    each(calls, (c) =>
      qwenCall(c)
        .replaceAll('<parameter=', '< parameter = ')
        .replaceAll('<function=', '<function = '),
    ),
  'kimi k2': (calls) =>
    `<|tool_calls_section_begin|>${calls.map((c, i) => kimiCall(c, i)).join('')}<|tool_calls_section_end|>`,
  'kimi k2, singular': (calls) =>
    `<|tool_call_section_begin|>${calls.map((c, i) => kimiCall(c, i)).join('')}<|tool_call_section_end|>`,
  granite: (calls) => `<|tool_call|>${json(calls.map(named))}`,
  phi: (calls) => `<|tool_call|>${json(calls.map(named))}<|/tool_call|>`,
  gemma: (calls) =>
    calls.map((c) => `<|tool_call>call:${c.name}${gemmaValue(c.arguments)}<tool_call|>`).join(''),
  cohere: (calls) =>
    `<|START_ACTION|>${json(calls.map((c, i) => ({ tool_call_id: String(i), tool_name: c.name, parameters: c.arguments })))}<|END_ACTION|>`,
  nemotron: (calls) => `<TOOLCALL>${json(calls.map(named))}</TOOLCALL>`,
  'seed-oss': (calls) => each(calls, (c) => `<seed:tool_call>\n${qwenCall(c)}\n</seed:tool_call>`),
  longcat: (calls) =>
    each(calls, (c) => `<longcat_tool_call>\n${json(named(c))}\n</longcat_tool_call>`),
  'longcat lite': (calls) =>
    each(
      calls,
      (c) =>
        `<longcat_tool_call>${c.name}\n${pairs(c)
          .map(
            ([k, v]) =>
              `<longcat_arg_key>${k}</longcat_arg_key>\n<longcat_arg_value>${raw(v)}</longcat_arg_value>\n`,
          )
          .join('')}</longcat_tool_call>`,
    ),
  step: (calls) =>
    `<｜tool_calls_begin｜>${each(
      calls,
      (c) =>
        `<｜tool_call_begin｜>function<｜tool_sep｜>${invoke('', 'steptml:')([c])}<｜tool_call_end｜>`,
    )}<｜tool_calls_end｜>`,
  'python in tool_call': (calls) => each(calls, (c) => `<tool_call>${pythonCall(c)}</tool_call>`),
  'hermes, the name in the tag': (calls) =>
    each(calls, (c) => `<tool_call name="${c.name}">\n${json(c.arguments)}\n</tool_call>`),
  'kimi k2, no prefix, no section': (calls) => calls.map((c, i) => kimiCall(c, i, '')).join(''),
  'kimi k3': (calls) =>
    `<|open|>tools<|sep|>${calls
      .map(
        (c, i) =>
          `<|open|>call tool="${c.name}" index="${i + 1}"<|sep|>${pairs(c)
            .map(
              ([k, v]) =>
                `<|open|>argument key="${k}" type="${k3Type(v)}"<|sep|>${raw(v)}<|close|>argument<|sep|>`,
            )
            .join('')}<|close|>call<|sep|>`,
      )
      .join('')}<|close|>tools<|sep|>`,
  'minimax m1': (calls) => `<tool_calls>\n${each(calls, (c) => json(named(c)))}\n</tool_calls>`,
  'minimax m2': invoke('minimax:tool_call'),
  'minimax m3': (calls) =>
    `${M3}<tool_call>\n${each(
      calls,
      (c) =>
        `${M3}<invoke name="${c.name}">${pairs(c)
          .map(([k, v]) => m3Value(k, v))
          .join('')}${M3}</invoke>`,
    )}\n${M3}</tool_call>`,
  anthropic: invoke('function_calls'),
  'anthropic, antml': invoke('function_calls', 'antml:'),
  'anthropic, bare': invoke(''),
  'mistral v3': (calls) => `[TOOL_CALLS] ${json(calls.map(named))}`,
  'mistral v7': (calls) => `[TOOL_CALLS]${json(calls.map(named))}`,
  'mistral v11': (calls) =>
    each(calls, (c) => `[TOOL_CALLS]${c.name}[ARGS]${json(c.arguments)}`, ''),
  'mistral v11, ids': (calls) =>
    each(calls, (c) => `[TOOL_CALLS]${c.name}[CALL_ID]a1B2c3D4e[ARGS]${json(c.arguments)}`, ''),
  'mistral v11, no separator': (calls) =>
    each(calls, (c) => `[TOOL_CALLS]${c.name}${json(c.arguments)}`, ''),
  llama: (calls) =>
    `<|python_tag|>${each(calls, (c) => json({ name: c.name, parameters: c.arguments }), '; ')}<|eom_id|>`,
  'llama 4': (calls) => `<|python_start|>[${each(calls, pythonCall, ', ')}]<|python_end|>`,
  harmony: (calls) =>
    each(
      calls,
      (c) =>
        `<|start|>assistant<|channel|>commentary to=functions.${c.name} <|constrain|>json<|message|>${json(c.arguments)}<|call|>`,
      '',
    ),
  'harmony, recipient first': (calls) =>
    each(
      calls,
      (c) =>
        `<|start|>assistant to=functions.${c.name}<|channel|>commentary json<|message|>${json(c.arguments)}<|call|>`,
      '',
    ),
  'harmony, from the channel on': (calls) =>
    each(
      calls,
      (c) => `<|channel|>commentary to=functions.${c.name}<|message|>${json(c.arguments)}<|call|>`,
      '',
    ),
  'harmony, tokens stripped': (calls) =>
    each(calls, (c) => `commentary to=functions.${c.name} json${json(c.arguments)}`),
  'harmony, glued': (calls) =>
    each(calls, (c) => `assistantcommentary to=functions.${c.name} json${json(c.arguments)}`, ''),
  'json envelope': (calls) =>
    json({
      tool_calls: calls.map((c, i) => ({
        id: `call_${i}`,
        type: 'function',
        function: { name: c.name, arguments: json(c.arguments) },
      })),
    }),
  'lm studio': (calls) => each(calls, (c) => `[TOOL_REQUEST]${json(named(c))}[END_TOOL_REQUEST]`),
};

/** Grammars that count only as a whole reply. */
export const WHOLE_REPLIES: Readonly<Record<string, Write>> = {
  'llama, no tag': (calls) =>
    each(calls, (c) => json({ name: c.name, parameters: c.arguments }), '; '),
  'a list of calls': (calls) => json(calls.map(named)),
  pythonic: (calls) => `[${each(calls, pythonCall, ', ')}]`,
  'function_call items': (calls) =>
    each(
      calls,
      (c) => json({ type: 'function_call', name: c.name, arguments: json(c.arguments) }),
      '\n',
    ),
};
