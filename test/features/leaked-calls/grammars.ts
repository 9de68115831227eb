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

/** GLM's keys and values, each tag with this suffix. */
const keyed = (call: Call, suffix = '', between = '') =>
  pairs(call)
    .map(
      ([k, v]) =>
        `<arg_key${suffix}>${k}</arg_key${suffix}>${between}<arg_value${suffix}>${raw(v)}</arg_value${suffix}>${between}`,
    )
    .join('');

/** vllm/tool_parsers/hy_v4_tool_parser.py; sglang/srt/function_call/hunyuan_detector.py, with a separator. */
const hunyuan =
  (suffix: string, separator: string, between: string): Write =>
  (calls) =>
    `<tool_calls${suffix}>${between}${each(
      calls,
      (c) =>
        `<tool_call${suffix}>${c.name}${separator}${between}${keyed(c, suffix, between)}</tool_call${suffix}>`,
      between,
    )}${between}</tool_calls${suffix}>`;

const plamo = (part: string) => `<|plamo:${part}:plamo|>`;

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
  // The following ones: the parser of the same name in vLLM (vllm/tool_parsers) or SGLang (srt/function_call).
  'hunyuan 3': hunyuan('', '<tool_sep>', '\n'),
  'hunyuan 3, suffixed': hunyuan(':opensource', '<tool_sep:opensource>', '\n'),
  'hunyuan 4': hunyuan(':6124c78e', '', ''),
  muse: invoke('function_calls', 'atem:'),
  'muse, framed': (calls) =>
    `<|start|>assistant to=${calls[0]!.name}<|message|>${invoke('function_calls', 'atem:')(calls)}<|eom|>`,
  inkling: (calls) =>
    each(
      calls,
      (c) =>
        `<|message_model|>${c.name}<|content_invoke_tool_json|>${json({ name: c.name, args: c.arguments })}<|end_message|>`,
      '',
    ),
  'gigachat 3.5': dsml('tool_calls', '<｜GCML｜'),
  'k2 horizon': (calls) =>
    `<ifm|tool_calls>\n${each(
      calls,
      (c) =>
        `<ifm|tool_call>${c.name}\n${pairs(c)
          .map(
            ([k, v]) =>
              `<ifm|arg_key>${k}</ifm|arg_key>\n<ifm|arg_value>${raw(v)}</ifm|arg_value>\n`,
          )
          .join('')}</ifm|tool_call>`,
    )}\n</ifm|tool_calls>`,
  'k2 horizon, json': (calls) =>
    each(calls, (c) => `<ifm|tool_call>${json(named(c))}</ifm|tool_call>`),
  minicpm5: (calls) =>
    each(
      calls,
      (c) =>
        `<function name="${c.name}">${pairs(c)
          .map(([k, v]) => `<param name="${k}">${raw(v)}</param>`)
          .join('')}</function>`,
    ),
  'minicpm5, cdata': (calls) =>
    each(
      calls,
      (c) =>
        `<function name="${c.name}">${pairs(c)
          .map(([k, v]) => `<param name="${k}"><![CDATA[${raw(v)}]]></param>`)
          .join('')}</function>`,
    ),
  dots: invoke('dots_function_call'),
  'dots, json': (calls) =>
    each(calls, (c) => `<dots_function_call>\n${json(named(c))}\n</dots_function_call>`),
  'iquest q1': (calls) =>
    each(calls, (c) => `<iquest_tool_call>${c.name}${keyed(c)}</iquest_tool_call>`),
  'iquest coder': (calls) =>
    each(calls, (c) => `<iquestcoder_tool_call>${c.name}${keyed(c)}</iquestcoder_tool_call>`),
  apertus: (calls) =>
    `<|tools_prefix|>${json(calls.map((c) => ({ [c.name]: c.arguments })))}<|tools_suffix|>`,
  pangu: (calls) => `<|tool_call_start|>${json(calls.map(named))}<|tool_call_end|>`,
  functiongemma: (calls) =>
    calls
      .map(
        (c) =>
          `<start_function_call>call:${c.name}${gemmaValue(c.arguments).replaceAll('<|"|>', '<escape>')}<end_function_call>`,
      )
      .join(''),
  'solar open 2': (calls) =>
    each(
      calls,
      (c) =>
        `<|tool_call:start|>${c.name}\n${pairs(c)
          .map(([k, v]) => `<|tool_arg:start|>${k}<|tool_arg:value|>${raw(v)}<|tool_arg:end|>\n`)
          .join('')}<|tool_call:end|>`,
    ),
  plamo3: (calls) =>
    plamo('begin_tool_requests') +
    calls
      .map(
        (c) =>
          `${plamo('begin_tool_request')}${plamo('begin_tool_name')}${c.name}${plamo('end_tool_name')}${plamo('begin_tool_arguments')}${json(c.arguments)}${plamo('end_tool_arguments')}${plamo('end_tool_request')}`,
      )
      .join('') +
    plamo('end_tool_requests'),
  'glm 5.3 flash': (calls) =>
    each(calls, (c) => `<tool_call>${c.name}>${json(c.arguments)}</tool_call>`),
  'glm 5.3 flash, one tag for key and value': (calls) =>
    each(
      calls,
      (c) =>
        `<tool_call>${c.name}${pairs(c)
          .map(([k, v]) => `<arg_key>${k}=${raw(v)}</arg_value>`)
          .join('')}</tool_call>`,
    ),
  'step audio': (calls) =>
    each(calls, (c) => `<tool_call>function\n${c.name}\n${json(c.arguments)}</tool_call>`),
  internlm: (calls) =>
    each(
      calls,
      (c) =>
        `<|action_start|><|plugin|>\n${json({ name: c.name, parameters: c.arguments })}<|action_end|>`,
    ),
  'hermes, members as tags': (calls) =>
    each(
      calls,
      (c) =>
        `<tool_call>\n<name>${c.name}</name>\n<arguments>${json(c.arguments)}</arguments>\n</tool_call>`,
    ),
  // https://github.com/can1357/oh-my-pi/issues/8495
  'kimi k3, a separator lost': (calls) =>
    GRAMMARS['kimi k3']!(calls)
      .replace('<|open|>tools<|sep|><|open|>call', '<|open|>toolscall')
      .replace(/tools<\|sep\|>$/, 'toolsmessage<|sep|>'),
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

/** Grammars whose names hold no hyphen. */
export const PYTHONIC: Readonly<Record<string, Write>> = {
  'olmo 3': (calls) => `<function_calls>\n${each(calls, pythonCall)}\n</function_calls>`,
  'lfm 2': (calls) => `<|tool_call_start|>[${each(calls, pythonCall, ', ')}]<|tool_call_end|>`,
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
